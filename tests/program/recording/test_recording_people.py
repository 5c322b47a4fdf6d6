"""Tests recordings in terminals, of running processes, and by ordinary users."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from places import ROOT
from recorded import (
    IODOCK,
    compiled,
    count,
    live,
    losses,
    needs_gcc,
    needs_root,
    record,
    rows,
    run,
    wait_until,
)

pytestmark = [pytest.mark.whole, live]


# The following tests record in a terminal.


def in_a_shell(folder: Path, *keys: tuple[str, str]) -> str:
    """Types into an interactive shell. KEYS: (text, output to wait for; '' for none)."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        environment = os.environ | {"PS1": "prompt> ", "TERM": "dumb", "INPUTRC": "/dev/null"}
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"], environment)
    text = ""

    def read_until(wanted: str, start: int) -> None:
        nonlocal text
        end = time.monotonic() + 20
        while wanted not in text[start:]:
            assert time.monotonic() < end, f"{wanted!r} did not come: {text}"
            if select.select([terminal], [], [], 0.1)[0]:
                text += os.read(terminal, 65536).decode(errors="replace")

    try:
        read_until("prompt> ", 0)
        for typed, wanted in keys:
            start = len(text)
            # The program needs time to reach the point where it waits for input.
            time.sleep(0.7)
            os.write(terminal, typed.encode())
            read_until(wanted, start)
    finally:
        os.kill(pid, signal.SIGHUP)
        os.kill(pid, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(pid, 0)
    return text


needs_bash = pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
RECORD = f"{sys.executable} -m iodock record -q -o run.iodock -- "


@needs_bash
def test_ctrl_c_ends_program_and_recording(tmp_path: Path) -> None:
    in_a_shell(
        tmp_path,
        (RECORD + "sh -c 'echo rea''dy; exec sleep 60'\n", "ready"),
        ("\x03", "prompt> "),
        ("echo status=$?\n", "status=130"),
    )
    assert count(tmp_path / "run.iodock", "call = 'execve'") >= 1


@needs_bash
@pytest.mark.parametrize("stop", ["", "kill -STOP $$; ", "kill -TSTP 0; "], ids=["ctrl-z", "own", "group"])
def test_a_stopped_job_gives_the_terminal_back(tmp_path: Path, stop: str) -> None:
    script = "read line; echo got $line" if not stop else f"{stop}echo went on"
    (tmp_path / "script").write_text(f"echo ready\n{script}\nexit 3\n")
    keys = [(RECORD + "sh script\n", "ready"), *([] if stop else [("\x1a", "")])]
    in_a_shell(
        tmp_path,
        *keys,
        ("\n", "prompt> "),
        ("jobs\n", "Stopped"),
        ("fg\n", "went on" if stop else "sh script"),
        *([] if stop else [("words\n", "got words")]),
        ("echo status=$?\n", "status=3"),
    )
    assert count(tmp_path / "run.iodock", "call = 'write'") >= 2


# The following tests record processes that are already running.


def test_an_attached_process_is_left_running(tmp_path: Path) -> None:
    program = (
        "import threading, time, subprocess\n"
        "f = open('before.dat', 'wb', buffering=0)\n"
        "def work():\n    while True: f.write(b'y' * 61); time.sleep(0.01)\n"
        "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
        "while True: subprocess.run(['true']); time.sleep(0.05)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path) as target:
        wait_until((tmp_path / "before.dat").exists)
        time.sleep(0.5)
        command = [*IODOCK, "record", "-q", "-o", "run.iodock", "-p", str(target.pid)]
        with subprocess.Popen(command, cwd=tmp_path) as recorder:
            wait_until(lambda: "TracerPid:\t0" not in Path(f"/proc/{target.pid}/status").read_text())
            time.sleep(2)
            recorder.send_signal(signal.SIGINT)
            assert recorder.wait(20) == 0
        assert target.poll() is None
        assert "TracerPid:\t0" in Path(f"/proc/{target.pid}/status").read_text()
        size = (tmp_path / "before.dat").stat().st_size
        wait_until(lambda: (tmp_path / "before.dat").stat().st_size > size)
        target.kill()
    store = tmp_path / "run.iodock"
    threads = rows(
        store, "SELECT DISTINCT tid FROM calls_seen WHERE call = 'write' AND file LIKE '%/before.dat'"
    )
    assert len(threads) == 3
    assert count(store, "call = 'execve'") >= 5


def test_a_process_without_calls_can_be_attached(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/true"]) as ended:
        # WNOWAIT leaves the process a zombie, so that its number stays in use.
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        done = record(tmp_path, "--backend", "ptrace", "-p", ended.pid)
    assert done.returncode == 1 and f"process {ended.pid} has ended already" in done.stderr


def test_only_a_recording_from_the_start_is_called_complete(tmp_path: Path) -> None:
    done = record(tmp_path, "--complete", "-p", os.getpid())
    assert done.returncode == 2 and "--complete is for a program that iodock starts" in done.stderr


def test_impossible_attachments_are_refused(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = record(tmp_path, "-p", gone.pid)
    assert (
        done.returncode == 1 and f"there is no process {gone.pid}" in done.stderr and "hint: " in done.stderr
    )
    if shutil.which("strace"):
        with subprocess.Popen(["strace", "-o", "log", "sleep", "60"], cwd=tmp_path) as tracer:
            children = Path(f"/proc/{tracer.pid}/task/{tracer.pid}/children")
            wait_until(lambda: bool(children.read_text().split()))
            time.sleep(0.5)
            pid = int(children.read_text().split()[0])
            done = record(tmp_path, "-p", pid)
            os.kill(pid, signal.SIGKILL)
        assert done.returncode == 1 and f"traced already, by process {tracer.pid}" in done.stderr
    assert not (tmp_path / "run.iodock").exists()


# The following tests record as an ordinary user.

NOBODY = 65534


@pytest.fixture
def as_nobody() -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Returns a function that runs iodock as a user without any rights, in a folder of that user."""
    site = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{site}", "HOME": "/nonexistent"}
    options: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "env": environment}
    version = f"import iodock._native, sys; assert sys.version_info[:2] == {sys.version_info[:2]}"
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            works = run([python, "-c", version], Path("/"), **options).returncode == 0
        except OSError:
            works = False
        if works:
            break
    else:
        pytest.skip("no Python here that another user may run")
    with tempfile.TemporaryDirectory(prefix="iodock-nobody-") as name:
        os.chown(name, NOBODY, NOBODY)

        def command(*arguments: object) -> subprocess.CompletedProcess[str]:
            return run([python, "-m", "iodock", *arguments], Path(name), **options)

        yield command


@needs_root
def test_an_ordinary_user_can_record(as_nobody: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = as_nobody("record", "-q", "-o", "a.iodock", "--", "sh", "-c", "cat /etc/hostname > x; exit 4")
    assert done.returncode == 4, done.stderr
    shown = as_nobody("show", "summary", "a.iodock", "--by", "file")
    assert "/etc/hostname" in shown.stdout, shown.stderr


@needs_root
@needs_gcc
def test_an_ordinary_user_can_record_a_static_program(
    as_nobody: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        done = as_nobody("record", "-o", "a.iodock", "--", compiled(Path(name), "hello", "-static"))
    assert done.returncode == 0 and "recorded by ptrace: the program is static" in done.stderr


@needs_root
def test_an_ordinary_user_gets_a_clear_refusal(
    as_nobody: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    privileged = as_nobody("record", "-o", "a.iodock", "--", "su", "-c", "true")
    assert privileged.returncode == 1
    assert "set-user-id" in privileged.stderr and "hint: record it as root" in privileged.stderr
    foreign = as_nobody("record", "-o", "a.iodock", "-p", os.getpid())
    assert foreign.returncode == 1 and "may not be traced" in foreign.stderr and "hint: " in foreign.stderr
    elsewhere = as_nobody("record", "-o", "/root/a.iodock", "--", "true")
    assert elsewhere.returncode == 1 and "can't be made" in elsewhere.stderr and "-o" in elsewhere.stderr


@needs_root
@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is not installed")
def test_exec_with_dropped_privileges_removes_the_recorders_variables(tmp_path: Path) -> None:
    # setpriv keeps root's rights until its exec. So it can read the recorder's library, but the program that
    # it executes cannot.
    words = ["setpriv", "--reuid", "65534", "--clear-groups", "cat", "/etc/hostname"]
    done = record(tmp_path, "--backend", "rewrite", "--", *words)
    assert (done.returncode, done.stderr) == (0, "")
    # The recorder traces the program instead.
    assert "unreached-programs" not in losses(tmp_path / "run.iodock")
    assert count(tmp_path / "run.iodock", "file = '/etc/hostname' AND call = 'read'") > 0
