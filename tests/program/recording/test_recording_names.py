"""Tests the name of a recording if a file with the requested name exists. The job must run in every case."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from recorded import IODOCK, live, needs_root, record, run

pytestmark = [pytest.mark.whole, live]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def command_of(store: Path) -> list[str]:
    found: list[str] = json.loads((store / "manifest.json").read_text())["captured"]["command"]
    return found


def test_the_previous_store_is_kept_under_the_highest_number(tmp_path: Path) -> None:
    said = []
    for number in range(3):
        done = run([*IODOCK, "record", "-o", "run.iodock", "--", "echo", number], tmp_path)
        assert (done.returncode, done.stdout) == (0, f"{number}\n"), done.stderr
        said.append([line for line in done.stderr.splitlines() if "is kept as" in line])
    kept = [
        [f"note: run.iodock is this run; the previous one is kept as run-{number}.iodock"]
        for number in (1, 2)
    ]
    assert said == [[], *kept]
    stores = ("run-1.iodock", "run-2.iodock", "run.iodock")
    assert names(tmp_path) == [*stores]
    assert [command_of(tmp_path / store) for store in stores] == [["echo", str(n)] for n in range(3)]


def test_a_default_store_name_is_numbered_likewise(tmp_path: Path) -> None:
    for _ in range(3):
        assert run([*IODOCK, "record", "-q", "--", "true"], tmp_path).returncode == 0
    assert names(tmp_path) == ["true-1.iodock", "true-2.iodock", "true.iodock"]


def test_a_name_without_ending_gets_the_number_at_its_end(tmp_path: Path) -> None:
    for _ in range(2):
        assert run([*IODOCK, "record", "-q", "-o", "stores/mine", "--", "true"], tmp_path).returncode == 0
    assert names(tmp_path / "stores") == ["mine", "mine-1"]


def test_force_replaces_a_store_and_quiet_prints_nothing(tmp_path: Path) -> None:
    for arguments in ((), ("--force",)):
        done = record(tmp_path, *arguments, "--", "true")
        assert (done.returncode, done.stderr) == (0, "")
    assert names(tmp_path) == ["run.iodock"]


def test_a_store_with_foreign_files_is_kept_complete(tmp_path: Path) -> None:
    assert record(tmp_path, "true").returncode == 0
    (tmp_path / "run.iodock" / "notes.txt").write_text("mine")
    assert record(tmp_path, "true").returncode == 0
    assert (tmp_path / "run-1.iodock" / "notes.txt").read_text() == "mine"


def test_an_empty_folder_is_used(tmp_path: Path) -> None:
    (tmp_path / "run.iodock").mkdir()
    assert record(tmp_path, "true").returncode == 0
    assert names(tmp_path) == ["run.iodock"] and command_of(tmp_path / "run.iodock") == ["true"]


@pytest.mark.parametrize("kind", ["file", "folder", "link", "pipe"])
def test_a_folder_that_is_not_a_store_is_kept_and_another_name_used(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "run.iodock"
    if kind == "file":
        target.write_text("mine")
    elif kind == "folder":
        target.mkdir()
        (target / "thesis.tex").write_text("mine")
    elif kind == "pipe":
        os.mkfifo(target)
    else:
        target.symlink_to("nowhere")
    before = os.lstat(target)
    done = record(tmp_path, "echo", "ran")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    # iodock prints the other name even with --quiet, since the user must learn it.
    assert "warning: run.iodock: is " in done.stderr and "recorded as run-1.iodock" in done.stderr
    assert os.lstat(target).st_ino == before.st_ino
    assert kind != "folder" or (target / "thesis.tex").read_text() == "mine"
    assert command_of(tmp_path / "run-1.iodock") == ["echo", "ran"]


def test_at_a_terminal_a_folder_that_is_not_a_store_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "run.iodock").write_text("mine")
    controller, terminal = pty.openpty()
    try:
        words = [*IODOCK, "record", "-o", "run.iodock", "--", "touch", "ran"]
        done = subprocess.run(words, cwd=tmp_path, stdin=terminal, stderr=terminal, check=False, timeout=60)
        said = os.read(controller, 10_000).decode()
    finally:
        os.close(controller)
        os.close(terminal)
    assert done.returncode == 1 and "error: run.iodock: is a file" in said and "hint: " in said
    assert names(tmp_path) == ["run.iodock"]


def test_eight_simultaneous_recordings_get_a_store_each(tmp_path: Path) -> None:
    assert record(tmp_path, "true").returncode == 0
    words = [*IODOCK, "record", "-q", "-o", "run.iodock", "--"]
    started = [
        subprocess.Popen([*words, "sh", "-c", f"echo {number}; sleep 1"], cwd=tmp_path, stdout=-1, stderr=-1)
        for number in range(8)
    ]
    for number, one in enumerate(started):
        out, errors = one.communicate(timeout=120)
        assert (one.returncode, out.decode()) == (0, f"{number}\n"), errors
    stores = [path for path in tmp_path.iterdir() if path.name != "run-1.iodock"]
    assert len(stores) == 8 and (tmp_path / "run.iodock").is_dir()
    scripts = sorted(command_of(store)[2] for store in stores if command_of(store) != ["true"])
    assert len(scripts) >= 7, scripts
    states = {json.loads((store / "manifest.json").read_text())["state"] for store in stores}
    assert states == {"complete"}


def test_a_created_folder_is_reported(tmp_path: Path) -> None:
    done = run([*IODOCK, "record", "-o", "new/deep/run.iodock", "--", "true"], tmp_path)
    assert done.returncode == 0 and "note: created the folder new\n" in done.stderr
    again = run([*IODOCK, "record", "-o", "new/deep/other.iodock", "--", "true"], tmp_path)
    assert "created" not in again.stderr


def test_a_missing_program_does_not_change_the_store(tmp_path: Path) -> None:
    assert record(tmp_path, "true").returncode == 0
    (tmp_path / "broken").write_text("#!/nowhere\n")
    (tmp_path / "broken").chmod(0o755)
    done = record(tmp_path, "./broken")
    assert done.returncode in (126, 127) and names(tmp_path) == ["broken", "run.iodock"]
    assert command_of(tmp_path / "run.iodock") == ["true"]


@needs_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed")
def test_the_program_runs_unrecorded_if_the_store_cannot_be_renamed() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        assert record(folder, "true").returncode == 0
        words = ["setpriv", "--reuid", "65534", "--clear-groups", *IODOCK, "record", "-o", "run.iodock", "--"]
        done = run([*words, "sh", "-c", "grep SigIgn /proc/self/status; exit 7"], folder)
        assert done.returncode == 7, done.stderr
        ignored = int(done.stdout.split()[1], 16)
        assert not ignored & (1 << (signal.SIGPIPE - 1))
        assert "warning: run.iodock: a store is there" in done.stderr and "unrecorded" in done.stderr
        assert names(folder) == ["run.iodock"]
