"""Converts Filebench's `.f` files, which are written in its workload model language (WML), to a mixture:
operations, their relative frequencies, and files.

The mixture contains the file set (number of entries, size), the flow operations with their weights, the sizes
of requests and appends, fsync, the number of threads, and the duration. The engine executes the operations in
random order, and opens and closes the file in each operation. A random variable is replaced by its mean. Each
part of a composite operation counts once for each thread.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from iodock.shared.errors import RequestError

_KINDS = {
    "createfile": "create",
    "writewholefile": "write",
    "appendfile": "append",
    "appendfilerand": "append",
    "readwholefile": "read",
    "deletefile": "delete",
    "statfile": "stat",
}
_IMPLIED = (
    "openfile",
    "closefile",
    "fsync",
    "fsyncset",
    "finishoncount",
    "finishonbytes",
    "opslimit",
    "bwlimit",
    "iopslimit",
    "eventlimit",
    "delay",
    "hog",
)
_IGNORED = (
    "echo",
    "usage",
    "create",
    "system",
    "sleep",
    "eventgen",
    "enable",
    "debug",
    "load",
    "quit",
    "stats",
)
_SAMPLES = 32
_ROUNDS = 20
"""Number of operations for each file. Usually the time limit is reached earlier."""
_MOST_SECONDS = 60


class _Script:
    """Splits a Filebench file into commands. It replaces variables by their values, and reports errors with
    file and line."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        self.variables: dict[str, str] = {}

    def wrong(self, line: int, what: str, hint: str) -> RequestError:
        return RequestError(f"{self.path}:{line}: {what}", hint)

    def commands(self) -> Iterator[tuple[int, str, str]]:
        """Yields line number, first word, and the rest of each command, with variables replaced by their
        values."""
        for number, bare in self._lines():
            word, _, rest = bare.partition(" ")
            if word == "set":
                name, _, value = rest.partition("=")
                self._set(number, name, value.strip())
            elif word == "define" and rest.startswith("randvar"):
                found = re.search(r"name\s*=\s*\$(\w+)", rest)
                self._set(number, found[1] if found else "", f"randvar({rest})")
            else:
                if word == "define" and rest.startswith("flowop"):
                    # The parameters of a composite flow operation stand for names of file sets, which the
                    # mixture does not use. An empty value prevents an error about a variable that was not
                    # set.
                    self.variables.update(dict.fromkeys(re.findall(r"\$(\w+)", rest), ""))
                yield number, word, rest if word in _IGNORED else self._filled(number, rest)

    def _lines(self) -> Iterator[tuple[int, str]]:
        """Yields whole commands, each with the number of its first line. If a line ends in a comma or `=`,
        the next line belongs to the same command."""
        begun, parts = 0, list[str]()
        for number, line in enumerate(self.text.splitlines(), 1):
            bare = line.split("#", 1)[0].strip()
            begun = begun if parts else number
            parts.append(bare)
            if not bare.endswith((",", "=")):
                whole, parts = " ".join(parts).strip(" \t{}"), []
                if whole not in ("", ")", "})"):
                    yield begun, whole
        if parts:
            yield begun, " ".join(parts).strip(" \t{},=")

    def _set(self, number: int, name: str, value: str) -> None:
        filled = self._filled(number, value) if not value.startswith("randvar") else _mean(value)
        self.variables[name.strip().lstrip("$")] = filled

    def _filled(self, number: int, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            if found[1] not in self.variables:
                raise self.wrong(number, f"${found[1]} was not set", f"set ${found[1]}=... above it")
            return self.variables[found[1]]

        return re.sub(r"\$\{?(\w+)\}?", value, text)


_ROW = re.compile(r"\{\s*(\d+)\s*,\s*(\d+)([kmg]?)\s*,\s*(\d+)([kmg]?)\s*\}?")
_SHIFT = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def _mean(variable: str) -> str:
    """Returns the mean of a random variable. If its definition has a table with rows (share, from, to), the
    mean is computed from the table. Otherwise, it is the mean that the definition states."""
    rows = [
        (int(share), (int(low) << _SHIFT[low_unit]) + (int(high) << _SHIFT[high_unit]))
        for share, low, low_unit, high, high_unit in _ROW.findall(variable)
    ]
    whole = sum(share for share, _ in rows)
    if whole:
        return str(sum(share * both for share, both in rows) // (2 * whole))
    said = re.search(r"\b(?:mean|gamma|min)\s*=\s*(\d+[kmg]?)", variable)
    return said[1] if said else "1"


def _fields(text: str) -> dict[str, str]:
    """Parses text such as `name=a,size=cvar(type=x,parameters=mean:1;gamma:2)` and returns the value of each
    field. Commas inside brackets do not separate fields."""
    parts = re.findall(r"(\w+)=((?:[^,(]|\([^)]*\))*)", text)
    return {name: value.strip().strip('"') for name, value in parts}


def mixture(path: Path, text: str) -> Mapping[str, Any]:
    """Converts the text of a Filebench file to the form that workload.py reads from TOML. Raises RequestError
    with file and line."""
    script = _Script(path, text)
    found = _Mixture(script)
    for line, word, rest in script.commands():
        if word == "define":
            found.define(line, rest)
        elif word in ("thread", "flowop", "run", "psrun"):
            getattr(found, word)(line, rest)
        elif word not in _IGNORED:
            raise script.wrong(line, f"{word}: is an unknown command", "leave the line out")
    return found.taken(path)


class _Mixture:
    """Collects the operations, sizes and files of the commands read so far."""

    def __init__(self, script: _Script) -> None:
        self._script = script
        self._weights: dict[str, int] = {}
        self._sizes: dict[str, Any] = {}
        self._seconds = 10.0
        self._files, self._threads, self._instances, self._processes = 0, 1, 1, 0
        self._composites: set[str] = set()
        self._created = False

    def define(self, line: int, rest: str) -> None:
        given = _fields(rest)
        if rest.startswith(("fileset", "file ")):
            many = _number(self._script, line, given.get("entries", "1"))
            if many > self._files:
                size = given.get("size") or given.get("filesize") or "1k"
                self._files, self._sizes["sizes"] = many, _sizes(self._script, line, size)
        elif rest.startswith("flowop"):
            self._composites.add(given.get("name", ""))
        elif rest.startswith("process"):
            self._instances = _number(self._script, line, given.get("instances", "1"))

    def thread(self, line: int, rest: str) -> None:
        self._threads = _number(self._script, line, _fields(rest).get("instances", "1"))
        self._processes += self._instances * self._threads

    def flowop(self, line: int, rest: str) -> None:
        name = rest.split(maxsplit=1)[0].split(",")[0]
        # The engine writes a file's content when it creates the file, so a `writewholefile` right after
        # `createfile` is not counted.
        if name not in self._composites and not (self._created and name == "writewholefile"):
            _count(self._script, line, name, self._threads, self._weights)
        self._created = name == "createfile"
        _note_sizes(self._script, line, name, _fields(rest), self._sizes)

    def run(self, line: int, rest: str) -> None:
        seconds = re.findall(r"\d+", rest)
        self._seconds = float(min(int(seconds[-1]), _MOST_SECONDS)) if seconds else 10.0

    psrun = run

    def taken(self, path: Path) -> Mapping[str, Any]:
        """Returns the complete mixture. Raises RequestError if the file contains no operation that can be
        part of a mixture."""
        if not self._weights:
            known = f"known flow operations: {', '.join(_KINDS)}"
            raise RequestError(f"{path}: no operation was found", known)
        many = max(self._processes, 1)
        each = max(self._files // many, 1)
        shape = {"files": each, "operations": each * _ROUNDS, "processes": [many], "weights": self._weights}
        return {"name": path.stem, "seconds": self._seconds, **self._sizes, **shape}


def _count(script: _Script, line: int, name: str, threads: int, weights: dict[str, int]) -> None:
    if name in _KINDS:
        weights[_KINDS[name]] = weights.get(_KINDS[name], 0) + threads
    elif name not in _IMPLIED:
        raise script.wrong(
            line,
            f"{name}: can't be part of a mixture of whole files",
            f"possible parts: {', '.join(_KINDS)}",
        )


def _note_sizes(
    script: _Script, line: int, name: str, given: Mapping[str, str], found: dict[str, Any]
) -> None:
    if name.startswith("fsync"):
        found["sync"] = True
    if "iosize" in given:
        field = "append" if name.startswith("append") else "request"
        found[field] = _number(script, line, given["iosize"])


def _number(script: _Script, line: int, text: str) -> int:
    product = re.fullmatch(r"(\d{1,9}) *\* *(\d{1,9})", text)
    if product:
        return int(product[1]) * int(product[2])
    parts = re.fullmatch(r"(\d{1,12})([kmgt]?)b?", text.lower())
    if not parts:
        mean = re.search(r"mean:(\d{1,12})", text)
        if not mean:
            raise script.wrong(line, f"{text!r}: is no number", "write 4096, 4k or 1m")
        return int(mean[1])
    return max(int(parts[1]) << _SHIFT[parts[2]], 1)


def _sizes(script: _Script, line: int, text: str) -> list[int]:
    """Returns a single size, or 32 sizes drawn from a gamma distribution. The random generator has a fixed
    seed, so that every run uses the same sizes."""
    mean, gamma = _number(script, line, text), re.search(r"gamma:([0-9.]+)", text)
    if not gamma or not 0 < float(gamma[1]) < 1e6:
        return [mean]
    shape, chance = float(gamma[1]), random.Random(1)
    return sorted(max(round(chance.gammavariate(shape, mean / shape)), 1) for _ in range(_SAMPLES))
