"""Tests the classifier of servers' states on synthetic runs with known states, and prints a table of true and
reported states.

    # The runs for judging, and 30 healthy days:
    PYTHONPATH=src .venv/bin/python tools/server_states.py
    # The runs that it was tuned on, and each mistake:
    PYTHONPATH=src .venv/bin/python tools/server_states.py --tuning
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from iodock.centre.watch.states import States
from iodock.centre.watch.suspects import suspects
from iodock.centre.watch.verdict import UNWELL, Verdict
from iodock.simulation.episodes.episode import Episode
from iodock.simulation.episodes.seeds import HEALTHY_DAYS, JUDGING, TUNING, healthy_day, runs

STATES = ("healthy", "busy", "overload", "stall", "failover", "degraded", "no-samples")
GRACE = 3
"""Number of samples within which a verdict must be reported."""


@dataclass(frozen=True)
class Spell:
    """The third sample after a change of the true state of a server."""

    episode: Episode
    states: States
    verdict: Verdict
    truth: str
    culprits: tuple[str, ...]
    at: int

    def __str__(self) -> str:
        run = f"{self.episode.story} {self.episode.seed} ({self.episode.step_s:g} s)"
        return f"{run} {self.verdict.server} sample {self.at}"


@dataclass
class Score:
    """Counts of true states and reported states."""

    said: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Truth and verdict, in samples from the third after a change on."""
    spells: dict[str, Counter[bool]] = field(default_factory=dict)
    """By true state, of all changes to it: whether the verdict was right at the third sample."""
    runs: Counter[bool] = field(default_factory=Counter)
    """Whether it was right at the third sample after every change."""
    firsts: Counter[bool] = field(default_factory=Counter)
    """Of overloads and stalls that jobs began: whether the first one named is one of them."""
    nobody: Counter[bool] = field(default_factory=Counter)
    """Problems that no job caused: whether correctly no job was named."""
    alerts: int = 0
    wrong: list[str] = field(default_factory=list)
    misnamed: list[str] = field(default_factory=list)

    def take(self, episode: Episode) -> None:
        states, since = States(), dict[str, tuple[str, int]]()
        wrong = len(self.wrong)
        for at, tick in enumerate(episode.ticks):
            verdicts = {one.server: one for one in states.take(tick.round)}
            self.alerts += sum(one.state in UNWELL for one in verdicts.values())
            for host, truth in tick.truth.items():
                known = since.get(host)
                if known is None or known[0] != truth:
                    since[host] = known = (truth, at)
                if at - known[1] < GRACE - 1:
                    continue
                self.said[truth, verdicts[host].state] += 1
                # A state that holds from the beginning is no change.
                if at - known[1] == GRACE - 1 and known[1] > 0:
                    self._judge(Spell(episode, states, verdicts[host], truth, tick.culprits, at))
            for host in set(since) - set(tick.truth):
                since[host] = ("", at)
        self.runs[len(self.wrong) == wrong] += 1

    def _judge(self, spell: Spell) -> None:
        """Compares verdict and truth at the third sample after a change."""
        is_right = spell.verdict.state == spell.truth
        self.spells.setdefault(spell.truth, Counter())[is_right] += 1
        if not is_right:
            self.wrong.append(f"{spell}: {spell.truth}, said {spell.verdict.state}")
        if spell.truth not in ("overload", "stall"):
            return
        step_s, clock_ns = spell.states.clock(spell.verdict.server)
        named = [one.job for one in suspects(spell.verdict, spell.episode, step_s, clock_ns)]
        if spell.culprits:
            self.firsts[named[:1] != [] and named[0] in spell.culprits] += 1
        elif is_right:
            self.nobody[not named] += 1
        if (named[:1] or [""])[0] not in (spell.culprits or ("",)):
            self.misnamed.append(f"{spell}: {spell.truth}: named {named[:2]}, was {spell.culprits}")


def judged(episodes: Iterable[Episode]) -> Score:
    score = Score()
    for episode in episodes:
        score.take(episode)
    return score


def share(counter: Counter[bool]) -> str:
    total = sum(counter.values())
    return f"{counter[True] / total:.3f} ({counter[True]} of {total})" if total else "-"


def matrix(score: Score) -> str:
    """Returns a matrix with true states as rows, reported states as columns, and numbers of samples as
    values."""
    lines = [" | ".join(["true state", *STATES]), " | ".join(["---"] * (len(STATES) + 1))]
    for truth in STATES:
        cells = [str(score.said[truth, said]) for said in STATES]
        lines.append(" | ".join([truth, *cells]))
    return "\n".join(f"| {line} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--tuning", action="store_true", help="the runs that it was tuned on, with every mistake"
    )
    parser.add_argument("--no-days", action="store_true", help="leave the healthy days out")
    wanted = parser.parse_args()
    score = judged(runs(TUNING if wanted.tuning else JUDGING))
    print(matrix(score))
    print("\nright at the third sample after a change:")
    for truth in STATES:
        print(f"  to {truth}: {share(score.spells.get(truth, Counter()))}")
    print(f"  all changes: {share(sum(score.spells.values(), Counter()))}")
    print(f"runs without a mistake: {share(score.runs)}")
    print(f"a culprit named first: {share(score.firsts)}")
    print(f"nobody named where no job did it: {share(score.nobody)}")
    if wanted.tuning:
        print("\n".join([*score.wrong, *score.misnamed]))
    if not wanted.no_days:
        days = judged(map(healthy_day, HEALTHY_DAYS))
        print(f"alerts on {len(HEALTHY_DAYS)} healthy days: {days.alerts}")


if __name__ == "__main__":
    sys.exit(main())
