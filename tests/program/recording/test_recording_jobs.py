"""Tests that a recording inside a batch job knows its job, for `--job` and for the costs of findings in
node-hours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

IODOCK = [sys.executable, "-m", "iodock"]
JOB = {"SLURM_JOB_ID": "17", "SLURM_JOB_NAME": "cfd", "SLURM_JOB_NUM_NODES": "4"}
WRITES = "import os\nfor number in range(20_000): os.write(3, b'x' * 16)"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    command = ["sh", "-c", f'exec {sys.executable} -S -c "$1" 3> data', "sh", WRITES]
    subprocess.run(
        [*IODOCK, "record", "-q", "-o", "run.iodock", "--", *command],
        cwd=folder, env=os.environ | JOB, check=True, timeout=120,
    )  # fmt: skip
    return folder / "run.iodock"


def answer(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*IODOCK, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_the_manifest_names_the_job(store: Path) -> None:
    job = json.loads((store / "manifest.json").read_text())["job"]
    assert job == {"scheduler": "slurm", "id": "17", "name": "cfd", "nodes": 4}


@pytest.mark.parametrize(("job", "status"), [("17", 0), ("cfd", 0), ("1,17", 0), ("18", 2)])
def test_calls_can_be_filtered_by_job(store: Path, job: str, status: int) -> None:
    assert answer("show", "summary", str(store), "--job", job).returncode == status


def test_the_cost_of_findings_is_given_in_node_hours(store: Path) -> None:
    found = json.loads(answer("diagnose", str(store), "--format", "json").stdout)["findings"]
    costs = [one for one in found if one["cost_seconds"]]
    assert costs
    for one in costs:
        assert one["node_hours"] == pytest.approx(one["cost_seconds"] * 4 / 3600)


def test_outside_a_job_the_manifest_has_no_job(tmp_path: Path) -> None:
    schedulers = ("SLURM_", "PJM_", "PBS_", "LSB_", "FLUX_", "JOB_")
    outside = {name: value for name, value in os.environ.items() if not name.startswith(schedulers)}
    command = [*IODOCK, "record", "-q", "-o", "run.iodock", "--", "true"]
    subprocess.run(command, cwd=tmp_path, env=outside, check=True, timeout=120)
    assert "job" not in json.loads((tmp_path / "run.iodock" / "manifest.json").read_text())
