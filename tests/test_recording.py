"""Recordings through the real command line: how programs end, what a killed recorder, a full disk or a cut
journal leaves, terminals, ordinary users, running processes, MPI ranks, the machine's samples."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PROGRAMS = ROOT / "fixtures" / "programs"
IODOCK = [sys.executable, "-m", "iodock"]
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "4"]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="live recording is for x86-64 Linux"
)
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
needs_mpi = pytest.mark.skipif(
    not (shutil.which("mpirun") and shutil.which("mpicc")), reason="Open MPI is not installed"
)
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount and change users")


def run(command: Sequence[object], cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    texts = [str(part) for part in command]
    return subprocess.run(texts, cwd=cwd, capture_output=True, text=True, timeout=120, check=False, **options)


def record(cwd: Path, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return run([*IODOCK, "record", "--quiet", "-o", "run.iodock", *arguments], cwd, **options)


def rows(store: Path, sql: str) -> list[dict[str, Any]]:
    done = run([*IODOCK, "query", store, sql, "--format", "json"], store.parent)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found


def losses(store: Path) -> dict[str, int]:
    done = run([*IODOCK, "show", "summary", store, "--format", "json"], store.parent)
    assert done.returncode == 0, done.stderr
    return {loss["name"]: loss["count"] for loss in json.loads(done.stdout)["losses"]}


def loss_cures(store: Path) -> dict[str, str]:
    losses(store)
    manifest = json.loads((store / "manifest.json").read_text())
    return {loss["name"]: loss["cure"] for loss in manifest["losses"]}


def count(store: Path, condition: str) -> int:
    return int(rows(store, f"SELECT count(*) AS n FROM calls_seen WHERE {condition}")[0]["n"])


def compiled(folder: Path, name: str, *flags: str) -> Path:
    out = folder / name
    subprocess.run(["gcc", "-O1", "-pthread", *flags, "-o", out, PROGRAMS / f"{name}.c"], check=True)
    return out


def wait_until(true: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


# How programs end.


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
def test_the_programs_end_is_passed_on(tmp_path: Path, command: list[str], status: int) -> None:
    done = record(tmp_path, "--", *command)
    assert done.returncode == status, done.stderr
    assert (tmp_path / "run.iodock").exists() == (status not in (126, 127))
    if status in (126, 127):
        assert done.stderr.startswith("error: ") and "hint: " in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_the_recorder_ends_the_program(tmp_path: Path, number: signal.Signals) -> None:
    command = [*IODOCK, "record", "-q", "-o", "run.iodock", "--", "sleep", "60"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as recorder:
        wait_until(lambda: bool(list(tmp_path.glob("run.iodock/journal/*.journal"))))
        time.sleep(1)
        recorder.send_signal(number)
        assert recorder.wait(20) == -number
    assert count(tmp_path / "run.iodock", "call = 'execve'") == 1


def test_an_existing_store_is_refused(tmp_path: Path) -> None:
    assert record(tmp_path, "true").returncode == 0
    again = record(tmp_path, "true")
    assert again.returncode == 1 and "exists already" in again.stderr and "--force" in again.stderr
    assert record(tmp_path, "--force", "true").returncode == 0


# What is left by a crash.


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A store whose recorder was killed, and how many blocks the program had written."""
    folder = tmp_path_factory.mktemp("killed")
    program = "import os, time\nf = os.open('out.dat', os.O_WRONLY | os.O_CREAT)\n"
    program += "while os.write(f, b'x' * 997): time.sleep(0.001)\n"
    # By rewrite the program would go on: see test_recording_rewrite.
    command = [*IODOCK, "record", "--backend", "ptrace", "-q", "-o", "run.iodock", "--"]
    command += [sys.executable, "-S", "-c", program]
    with subprocess.Popen(command, cwd=folder) as recorder:
        wait_until((folder / "out.dat").exists)
        time.sleep(3.5)
        recorder.kill()
    size = -1
    while size != (size := (folder / "out.dat").stat().st_size):
        time.sleep(0.5)
    return folder / "run.iodock", size // 997


def test_after_kill_9_what_was_flushed_is_there(killed: tuple[Path, int], tmp_path: Path) -> None:
    original, written = killed
    assert written > 500
    store = tmp_path / "run.iodock"
    shutil.copytree(original, store)
    # Two that open it at the same time: one makes the tables, both answer.
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
    # At most a second behind; 3.5 seconds were run.
    assert written * 0.55 <= recorded <= written


def test_a_journal_cut_anywhere_opens(killed: tuple[Path, int], tmp_path: Path) -> None:
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
def test_a_journal_without_anything_is_said_to_be_so(
    killed: tuple[Path, int], tmp_path: Path, length: int
) -> None:
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
def test_a_full_disk_ends_the_recording_not_the_program(small_disk: Path, tmp_path: Path) -> None:
    program = "import os\nfor i in range(60000): os.write(1, b'x' * (i % 97))\nraise SystemExit(9)"
    store = small_disk / "run.iodock"
    # By rewrite so many calls fit: see test_recording_rewrite.
    command = [*IODOCK, "record", "--backend", "ptrace", "-q", "-o", store, "--"]
    command += [sys.executable, "-S", "-c", program]
    done = run(command, tmp_path)
    assert done.returncode == 9
    assert done.stdout == "".join("x" * (i % 97) for i in range(60000))
    assert "error: recording stopped early: " in done.stderr and "disk is full" in done.stderr
    assert "Traceback" not in done.stderr and "bug" not in done.stderr
    recorded = count(store, "call = 'write'")
    assert recorded > 1000
    # All that was made is accounted for: kept or counted as dropped.
    assert 59990 <= recorded + losses(store).get("dropped-records", 0) < 60400


@needs_root
def test_a_cut_store_on_a_full_disk_opens(killed: tuple[Path, int], small_disk: Path, tmp_path: Path) -> None:
    store = small_disk / "run.iodock"
    shutil.copytree(killed[0], store)
    with (small_disk / "fill").open("wb", buffering=0) as fill, pytest.raises(OSError):
        while True:
            fill.write(bytes(1024))
    assert count(store, "call = 'write'") > 500
    assert sorted(path.name for path in store.iterdir()) == ["journal", "manifest.json"]


# Terminals.


def in_a_shell(folder: Path, *keys: tuple[str, str]) -> str:
    """Types into an interactive shell: (what, what to wait for in its output, '' for nothing)."""
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
            # Time for the program to be where it will wait.
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
def test_ctrl_c(tmp_path: Path) -> None:
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


# Processes that run already.


def test_attach_and_leave_running(tmp_path: Path) -> None:
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


def test_attach_refusals(tmp_path: Path) -> None:
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


# An ordinary user.

NOBODY = 65534


@pytest.fixture
def as_nobody() -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Runs iodock as a user without any rights, in a folder of theirs."""
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
def test_an_ordinary_user_records(as_nobody: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = as_nobody("record", "-q", "-o", "a.iodock", "--", "sh", "-c", "cat /etc/hostname > x; exit 4")
    assert done.returncode == 4, done.stderr
    shown = as_nobody("show", "summary", "a.iodock", "--by", "file")
    assert "/etc/hostname" in shown.stdout, shown.stderr


@needs_root
@needs_gcc
def test_an_ordinary_user_records_a_static_program(
    as_nobody: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        done = as_nobody("record", "-o", "a.iodock", "--", compiled(Path(name), "hello", "-static"))
    assert done.returncode == 0 and "recorded by ptrace: the program is static" in done.stderr


@needs_root
def test_an_ordinary_user_is_refused_in_words(
    as_nobody: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    privileged = as_nobody("record", "-o", "a.iodock", "--", "su", "-c", "true")
    assert privileged.returncode == 1
    assert "set-user-id" in privileged.stderr and "hint: record it as root" in privileged.stderr
    foreign = as_nobody("record", "-o", "a.iodock", "-p", os.getpid())
    assert foreign.returncode == 1 and "may not be traced" in foreign.stderr and "hint: " in foreign.stderr
    elsewhere = as_nobody("record", "-o", "/root/a.iodock", "--", "true")
    assert elsewhere.returncode == 1 and "can't be made" in elsewhere.stderr and "-o" in elsewhere.stderr


# MPI.


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("mpi") / "ranks"
    subprocess.run(["mpicc", "-o", program, PROGRAMS / "ranks.c"], check=True)
    return program


def by_rank(store: Path) -> list[tuple[Any, ...]]:
    sql = (
        "SELECT rank, call, count(*) AS calls, sum(bytes)::BIGINT AS bytes FROM calls_seen"
        " WHERE file LIKE '%.dat' GROUP BY ALL ORDER BY ALL"
    )
    return [tuple(row.values()) for row in rows(store, sql)]


@needs_mpi
def test_ranks_share_one_store_in_both_forms(tmp_path: Path, ranks: Path) -> None:
    wanted = [
        (rank, call, calls, size)
        for rank in range(4)
        for call, calls, size in (
            ("close", 2, None),
            ("openat", 2, None),
            ("pwrite64", 17, 17 * 1009),
            ("write", 13, 13 * 1009),
        )
    ]
    inside = [*MPIRUN, *IODOCK, "record", "-q", "-o", "inside.iodock", "--", ranks]
    assert run(inside, tmp_path).returncode == 0
    outside = [*IODOCK, "record", "-q", "-o", "outside.iodock", "--", *MPIRUN, ranks]
    assert run(outside, tmp_path).returncode == 0
    assert by_rank(tmp_path / "inside.iodock") == wanted
    assert by_rank(tmp_path / "outside.iodock") == wanted
    assert "unknown-descriptors" not in losses(tmp_path / "outside.iodock")
    again = run(inside, tmp_path)
    assert again.returncode != 0 and "exists already" in again.stderr
    assert by_rank(tmp_path / "inside.iodock") == wanted


@needs_mpi
def test_a_killed_rank_is_named(tmp_path: Path) -> None:
    recorder = " ".join([*IODOCK, "record", "-q", "-o", "run.iodock", "--", "sh", "-c"])
    # The recorder of rank 2 is killed; what it has flushed is there, and the others' parts are whole.
    script = (
        f"if [ $OMPI_COMM_WORLD_RANK = 2 ]; then {recorder} 'sleep 2.5; kill -9 $PPID; sleep 5'; "
        f"else {recorder} 'sleep 1; cat /etc/hostname'; fi; exit 0"
    )
    done = run([*MPIRUN, "sh", "-c", script], tmp_path)
    store = tmp_path / "run.iodock"
    assert store.is_dir(), done.stderr
    found = rows(store, "SELECT DISTINCT rank FROM calls_seen WHERE rank IS NOT NULL ORDER BY 1")
    assert [row["rank"] for row in found] == [0, 1, 2, 3]
    assert "(rank 2)" in loss_cures(store)["journal-cut"]


@needs_mpi
def test_a_rank_without_a_part_is_named(tmp_path: Path) -> None:
    recorder = " ".join([*IODOCK, "record", "-q", "-o", "run.iodock", "--", "cat", "/etc/hostname"])
    script = f"if [ $OMPI_COMM_WORLD_RANK = 2 ]; then sleep 1; else {recorder}; fi"
    assert run([*MPIRUN, "sh", "-c", script], tmp_path).returncode == 0
    assert "(rank 2)" in loss_cures(tmp_path / "run.iodock")["missing-ranks"]


# The machine, meanwhile.


def test_samples_and_file_systems(tmp_path: Path) -> None:
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
    # A short process, a longer one, and a shell that has waited for both.
    work = "dd if=/dev/zero of=/dev/null bs=1M count=1000 status=none; sleep 1.1"
    assert record(tmp_path, "sh", "-c", work).returncode == 0
    found = {row["command"]: row for row in rows(tmp_path / "run.iodock", CPU_OF_COMMANDS)}
    assert all(row["cpu"] <= row["lived"] for row in found.values()), found
    assert 0 < found["sleep"]["cpu"] < found["dd"]["cpu"], found
    assert 0 < found["sh"]["cpu"] < found["dd"]["cpu"], found


def test_threads_have_their_own_cpu_time(tmp_path: Path) -> None:
    # join() comes back before the thread makes its last call, which the end of the process would cut off.
    work = (
        "import threading, time; t = threading.Thread(target=sum, args=(range(10**7),)); t.start(); t.join()"
        "; time.sleep(0.5)"
    )
    assert record(tmp_path, sys.executable, "-c", work).returncode == 0
    found = {row["how"]: row for row in rows(tmp_path / "run.iodock", CPU_OF_COMMANDS)}
    assert 0 < found["root"]["cpu"] < found["thread"]["cpu"] <= found["thread"]["lived"], found


def test_a_short_process_tells_what_it_wrote_to_a_device(tmp_path: Path) -> None:
    # A process of less than a second is not sampled while it runs.
    assert (
        record(tmp_path, "dd", "if=/dev/zero", "of=out", "bs=64k", "count=16", "conv=fsync").returncode == 0
    )
    sql = "SELECT metric, max(value) AS most FROM samples WHERE source = 'process_io' GROUP BY metric"
    written = {row["metric"]: row["most"] for row in rows(tmp_path / "run.iodock", sql)}
    on_a_device = (
        run(["stat", "--file-system", "--format", "%T", tmp_path], tmp_path).stdout.strip() != "tmpfs"
    )
    assert (written.get("written_device_bytes", 0) >= 16 * 65536) == on_a_device, written


def test_a_store_on_the_measured_file_system_is_warned_of(tmp_path: Path) -> None:
    done = run([*IODOCK, "record", "-o", "run.iodock", "--", "true"], tmp_path)
    assert "warning: the store lies on the file system that the program works in" in done.stderr
    manifest = json.loads((tmp_path / "run.iodock" / "manifest.json").read_text())
    assert manifest["recorder"]["written_bytes"] > 0
    assert count(tmp_path / "run.iodock", "file LIKE '%journal%'") == 0


# Programs that do unusual things.

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


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_programs(tmp_path: Path, name: str) -> None:
    program, status = UNUSUAL[name]
    # A program has one tracer.
    by = ("--backend", "ptrace") if name == "traces itself" else ()
    done = record(tmp_path, *by, sys.executable, "-S", "-c", program)
    assert done.returncode == status, done.stderr
    assert count(tmp_path / "run.iodock", "call = 'execve'") >= 1
    if name == "goes to the background":
        assert count(tmp_path / "run.iodock", "file LIKE '%/late' AND call = 'write'") == 1


def test_a_program_that_traces_itself_finds_no_tracer(tmp_path: Path) -> None:
    # Its exec stops it for its parent, who lets it go on.
    program = "import ctypes, os\nlibc = ctypes.CDLL(None)\n"
    program += "os.execl('/bin/sh', 'sh', '-c', 'exit 4') if libc.ptrace(0, 0, 0, 0) == 0 else os._exit(1)"
    assert record(tmp_path, sys.executable, "-S", "-c", program).returncode == 4
    assert count(tmp_path / "run.iodock", "call = 'execve'") == 2


def test_a_tree_of_processes(tmp_path: Path) -> None:
    done = record(tmp_path, "sh", "-c", "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done")
    assert done.returncode == 0
    assert count(tmp_path / "run.iodock", "call = 'execve'") == 301


def test_a_time_limit_is_kept(tmp_path: Path) -> None:
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
