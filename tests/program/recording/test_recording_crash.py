"""Tests what remains in a store after a killed recorder, on a full disk, or in a truncated journal."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from recorded import (
    IODOCK,
    PROGRAMS,
    bpf_unavailable,
    count,
    live,
    losses,
    needs_root,
    run,
    wait_until,
)

pytestmark = [pytest.mark.whole, live]


# The following tests open stores whose recorder was killed.


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """Returns a store whose recorder was killed, and the number of blocks that the program had written."""
    folder = tmp_path_factory.mktemp("killed")
    program = "import os, time\nf = os.open('out.dat', os.O_WRONLY | os.O_CREAT)\n"
    program += "while os.write(f, b'x' * 997) and not os.path.exists('stop'): time.sleep(0.001)\n"
    program += "os.rename('out.dat', 'all.dat')\n"
    # With the back end rewrite, the program would continue to be recorded: see test_recording_rewrite.
    command = [*IODOCK, "record", "--backend", "ptrace", "-q", "-o", "run.iodock", "--"]
    command += [sys.executable, "-S", "-c", program]
    with subprocess.Popen(command, cwd=folder) as recorder:
        wait_until((folder / "out.dat").exists)
        time.sleep(3.5)
        recorder.kill()
        written = (folder / "out.dat").stat().st_size // 997
    # The program continues after the recorder's end.
    (folder / "stop").touch()
    wait_until((folder / "all.dat").exists)
    return folder / "run.iodock", written


@pytest.mark.parametrize("language", ["c", "go"])
@pytest.mark.parametrize("backend", ["ptrace", "rewrite", "bpf"])
def test_a_static_program_outlives_its_recorder(tmp_path: Path, language: str, backend: str) -> None:
    source = PROGRAMS / f"outlives.{language}"
    compiler = ["gcc", "-static", "-pthread", "-o"] if language == "c" else ["go", "build", "-o"]
    if not shutil.which(compiler[0]) or run([*compiler, tmp_path / "program", source], tmp_path).returncode:
        pytest.skip(f"no static program of {language} can be made here")
    if backend == "bpf" and (reason := bpf_unavailable()):
        pytest.skip(reason)
    # The shell is recorded by rewrite, and `program`, a static binary, is traced as its child.
    command = ["sh", "-c", "./program; true"] if backend == "rewrite" else ["./program"]
    for turn in range(3):
        folder = tmp_path / f"{turn}"
        folder.mkdir()
        (folder / "program").symlink_to(tmp_path / "program")
        recording = [*IODOCK, "record", "--backend", backend, "-q", "-o", "run.iodock", "--", *command]
        assert left_alone(folder, recording, 0.1 * turn) == "0 wrong\n"


def left_alone(folder: Path, recording: list[str], seconds: float) -> str:
    """Kills the recorder and returns the program's own report of errors."""
    out, other = folder / "out.dat", folder / "other.dat"
    with subprocess.Popen(recording, cwd=folder, stdout=subprocess.DEVNULL) as recorder:
        wait_until(lambda: out.exists() and other.exists())
        time.sleep(seconds)
        recorder.kill()
    # The program must continue, and not only until its next call.
    size = out.stat().st_size
    wait_until(lambda: out.stat().st_size > size + 50 * 997)
    (folder / "stop").touch()
    wait_until((folder / "done").exists)
    return (folder / "done").read_text()


def test_flushed_calls_survive_kill_9_of_the_recorder(killed: tuple[Path, int], tmp_path: Path) -> None:
    original, written = killed
    assert written > 500
    store = tmp_path / "run.iodock"
    shutil.copytree(original, store)
    # Two processes open the store at the same time: one creates the tables, and both answer.
    command = [*IODOCK, "show", "summary", "run.iodock", "--format", "json"]
    both = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    assert answers[0][0] == answers[1][0]
    assert losses(store)["journal-cut"] == 1
    recorded = count(store, "call = 'write' AND file LIKE '%/out.dat'")
    # Of the 3.5 seconds, at most the last second is missing.
    assert written * 0.55 <= recorded <= written


def test_a_journal_truncated_anywhere_can_be_opened(killed: tuple[Path, int], tmp_path: Path) -> None:
    original, _ = killed
    whole = next(original.glob("journal/*.journal")).read_bytes()
    before = 0
    for part in (0.02, 0.3, 0.51, 0.77, 0.999):
        store = tmp_path / f"cut-{part}.iodock"
        shutil.copytree(original, store)
        journal = next(store.glob("journal/*.journal"))
        journal.write_bytes(whole[: int(len(whole) * part)])
        now = count(store, "call = 'write'")
        assert now >= before
        before = now
        assert losses(store)["journal-cut"] >= 1
    assert before > 0


@pytest.mark.parametrize("length", [0, 5, 30])
def test_an_empty_journal_is_reported(killed: tuple[Path, int], tmp_path: Path, length: int) -> None:
    store = tmp_path / "run.iodock"
    shutil.copytree(killed[0], store)
    journal = next(store.glob("journal/*.journal"))
    journal.write_bytes(journal.read_bytes()[:length])
    done = run([*IODOCK, "show", "summary", store], tmp_path)
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mounted = run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", place], tmp_path)
    if mounted.returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@needs_root
def test_a_full_disk_ends_the_recording_but_not_the_program(small_disk: Path, tmp_path: Path) -> None:
    program = "import os\nfor i in range(60000): os.write(1, b'x' * (i % 97))\nraise SystemExit(9)"
    store = small_disk / "run.iodock"
    # With the back end rewrite, this number of calls would fit: see test_recording_rewrite.
    command = [*IODOCK, "record", "--backend", "ptrace", "-q", "-o", store, "--"]
    command += [sys.executable, "-S", "-c", program]
    done = run(command, tmp_path)
    assert done.returncode == 9
    assert done.stdout == "".join("x" * (i % 97) for i in range(60000))
    assert "error: recording stopped early: " in done.stderr and "disk is full" in done.stderr
    assert "Traceback" not in done.stderr and "bug" not in done.stderr
    recorded = count(store, "call = 'write'")
    assert recorded > 1000
    # Each call is either recorded or counted as dropped.
    assert 59990 <= recorded + losses(store).get("dropped-records", 0) < 60400


@needs_root
def test_a_truncated_store_on_a_full_disk_can_be_opened(
    killed: tuple[Path, int], small_disk: Path, tmp_path: Path
) -> None:
    store = small_disk / "run.iodock"
    shutil.copytree(killed[0], store)
    with (small_disk / "fill").open("wb", buffering=0) as fill, pytest.raises(OSError):
        while True:
            fill.write(bytes(1024))
    assert count(store, "call = 'write'") > 500
    assert sorted(path.name for path in store.iterdir()) == ["journal", "manifest.json"]


@needs_root
def test_a_disk_that_is_already_full_gets_no_partial_store(small_disk: Path, tmp_path: Path) -> None:
    with (small_disk / "filler").open("wb", buffering=0) as filler, pytest.raises(OSError, match="No space"):
        while True:
            filler.write(bytes(4096))
    for _ in range(2):
        done = run([*IODOCK, "record", "-q", "-o", small_disk / "run.iodock", "--", "/bin/true"], tmp_path)
        assert (done.returncode, done.stderr.count("can't be made")) == (1, 1), done.stderr
        assert not (small_disk / "run.iodock").exists()
