"""Tests that a job's output contains nothing twice: the check-up after `record` leaves out what the digest
will say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from places import ROOT

PORTAL = "PORTAL=https://monitor.example:9847   # ours\n"


def check_up(folder: Path, settings: str | None, **variables: str) -> str:
    """Returns the output of `iodock record` for a program that copies a file. SETTINGS: content of the digest
    script's settings."""
    conf = folder / "digest.conf"
    if settings is not None:
        conf.write_text(settings)
    (folder / "data").write_bytes(bytes(3_000_000))
    known = {
        name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PBS", "PJM"))
    }
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "iodock", "record", "--force", "-o", folder / "run.iodock", "--"),
            *("cp", "data", "copy"),
        ],
        cwd=folder, capture_output=True, text=True, check=True, timeout=60,
        env={**known, "PYTHONPATH": str(ROOT / "src"), "IODOCK_DIGEST_CONF": str(conf), **variables},
    )  # fmt: skip
    return " ".join(ended.stderr.split())


def test_volume_is_shown_once_in_a_job_with_a_digest(tmp_path: Path) -> None:
    said = check_up(tmp_path, PORTAL, SLURM_JOB_ID="4711", LC_ALL="C.UTF-8")
    assert "I/O calls:" not in said and "MiB read" not in said
    assert "in calls on files" in said
    assert said.count("The digest at the end of the job's output") == 1
    assert "iodock report" in said


def test_the_pointer_to_the_digest_is_in_japanese(tmp_path: Path) -> None:
    said = check_up(tmp_path, PORTAL, SLURM_JOB_ID="4711", LC_ALL="ja_JP.UTF-8")
    assert "ジョブ出力の末尾のダイジェストに" in said.replace(" ", "")
    assert "digest at the end" not in said


@pytest.mark.parametrize(
    ("settings", "variables"),
    [
        (PORTAL, {}),
        (None, {"SLURM_JOB_ID": "4711"}),
        (PORTAL + "ONLY=slower\n", {"SLURM_JOB_ID": "4711"}),
        ("PORTAL=\n", {"SLURM_JOB_ID": "4711"}),
    ],
    ids=["no-job", "no-digest", "only-slower", "no-portal"],
)
def test_without_a_digest_the_check_up_is_complete(
    tmp_path: Path, settings: str | None, variables: dict[str, str]
) -> None:
    said = check_up(tmp_path, settings, **variables)
    assert "I/O calls:" in said
    assert "digest at the end" not in said
