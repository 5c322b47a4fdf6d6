"""A real MooseFS, an agent on each of two machines (namespaces) and the collector: one round each of idle,
load by one of four jobs, SIGSTOP of the master and a restart. `make test-moosefs`; needs root and MooseFS's
packages, and is no part of `make test`. More rounds: `benches/moosefs_rounds.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moosefs_site import missing
from places import ROOT

PATIENCE_S = 180.0
_ROUNDS = ROOT / "benches" / "moosefs_rounds.py"

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no MooseFS can be tried here: {missing()}"),
    pytest.mark.timeout(PATIENCE_S + 30),
]


def test_states_and_suspects_of_a_real_moosefs_are_correct(agent: Path) -> None:
    words = [sys.executable, str(_ROUNDS), "--agent", str(agent), "--each", "1", "--learn", "25"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    # After so short a time the usual load of each job is unknown, so a stall may name some.
    assert "states: 4, jobs of a load first: 1" in done.stdout, done.stdout + done.stderr
