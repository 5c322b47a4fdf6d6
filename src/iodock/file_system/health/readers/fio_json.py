"""Finds the JSON documents of fio in a file that may contain other text as well.

With `--status-interval=N` fio writes one document per interval, each with the results since the start of the
run. Some users append the output of several runs to one file. Warnings, logs, and fio's text (with
`--output-format=normal,json`) may be between the documents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from iodock.file_system.health.readers.base import Source, number
from iodock.shared.bounded.documents import DocumentError, check_values, next_json

Document = dict[str, Any]
DIRECTIONS = ("read", "write", "trim", "mixed")
_START = re.compile(r"^\s{0,3}(?=\{)", re.MULTILINE)
_NEXT = re.compile(r"\s*(?=\{)")
_LINE_START = re.compile(r"^(?=\{)", re.MULTILINE)
_MOST_DAMAGED = 10_000
"""Limit for positions that look like the beginning of a document but are not."""


@dataclass
class Found:
    """The JSON documents that were found in a file, and the damaged ones among them."""

    documents: list[Document] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    """Lines at which a cut or damaged document begins."""
    ends_damaged: bool = False
    wrong: tuple[int, str] = (1, "")
    """Line and error of the last damaged document."""


def documents(source: Source) -> Found:
    """Reads all documents of fio in the order of the file. Raises MeasurementError if the file contains too
    many JSON values or too many damaged documents."""
    found, text, at = Found(), source.text, 0
    if '"fio version"' not in text:
        return found
    try:
        check_values(text)
    except DocumentError as error:
        raise source.wrong(1, str(error), "keep one run in a file") from None
    line, last, damaged = 1, 0, 0
    while (start := _NEXT.match(text, at) if at else None) or (start := _START.search(text, at)):
        begin = start.end()
        line, last = line + text.count("\n", last, begin), begin
        try:
            one, at = next_json(text, begin)
        except DocumentError as error:
            damaged += 1
            if damaged > _MOST_DAMAGED:
                what = f"more than {_MOST_DAMAGED:,} places begin like JSON, but are none"
                raise source.wrong(line, what, "keep fio's JSON apart from other output") from None
            at = _behind(text, begin)
            if text.find('"fio version"', begin, at) >= 0:
                found.damaged.append(line)
                found.ends_damaged, found.wrong = True, (line - 1 + (error.line or 1), str(error))
            continue
        if isinstance(one, dict) and (jobs_of(one) or "fio version" in one):
            found.documents.append({**one, "line": line})
            found.ends_damaged = False
    return found


def _behind(text: str, begin: int) -> int:
    """Returns the position at which the document after a damaged one may begin: the next line that starts
    with a brace."""
    following = _LINE_START.search(text, begin + 1)
    return following.start() if following else len(text)


def jobs_of(document: Document) -> list[dict[str, Any]]:
    """Returns all jobs of a document, including those of other hosts (`fio --client`)."""
    return [
        one
        for name in ("jobs", "client_stats")
        if isinstance(document.get(name), list)
        for one in document[name]
        if isinstance(one, dict)
    ]


def bytes_moved(done: Any) -> float | None:
    """Returns the number of bytes transferred in one direction, or None if it is not a number. Before fio
    2.21 `io_bytes` was in KiB. Version 2.21 introduced `io_kbytes` (commit c12d597a), and `io_bytes` has been
    in bytes since then."""
    if not isinstance(done, dict):
        return None
    moved = number(done.get("io_bytes"))
    is_bytes = "io_kbytes" in done or "bw_bytes" in done
    return moved if moved is None or is_bytes else moved * 1024
