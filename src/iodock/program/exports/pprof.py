"""Writes a profile for pprof, compressed by gzip, with the time, bytes and calls of each path.

The format and the numbers of fields are those of
https://github.com/google/pprof/blob/main/proto/profile.proto.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from typing import BinaryIO

from iodock.program.exports.protobuf import number, packed, text
from iodock.program.relations.flames import Frame
from iodock.program.relations.paths import WEIGHTS, Path, Paths

_UNITS = {"time": "nanoseconds", "bytes": "bytes", "calls": "count"}


@dataclass(slots=True)
class _Texts:
    """Numbers the texts of a profile. The format requires that the first text is empty."""

    places: dict[str, int] = field(default_factory=lambda: {"": 0})

    def of(self, value: str) -> int:
        return self.places.setdefault(value, len(self.places))


def write_pprof(paths: Paths, out: BinaryIO) -> None:
    """Writes a profile with all weights. pprof shows the chosen weight first."""
    texts = _Texts()
    # The gzip header contains no name and no time, so that the same store always gives the same bytes.
    with gzip.GzipFile("", "wb", 6, out, mtime=0) as packer:
        for weight in WEIGHTS:
            kind = number(1, texts.of(weight)) + number(2, texts.of(_UNITS[weight]))
            packer.write(text(1, kind))
        for path in paths:
            packer.write(text(2, _sample(path)))
        modules = {_module(frame) for frame in paths.frames.values() if frame.module}
        mappings = {module: place for place, module in enumerate(sorted(modules), 1)}
        for (module, build_id), place in mappings.items():
            packer.write(text(3, _mapping(place, module, build_id, texts)))
        for place, frame in paths.frames.items():
            mapping = mappings.get(_module(frame), 0)
            line = number(1, place) + number(2, frame.line or 0)
            packer.write(text(4, number(1, place) + number(2, mapping) + text(4, line)))
            packer.write(text(5, _function(place, frame, texts)))
        manifest = paths.store.manifest
        chosen = texts.of(paths.weights[0])
        for one in texts.places:
            packer.write(text(6, one.encode("utf-8", "backslashreplace")))
        packer.write(number(9, (manifest.first_ts or 0) if manifest.clock == "epoch" else 0))
        packer.write(number(10, manifest.wall_ns or 0) + number(14, chosen))


def _module(frame: Frame) -> tuple[str, str]:
    return frame.module or "", frame.build_id or ""


def _sample(path: Path) -> bytes:
    # The format puts the innermost frame first.
    return packed(1, reversed(path.frames)) + packed(2, (path.weight(one) for one in WEIGHTS))


def _mapping(place: int, module: str, build_id: str, texts: _Texts) -> bytes:
    has_names = b"".join(number(at, 1) for at in (7, 8, 9, 10))
    return number(1, place) + number(5, texts.of(module)) + number(6, texts.of(build_id)) + has_names


def _function(place: int, frame: Frame, texts: _Texts) -> bytes:
    name = texts.of(frame.name)
    return number(1, place) + number(2, name) + number(3, name) + number(4, texts.of(frame.file or ""))
