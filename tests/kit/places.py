"""Paths of folders in the checkout."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "fixtures"
SOURCE = ROOT / "src" / "iodock"
