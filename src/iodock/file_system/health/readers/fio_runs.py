"""Determines how several documents of fio in one file are related: they may be states of one run, successive
runs, or simultaneous runs.

Of the states of a run only the last one counts, and successive runs are repeats. Simultaneous runs, for
example on two hosts, are refused, because the file does not show whether their rates should be added.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from iodock.file_system.health.readers.base import Source, number
from iodock.file_system.health.readers.fio_json import DIRECTIONS, Document, bytes_moved, jobs_of

_SLACK_S = 2
"""Tolerance for those times of fio that are in whole seconds, rounded up or down."""
_MOST_FASTER = 10
"""A run may continue at up to this multiple of its rate so far."""
_SKEW_S = 0.01
"""Tolerance between the bytes and the time of a state, s. Both change while fio writes the state."""


def runs(given: list[Document], source: Source) -> list[list[Document]]:
    """Groups the documents in such a way that each group contains the successive states of one run. Raises
    MeasurementError if runs of the same jobs overlapped in time."""
    found: list[list[Document]] = []
    for one in given:
        if found and _continues(found[-1], one):
            found[-1].append(one)
        else:
            found.append([one])
    _refuse_at_once([run[-1] for run in found], source)
    return found


def _refuse_at_once(given: list[Document], source: Source) -> None:
    last: dict[tuple[object, ...], tuple[float, Document]] = {}
    for began, ended, one in sorted(_spans(given), key=lambda span: span[:2]):
        names = tuple(sorted({_place(job) for job in jobs_of(one)}))
        earlier = last.get(names)
        if earlier is not None and min(earlier[0], ended) - began > _SLACK_S:
            what = f"jobs of the same names ran at the same time as those of line {earlier[1]['line']}"
            hint = "keep the result of each host in a file of its own, or run them with fio --client"
            raise source.wrong(one["line"], what, hint)
        if earlier is None or ended > earlier[0]:
            last[names] = (ended, one)


def _spans(given: list[Document]) -> Iterator[tuple[float, float, Document]]:
    for one in given:
        began, ended = _began(one), _ended(one)
        if began is not None and ended is not None:
            yield began, ended, one


def _place(job: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(job.get(name)) for name in ("hostname", "port", "jobname"))


def _continues(run: list[Document], other: Document) -> bool:
    """Returns whether OTHER is a later state of RUN. This requires the same jobs, the same start time, no
    smaller value, and a number of bytes that is possible in the time between the states."""
    one = run[-1]
    before, after = _by_name(one), _by_name(other)
    if list(before) != list(after):
        return False
    if "timestamp" in one and "timestamp" in other:
        began, again = _began(one), _began(other)
        if began is not None and again is not None and abs(again - began) > _SLACK_S:
            return False
        if (_ended(other) or 0.0) < (_ended(one) or 0.0):
            return False
        if len(run) == 1 and _stood_still(one, other):
            return False
    since = _since(one, other)
    return all(
        _fits(before[name], after[name], direction, since) for name in before for direction in DIRECTIONS
    )


def _since(one: Document, other: Document) -> float | None:
    """Returns the seconds between two documents, or None if they have no time stamps. Milliseconds are used
    if both documents have them."""
    for name, factor in (("timestamp_ms", 1e3), ("timestamp", 1.0)):
        begin, end = number(one.get(name)), number(other.get(name))
        if begin is not None and end is not None:
            return (end - begin) / factor
    return None


def _fits(
    before: list[dict[str, Any]], after: list[dict[str, Any]], direction: str, since: float | None
) -> bool:
    """Returns whether AFTER can be a later state of the jobs BEFORE, judged by the I/O in one direction.
    SINCE is the time between the states in seconds."""
    moved, took = _state(before, direction)
    moved_then, took_then = _state(after, direction)
    grown, seconds = moved_then - moved, took_then - took
    if grown < 0 or seconds < 0:
        return False
    # Without a time or without I/O in the first state, the rate can't be checked. I/O in this direction may
    # also have started or ended between the states.
    if since is None or grown == 0 or moved == 0 or took == 0:
        return True
    # fio's intervals are at least one second long. After a shorter interval, or if the jobs were active for
    # less than half of it, the document may belong to another run, so the rate is checked as well.
    if since >= 1 and seconds >= since / 2:
        return True
    return grown <= _MOST_FASTER * moved / took * (seconds + _SKEW_S)


def _stood_still(one: Document, other: Document) -> bool:
    """Returns whether the running time grew while the number of bytes remained the same in all directions.
    This happens if the documents are runs of the same size on two hosts."""
    states = [[_state(jobs_of(each), direction) for direction in DIRECTIONS] for each in (one, other)]
    pairs = list(zip(*states, strict=True))
    return all(then[0] == now[0] for then, now in pairs) and any(now[1] > then[1] for then, now in pairs)


def _by_name(document: Document) -> dict[tuple[object, ...], list[dict[str, Any]]]:
    named: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    for job in jobs_of(document):
        key = tuple(str(job.get(name)) for name in ("hostname", "port", "groupid", "jobname", "pid"))
        named.setdefault((*key, str(job.get("job options")), str(job.get("job_start"))), []).append(job)
    return named


def _ended(document: Document) -> float | None:
    """Returns the time at which fio wrote the document, in seconds. For JSON it is the time since the epoch,
    for fio's text the time of fio's own clock."""
    return number(document.get("timestamp", document.get("written_s")))


def _began(document: Document) -> float | None:
    ended, elapsed = _ended(document), _elapsed(document)
    return None if ended is None or elapsed is None else ended - elapsed


def _elapsed(document: Document) -> float | None:
    """Returns the time since fio started, in seconds. It is the largest value of the jobs."""
    known = [value for job in jobs_of(document) if (value := number(job.get("elapsed"))) is not None]
    return max(known) if known else None


def _state(jobs: list[dict[str, Any]], direction: str) -> tuple[float, float]:
    """Returns the number of bytes and the seconds of all jobs together. Neither value can decrease during a
    run."""
    parts = [job[direction] for job in jobs if isinstance(job.get(direction), dict)]
    moved = sum(bytes_moved(part) or 0.0 for part in parts)
    # The jobs run at the same time, so the time of all jobs is that of the longest one.
    return moved, max((number(part.get("runtime")) or 0.0 for part in parts), default=0.0) / 1e3
