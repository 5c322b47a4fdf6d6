"""Lists the formats to which a run can be exported, and writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

from iodock.program.exports.collapsed import write_collapsed
from iodock.program.exports.flame_svg import write_flame
from iodock.program.exports.perfetto import write_perfetto
from iodock.program.exports.pprof import write_pprof
from iodock.program.exports.speedscope import write_speedscope
from iodock.program.relations.filters import Filters
from iodock.program.relations.paths import WEIGHTS, Paths, paths_of
from iodock.program.store import Store
from iodock.shared.language import Language

_OF_PATHS: dict[str, Callable[[Paths, BinaryIO], None]] = {
    "speedscope": write_speedscope,
    "pprof": write_pprof,
    "collapsed": write_collapsed,
}
FORMATS = ("perfetto", *_OF_PATHS, "svg")
__all__ = ["FORMATS", "WEIGHTS", "export"]


def export(
    store: Store, form: str, filters: Filters, weight: str | None, out: BinaryIO, text: Language
) -> tuple[str, ...]:
    """Writes the chosen calls to OUT, and returns notes about them. WEIGHT is one of WEIGHTS; by default it
    is the time if that is known. Raises RequestError if the store has no calls, or if it does not know the
    weight or the times that the format needs."""
    store.need_calls()
    if form == "perfetto":
        return write_perfetto(store, filters, out)
    paths = paths_of(store, filters, weight)
    if form == "svg":
        write_flame(paths, out, text)
    else:
        _OF_PATHS[form](paths, out)
    return paths.notes
