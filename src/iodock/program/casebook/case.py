"""A case as data. It is read from `cases/NAME/case.toml` in the package or in the site's own folder."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from iodock.shared.bounded import files
from iodock.shared.bounded.documents import DocumentError, from_toml
from iodock.shared.bounded.limits import PLAN
from iodock.shared.errors import RequestError, meant

OWN_CASES = Path(__file__).parent / "cases"
VARIABLE = "IODOCK_CASES"
USUAL_PLACE = "~/.local/share/iodock/cases"
TEXTS = ("title", "see", "why", "change", "beyond")
"""Keys of case.toml whose texts users read. `tools/messages.py` takes them into the catalogues."""


@dataclass(frozen=True, slots=True)
class Version:
    """One of the two programs of a case."""

    run: tuple[str, ...]
    compile: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One pattern: its symptoms, the reason and the change. It consists of two programs, or of two stores
    that a site recorded."""

    name: str
    folder: Path
    rules: tuple[str, ...]
    """Rules that find something in the original version and nothing after the change."""
    title: str
    see: str
    why: str
    change: str
    beyond: str
    """Text that says when the change does not help, or has a cost."""
    before: Version | None
    """The program before the change; None: the folder contains `before.iodock` and `after.iodock` instead."""
    after: Version | None
    input: tuple[str, ...] | None = None
    """Command that creates the input in the working folder."""
    needs: tuple[str, ...] = ()
    """Names of programs that must be installed."""
    one_cpu: bool = True
    """Whether the case runs on one CPU. Only a parallel job would use more."""

    @property
    def is_own(self) -> bool:
        """Whether the case is a part of iodock."""
        return self.folder.parent == OWN_CASES


def site_folder() -> Path:
    """Returns the folder of a site's own cases: $IODOCK_CASES or the user's data folder."""
    return Path(os.environ.get(VARIABLE) or USUAL_PLACE).expanduser()


@cache
def _own() -> tuple[Case, ...]:
    return tuple(read(folder) for folder in sorted(OWN_CASES.iterdir()) if (folder / "case.toml").is_file())


def every() -> tuple[Case, ...]:
    """Returns all cases: those of iodock, then those of the site that can be read (see `damaged`)."""
    return (*_own(), *(found for found in _of_site() if isinstance(found, Case)))


def damaged() -> tuple[RequestError, ...]:
    """Returns the errors of the site's cases that can't be read."""
    return tuple(found for found in _of_site() if isinstance(found, RequestError))


def _of_site() -> Iterator[Case | RequestError]:
    place = site_folder()
    for folder in sorted(place.iterdir()) if place.is_dir() else ():
        if not (folder / "case.toml").is_file():
            continue
        try:
            yield read(folder)
        except RequestError as error:
            # The error is returned, because a damaged case must not hide the others.
            yield error


def names() -> tuple[str, ...]:
    """Returns the names of all cases."""
    return tuple(case.name for case in every())


def find(name: str) -> Case:
    """Returns the case of this name. Raises RequestError."""
    for case in every():
        if case.name == name:
            return case
    for error in damaged():
        if str(error).startswith(f"{site_folder() / name}/"):
            raise error
    raise RequestError(f"no such case: {name}", meant(name, names(), f"cases: {', '.join(names())}"))


def read(folder: Path) -> Case:
    """Reads the case in a folder. Raises RequestError with file and key."""
    path = folder / "case.toml"
    try:
        raw = from_toml(files.text(path, PLAN))
        return _case(folder, raw)
    except (OSError, UnicodeDecodeError, DocumentError) as error:
        raise RequestError(
            f"{path}: can't be read: {error}", "correct the case or remove its folder"
        ) from error
    except KeyError as error:
        raise RequestError(
            f"{path}: {error.args[0]} is missing", "correct the case or remove its folder"
        ) from error
    except TypeError as error:
        raise RequestError(
            f"{path}: a value has the wrong type", "correct the case or remove its folder"
        ) from error


def _case(folder: Path, raw: Mapping[str, Any]) -> Case:
    has_programs = "before" in raw
    return Case(
        name=folder.name,
        folder=folder,
        rules=tuple(map(str, raw.get("rules", ()))),
        before=_version(raw["before"]) if has_programs else None,
        after=_version(raw["after"]) if has_programs else None,
        input=tuple(raw["input"]) if "input" in raw else None,
        needs=tuple(raw.get("needs", ())),
        one_cpu=bool(raw.get("one_cpu", True)),
        **{key: str(raw[key]) if key == "title" else str(raw.get(key, "")) for key in TEXTS},
    )


def _version(raw: Mapping[str, Any]) -> Version:
    compile = raw.get("compile")
    return Version(tuple(raw["run"]), tuple(compile) if compile else None)
