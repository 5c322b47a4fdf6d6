"""Tests a real MooseFS with an agent on each of two machines (namespaces) and the collector: one round each
without load, with load by one of four jobs, with SIGSTOP of the master, and with a restart. `make
test-moosefs` runs it; needs root and MooseFS's packages, and is no part of `make test`.
`benches/moosefs_rounds.py` plays more rounds."""

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


def test_faults_of_a_real_moosefs_give_the_expected_states_and_suspects(agent: Path) -> None:
    words = [sys.executable, str(_ROUNDS), "--agent", str(agent), "--each", "1", "--learn", "25"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    # After such a short time the collector does not know the usual load of each job, so a stall may name
    # some.
    assert "states: 4, jobs of a load first: 1" in done.stdout, done.stdout + done.stderr
