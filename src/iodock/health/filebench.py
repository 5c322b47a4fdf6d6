"""Filebench's `.f` files (its workload model language, WML) as a mixture: what they do, how often, on what
files.

Kept of them: the file set (entries, size), the flow operations as weights, I/O and append size, fsync,
threads, and how long it runs. The order is shuffled, and an open and a close belong to the operation between
them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from iodock.errors import RequestError

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
"""Operations are so many for each file; the time limit usually comes first."""
_MOST_SECONDS = 60


class _Script:
    """One file, line by line: variables, and what is wrong by its place."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text
        self.variables: dict[str, str] = {}

    def wrong(self, line: int, what: str, hint: str) -> RequestError:
        return RequestError(f"{self.path}:{line}: {what}", hint)

    def commands(self) -> Iterator[tuple[int, str, str]]:
        """Line, first word, and the rest with variables replaced."""
        for number, line in enumerate(self.text.splitlines(), 1):
            bare = line.split("#", 1)[0].strip(" \t{}")
            if not bare:
                continue
            word, _, rest = bare.partition(" ")
            if word == "set":
                name, _, value = rest.partition("=")
                self.variables[name.strip().lstrip("$")] = self._filled(number, value.strip())
            else:
                yield number, word, rest if word in _IGNORED else self._filled(number, rest)

    def _filled(self, number: int, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            if found[1] not in self.variables:
                raise self.wrong(number, f"${found[1]} was not set", f"set ${found[1]}=... above it")
            return self.variables[found[1]]

        return re.sub(r"\$\{?(\w+)\}?", value, text)


def _fields(text: str) -> dict[str, str]:
    """`name=a,size=cvar(type=x,parameters=mean:1;gamma:2)` by name; brackets hold their commas."""
    parts = re.findall(r"(\w+)=((?:[^,(]|\([^)]*\))*)", text)
    return {name: value.strip().strip('"') for name, value in parts}


def mixture(path: Path, text: str) -> Mapping[str, Any]:
    """What src/iodock/health/workload.py takes from TOML. Raises RequestError with file and line."""
    script = _Script(path, text)
    weights: dict[str, int] = {}
    found: dict[str, Any] = {"name": path.stem, "seconds": 10.0}
    files, threads, instances, processes, created = 0, 1, 1, 0, False
    for line, word, rest in script.commands():
        given = _fields(rest)
        if word == "define" and rest.startswith(("fileset", "file ")):
            many = _number(script, line, given.get("entries", "1"))
            if many > files:
                files, found["sizes"] = (
                    many,
                    _sizes(script, line, given.get("size") or given.get("filesize") or "1k"),
                )
        elif word == "define" and rest.startswith("process"):
            instances = _number(script, line, given.get("instances", "1"))
        elif word == "thread":
            threads = _number(script, line, given.get("instances", "1"))
            processes += instances * threads
        elif word == "flowop":
            name = rest.split(maxsplit=1)[0].split(",")[0]
            # A file is created with its content.
            if not (created and name == "writewholefile"):
                _count(script, line, name, threads, weights)
            created = name == "createfile"
            _note_sizes(script, line, name, given, found)
        elif word in ("run", "psrun"):
            seconds = re.findall(r"\d+", rest)
            found["seconds"] = float(min(int(seconds[-1]), _MOST_SECONDS)) if seconds else 10.0
        elif word not in _IGNORED and word != "define":
            raise script.wrong(line, f"{word}: is no command that is known", "leave the line out")
    if not weights:
        raise RequestError(
            f"{path}: no operation was found", f"flow operations that are known: {', '.join(_KINDS)}"
        )
    many = max(processes, 1)
    each = max(files // many, 1)
    return {**found, "files": each, "operations": each * _ROUNDS, "processes": [many], "weights": weights}


def _count(script: _Script, line: int, name: str, threads: int, weights: dict[str, int]) -> None:
    if name in _KINDS:
        weights[_KINDS[name]] = weights.get(_KINDS[name], 0) + threads
    elif name not in _IMPLIED:
        raise script.wrong(
            line,
            f"{name}: can't be part of a mixture of whole files",
            f"it can be made of: {', '.join(_KINDS)}",
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
    parts = re.fullmatch(r"(\d{1,12})([kmgt]?)b?", text.lower())
    if not parts:
        mean = re.search(r"mean:(\d{1,12})", text)
        if not mean:
            raise script.wrong(line, f"{text!r}: is no number", "write 4096, 4k or 1m")
        return int(mean[1])
    return max(int(parts[1]) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[parts[2]], 1)


def _sizes(script: _Script, line: int, text: str) -> list[int]:
    """One size, or a sample of a gamma distribution: always the same."""
    mean, gamma = _number(script, line, text), re.search(r"gamma:([0-9.]+)", text)
    if not gamma or not 0 < float(gamma[1]) < 1e6:
        return [mean]
    shape, chance = float(gamma[1]), random.Random(1)
    return sorted(max(round(chance.gammavariate(shape, mean / shape)), 1) for _ in range(_SAMPLES))
