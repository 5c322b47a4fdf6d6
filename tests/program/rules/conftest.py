"""Fixtures of the rules' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_rules import made_store


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return made_store(tmp_path)
