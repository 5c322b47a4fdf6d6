"""Finds all analyses: the modules of this folder that declare one, and the analyses that plugins declare as
entry points `iodock.analyses`."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from typing import TypeVar

from iodock.program.analyses.base import Analysis, Request
from iodock.program.relations.ordering import ordered
from iodock.program.store import Store
from iodock.shared.answer import Answer
from iodock.shared.errors import RequestError, meant
from iodock.shared.plugins import plugins

Answered = TypeVar("Answered")

_ORDER = (
    "overview",
    "summary",
    "sizes",
    "timeline",
    "accesses",
    "offsets",
    "files",
    "interfaces",
    "profiles",
    "maps",
    "cache",
    "processes",
    "ranks",
    "errors",
    "machine",
    "stacks",
    "flame",
)
_NOT_ANALYSES = {"base", "counters"}


def names() -> tuple[str, ...]:
    """Returns the names of all analyses. It does not import the modules, because each module has the name of
    its analysis."""
    own = {module.name for module in pkgutil.iter_modules(__path__)} - _NOT_ANALYSES
    outside = {point.name for point in plugins("iodock.analyses")}
    ranked = {name: place for place, name in enumerate(_ORDER)}
    return tuple(sorted(own | outside, key=lambda name: (ranked.get(name, len(ranked)), name)))


def listed() -> tuple[str, ...]:
    """Returns the names of the analyses that the help lists. The others are made for the report, but users
    can request them, too."""
    return tuple(name for name in names() if not find(name).hidden)


@cache
def find(name: str) -> Analysis:
    """Returns the analysis of this name. Raises RequestError if there is none."""
    if name in {module.name for module in pkgutil.iter_modules(__path__)} - _NOT_ANALYSES:
        found: Analysis = import_module(f"{__name__}.{name}").ANALYSIS
        return _of_calls(_in_order(found))
    for point in plugins("iodock.analyses"):
        if point.name == name:
            loaded: Analysis = point.load()
            return _of_calls(_in_order(loaded))
    raise RequestError(f"no such analysis: {name}", meant(name, listed(), f"analyses: {', '.join(listed())}"))


def _in_order(analysis: Analysis) -> Analysis:
    """Returns the analysis with a `run` that also sorts the rows as requested, if the analysis has no
    ordering of its own."""
    if analysis.orders:
        return analysis
    has_top = any(option.name == "top" for option in analysis.options)

    def run(store: Store, asked: Request) -> Answer:
        options = {name: asked.options.get(name) for name in ("sort", "top") if name != "top" or not has_top}
        return ordered(analysis.run(store, asked), options)

    return replace(analysis, run=run)


def _of_calls(analysis: Analysis) -> Analysis:
    """Returns the analysis with checks that raise RequestError for a kind of store that it does not
    support."""
    need = partial(_check, analysis)
    stream = None if analysis.stream is None else _guarded(analysis.stream, need)
    return replace(analysis, run=_guarded(analysis.run, need), stream=stream)


def _check(analysis: Analysis, store: Store) -> None:
    """Raises RequestError if the analysis does not support this kind of store."""
    if not analysis.calls:
        store.need_profiles()
    elif store.manifest.profiles_only:
        if not analysis.profiles:
            store.need_no_profiles()
    elif not analysis.counts:
        store.need_calls()


def _guarded(
    answer: Callable[[Store, Request], Answered], need: Callable[[Store], None]
) -> Callable[[Store, Request], Answered]:
    def run(store: Store, asked: Request) -> Answered:
        need(store)
        return answer(store, asked)

    return run


def every() -> tuple[Analysis, ...]:
    """Returns all analyses."""
    return tuple(find(name) for name in names())
