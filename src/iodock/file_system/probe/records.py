"""Defines the records of a probe store, and converts them to and from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from iodock.file_system.probe.operations import Operation


class Kind(StrEnum):
    """What became of an operation in a round."""

    ANSWERED = "answered"
    FAILED = "failed"
    NO_ANSWER = "no-answer"
    """There was no answer within the limit. The child process was left behind."""
    WAITING = "waiting"
    """The operation was not started, because the child of an earlier round is still waiting in the same
    operation."""
    NOT_TRIED = "not-tried"
    """The operation was not started, because one that it needs was not answered."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one operation in a round, with its duration and error."""

    kind: Kind
    ns: int | None = None
    """Duration, ns. If there was no answer it is the limit; if an earlier round still waits, the time that it
    has waited."""
    detail: str | None = None
    """Name of the error, or of the operation that was not answered."""

    def to_json(self) -> Any:
        """Converts the outcome to JSON. An answered operation, which is the most frequent case, becomes a
        number to save space. Other outcomes become a list."""
        return self.ns if self.kind is Kind.ANSWERED else [self.kind.value, self.ns, self.detail]

    @classmethod
    def from_json(cls, value: Any) -> Outcome:
        """Parses an outcome from JSON. Raises ValueError or TypeError if VALUE has another form."""
        if isinstance(value, int):
            return cls(Kind.ANSWERED, value)
        kind, ns, detail = value
        if not isinstance(ns, int | None) or not isinstance(detail, str | None):
            raise TypeError("outcome")
        return cls(Kind(kind), ns, detail)


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the prober, with its target and settings. Times are in ns since the epoch."""

    ts: int
    run: str
    """Unique id of this run. Its rounds contain it."""
    host: str
    pid: int
    target: str
    """The folder or the command that is watched."""
    is_command: bool
    every_s: float
    limit_s: float
    size_bytes: int
    version: str


@dataclass(frozen=True, slots=True)
class Round:
    """The outcomes of all operations in one round."""

    ts: int
    run: str
    number: int
    outcomes: Mapping[Operation, Outcome]
    found: Mapping[str, int] = field(default_factory=dict)
    """Free bytes and inodes, from `df`."""

    @property
    def is_good(self) -> bool:
        """Returns whether all operations were answered."""
        return all(one.kind is Kind.ANSWERED for one in self.outcomes.values())

    @property
    def is_clean(self) -> bool:
        """Returns whether the round certainly left no files, because its folder was never created, or was
        removed."""
        made, removed = (self.outcomes.get(one) for one in (Operation.MKDIR, Operation.RMDIR))
        if made is None or made.kind in (Kind.FAILED, Kind.WAITING, Kind.NOT_TRIED):
            return True
        return removed is not None and removed.kind is Kind.ANSWERED


@dataclass(frozen=True, slots=True)
class Late:
    """The answer to an operation that came after the time limit."""

    ts: int
    """Time at which the operation began, ns since the epoch."""
    run: str
    operation: Operation
    ns: int
    detail: str | None
    """The error, if the operation failed."""


@dataclass(frozen=True, slots=True)
class End:
    """The normal end of a run. `left` lists the rounds whose files may still exist."""

    ts: int
    run: str
    left: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Mark:
    """A user's note that something was changed on the file system."""

    ts: int
    text: str


Record = Run | Round | Late | End | Mark


def to_json(record: Record) -> dict[str, Any]:
    """Converts a record to JSON. The names of members are short, because a store may contain half a million
    rounds per year."""
    match record:
        case Run():
            return {"k": "run", **{name: getattr(record, name) for name in _RUN}}
        case Round(ts, run, number, outcomes, found):
            said = {one.value: outcome.to_json() for one, outcome in outcomes.items()}
            return {"k": "round", "ts": ts, "run": run, "n": number, "o": said, "f": dict(found)}
        case Late(ts, run, operation, ns, detail):
            return {"k": "late", "ts": ts, "run": run, "op": operation.value, "ns": ns, "detail": detail}
        case End(ts, run, left):
            return {"k": "end", "ts": ts, "run": run, "left": list(left)}
        case Mark(ts, text):
            return {"k": "mark", "ts": ts, "text": text}


_RUN = {
    "ts": int, "run": str, "host": str, "pid": int, "target": str, "is_command": bool,
    "every_s": float, "limit_s": float, "size_bytes": int, "version": str,
}  # fmt: skip


# Operations are looked up in this dictionary, because calling the enum class takes longer than parsing the
# JSON.
_OPERATIONS = {one.value: one for one in Operation}


def from_json(said: dict[str, Any]) -> Record | None:
    """Converts JSON to a record. Returns None if only later versions of iodock know this kind of record.
    Raises KeyError, ValueError or TypeError if the JSON has another form."""
    match said["k"]:
        case "run":
            return Run(**{name: kind(said[name]) for name, kind in _RUN.items()})
        case "round":
            outcomes = {_OPERATIONS[name]: Outcome.from_json(value) for name, value in said["o"].items()}
            found = {str(name): int(value) for name, value in said["f"].items()}
            return Round(int(said["ts"]), str(said["run"]), int(said["n"]), outcomes, found)
        case "late":
            operation, detail = Operation(said["op"]), said["detail"]
            return Late(int(said["ts"]), str(said["run"]), operation, int(said["ns"]), detail)
        case "end":
            return End(int(said["ts"]), str(said["run"]), tuple(int(one) for one in said["left"]))
        case "mark":
            return Mark(int(said["ts"]), str(said["text"]))
        case _:
            return None
