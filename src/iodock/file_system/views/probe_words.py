"""Formats single rounds and answers of a probe as lines of text."""

from __future__ import annotations

from datetime import datetime

from iodock.file_system.probe.records import Kind, Late, Outcome, Round
from iodock.shared.units import NANOSECONDS


def round_line(done: Round) -> str:
    """Formats a round as one line, for users who watch a run in the terminal. An example is `14:03:00 round
    7: mkdir 1 ms, ...`."""
    parts = [f"{operation.value} {outcome_text(outcome)}" for operation, outcome in done.outcomes.items()]
    return f"{clock(done.ts)} round {done.number}: {', '.join(parts)}"


def late_line(late: Late) -> str:
    """Formats an answer that came after the time limit as one line."""
    failed = f" with {late.detail}" if late.detail else ""
    return f"{clock(late.ts)} {late.operation.value} answered{failed} after {NANOSECONDS.text(late.ns)}"


def outcome_text(outcome: Outcome) -> str:
    """Formats an outcome, such as `2.1 ms`, `EIO after 3 ms`, `no answer after 30 s`, `still waits after 2 h`
    or `not tried (mkdir)`."""
    span = NANOSECONDS.text(outcome.ns) if outcome.ns is not None else ""
    match outcome.kind:
        case Kind.ANSWERED:
            return span
        case Kind.FAILED:
            return f"{outcome.detail} after {span}"
        case Kind.NO_ANSWER:
            return f"no answer after {span}"
        case Kind.WAITING:
            return f"still waits after {span}"
        case Kind.NOT_TRIED:
            return f"not tried ({outcome.detail})"


def clock(ts: int) -> str:
    """Formats a time as local date and time, to the second."""
    return datetime.fromtimestamp(ts / 1e9).strftime("%Y-%m-%d %H:%M:%S")
