"""Reads the output of GNU `time -f FORMAT`. The user gives the same FORMAT with `--time-format`.

The format is converted to a regular expression, in which literal text must match and each `%x` is a group.
Source: the manual of GNU time 1.9.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from iodock.program.ratio.clocks import clock_seconds
from iodock.program.ratio.gnu_time import block_bytes
from iodock.program.ratio.reader import Reader, Reading, Sample
from iodock.program.ratio.record import Record
from iodock.shared.errors import RequestError

_NUMBER = r"[\d.]+"
_FIELDS = {
    **dict.fromkeys("eUS", _NUMBER),
    **dict.fromkeys("DFIKMORWXZckprstwx", r"\d+"),
    "E": r"[\d:.]+",
    "P": r"(?:\d+|\?)%",
    "C": r".*",
}
_BLANKS = r"[ \t]*"
_LITERALS = {"%%": "%", "\\n": "\n", "\\t": "\t", "\\\\": "\\"}
_TOKENS = re.compile(r"%.?|\\.|[^%\\]+|\\", re.DOTALL)
_LAST_BREAKS = re.compile(r"(?:\\n|\s)+$")
_HINT = "give the format that was used with time: --time-format '%e %U %S'"


def sniff(sample: Sample) -> float:
    """Returns 0, because the reader needs the option `--time-format` and is used only on request."""
    return 0.0


def read(reading: Reading) -> Iterator[Record]:
    """Yields one record for each match of the format. Raises RequestError if the format lacks the required
    times."""
    pattern, lines = expression(reading.options.time_format or "")
    window: list[str] = []
    for number, line in reading.lines():
        window = [*window[1 - lines :], line.strip()] if lines > 1 else [line.strip()]
        found = pattern.fullmatch("\n".join(window)) if len(window) == lines else None
        if found:
            window = []
            yield _record(found, reading, number - lines + 1)


def expression(form: str) -> tuple[re.Pattern[str], int]:
    """Returns the regular expression for a format, and the number of lines that it spans. Raises RequestError
    if the format lacks the required times."""
    parts: list[str] = []
    seen: set[str] = set()
    # A line break at the end of the format adds only an empty line to the output, so it is removed.
    for token in _TOKENS.findall(_LAST_BREAKS.sub("", form)):
        if token[0] == "%" and token != "%%":
            parts.append(_group(token, form, seen))
        else:
            parts.append(_loose(_LITERALS.get(token, token)))
    if "U" not in seen or not seen & {"e", "E"}:
        raise RequestError(f"--time-format '{form}' lacks %U, or both %e and %E", _HINT)
    # Blanks at the ends of lines may be missing, because logs often lose them.
    body = re.sub(r"(?:\[ \\t\]\*)?\\n(?:\[ \\t\]\*)?", r"\\n", "".join(parts))
    body = body.removeprefix(_BLANKS).removesuffix(_BLANKS)
    return re.compile(body), body.count(r"\n") + 1


def _loose(text: str) -> str:
    return re.sub(r"(?:\\[ \t])+", lambda _: _BLANKS, re.escape(text)).replace("\\\n", r"\n")


def _group(token: str, form: str, seen: set[str]) -> str:
    field = token[1:]
    if field not in _FIELDS:
        raise RequestError(f"--time-format '{form}': the command time has no {token}", _HINT)
    if field in seen:
        return f"(?:{_FIELDS[field]})"
    seen.add(field)
    return f"(?P<{field}>{_FIELDS[field]})"


def _record(found: re.Match[str], reading: Reading, line: int) -> Record:
    fields = found.groupdict()
    user, system = (clock_seconds(fields.get(name) or "") for name in "US")
    return Record(
        name=fields.get("C") or f"{reading.source.name}:{line}",
        real=clock_seconds(fields.get("e") or fields.get("E") or ""),
        user=user,
        system=system,
        at=reading.at(line),
        io_bytes=block_bytes(fields.get("I"), fields.get("O")),
    )


READER = Reader("time-format", "GNU time -f, with --time-format", sniff, read)
