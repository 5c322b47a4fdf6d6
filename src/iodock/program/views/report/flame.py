"""Prepares the data of the report's flame graph. Boxes are in drawing order, so the script only computes
positions."""

from __future__ import annotations

from typing import Any

from iodock.program.relations.boxes import Box, by_name, tree_of, walked
from iodock.program.relations.filters import Filters
from iodock.program.relations.paths import paths_of
from iodock.program.store import Store
from iodock.shared.text import shorten

_LEAST_SHARE = 1 / 2_000
"""Boxes with a smaller share would be less than half a pixel wide, and are left out."""
_LONGEST = 300


def flame_data(store: Store, most: int) -> dict[str, Any] | None:
    """Returns the MOST widest boxes: `weights` are names, `frames` have a kind and a title, and each of
    `boxes` has its depth, the number of its frame, and its weights. Returns None if the store has no
    stacks."""
    if not store.rows_of("sites"):
        return None
    paths = paths_of(store, Filters(), None)
    whole = tree_of(paths)
    least = _least(whole, paths.weights, most)
    numbers: dict[tuple[str, str], int] = {}
    boxes = []
    for depth, box in walked(whole, lambda one: one.share(whole, paths.weights) >= least, by_name):
        frame = (box.frame.kind, shorten(box.frame.title, _LONGEST))
        number = numbers.setdefault(frame, len(numbers))
        boxes.append([depth, number, *(box.weight(one) for one in paths.weights)])
    return {"weights": list(paths.weights), "frames": [list(one) for one in numbers], "boxes": boxes}


def _least(whole: Box, weights: tuple[str, ...], most: int) -> float:
    """Returns the smallest share that a box must have to be drawn, so that there are at most MOST boxes."""
    every = walked(whole, lambda one: one.share(whole, weights) >= _LEAST_SHARE, by_name)
    shares = sorted((box.share(whole, weights) for _, box in every), reverse=True)
    if len(shares) <= most:
        return _LEAST_SHARE
    # Boxes with the same share as the first one that is left out are left out, too.
    return min((share for share in shares if share > shares[most]), default=1.0)
