"""Writes collapsed stacks, with a line for each path: `program;function;call;file weight`.

flamegraph.pl, inferno and speedscope read this format (https://github.com/brendangregg/FlameGraph).
"""

from __future__ import annotations

from collections import Counter
from typing import BinaryIO

from iodock.program.relations.paths import Paths

_TAKEN = str.maketrans({";": ":", "\n": " ", "\r": " "})
"""Replacements for characters that would end a frame or a line."""


def write_collapsed(paths: Paths, out: BinaryIO) -> None:
    """Writes a line for each path and its chosen weight. Paths with the weight 0 are left out."""
    names = {number: frame.title.translate(_TAKEN) for number, frame in paths.frames.items()}
    lines: Counter[str] = Counter()
    for path in paths:
        if weight := path.weight(paths.weights[0]):
            lines[";".join(names[number] for number in path.frames)] += weight
    for line, weight in lines.items():
        out.write(f"{line} {weight}\n".encode())
