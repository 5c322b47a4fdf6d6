"""Measures how often the states of a real MooseFS are recognised correctly: rounds without load, with load by
one of four jobs, with SIGSTOP of the master, and with a restart, with a real agent on each of two machines
(namespaces) and a real collector.

    .venv/bin/python benches/moosefs_rounds.py --agent target/release/iodock-agent   # 20 of each
    .venv/bin/python benches/moosefs_rounds.py --each 1

Needs root, and Debian's moosefs-master, moosefs-chunkserver and moosefs-client.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "kit"))

from moosefs_rounds import KINDS, Rounds, Score, plan
from moosefs_site import MooseFsSite, inside, missing
from places import ROOT


def main() -> int:
    wanted = _arguments()
    if missing():
        print(f"skipped: no MooseFS can be tried here: {missing()}")
        return 0
    if not wanted.inside:
        words = inside([sys.executable, *sys.argv, "--inside"])
        os.execvp(words[0], words)
    with tempfile.TemporaryDirectory(prefix="iodock-moosefs-") as folder:
        return _play(Path(folder) / "site", wanted)


def _play(folder: Path, wanted: argparse.Namespace) -> int:
    score, begin = Score(), time.monotonic()
    site = MooseFsSite(folder, wanted.agent.absolute(), wanted.sample_s)
    try:
        rounds = Rounds(site, lambda line: print(line, flush=True))
        rounds.learn(wanted.learn)
        for outcome in rounds.play(plan(wanted.each, wanted.seed, wanted.kinds)):
            score.outcomes.append(outcome)
            print(f"{len(score.outcomes)} {time.monotonic() - begin:.0f} s {outcome}", flush=True)
    finally:
        site.end()
        if wanted.logs:
            shutil.copytree(folder / "log", wanted.logs)
    print(f"\n{score.table()}\n\nstates: {score.states}, jobs of a load first: {score.firsts}", flush=True)
    print(f"right: {score.right} of {len(score.outcomes)}", flush=True)
    # At least 95 % of the rounds must be right, such as 76 of 80.
    return int(score.right * 20 < len(score.outcomes) * 19)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--each", type=int, default=20, help="rounds of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--seed", type=int, default=43)
    parser.add_argument("--learn", type=int, default=70, help="samples before the first round")
    parser.add_argument("--sample-s", type=float, default=2.0)
    parser.add_argument("--agent", type=Path, default=ROOT / "target/debug/iodock-agent")
    parser.add_argument("--logs", type=Path, help="a folder for the logs, that is not there yet")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
