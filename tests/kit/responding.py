"""Responds to one verdict with the Slurm commands in PATH, then prints the status of the newest action.
Usage: `responding.py FOLDER STATE SAMPLES`."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

from iodock.centre.watch.responder import Responder
from iodock.centre.watch.verdict import State
from iodock.shared.response import Notices
from iodock.shared.settings import Settings
from made_verdicts import ACTS, verdict


def main(folder: Path, state: State, samples: int) -> None:
    rules = replace(ACTS, quiet_after_start_s=0)
    settings = replace(Settings(), response=rules, notices=Notices())
    responder = Responder(folder, settings, time.time_ns())
    now = time.time_ns()
    responder.perform(now)
    responder.respond([verdict(now, state, samples)], now)
    responder.perform(time.time_ns())
    print(responder.actions()[0].status)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))  # type: ignore[arg-type]
