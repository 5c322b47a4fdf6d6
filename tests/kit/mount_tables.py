"""Mount tables of other machines."""

from __future__ import annotations

from places import FIXTURES

MOUNTINFO = FIXTURES / "file-systems" / "mountinfo"
"""As on login nodes of several centres, one line that is none at the end."""
