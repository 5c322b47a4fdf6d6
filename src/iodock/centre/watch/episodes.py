"""Builds episodes, which are periods in which a server has problems, from the server's verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from iodock.centre.watch.verdict import UNWELL, State, Suspect, Verdict

ServerKind = Literal["metadata", "object", "client"]
Key = tuple[str, str, str]
"""Identifies a server by file system, host and kind."""
MOST_SUSPECTS = 10
RECOVERED_SAMPLES = 3
"""Number of consecutive good samples that end an episode. A server whose state fluctuates remains unwell."""
_SEVERITY: tuple[State, ...] = ("degraded", "failover", "overload", "stall")
"""States from the least severe to the worst."""


@dataclass(frozen=True)
class Episode:
    file_system: str
    server: str
    kind: ServerKind
    begin_ns: int
    state: State
    """The last of its states that was a state of trouble."""
    worst: State
    seen_ns: int
    """Time of the last verdict that was based on data."""
    confidence: float
    samples: int
    """Number of consecutive samples that support the last verdict."""
    suspects: tuple[Suspect, ...] = ()
    """Suspects, worst first: those of the last verdict, followed by earlier ones."""
    end_ns: int | None = None
    told: int | None = None
    """Number of the episode with which this one shares a notice; None: no notice was sent."""
    number: int = 0
    """Number in the ledger; 0: not stored yet."""

    @property
    def key(self) -> Key:
        return self.file_system, self.server, self.kind

    @property
    def is_over(self) -> bool:
        return self.end_ns is not None


def key_of(verdict: Verdict) -> Key:
    return verdict.file_system, verdict.server, verdict.kind


def advanced(episode: Episode | None, verdict: Verdict) -> Episode | None:
    """Returns the episode of a server after one more verdict, or None if the server had no problems before
    and has none now. The episode does not change if the verdict is not newer than the last one or if samples
    are missing."""
    if episode is None:
        return _begun(verdict) if verdict.state in UNWELL and not verdict.missed else None
    if verdict.at_ns <= episode.seen_ns or verdict.state == "no-samples" or verdict.missed:
        return episode
    if verdict.state in UNWELL:
        return _continued(episode, verdict)
    if verdict.samples < RECOVERED_SAMPLES:
        return episode
    return replace(episode, end_ns=max(episode.begin_ns, min(verdict.since_ns, verdict.at_ns)))


def _begun(verdict: Verdict) -> Episode:
    return Episode(
        verdict.file_system, verdict.server, verdict.kind, min(verdict.since_ns, verdict.at_ns),
        verdict.state, verdict.state, verdict.at_ns, verdict.confidence, verdict.samples,
        merged(verdict.suspects, ()),
    )  # fmt: skip


def _continued(episode: Episode, verdict: Verdict) -> Episode:
    return replace(
        episode, state=verdict.state, worst=worse(episode.worst, verdict.state), seen_ns=verdict.at_ns,
        confidence=verdict.confidence, samples=verdict.samples,
        suspects=merged(verdict.suspects, episode.suspects),
    )  # fmt: skip


def worse(one: State, other: State) -> State:
    """Returns the worse of two states."""
    return max(one, other, key=_SEVERITY.index)


def merged(now: Iterable[Suspect], before: Iterable[Suspect]) -> tuple[Suspect, ...]:
    """Returns at most MOST_SUSPECTS suspects: the current ones, followed by earlier ones that are not among
    them."""
    found: dict[str, Suspect] = {}
    for suspect in (*now, *before):
        found.setdefault(suspect.job, suspect)
    return tuple(found.values())[:MOST_SUSPECTS]
