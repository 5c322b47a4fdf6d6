"""Reads a mixture of operations from a TOML file. It describes what an application does to a file system, so
that the load engine can do the same without the application.

name = "analysis"
files = 200                     # number of files that each process has at the start
sizes = ["4k", "100k", "1m"]    # each file has one of these
operations = 2000               # number of operations of each process
request = "64k"                 # size of one read or write; default 1m
append = "4k"                   # bytes that an append adds; default 4k
sync = false                    # whether written files are synced before they are closed; default false
processes = [1, 4]              # default: those of class S
seconds = 10                    # time limit of each repeat; default 10

[weights]                       # relative frequency of each operation
create = 1
write = 1                       # writes a whole file again
append = 1
read = 4                        # reads a whole file
delete = 1
stat = 2
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from iodock.file_system.health.classes import CLASSES, KIB, MIB, Cell, Choice
from iodock.file_system.health.filebench import mixture
from iodock.shared.bounded import files
from iodock.shared.bounded.documents import DocumentError, from_toml
from iodock.shared.bounded.limits import PLAN
from iodock.shared.errors import RequestError

OPERATIONS = ("create", "write", "append", "read", "delete", "stat")
_FIELDS = (
    "name",
    "files",
    "sizes",
    "operations",
    "request",
    "append",
    "sync",
    "processes",
    "seconds",
    "weights",
)
_SUFFIXES = {"": 0, "k": 10, "m": 20, "g": 30}
_HINT = "docs/how-to/health-check.md has a complete example of this file"
_MOST = 10_000_000


def cells(path: Path, choice: Choice) -> list[Cell]:
    """Makes a cell for each number of processes. PATH is a TOML file, or a Filebench file if its name ends in
    `.f`. Raises RequestError, which names the invalid field."""
    try:
        text = files.text(path, PLAN)
        given = mixture(path, text) if path.suffix == ".f" else from_toml(text)
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror}", "name a workload file") from error
    except UnicodeDecodeError as error:
        raise RequestError(f"{path}: is not text", _HINT) from error
    except DocumentError as error:
        raise RequestError(f"{path}: {error}", _HINT) from error
    return _cells(_Fields(path, given), path, choice)


def _cells(fields: _Fields, path: Path, choice: Choice) -> list[Cell]:
    fields.known(_FIELDS)
    weights = _Fields(path, fields.table("weights"), "weights.")
    weights.known(OPERATIONS)
    chosen = {name: weights.count(name, 0, least=0) for name in OPERATIONS}
    pattern = {
        "kind": "mixed",
        "files": fields.count("files", 100),
        "sizes_bytes": fields.sizes("sizes"),
        "request_bytes": fields.size("request", MIB),
        "append_bytes": fields.size("append", 4 * KIB),
        "operations": fields.count("operations", 1000),
        "seed": 1,
        "weights": chosen,
        "sync": fields.truth("sync"),
    }
    if not any(chosen.values()):
        raise RequestError(f"{path}: weights: none is above 0", _HINT)
    variant = {"workload": str(fields.given.get("name", path.stem))}
    counts = choice.processes or fields.counts("processes") or CLASSES["S"].processes
    processes = sorted({-(-count // choice.ranks) * choice.ranks for count in counts})
    limit = fields.seconds("seconds", 10.0)
    return [Cell("workload", None, count, pattern, limit, variant) for count in processes]


class _Fields:
    """Reads values of a TOML table. If a value is invalid, the error names the file and the field."""

    def __init__(self, path: Path, given: Mapping[str, Any], where: str = "") -> None:
        self.path, self.given, self.where = path, given, where

    def wrong(self, name: str, what: str) -> RequestError:
        return RequestError(f"{self.path}: {self.where}{name} {what}", _HINT)

    def known(self, names: tuple[str, ...]) -> None:
        for name in self.given:
            if name not in names:
                raise self.wrong(name, "is not known")

    def table(self, name: str) -> Mapping[str, Any]:
        value = self.given.get(name)
        if not isinstance(value, dict):
            raise self.wrong(name, "is missing" if value is None else "should be a table")
        return value

    def count(self, name: str, default: int, least: int = 1) -> int:
        value = self.given.get(name, default)
        if type(value) is not int or not least <= value <= _MOST:
            raise self.wrong(name, f"should be a whole number from {least} to {_MOST:,}")
        return value

    def counts(self, name: str) -> tuple[int, ...]:
        value = self.given.get(name, [])
        if not isinstance(value, list) or any(type(one) is not int or one < 1 for one in value):
            raise self.wrong(name, "should be a list of whole numbers from 1 on")
        return tuple(value)

    def seconds(self, name: str, default: float) -> float:
        value = self.given.get(name, default)
        if type(value) not in (int, float) or not 0 < value < 1e6:
            raise self.wrong(name, "should be a number above 0")
        return float(value)

    def truth(self, name: str) -> bool:
        value = self.given.get(name, False)
        if not isinstance(value, bool):
            raise self.wrong(name, "should be true or false")
        return value

    def size(self, name: str, default: int) -> int:
        return self._size(name, self.given.get(name, default))

    def sizes(self, name: str) -> list[int]:
        value = self.given.get(name, ["64k"])
        if not isinstance(value, list) or not value:
            raise self.wrong(name, "should be a list of sizes")
        return [self._size(name, one) for one in value]

    def _size(self, name: str, value: Any) -> int:
        parts = re.fullmatch(r"(\d{1,12})([kmg]?)(i?b)?", str(value).lower())
        if isinstance(value, bool) or not parts or int(parts[1]) == 0:
            raise self.wrong(name, 'should be a size such as 4096, "4k" or "1m"')
        return int(parts[1]) << _SUFFIXES[parts[2]]
