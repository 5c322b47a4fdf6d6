"""Tests job information from a real Slurm. `make test-slurm` runs it; needs root and Slurm's packages, and is
no part of `make test`. The test's Slurm keeps no accounting, so iodock queries only the queue."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iodock.centre.watch.schedulers import SCHEDULERS
from iodock.centre.watch.schedulers.describing import described
from slurm_site import SlurmSite, missing

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no Slurm can be tried here: {missing()}"),
    pytest.mark.timeout(600),
]
NAME = "sh|ared $(dir) '"
PATIENCE_S = 60.0


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmSite]:
    folder = Path(tempfile.mkdtemp(prefix="iodock-facts-"))
    slurm_site = SlurmSite(folder)
    monkeypatch.setenv("SLURM_CONF", str(slurm_site.conf))
    try:
        yield slurm_site
    finally:
        slurm_site.end()


def test_owner_name_nodes_and_times_of_a_running_job_are_read(site: SlurmSite) -> None:
    command = ["sbatch", "--parsable", "-N", "2", "-J", NAME, "-o", "/dev/null", "--wrap", "sleep 300"]
    begun = time.time_ns()
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=site.environment)
    job = done.stdout.strip().split(";")[0]
    ends = time.monotonic() + PATIENCE_S
    while not (facts := described(SCHEDULERS["slurm"], [job]).get(job)) or facts.begin_ns is None:
        assert time.monotonic() < ends, facts
        time.sleep(0.5)
    assert (facts.owner, facts.name, facts.nodes) == ("root", NAME, 2)
    assert facts.begin_ns is not None and abs(facts.begin_ns - begun) < 60 * 10**9
    assert described(SCHEDULERS["slurm"], [str(int(job) + 1000)]) == {}
