"""Tests a check-up under srun on a real Slurm with two nodes, each with its own host name and boot id. `make
test-slurm` runs it; needs root and Slurm's packages, and is no part of `make test`."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from health_nodes import BOOT
from health_places import COMMAND, contents, loop_ext4, others_files
from slurm_site import NODES, SlurmSite, missing

PATIENCE_S = 60.0
pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no Slurm can be tried here: {missing()}"),
    pytest.mark.timeout(600),
]


@pytest.fixture
def folder() -> Iterator[Path]:
    # The folder's path is short, because paths of sockets must be.
    made = Path(tempfile.mkdtemp(prefix="iodock-slurm-"))
    made.chmod(0o755)
    try:
        yield made
    finally:
        shutil.rmtree(made)


def test_a_check_up_runs_with_srun_on_two_nodes(folder: Path) -> None:
    with loop_ext4(folder / "disk", 256) as disk:
        others_files(disk)
        before = contents(disk)
        slurm = SlurmSite(folder / "slurm")
        try:
            for node in NODES:
                has_own_boot(slurm, node, folder)
            kept = folder / "r.json"
            arguments = ["run", str(disk), "--tests", "large-transfer,metadata", "--sizes", "1m"]
            arguments += ["--processes", "4", "--meet", "files", "-q", "-o", str(kept)]
            command = shlex.join([*COMMAND, *arguments])
            path = os.environ.get("PYTHONPATH")
            setting = f"export PYTHONPATH={shlex.quote(path)}\n" if path else ""
            slurm.run(f"{setting}srun --kill-on-bad-exit {command}\n", "-N", "2", "--ntasks-per-node", "2")
        finally:
            slurm.end()
        assert contents(disk) == before
    found = json.loads(kept.read_text())
    assert found["protocol"]["settings"]["hosts"] == list(NODES)
    assert found["protocol"]["settings"]["ranks"] == 4
    assert {(cell["nodes"], cell["processes"]) for cell in found["cells"]} == {(2, 4)}
    (read,) = [cell for cell in found["cells"] if cell["operation"] == "read"]
    assert read["cache_reason"].startswith("written on another node; dropped")


def has_own_boot(slurm: SlurmSite, node: str, folder: Path) -> None:
    """Gives a node its own boot id, by which the engine distinguishes machines."""
    boot, done = folder / f"boot-{node}", folder / f"done-{node}"
    boot.write_text(f"boot-of-{node}\n")
    slurm.start_in(node, f"boot-{node}", ["sh", "-c", f"mount --bind {boot} {BOOT} && touch {done}"])
    deadline = time.monotonic() + PATIENCE_S
    while not done.exists():
        assert time.monotonic() < deadline, slurm.log(f"boot-{node}")
        time.sleep(0.05)
