"""Tests a recorder that is itself recorded, and programs that outlive their recorder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

IODOCK = [sys.executable, "-m", "iodock"]
# Prints `runs`, waits for a line, and then starts programs in each way that a shell has.
OUTLIVES = "echo runs; read line; for i in 1 2 3; do /bin/true; (exec /bin/true); done; echo over"

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        sys.platform != "linux" or os.uname().machine != "x86_64",
        reason="rewriting calls is for x86-64 Linux",
    ),
]


def record(store: Path) -> list[str]:
    return [*IODOCK, "record", "--backend", "rewrite", "--quiet", "-o", str(store), "--"]


def test_a_recorded_recorder_works_as_usual(tmp_path: Path) -> None:
    inner = tmp_path / "inner.iodock"
    command = [*record(tmp_path / "outer.iodock"), *record(inner), "cat", "/etc/hostname"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    captured = json.loads((inner / "manifest.json").read_text())["captured"]
    assert (captured["how"], captured["command"]) == ("rewrite", ["cat", "/etc/hostname"])


def test_processes_that_outlive_the_recorder_start_programs_without_messages(tmp_path: Path) -> None:
    command = [*record(tmp_path / "run.iodock"), "sh", "-c", OUTLIVES]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as recorder:
        assert recorder.stdin and recorder.stdout and recorder.stderr
        assert recorder.stdout.readline() == "runs\n"
        recorder.kill()
        recorder.wait()
        # The query opens the store after the recorder's end.
        query = [*IODOCK, "query", str(tmp_path / "run.iodock"), "SELECT 1"]
        subprocess.run(query, capture_output=True, timeout=120, check=True)
        for place in ("/dev/shm", tempfile.gettempdir()):
            for session in Path(place).glob(f"iodock-{recorder.pid}-*"):
                shutil.rmtree(session)
        print(file=recorder.stdin, flush=True)
        assert recorder.stdout.readline() == "over\n"
        assert recorder.stderr.read() == ""
