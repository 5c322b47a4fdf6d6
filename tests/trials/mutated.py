"""Passes randomly damaged inputs to every reader: `make test-mutations` tries thousands of them.

A reader may refuse such an input, or read its undamaged part. It must not end by a signal, a panic or an
internal error, run endlessly, use more than a GiB, or omit data without reporting a loss.

Each case follows from its seed and number: `tests/trials/mutated.py --seed 1 --only 17` makes it again and
keeps it in the folder."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import json
import os
import re
import resource
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from mutated_readers import AGENT, MOST_BYTES, PATIENCE_S, TARGETS, Seen, Target
from mutations import MUTATIONS, Mutated, Mutation

_ADDRESS_SPACE = 8 << 30


@dataclass
class Outcome:
    """A case, and how its reader ended."""

    number: int
    target: str
    sample: str
    mutation: str
    wrong: str = ""
    """Empty: nothing."""
    status: int = 0
    peak_bytes: int = 0
    seconds: float = 0.0


_NEVER_SAID = re.compile(r"Traceback|panicked|has a bug|RUST_BACKTRACE|internal error|INTERNAL|core dumped")


def case(seed: int, number: int, wanted: str | None = None) -> tuple[Target, str, Mutation, Mutated]:
    """Returns case NUMBER, which depends only on these arguments."""
    chance = Random(f"{seed} {number}")
    targets = [
        one for one in TARGETS if wanted in (None, one.name) and (one.name != "agent" or AGENT.is_file())
    ]
    (target,) = chance.choices(targets, [one.weight for one in targets])
    samples = target.samples()
    assert samples, f"{target.name}: nothing to damage"
    name = chance.choice(sorted(samples))
    others = chance.choice(TARGETS[:5]).samples()
    mutation = chance.choice(MUTATIONS)
    mutated = mutation(chance, samples[name], others[chance.choice(sorted(others))])
    return target, name, mutation, mutated


@cache
def _baseline(target: Target, sample: str) -> Seen:
    with tempfile.TemporaryDirectory() as folder:
        return target.read(Path(folder), target.samples()[sample], sample)


def tried(seed: int, number: int, wanted: str | None = None, keep: Path | None = None) -> Outcome:
    """Makes a case, runs its reader, and judges the result."""
    target, sample, mutation, mutated = case(seed, number, wanted)
    outcome = Outcome(number, target.name, sample, mutation.__name__)
    before = _baseline(target, sample) if target.counts else Seen(0, "")
    if keep is not None:
        (keep / f"{number}-{Path(sample).name}").write_bytes(mutated.content)
    _forget_peak()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        seen = target.read(Path(folder), mutated.content, sample)
    outcome.seconds, outcome.status, outcome.peak_bytes = time.monotonic() - begin, seen.status, _peak_bytes()
    outcome.wrong = _wrong(target, mutated, before, seen, outcome)
    return outcome


def _wrong(target: Target, mutated: Mutated, before: Seen, seen: Seen, outcome: Outcome) -> str:
    if seen.bug:
        return seen.bug
    if said := _NEVER_SAID.search(seen.said):
        begin = max(0, said.start() - 100)
        return f"says: {seen.said[begin : said.end() + 300]}"
    if seen.status not in (0, 1, 2):
        return f"ends with status {seen.status}: {seen.said[-300:]}"
    if outcome.peak_bytes > MOST_BYTES:
        return f"took {outcome.peak_bytes >> 20:,} MiB"
    if seen.status and "error: " not in seen.said and target.name not in ("push", "monitored", "agent"):
        return f"fails without an error: {seen.said[-300:]!r}"
    if seen.status or before.status or not target.counts:
        return ""
    lost = sum(max(0, count - before.losses.get(name, 0)) for name, count in seen.losses.items())
    if seen.amount < before.amount and not mutated.may_shrink and not lost:
        return f"read {seen.amount} of {before.amount} and says no loss"
    if target.name == "import" and lost < mutated.unreadable_lines:
        return f"{mutated.unreadable_lines} lines are unreadable, and {lost} more are counted as lost"
    return ""


def _forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_bytes() -> int:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) << 10 if found else 0


# Worker processes, each of which is replaced if it ends or does not answer.


def worker(seed: int, wanted: str | None) -> None:
    """Reads numbers of cases from stdin and writes an outcome per line."""
    faulthandler.enable()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        outcome = tried(seed, int(line), wanted)
        answers.write(json.dumps(asdict(outcome)) + "\n")
        answers.flush()


@dataclass
class _Worker:
    process: subprocess.Popen[str]
    number: int = 0
    since: float = 0.0

    def give(self, number: int) -> None:
        assert self.process.stdin is not None
        self.number, self.since = number, time.monotonic()
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()

    def answer(self) -> Outcome:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if line:
            return Outcome(**json.loads(line))
        return self.failed(f"its process ended with status {self.process.wait()}")

    def failed(self, wrong: str) -> Outcome:
        return Outcome(self.number, "?", "?", "?", wrong)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def _started(seed: int, wanted: str | None, folder: str) -> _Worker:
    command = [sys.executable, __file__, "--worker", "--seed", str(seed)]
    process = subprocess.Popen(
        [*command, *(("--target", wanted) if wanted else ())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=os.environ | {"TMPDIR": folder, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return _Worker(process)


def outcomes(seed: int, numbers: range, wanted: str | None = None, at_once: int = 2) -> Iterator[Outcome]:
    """Tries all cases, AT_ONCE at a time. A worker that ends or does not answer is an outcome, too."""
    left = iter(numbers)
    with tempfile.TemporaryDirectory(prefix="mutated-") as folder, selectors.DefaultSelector() as answers:
        # The temporary folder also contains files that a killed worker leaves.
        for number in islice(left, at_once):
            _begin(_started(seed, wanted, folder), number, answers)
        while answers.get_map():
            done = [key.data for key, _ in answers.select(timeout=1)]
            late = [key.data for key in answers.get_map().values() if key.data not in done]
            late = [one for one in late if time.monotonic() - one.since > PATIENCE_S]
            for one in (*done, *late):
                outcome = one.failed(f"no end within {PATIENCE_S} s") if one in late else one.answer()
                yield outcome
                number = next(left, None)
                if number is not None and outcome.target != "?":
                    one.give(number)
                    continue
                answers.unregister(one.process.stdout)
                one.end()
                if number is not None:
                    _begin(_started(seed, wanted, folder), number, answers)


def _begin(one: _Worker, number: int, answers: selectors.BaseSelector) -> None:
    assert one.process.stdout is not None
    one.give(number)
    answers.register(one.process.stdout, selectors.EVENT_READ, one)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", choices=[one.name for one in TARGETS])
    parser.add_argument("--only", type=int, help="this case alone, in this process; it is kept in the folder")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    if given.worker:
        worker(given.seed, given.target)
        return 0
    if given.only is not None:
        outcome = tried(given.seed, given.only, given.target, Path())
        print(json.dumps(asdict(outcome), indent=1))
        return 1 if outcome.wrong else 0
    wrong: list[Outcome] = []
    sums: dict[str, list[float]] = {}
    begin = time.monotonic()
    for outcome in outcomes(given.seed, range(given.count), given.target):
        sums.setdefault(outcome.target, []).append(outcome.seconds)
        if outcome.wrong:
            wrong.append(outcome)
            chosen = f" --target {given.target}" if given.target else ""
            what = f"{outcome.target} {outcome.sample} {outcome.mutation}: {outcome.wrong}"
            print(f"--seed {given.seed}{chosen} --only {outcome.number}: {what}", flush=True)
    for name, seconds in sorted(sums.items()):
        print(f"{name}: {len(seconds)} cases, longest {max(seconds):.1f} s")
    print(f"{given.count} cases in {time.monotonic() - begin:.0f} s, wrong: {len(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
