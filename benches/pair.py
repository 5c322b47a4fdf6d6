"""Reads pairs: `benches/pairs/NAME/pair.toml` describes a program with an I/O fault and its corrected
version."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iodock.program.casebook.case import Version

FOLDER = Path(__file__).parent / "pairs"
ALWAYS = frozenset({"any", "administrator"})
"""Languages of advice that fits every program."""
KEYS = {"title", "languages", "first", "pays", "needs", "packages", "input", "before", "after", "why", "cold"}


class PairError(Exception):
    """A pair.toml has impossible or contradictory values."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A program with one fault, or a program that should stay unchanged because a correction does not pay."""

    name: str
    folder: Path
    title: str
    languages: frozenset[str]
    """The program's language and the I/O libraries that it calls. Advice may be for any of these."""
    first: tuple[str, ...]
    """The first finding must be of one of these rules. Empty where a correction does not pay."""
    pays: bool
    why: str
    """Effect of the corrected version, or the reason why a correction does not pay."""
    before: Version
    after: Version
    needs: tuple[str, ...] = ()
    """Programs that must be installed, in addition to compilers and the programs that the pair runs."""
    packages: tuple[str, ...] = ()
    """Python packages, pinned in requirements.txt. Advice may be for these, too."""
    input: tuple[str, ...] | None = None
    """Command that makes the input in the working folder."""
    cold: tuple[str, ...] = ()
    """Input that must not be in the page cache when a run begins."""

    @property
    def fitting(self) -> frozenset[str]:
        """Returns the languages and libraries for which advice fits this program."""
        return self.languages | ALWAYS | frozenset(self.packages)


def every() -> list[Pair]:
    """Returns all pairs, by name."""
    return [read(path.parent) for path in sorted(FOLDER.glob("*/pair.toml"))]


def read(folder: Path) -> Pair:
    """Returns the pair in a folder. Raises PairError, which names the file."""
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
