"""Reads IOR's JSON (`-O summaryFormat=JSON`), which IOR writes since version 3.2.

Version 3.2.1 prints a banner before the JSON and nests its brackets wrongly, and a truncated file lacks the
closing brackets. The file is therefore not parsed as a whole. Instead, every object that contains no other
object is parsed separately, in the order of the file.
"""

from __future__ import annotations

import re
from typing import Any

from iodock.file_system.health.readers.base import Source, duration
from iodock.file_system.health.readers.ior_rows import MIB, Result, Row
from iodock.shared.bounded.documents import DocumentError, from_json

# The quantifiers are possessive, so that the expression does not backtrack. Otherwise, an object without a
# closing brace would need memory for each of its characters.
_INNERMOST = re.compile(r'\{(?:[^{}"]++|"(?:\\.|[^"\\])*+")*+\}')
_MEMBER = re.compile(r'"(Version|Began|Finished|Command line|Machine)"\s*:\s*("(?:\\.|[^"\\])*+")')
_NAMES = {
    "Version": "version",
    "Began": "began",
    "Finished": "finished",
    "Machine": "machine",
}


def read(source: Source) -> Result:
    """Reads all tests. A damaged object is left out; if it is a result, it is counted as such."""
    result = Result()
    commands: list[tuple[int, str | None]] = []
    for found in _MEMBER.finditer(source.text):
        if found[1] == "Command line":
            commands.append((found.start(), _text(found[2])))
            continue
        if found[1] == "Began":
            # The member `Began` starts the output of another command. Its command line may be missing.
            commands.append((found.start(), None))
        if getattr(result, _NAMES[found[1]]) is None:
            setattr(result, _NAMES[found[1]], _text(found[2]))
    commands.reverse()
    line, last = 1, 0
    for found in _INNERMOST.finditer(source.text):
        while commands and commands[-1][0] < found.start():
            result.commanded(commands.pop()[1])
        line += source.text.count("\n", last, found.start())
        last = found.start()
        try:
            one = from_json(found[0])
        except DocumentError as error:
            if '"bwMiB"' in found[0]:
                source.doubts.count(f"a result that {error.reason}", "ior", source.at(line))
            continue
        _take(one, line, result, source)
    return result


def _text(quoted: str) -> str:
    try:
        return str(from_json(quoted))
    except ValueError:
        return quoted.strip('"')


def _take(one: dict[str, Any], line: int, result: Result, source: Source) -> None:
    if "transferSize" in one and "api" in one:
        result.test(_parameters(one))
    elif "xfersize" in one and result.runs:
        said = {name: str(value) for name, value in one.items()}
        # Sizes in these members are rounded. The exact sizes from the test's parameters take precedence.
        result.runs[-1].settings = {**said, **result.runs[-1].settings}
    elif "access" in one and result.runs:
        result.runs[-1].rows.append(_row(one, line, source))


def _parameters(one: dict[str, Any]) -> dict[str, str]:
    said = {
        "api": one.get("api"),
        "test filename": one.get("testFileName"),
        "xfersize": one.get("transferSize"),
        "blocksize": one.get("blockSize"),
        "segments": one.get("segmentCount"),
        "repetitions": one.get("repetitions"),
        "nodes": one.get("nodes") or None,
        "direct": "useO_DIRECT=1" if one.get("useO_DIRECT") else None,
        "fsync": int(bool(one["fsync"])) if "fsync" in one else None,
        "fsyncperwrite": int(bool(one["fsyncperwrite"])) if "fsyncperwrite" in one else None,
        "stonewallingTime": one.get("deadlineForStonewall") or None,
    }
    return {name: str(value) for name, value in said.items() if value is not None}


def _row(one: dict[str, Any], line: int, source: Source) -> Row:
    bandwidth = source.rate(one.get("bwMiB"), line, f"ior {one['access']}")
    return Row(
        str(one["access"]),
        line,
        None if bandwidth is None else bandwidth * MIB,
        seconds=duration(one.get("totalTime")),
    )
