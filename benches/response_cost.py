"""Measures the cost of one interval of the response to the collector, with synthetic verdicts of many
servers.

    .venv/bin/python benches/response_cost.py [--servers 2500] [--rounds 20]

Prints the CPU time of one call of `respond`, median and maximum: with all servers well, and with all of them
unwell from the first verdict of an episode on. Notices have no receiver, and the scheduler is simulated.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "kit"))

from iodock.centre.watch.verdict import State, Verdict
from made_verdicts import ACTS, EVERY_S, Site, verdict


def verdicts(site: Site, servers: int, state: State, samples: int) -> list[Verdict]:
    return [verdict(site.now, state, samples, server=f"oss{n:04}", kind="object") for n in range(servers)]


def measured(site: Site, rounds: int, made: Callable[[int], list[Verdict]]) -> str:
    """Returns the CPU milliseconds of the calls as text."""
    took = []
    for number in range(1, rounds + 1):
        site.wait(EVERY_S)
        found = made(number)
        began = time.process_time()
        site.responder.respond(found, site.now)
        took.append((time.process_time() - began) * 1e3)
    return f"median {statistics.median(took):.1f} ms, longest {max(took):.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, default=2500)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = Site(Path(folder), ACTS)
        site.quiet()
        for state in ("healthy", "stall", "healthy"):
            said = measured(
                site, options.rounds, lambda n, state=state: verdicts(site, options.servers, state, n)
            )
            print(f"{options.servers} servers, {state}: {said}")
        site.responder.close()


if __name__ == "__main__":
    main()
