"""Tests recordings through the real command line: ends of programs, samples of the machine, and programs that
do unusual things."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from iodock.program import recording
from recorded import (
    IODOCK,
    count,
    live,
    losses,
    needs_gcc,
    record,
    rows,
    run,
    wait_until,
)

pytestmark = live


# The following tests check how a recording handles the end of its program.


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (["sh", "-c", "exit 42"], 42),
        (["sh", "-c", "kill -TERM $$"], -signal.SIGTERM),
        (["sh", "-c", "kill -KILL $$"], -signal.SIGKILL),
        (["sh", "-c", "kill -SEGV $$"], -signal.SIGSEGV),
        (["no-such-program-anywhere"], 127),
        (["/etc/passwd"], 126),
    ],
)
def test_the_programs_exit_status_and_signal_are_passed_on(
    tmp_path: Path, command: list[str], status: int
) -> None:
    done = record(tmp_path, "--", *command)
    assert done.returncode == status, done.stderr
    assert (tmp_path / "run.iodock").exists() == (status not in (126, 127))
    if status in (126, 127):
        assert done.stderr.startswith("error: ") and "hint: " in done.stderr


@pytest.mark.whole
@pytest.mark.parametrize("backend", ["auto", "rewrite", "ptrace"])
def test_a_script_with_a_missing_interpreter_gives_an_error(tmp_path: Path, backend: str) -> None:
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    done = record(tmp_path, "--backend", backend, "--", "./script")
    assert done.returncode == 127
    assert "error: ./script: no such program" in done.stderr and "interpreter" in done.stderr
    assert not (tmp_path / "run.iodock").exists()


@pytest.mark.parametrize("environment", [{}, {"A": "b"}, {"LC_CTYPE": "C.UTF-8"}])
def test_the_programs_environment_is_unchanged(tmp_path: Path, environment: dict[str, str]) -> None:
    """Python sets LC_CTYPE in its own environment if there is no locale. The recorder, a Python program, must
    not pass it on."""
    command = [*IODOCK, "record", "-q", "--backend", "ptrace", "-o", "run.iodock", "--", "/usr/bin/env"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "".join(f"{name}={value}\n" for name, value in environment.items())


# Signals that end a process by default, and so would end a recorder that did not handle them.
SWALLOWED = ("ALRM", "VTALRM", "PROF", "IO", "XCPU", "PWR")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_recorder_ends_the_program(tmp_path: Path, number: signal.Signals) -> None:
    command = [*IODOCK, "record", "-q", "-o", "run.iodock", "--", "sleep", "60"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as recorder:
        wait_until(lambda: bool(list(tmp_path.glob("run.iodock/journal/*.journal"))))
        time.sleep(1)
        recorder.send_signal(number)
        assert recorder.wait(20) == -number
    assert count(tmp_path / "run.iodock", "call = 'execve'") == 1


TOLD = """
trap 'echo first' USR1
trap 'echo second' USR2
trap '' ALRM VTALRM PROF IO XCPU PWR 40
echo ready
while ! test -e go; do sleep 0.05; done
echo finished
exit 3
"""


@pytest.mark.whole
@pytest.mark.parametrize("backend", ["rewrite", "ptrace"])
@pytest.mark.parametrize("to_all", [True, False])
def test_informational_signals_reach_the_program_and_end_nothing(
    tmp_path: Path, backend: str, to_all: bool
) -> None:
    command = [*IODOCK, "record", "-q", "-o", "run.iodock", "--backend", backend, "--", "sh", "-c", TOLD]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as recorder:
        assert recorder.stdout and recorder.stdout.readline() == "ready\n"
        for number in (40, *(getattr(signal, f"SIG{name}") for name in SWALLOWED), signal.SIGUSR1):
            os.killpg(recorder.pid, number) if to_all else recorder.send_signal(number)
        assert recorder.stdout.readline() == "first\n"
        recorder.send_signal(signal.SIGUSR2)
        # The recorder passes the signal on only while it runs, so the test must not end the program before. A
        # signal to the whole process group may arrive twice, because a recorder that does not trace cannot
        # see that the program already has it.
        assert "second\n" in iter(recorder.stdout.readline, "")
        (tmp_path / "go").touch()
        out, errors = recorder.communicate(timeout=60)
        assert (recorder.returncode, out) == (3, "finished\n"), errors
    assert count(tmp_path / "run.iodock", "call = 'write'") > 1


@pytest.mark.whole
def test_a_store_is_not_replaced_before_its_tables_exist(tmp_path: Path) -> None:
    recorded = recording.record(["true"], str(tmp_path / "run.iodock"))
    assert recorded["must_finish"]
    again = record(tmp_path, "--force", "true")
    assert again.returncode == 1 and "another recording is being written there" in again.stderr
    recording.finish(str(tmp_path / "run.iodock"))
    assert record(tmp_path, "--force", "true").returncode == 0


# The following tests check samples of the machine during the run.


def test_samples_and_file_systems_are_recorded(tmp_path: Path) -> None:
    assert record(tmp_path, "sh", "-c", "sleep 1.2; cat /proc/self/status > out").returncode == 0
    store = tmp_path / "run.iodock"
    sources = {row["source"] for row in rows(store, "SELECT DISTINCT source FROM samples")}
    assert {"loadavg", "process_io"} <= sources, sources
    done = run([*IODOCK, "show", "files", store, "--format", "json"], tmp_path)
    found = [row for row in json.loads(done.stdout)["rows"] if row["file"].endswith("/out")]
    assert found and all(row["fs_type"] and row["mount"] for row in found), found


CPU_OF_COMMANDS = """
SELECT c.argv[1] AS command, p.how, max(p.cpu_user_ns + p.cpu_system_ns) / 1e9 AS cpu,
  max(p.end_ts - p.start_ts) / 1e9 AS lived
FROM processes p LEFT JOIN commands c USING (utid) GROUP BY ALL
"""


def test_processes_have_their_own_cpu_time(tmp_path: Path) -> None:
    # The run has a short process, a longer one, and a shell that waits for both.
    work = "dd if=/dev/zero of=/dev/null bs=1M count=1000 status=none; sleep 1.1"
    assert record(tmp_path, "sh", "-c", work).returncode == 0
    found = {row["command"]: row for row in rows(tmp_path / "run.iodock", CPU_OF_COMMANDS)}
    assert all(row["cpu"] <= row["lived"] for row in found.values()), found
    assert 0 < found["sleep"]["cpu"] < found["dd"]["cpu"], found
    assert 0 < found["sh"]["cpu"] < found["dd"]["cpu"], found


@pytest.mark.whole
def test_threads_have_their_own_cpu_time(tmp_path: Path) -> None:
    # The thread makes its last call after join() returns. The sleep keeps the process alive until then.
    work = (
        "import threading, time; t = threading.Thread(target=sum, args=(range(10**7),)); t.start(); t.join()"
        "; time.sleep(0.5)"
    )
    assert record(tmp_path, sys.executable, "-c", work).returncode == 0
    found = {row["how"]: row for row in rows(tmp_path / "run.iodock", CPU_OF_COMMANDS)}
    assert 0 < found["root"]["cpu"] < found["thread"]["cpu"] <= found["thread"]["lived"], found


@pytest.mark.whole
def test_device_writes_of_a_short_process_are_recorded(tmp_path: Path) -> None:
    # The recorder does not sample a process that lives for less than a second.
    assert (
        record(tmp_path, "dd", "if=/dev/zero", "of=out", "bs=64k", "count=16", "conv=fsync").returncode == 0
    )
    sql = "SELECT metric, max(value) AS most FROM samples WHERE source = 'process_io' GROUP BY metric"
    written = {row["metric"]: row["most"] for row in rows(tmp_path / "run.iodock", sql)}
    on_a_device = (
        run(["stat", "--file-system", "--format", "%T", tmp_path], tmp_path).stdout.strip() != "tmpfs"
    )
    assert (written.get("written_device_bytes", 0) >= 16 * 65536) == on_a_device, written


@pytest.mark.whole
def test_a_store_on_a_local_file_system_gives_no_warning(tmp_path: Path) -> None:
    done = run([*IODOCK, "record", "-o", "run.iodock", "--", "true"], tmp_path)
    assert "recording adds to its load" not in done.stderr
    manifest = json.loads((tmp_path / "run.iodock" / "manifest.json").read_text())
    assert manifest["recorder"]["written_bytes"] > 0
    assert count(tmp_path / "run.iodock", "file LIKE '%journal%'") == 0


# The following tests record programs that do unusual things.

UNUSUAL = {
    "closes everything": ("import os\nos.closerange(0, 1024)\nos._exit(7)", 7),
    "threads and children": (
        "import subprocess, threading\n"
        "def work(i):\n    open(f't{i}', 'w').write('x' * 1000); subprocess.run(['true'], check=True)\n"
        "threads = [threading.Thread(target=work, args=(i,)) for i in range(12)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]",
        0,
    ),
    "goes to the background": (
        "import os, time\n"
        "if os.fork(): os._exit(5)\n"
        "os.setsid()\n"
        "if os.fork(): os._exit(0)\n"
        "time.sleep(1); open('late', 'w').write('late'); os._exit(0)",
        5,
    ),
    "traces itself": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "raise SystemExit(0 if libc.ptrace(0, 0, 0, 0) == -1 and ctypes.get_errno() == 1 else 1)",
        0,
    ),
}


@pytest.mark.whole
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_programs_behave_as_without_recording(tmp_path: Path, name: str) -> None:
    program, status = UNUSUAL[name]
    # A process can have only one tracer. If the recorder traces, the program's own PTRACE_TRACEME must fail.
    by = ("--backend", "ptrace") if name == "traces itself" else ()
    done = record(tmp_path, *by, sys.executable, "-S", "-c", program)
    assert done.returncode == status, done.stderr
    assert count(tmp_path / "run.iodock", "call = 'execve'") >= 1
    if name == "goes to the background":
        assert count(tmp_path / "run.iodock", "file LIKE '%/late' AND call = 'write'") == 1


@pytest.mark.whole
def test_a_program_that_checks_for_a_tracer_finds_none(tmp_path: Path) -> None:
    # The exec of a process that called PTRACE_TRACEME stops it until its parent continues it.
    program = "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
    program += "os.execl('/bin/sh', 'sh', '-c', 'exit 4') if libc.ptrace(0, 0, 0, 0) == 0 else os._exit(1)"
    assert record(tmp_path, sys.executable, "-S", "-c", program).returncode == 4
    assert count(tmp_path / "run.iodock", "call = 'execve'") == 2


def test_a_tree_of_processes_is_recorded(tmp_path: Path) -> None:
    done = record(tmp_path, "sh", "-c", "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done")
    assert done.returncode == 0
    assert count(tmp_path / "run.iodock", "call = 'execve'") == 301


@pytest.mark.whole
def test_the_time_limit_of_a_recording_is_respected(tmp_path: Path) -> None:
    start = time.monotonic()
    done = record(tmp_path, "sh", "-c", "timeout 2 yes > /dev/null")
    assert done.returncode == 124
    assert time.monotonic() - start < 30
    assert count(tmp_path / "run.iodock", "call = 'write'") > 1000


@needs_gcc
def test_a_32_bit_program_runs_and_is_counted_as_unseen(tmp_path: Path) -> None:
    (tmp_path / "x.c").write_text("int main(void) { return 5; }\n")
    if run(["gcc", "-m32", "-o", "x", "x.c"], tmp_path).returncode != 0:
        pytest.skip("gcc makes no 32-bit programs here")
    assert record(tmp_path, "./x").returncode == 5
    assert losses(tmp_path / "run.iodock")["foreign-calls"] > 0
