"""Tests `iodock --version`, which prints what a bug report must contain."""

from __future__ import annotations

import iodock
from in_process import printed
from iodock import _native
from iodock.program.recording import BACKENDS


def test_version_prints_build_and_back_ends() -> None:
    first, build, ends = printed("--version").splitlines()
    assert first == f"iodock {iodock.__version__}" == f"iodock {_native.__version__}"
    assert build == f"build: {_native.__commit__ or 'not known'}"
    said = ends.removeprefix("back ends: ")
    assert {name for name, _ in _native.backends()} == set(BACKENDS) - {"auto"}
    for name, refusal in _native.backends():
        assert (f"{name} (no: {refusal})" if refusal else name) in said
