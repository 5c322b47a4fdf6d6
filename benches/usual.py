"""Measures how often a run is reported as slower than usual, with simulated run times of log-normal spread.

    python benches/usual.py [--times 2000] [--seed 1]

Prints the share of runs that are reported as slower, by spread (standard deviation of the logarithm) and by
the number of earlier runs: for runs that are not slower (1x), and for runs that take several times as long.
The data are synthetic.
"""

from __future__ import annotations

import argparse
from random import Random

from iodock.centre.monitor.usual import Run, Verdict, judged

SPREADS = (0.02, 0.05, 0.2, 0.5)
RUNS = (5, 10, 30, 100)
FACTORS = (1.0, 1.5, 2.0, 3.0)
HOUR = 3600.0
DAY_NS = 86_400 * 1_000_000_000


def run(number: int, seconds: float) -> Run:
    """Returns a run that moved a terabyte."""
    begin = number * DAY_NS
    return Run(str(number), begin, begin + int(seconds * 1e9), 1e12, 0, 0, True, True)


def share(random: Random, spread: float, runs: int, factor: float, times: int) -> float:
    """Returns the share of runs reported as slower, among TIMES runs that take FACTOR times as long as RUNS
    earlier ones."""
    found = 0
    for _ in range(times):
        past = [run(number, HOUR * random.lognormvariate(0, spread)) for number in range(runs)]
        own = run(runs, HOUR * factor * random.lognormvariate(0, spread))
        found += judged(own, past).verdict is Verdict.SLOWER
    return found / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    random = Random(options.seed)
    print("spread runs " + " ".join(f"{factor:>5g}x" for factor in FACTORS))
    for spread in SPREADS:
        for runs in RUNS:
            shares = (share(random, spread, runs, factor, options.times) for factor in FACTORS)
            print(f"{spread:>6g} {runs:>4} " + " ".join(f"{100 * one:5.1f}%" for one in shares))


if __name__ == "__main__":
    main()
