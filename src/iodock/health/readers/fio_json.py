"""The JSON documents of fio in a file, with whatever stands around them.

`--status-interval=N` writes one document an interval, each of which holds all since the run's begin. Others
append run after run to one file. Warnings, logs, and with `--output-format=normal,json` fio's text, stand
between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from iodock.bounded.documents import DocumentError, check_values, next_json
from iodock.health.readers.base import Source, number

Document = dict[str, Any]
DIRECTIONS = ("read", "write", "trim", "mixed")
_START = re.compile(r"^\s{0,3}(?=\{)", re.MULTILINE)
_NEXT = re.compile(r"\s*(?=\{)")
_SAME_START_S = 2
"""fio's times of this kind are whole seconds."""


@dataclass
class Found:
    """What a file holds."""

    documents: list[Document] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    """Lines at which a document begins that is cut or damaged."""
    ends_damaged: bool = False
    wrong: tuple[int, str] = (1, "")
    """Line and fault of the last of them."""


def documents(source: Source) -> Found:
    """Every document of fio, in their order. Raises MeasurementError for more values than are read."""
    found, text, at = Found(), source.text, 0
    if '"fio version"' not in text:
        return found
    try:
        check_values(text)
    except DocumentError as error:
        raise source.wrong(1, str(error), "keep one run in a file") from None
    while (start := _NEXT.match(text, at) if at else None) or (start := _START.search(text, at)):
        begin = start.end()
        try:
            one, at = next_json(text, begin)
        except DocumentError as error:
            at = _behind(text, begin)
            if '"fio version"' in text[begin:at]:
                line = source.line_of(begin)
                found.damaged.append(line)
                found.ends_damaged, found.wrong = True, (error.line or line, str(error))
            continue
        if isinstance(one, dict) and (jobs_of(one) or "fio version" in one):
            found.documents.append({**one, "line": source.line_of(begin)})
            found.ends_damaged = False
    return found


def _behind(text: str, begin: int) -> int:
    """Where the next document may begin after a damaged one: at the start of a line."""
    following = re.compile(r"^(?=\{)", re.MULTILINE).search(text, begin + 1)
    return following.start() if following else len(text)


def jobs_of(document: Document) -> list[dict[str, Any]]:
    """All jobs, those of other hosts (`fio --client`) too."""
    return [
        one
        for name in ("jobs", "client_stats")
        if isinstance(document.get(name), list)
        for one in document[name]
        if isinstance(one, dict)
    ]


def runs(given: list[Document]) -> list[list[Document]]:
    """Documents put together that are states of one run, each after the one before."""
    found: list[list[Document]] = []
    for one in given:
        if found and _continues(found[-1][-1], one):
            found[-1].append(one)
        else:
            found.append([one])
    return found


def _continues(one: Document, other: Document) -> bool:
    """Whether OTHER is a later state of the run of ONE: the same jobs, began at the same time, and nothing
    became less."""
    before, after = _by_name(one), _by_name(other)
    if list(before) != list(after):
        return False
    began, again = _began(one), _began(other)
    if began is not None and again is not None and abs(again - began) > _SAME_START_S:
        return False
    return all(
        later >= earlier
        for name in before
        for earlier, later in zip(_state(before[name]), _state(after[name]), strict=True)
    )


def _by_name(document: Document) -> dict[tuple[object, ...], list[dict[str, Any]]]:
    named: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for job in jobs_of(document):
        key = tuple(str(job.get(name)) for name in ("hostname", "port", "groupid", "jobname", "pid"))
        named.setdefault((*key, str(job.get("job options")), str(job.get("job_start"))), []).append(job)
    return named


def _began(document: Document) -> float | None:
    stamp, elapsed = number(document.get("timestamp")), _elapsed(document)
    return None if stamp is None or elapsed is None else stamp - elapsed


def _elapsed(document: Document) -> float | None:
    """Seconds since fio began, which each job has."""
    known = [value for job in jobs_of(document) if (value := number(job.get("elapsed"))) is not None]
    return max(known) if known else None


def _state(jobs: list[dict[str, Any]]) -> Iterator[float]:
    """Sums that can only grow while a run goes on."""
    for direction in DIRECTIONS:
        for name in ("io_bytes", "runtime"):
            parts = [job[direction] for job in jobs if isinstance(job.get(direction), dict)]
            yield sum(number(part.get(name)) or 0.0 for part in parts)
