"""Lists mount tables copied from other machines."""

from __future__ import annotations

from places import FIXTURES

MOUNTINFO = FIXTURES / "file-systems" / "mountinfo"
"""As on login nodes of several centres, with an invalid line at the end."""
