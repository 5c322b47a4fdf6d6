"""Tests reading a recording while its program runs: iodock shows the data flushed before, and changes
nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from recorded import IODOCK, bpf_unavailable, live, losses, needs_root, rows, run, wait_until

pytestmark = [pytest.mark.whole, live]

BACKENDS = ["rewrite", "ptrace", pytest.param("bpf", marks=needs_root)]
# A parent, its thread and a child write until each has made this number of writes and the file `stop` exists.
PROGRAM = """
import os, sys, threading, time
def write(name, size):
    f = os.open(name, os.O_WRONLY | os.O_CREAT)
    for n in range(int(sys.argv[1])):
        os.write(f, b'x' * size)
        time.sleep(0.01)
    os.close(f)
if os.fork() == 0:
    write('child.dat', 401)
    os._exit(0)
thread = threading.Thread(target=write, args=('thread.dat', 499))
thread.start()
write('parent.dat', 997)
thread.join()
os.wait()
while len(sys.argv) > 2 and not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
"""
PATIENCE_S = 60
CALLS = "SELECT tid, ts, dur, call, file, bytes, result FROM calls_seen ORDER BY ts + coalesce(dur, 0), tid"
Calls = dict[int, list[tuple[Any, ...]]]


def skip_without(backend: str) -> None:
    if backend == "bpf" and (reason := bpf_unavailable()):
        pytest.skip(reason)


@contextmanager
def recording(folder: Path, backend: str, *arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    command = [*IODOCK, "record", "--backend", backend, "-q", "-o", "run.iodock", "--"]
    command += [sys.executable, "-S", "-c", PROGRAM, *map(str, arguments)]
    with subprocess.Popen(command, cwd=folder) as recorder:
        try:
            yield recorder
        finally:
            (folder / "stop").touch()
            recorder.wait(60)


def by_thread(store: Path) -> Calls:
    found: Calls = defaultdict(list)
    for row in rows(store, CALLS):
        found[row["tid"]].append(tuple(row.values()))
    return found


def files_of(store: Path) -> dict[str, bytes]:
    return {str(path.relative_to(store)): path.read_bytes() for path in store.rglob("*") if path.is_file()}


def has_flushed(store: Path) -> bool:
    """Returns whether the store already shows calls of the program itself."""
    done = run([*IODOCK, "query", store, CALLS, "--format", "json"], store.parent)
    return done.returncode == 0 and "child.dat" in done.stdout


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_running_recording_shows_the_calls_so_far(tmp_path: Path, backend: str) -> None:
    skip_without(backend)
    store = tmp_path / "run.iodock"
    with recording(tmp_path, backend, 300, "stop"):
        wait_until(lambda: has_flushed(store), PATIENCE_S)
        before, seen, after = files_of(store), by_thread(store), files_of(store)
        lost = losses(store)
    # Only the recorder changed the store, by appending data.
    assert before.keys() == after.keys()
    assert all(after[name].startswith(content) for name, content in before.items())
    assert "journal-cut" not in lost
    whole = by_thread(store)
    assert sum(map(len, seen.values())) > 10
    for thread, calls in seen.items():
        assert whole[thread][: len(calls)] == calls


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_store_is_the_same_with_and_without_readers(tmp_path: Path, backend: str) -> None:
    skip_without(backend)
    made = []
    for read in (False, True):
        folder = tmp_path / str(read)
        folder.mkdir()
        with recording(folder, backend, 150) as recorder:
            while recorder.poll() is None:
                if read:
                    run([*IODOCK, "show", "files", "run.iodock"], folder)
                time.sleep(0.05)
        store = folder / "run.iodock"
        assert not (store / "journal").exists()
        told = "SELECT call, file, count(*) AS n, sum(bytes) AS bytes FROM calls_seen "
        told += "WHERE file LIKE '%.dat' GROUP BY ALL ORDER BY ALL"
        found = [(row["call"], Path(row["file"]).name, row["n"], row["bytes"]) for row in rows(store, told)]
        manifest = json.loads((store / "manifest.json").read_text())
        made.append((found, losses(store), manifest["state"], sorted(manifest)))
    assert made[0] == made[1]
    assert ("write", "child.dat", 150, 150 * 401) in made[0][0]


@pytest.mark.parametrize("backend", ["rewrite", "ptrace"])
def test_every_command_mentions_that_the_recording_is_running(tmp_path: Path, backend: str) -> None:
    with recording(tmp_path, backend, 200, "stop"):
        wait_until(lambda: has_flushed(tmp_path / "run.iodock"), PATIENCE_S)
        shown = run([*IODOCK, "show", "files", "run.iodock"], tmp_path)
        asked = run([*IODOCK, "query", "run.iodock", "SELECT count(*) FROM events"], tmp_path)
        told = run([*IODOCK, "diagnose", "run.iodock"], tmp_path)
        report = run([*IODOCK, "report", "run.iodock", "-o", "run.html"], tmp_path)
        bundle = run([*IODOCK, "bundle", "run.iodock", "-o", "run.tar.gz", "--anonymous"], tmp_path)
        over = run([*IODOCK, "diff", "run.iodock", "run.iodock"], tmp_path)
    for done in (shown, asked):
        assert "note: still being recorded: " in done.stderr, done.stderr
        assert " s so far, including calls up to " in done.stderr
    assert "child.dat" in shown.stdout
    assert told.stdout.startswith("Still being recorded: "), told.stdout + told.stderr
    assert "is efficient" not in told.stdout and "is fine" not in told.stdout
    assert report.returncode == 0, report.stderr
    assert "Still being recorded: " in (tmp_path / "run.html").read_text()
    assert bundle.returncode == 0, bundle.stderr
    assert "is still being recorded" in over.stdout + over.stderr


def test_before_the_first_flush_there_is_a_store_without_calls(tmp_path: Path) -> None:
    store = tmp_path / "run.iodock"
    with recording(tmp_path, "rewrite", 150, "stop"):
        wait_until((store / "journal" / "main.calls").exists)
        assert rows(store, "SELECT count(*) AS n FROM events")[0]["n"] >= 0


def test_a_recording_ends_when_its_recorder_is_killed(tmp_path: Path) -> None:
    with recording(tmp_path, "ptrace", 100, "stop") as recorder:
        wait_until(lambda: has_flushed(tmp_path / "run.iodock"), PATIENCE_S)
        recorder.kill()
        recorder.wait(10)
        done = run([*IODOCK, "show", "files", "run.iodock"], tmp_path)
    assert "still being recorded" not in done.stderr
    assert losses(tmp_path / "run.iodock")["journal-cut"]
