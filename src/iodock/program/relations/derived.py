"""The views that rules use. Each is one file in `views/`, whose header describes its rows and columns."""

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
    """One view. In its text, `{name}` stands for a field of RunFacts."""

    name: str
    head: str
    body: str

    @cached_property
    def doc(self) -> str:
        """What a row of the view means."""
        return " ".join(_filled(self._parts[0], RunFacts()).replace("\n-- ", " ").split())

    @cached_property
    def columns(self) -> Mapping[str, str]:
        """The meaning of each column with its unit, in the order of the answer."""
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
        """Names of the views that this one uses."""
        sources = set(_SOURCE.findall(_COMMENT.sub("", self.body)))
        return tuple(name for name in names() if name in sources and name != self.name)

    def sql(self, facts: RunFacts) -> str:
        """The SELECT that computes the view."""
        return _filled(self.body, facts)


def _filled(text: str, facts: RunFacts) -> str:
    return _PLACE.sub(lambda found: str(getattr(facts, found[1])), text)


@cache
def names() -> tuple[str, ...]:
    """Returns the names of all views."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.sql")))


@cache
def view(name: str) -> View:
    """Returns the view of this name. Raises KeyError for an unknown one."""
    if name not in names():
        raise KeyError(name)
    head, _, body = (FOLDER / f"{name}.sql").read_text(encoding="utf-8").partition("\n\n")
    return View(name, head, body.strip())


class _Views(Mapping[str, View]):
    """All views by name. A file is read on first access."""

    def __getitem__(self, name: str) -> View:
        return view(name)

    def __iter__(self) -> Iterator[str]:
        return iter(names())

    def __len__(self) -> int:
        return len(names())


DERIVED: Mapping[str, View] = _Views()
"""Maps the name of a view to the view."""
