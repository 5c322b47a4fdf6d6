"""Loads the SQL views that rules use. Each view is a file in `views/`, whose header describes its rows and
columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from iodock.program.relations.run_facts import RunFacts

FOLDER = Path(__file__).parent / "views"
_PLACE = re.compile(r"\{([a-z_]+)\}")
_COMMENT = re.compile(r"--.*")
_SOURCE = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")
_COLUMN = re.compile(r"-- (\w+): (.*)")


@dataclass(frozen=True)
class View:
    """Holds one SQL view. Its text contains placeholders `{name}`, each of which is replaced by a field of
    RunFacts."""

    name: str
    head: str
    body: str

    @cached_property
    def doc(self) -> str:
        """Returns the part of the header that says what a row of the view means."""
        return " ".join(_filled(self._parts[0], RunFacts()).replace("\n-- ", " ").split())

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """Returns the meaning of each column with its unit, in the order of the view's columns."""
        found: dict[str, str] = {}
        for line in _filled(self._parts[1], RunFacts()).splitlines():
            column = _COLUMN.fullmatch(line)
            if column:
                found[column[1]] = column[2]
            else:
                found[next(reversed(found))] += " " + line.removeprefix("--").strip()
        return found

    @property
    def _parts(self) -> tuple[str, str]:
        doc, _, columns = self.head.partition("\n--\n")
        return doc.removeprefix("--"), columns

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Returns the names of the views that this view reads."""
        sources = set(_SOURCE.findall(_COMMENT.sub("", self.body)))
        return tuple(name for name in names() if name in sources and name != self.name)

    def sql(self, facts: RunFacts) -> str:
        """Returns the SELECT that computes the view for a run with these facts."""
        return _filled(self.body, facts)


def _filled(text: str, facts: RunFacts) -> str:
    return _PLACE.sub(lambda found: str(getattr(facts, found[1])), text)


@cache
def names() -> tuple[str, ...]:
    """Returns the names of all views."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.sql")))


@cache
def view(name: str) -> View:
    """Returns the view of this name. Raises KeyError if there is none."""
    if name not in names():
        raise KeyError(name)
    head, _, body = (FOLDER / f"{name}.sql").read_text(encoding="utf-8").partition("\n\n")
    return View(name, head, body.strip())


class _Views(Mapping[str, View]):
    """Maps names to views. The file of a view is read when the view is requested."""

    def __getitem__(self, name: str) -> View:
        return view(name)

    def __iter__(self) -> Iterator[str]:
        return iter(names())

    def __len__(self) -> int:
        return len(names())


DERIVED: Mapping[str, View] = _Views()
"""Maps the name of a view to the view."""
