"""A pair as data: `benches/pairs/NAME/pair.toml`, a program with an I/O fault and the same program mended."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iodock.program.casebook.case import Version

FOLDER = Path(__file__).parent / "pairs"
ALWAYS = frozenset({"any", "administrator"})
"""Languages of advice that fit every program."""
KEYS = {"title", "languages", "first", "pays", "needs", "packages", "input", "before", "after", "why", "cold"}


class PairError(Exception):
    """A pair.toml that can't be meant."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One fault or, where mending does not pay, one program that should be left alone."""

    name: str
    folder: Path
    title: str
    languages: frozenset[str]
    """What the program is written in, and the I/O libraries it calls: advice may be in these."""
    first: tuple[str, ...]
    """Rules of which one must come first; empty where mending does not pay."""
    pays: bool
    why: str
    """What the mended version does, or why that does not pay."""
    before: Version
    after: Version
    needs: tuple[str, ...] = ()
    """Programs that must be there, beside compilers and what is run."""
    packages: tuple[str, ...] = ()
    """Python packages, pinned in requirements.txt: advice may be for these, too."""
    input: tuple[str, ...] | None = None
    """Command that makes the input, in the working folder."""
    cold: tuple[str, ...] = ()
    """Input that is not in the page cache when a run begins."""

    @property
    def fitting(self) -> frozenset[str]:
        """Languages and libraries that advice may be for."""
        return self.languages | ALWAYS | frozenset(self.packages)


def every() -> list[Pair]:
    """All pairs, by name."""
    return [read(path.parent) for path in sorted(FOLDER.glob("*/pair.toml"))]


def read(folder: Path) -> Pair:
    """The pair in a folder. Raises PairError with the file."""
    path = folder / "pair.toml"
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        unknown = set(raw) - KEYS
        if unknown:
            raise PairError(f"{path}: unknown: {', '.join(sorted(unknown))}")
        return _pair(folder, raw)
    except KeyError as error:
        raise PairError(f"{path}: {error.args[0]} is missing") from error
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise PairError(f"{path}: {error}") from error


def _pair(folder: Path, raw: dict[str, Any]) -> Pair:
    return Pair(
        name=folder.name,
        folder=folder,
        title=raw["title"],
        languages=frozenset(raw["languages"]),
        first=tuple(raw["first"]),
        pays=raw["pays"],
        why=raw["why"],
        before=_version(raw["before"]),
        after=_version(raw["after"]),
        needs=tuple(raw.get("needs", ())),
        packages=tuple(raw.get("packages", ())),
        input=tuple(raw["input"]) if "input" in raw else None,
        cold=tuple(raw.get("cold", ())),
    )


def _version(raw: dict[str, Any]) -> Version:
    return Version(tuple(raw["run"]), tuple(raw["compile"]) if "compile" in raw else None)
