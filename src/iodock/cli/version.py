"""Formats the output of `iodock --version`: the version, the build, and the back ends for recording."""

from __future__ import annotations

from collections.abc import Iterator

from iodock import __version__, _native


def lines() -> Iterator[str]:
    """Yields lines, each with one fact."""
    yield f"iodock {__version__}"
    yield f"build: {_native.__commit__ or 'not known'}"
    said = [name if refusal is None else f"{name} (no: {refusal})" for name, refusal in _native.backends()]
    yield f"back ends: {', '.join(said)}"
