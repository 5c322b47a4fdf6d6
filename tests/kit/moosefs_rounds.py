"""Plays rounds on a real MooseFS: no load, load by one of four jobs, a master stopped by SIGSTOP, and a
restarted master. Checks in each round the state on the collector's page and the job that it names."""

from __future__ import annotations

import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from moosefs_job import BEGINS
from moosefs_site import JOBS, MooseFsSite, until
from places import ROOT

Kind = Literal["idle", "load", "stop", "restart"]
TRUTH: dict[Kind, str] = {"idle": "healthy", "load": "overload", "stop": "stall", "restart": "failover"}
"""The kinds of rounds, and the state that each should produce (docs/explanation/server-states.md)."""
KINDS: tuple[Kind, ...] = tuple(TRUTH)
SAMPLES = 3
"""Time limit for a verdict."""
ON_ITS_WAY_S = 3.0
"""Time until a reading is sent, stored, written and judged. The page has no verdict before."""
PROCESSES = 64
_JOB = ROOT / "tests" / "kit" / "moosefs_job.py"
_POLL_S = 0.25
_CALM_SAMPLES = 3
_CALM_S = 90.0


@dataclass(frozen=True)
class Outcome:
    """The result of one round."""

    kind: Kind
    culprit: str | None
    """The job that causes the load, if there is one."""
    said: str
    """The expected state, if it was reported in time; otherwise the last state reported."""
    after_s: float | None
    """Time of its first report since the beginning; None: not in time."""
    named: tuple[str, ...]
    """Suspected jobs, the most likely first."""
    seen: str = ""
    """The states that were reported, and when."""

    @property
    def is_right(self) -> bool:
        """Returns whether state and job are right: in a load round the right job must come first, and in
        other rounds none may be named."""
        is_named = self.culprit is None or self.named[:1] == (self.culprit,)
        return self.said == TRUTH[self.kind] and is_named and not self.accuses

    @property
    def accuses(self) -> bool:
        """Returns whether the collector named a job in a round without a load, such as the job of an earlier
        load."""
        return self.culprit is None and bool(self.named)

    def __str__(self) -> str:
        when = f" after {self.after_s:.1f} s" if self.after_s is not None else ""
        who = f", by job {self.culprit}" if self.culprit else ""
        named = f", named: {' '.join(self.named)}" if self.named else ""
        seen = "" if self.is_right else f" ({self.seen})"
        return f"{'right' if self.is_right else 'WRONG'}: {self.kind}{who}: {self.said}{when}{named}{seen}"


@dataclass
class Score:
    """The results of all rounds."""

    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def right(self) -> int:
        return sum(one.is_right for one in self.outcomes)

    @property
    def states(self) -> int:
        """Returns the number of rounds with the correct state."""
        return sum(one.said == TRUTH[one.kind] for one in self.outcomes)

    @property
    def firsts(self) -> int:
        """Returns the number of load rounds in which the right job came first."""
        return sum(one.named[:1] == (one.culprit,) for one in self.outcomes)

    def table(self) -> str:
        """Returns the rounds and their results as a Markdown table."""
        said = Counter((one.kind, one.said) for one in self.outcomes)
        states = ("healthy", "busy", "overload", "stall", "failover", "degraded", "no-samples")
        heads = ("done", *states, "right", "named, though no job did it")
        lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
        for kind in TRUTH:
            of = [one for one in self.outcomes if one.kind == kind]
            cells = [str(said[kind, state]) for state in states]
            cells += [f"{sum(one.is_right for one in of)} of {len(of)}", str(sum(one.accuses for one in of))]
            lines.append(f"| {kind} | {' | '.join(cells)} |")
        return "\n".join(lines)


def plan(each: int, seed: int, of: Sequence[Kind] = KINDS) -> list[tuple[Kind, str | None]]:
    """Returns EACH rounds of each kind, in random order, with a job for each load."""
    chance = random.Random(seed)
    kinds = [kind for kind in of for _ in range(each)]
    chance.shuffle(kinds)
    return [(kind, chance.choice(JOBS) if kind == "load" else None) for kind in kinds]


class Rounds:
    """Plays rounds on one site, where each job does a few operations all the time."""

    def __init__(self, site: MooseFsSite, tell: Callable[[str], None] = print) -> None:
        self.site, self.tell = site, tell
        self._loads = 0
        self._length_s = SAMPLES * site.sample_s + ON_ITS_WAY_S
        for job in JOBS:
            folder = f"/mnt/job_{job}/of_{job}"
            site.run_on("n1", "mkdir", folder)
            site.start_on("n1", f"job-{job}", [sys.executable, str(_JOB), folder, "little"])

    def learn(self, samples: int = 70) -> None:
        """Waits until the collector knows the usual values of the server and of each job. suspects.py
        computes them from the preceding 60 samples."""
        time.sleep(samples * self.site.sample_s)
        self._calm()

    def play(self, rounds: list[tuple[Kind, str | None]]) -> Iterator[Outcome]:
        for kind, culprit in rounds:
            self._calm()
            yield self._one(kind, culprit)

    def _one(self, kind: Kind, culprit: str | None) -> Outcome:
        begin = time.monotonic()
        undo = self._do(kind, culprit)
        # The time of a restart counts from when the master is back, and that of a load from when all its
        # processes run.
        begin = time.monotonic() if kind in ("restart", "load") else begin
        try:
            outcome = self._watch(kind, begin, culprit)
        finally:
            undo()
        return outcome

    def _watch(self, kind: Kind, begin: float, culprit: str | None) -> Outcome:
        expected, after_s, named, seen = TRUTH[kind], None, tuple[str, ...](), list[tuple[str, float]]()
        while (passed_s := time.monotonic() - begin) < self._length_s:
            state = self._state()
            if not seen or seen[-1][0] != state:
                seen.append((state, passed_s))
            if state == expected:
                after_s = passed_s if after_s is None else after_s
                named = self._named()
            if (state == expected) != (expected == "healthy") and (named or culprit is None):
                break
            time.sleep(_POLL_S)
        last = seen[-1][0]
        is_said = after_s is not None and (expected != "healthy" or last == expected)
        told = ", ".join(f"{state} {at_s:.1f} s" for state, at_s in seen)
        return Outcome(
            kind, culprit, expected if is_said else last, after_s if is_said else None, named, told
        )

    def _do(self, kind: Kind, culprit: str | None) -> Callable[[], None]:
        """Begins a round and returns the function that ends it."""
        if kind == "load":
            words = [sys.executable, str(_JOB), f"/mnt/job_{culprit}/of_{culprit}", "much", str(PROCESSES)]
            before = self.site.log("load").count(BEGINS) if self._loads else 0
            self._loads += 1
            self.site.start_on("n1", "load", words)
            until(lambda: self.site.log("load").count(BEGINS) > before, "the load does not begin")
            return lambda: self.site.stop("load")
        if kind == "stop":
            self.site.signal_master(signal.SIGSTOP)
            return lambda: self.site.signal_master(signal.SIGCONT)
        if kind == "restart":
            self.site.service("mfsmaster", "master.cfg", "restart")
        return lambda: None

    def _calm(self) -> None:
        """Waits until several successive samples are healthy."""
        since = time.monotonic()
        ends = since + _CALM_S
        while time.monotonic() - since < _CALM_SAMPLES * self.site.sample_s:
            if self._state() != "healthy":
                since = time.monotonic()
            if time.monotonic() > ends:
                self.tell(f"note: not calm after {_CALM_S:g} s: {self._state()}")
                return
            time.sleep(_POLL_S)

    def _state(self) -> str:
        rows = [row for row in self.site.servers() if row.get("server") == "mds01"]
        return str(rows[0]["state"]) if rows else "unknown"

    def _named(self) -> tuple[str, ...]:
        return tuple(str(row["job"]) for row in self.site.suspects())


__all__ = ["Kind", "Outcome", "Rounds", "Score", "plan", "until"]
