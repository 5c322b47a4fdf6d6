"""Shows the source lines around a line to change, if the file has not changed since the run began."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from iodock.program.findings import Finding, Location
from iodock.program.store import Store
from iodock.shared.bounded.files import text as text_of
from iodock.shared.bounded.limits import MIB, Limit
from iodock.shared.errors import RequestError
from iodock.shared.language import N_, Language
from iodock.shared.pages.markup import Markup, join, tag
from iodock.shared.text import visible

Sources = Callable[[Finding], Markup | None]
"""Renders the source lines of a finding; None: there is nothing to show."""

_AROUND = 3
_LEAST_SHARE = 0.1
"""Lines with a smaller share of a finding's calls are named, but not shown."""
_MOST_LOCATIONS = 3
_LONGEST = 160
_LIMIT = Limit("a source file", 8 * MIB)

_GONE = N_("{file} can't be read here.")
_CHANGED = N_("{file} has changed since the run began: its lines are not shown.")
_SHORTER = N_("{file} has no line {line}.")
_NOT_DATED = N_("Whether {file} has changed since the run is not known: the run has no date.")


@dataclass(frozen=True, slots=True)
class _Excerpt:
    """Holds lines of a file, or a sentence that says why they are not available."""

    lines: tuple[str, ...] = ()
    first: int = 0
    """Number of the first of these lines."""
    said: str | None = None


def sources_of(store: Store, text: Language) -> Sources:
    """Returns a function that renders the source lines of a finding of this store."""
    manifest = store.manifest
    began_ns = manifest.first_ts if manifest.clock == "epoch" else None

    def shown(finding: Finding) -> Markup | None:
        return join(*_shown(finding, began_ns, text)) or None

    return shown


def _shown(finding: Finding, began_ns: int | None, text: Language) -> Iterator[Markup]:
    for location in finding.locations[:_MOST_LOCATIONS]:
        if location.share < _LEAST_SHARE or location.file is None or location.line is None:
            continue
        found = _excerpt(Path(location.file), location.line, began_ns)
        if found.said is not None:
            said = text.gettext(found.said, file=visible(location.file), line=str(location.line))
            yield tag("p", said, class_="note")
        if found.lines:
            yield _drawn(found, location)


def _drawn(found: _Excerpt, location: Location) -> Markup:
    width = len(str(found.first + len(found.lines)))
    rows = []
    for number, line in enumerate(found.lines, found.first):
        row = join(tag("span", f"{number:>{width}}  ", class_="number"), line)
        rows.append(join(tag("mark", row) if number == location.line else row, "\n"))
    return tag("pre", tag("code", *rows), class_="source", tabindex="0", translate="no")


def _excerpt(path: Path, line: int, began_ns: int | None) -> _Excerpt:
    try:
        status = path.stat()
        # A name without a folder is relative to the folder in which the compiler ran, and that is not known.
        if not path.is_absolute() or not stat.S_ISREG(status.st_mode):
            return _Excerpt(said=_GONE)
        if began_ns is not None and status.st_mtime_ns > began_ns:
            return _Excerpt(said=_CHANGED)
        lines = text_of(path, _LIMIT, errors="replace").removesuffix("\n").split("\n")
    except (OSError, ValueError, RequestError):
        return _Excerpt(said=_GONE)
    if line > len(lines):
        return _Excerpt(said=_SHORTER)
    first = max(1, line - _AROUND)
    shown = tuple(_cut(one.expandtabs(4)) for one in lines[first - 1 : line + _AROUND])
    return _Excerpt(shown, first, None if began_ns is not None else _NOT_DATED)


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
