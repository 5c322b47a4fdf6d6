"""Tests a collector that is killed while a scheduler command runs. The commands are simulated."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from places import ROOT

JOB = "4711"
_SCONTROL = """
import os, pathlib, signal, sys, time
place = pathlib.Path({folder!r})
job, state = sys.argv[-1], place / "state"
if sys.argv[1] == "show":
    word, since = state.read_text().split()
    print(f"   SuspendTime={{since}} Restarts=0")
    sys.exit()
mark = place / "kill"
when = mark.read_text() if mark.exists() else ""
if when == "before":
    mark.unlink()
    os.kill(os.getppid(), signal.SIGKILL)
    sys.exit()
word = {{"suspend": "SUSPENDED ", "resume": "RUNNING "}}[sys.argv[1]]
state.write_text(word + time.strftime("%Y-%m-%dT%H:%M:%S"))
with (place / "log").open("a") as log:
    print(sys.argv[1], job, file=log)
if when == "after":
    mark.unlink()
    os.kill(os.getppid(), signal.SIGKILL)
"""
_SQUEUE = """
import pathlib, sys
print("4711 alice", pathlib.Path({folder!r}, "state").read_text().split()[0], 100)
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "state").write_text("RUNNING None")
    (tmp_path / "log").write_text("")
    for name, text in (("scontrol", _SCONTROL), ("squeue", _SQUEUE)):
        path = tmp_path / name
        path.write_text(f"#!{sys.executable}\n{text.format(folder=str(tmp_path))}")
        path.chmod(0o755)
    return tmp_path


def respond(site: Path, state: str, samples: int, kill: str = "") -> subprocess.CompletedProcess[str]:
    if kill:
        (site / "kill").write_text(kill)
    kit = ROOT / "tests" / "kit"
    path = os.pathsep.join([str(site), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(kit)])}
    words = [sys.executable, str(kit / "responding.py"), str(site / "response"), state, str(samples)]
    return subprocess.run(words, capture_output=True, text=True, env=environment, timeout=120, check=False)


def done(site: Path) -> list[str]:
    return (site / "log").read_text().splitlines()


def test_a_collector_killed_after_a_suspension_is_followed_by_an_undo(site: Path) -> None:
    assert respond(site, "stall", 6, kill="after").returncode == -signal.SIGKILL
    assert done(site) == [f"suspend {JOB}"]
    ended = respond(site, "stall", 7)
    assert ended.stdout == "done\n", ended.stderr
    assert respond(site, "healthy", 3).stdout == "undone\n"
    assert done(site) == [f"suspend {JOB}", f"resume {JOB}"]
    # The collector runs no further commands, however often it starts.
    assert respond(site, "healthy", 4).stdout == "undone\n" and len(done(site)) == 2


def test_an_interrupted_resume_is_completed_after_the_restart(site: Path) -> None:
    assert respond(site, "stall", 6).stdout == "done\n"
    assert respond(site, "healthy", 3, kill="before").returncode == -signal.SIGKILL
    assert done(site) == [f"suspend {JOB}"]
    statuses = [respond(site, "healthy", 4).stdout.strip() for _ in range(3)]
    assert "undone" in statuses or done(site)[-1] == f"resume {JOB}", statuses
    assert done(site) == [f"suspend {JOB}", f"resume {JOB}"]


def test_an_unsent_suspension_is_not_sent_after_the_restart(site: Path) -> None:
    assert respond(site, "stall", 6, kill="before").returncode == -signal.SIGKILL
    for samples in (7, 8, 9):
        assert respond(site, "stall", samples).stdout in ("doing\n", "failed\n")
    assert done(site) == []
