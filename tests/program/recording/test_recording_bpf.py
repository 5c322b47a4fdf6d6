"""Compares `iodock record --backend bpf` with strace's counts for the same programs.

Needs root and a kernel that accepts BPF programs. Otherwise the tests are skipped with the reason."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from places import ROOT
from recorded import bpf_unavailable

IODOCK = [sys.executable, "-m", "iodock"]
# A call that names two files has two rows, so calls are counted by thread and time.
COUNTS = (
    "SELECT call, count(DISTINCT (tid, ts)) AS n, count(DISTINCT (tid, ts)) FILTER (errno <> '') AS e "
    "FROM calls_seen GROUP BY call"
)
THREADS = """
import os, sys, threading
def work(number):
    for count in range(50):
        path = os.path.join(sys.argv[1], f"t{number}")
        with open(path, "w") as file:
            file.write("x" * count)
        os.stat(path); os.rename(path, path + "b")
threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
"""
SQLITE = (
    "import sqlite3, sys; c = sqlite3.connect(sys.argv[1] + '/db');"
    "c.execute('create table if not exists t(a)');"
    "[(c.execute('insert into t values(?)', (i,)), c.commit()) for i in range(20)]; c.execute('drop table t')"
)
SHELL = "i=0; while [ $i -lt 10 ]; do /bin/true; v=$(cat /etc/hostname); i=$((i+1)); done"
# Calls that strace -c does not count, or whose number depends on how long a program waited.
UNCOMPARED = {"exit", "exit_group", "mmap", "futex"}


def programs(folder: Path) -> dict[str, list[str]]:
    data = folder / "data"
    data.mkdir()
    return {
        "cp": ["cp", sys.executable, str(data / "copy")],
        "tar": ["tar", "-cf", str(data / "all.tar"), "-C", str(ROOT / "docs"), "."],
        "shell": ["sh", "-c", SHELL],
        "python threads": [sys.executable, "-c", THREADS, str(data)],
        "sqlite": [sys.executable, "-c", SQLITE, str(data)],
    }


def counted(command: list[str], log: Path) -> dict[str, tuple[int, int]]:
    """Returns calls and errors by name, as counted by `strace -f -c`."""
    strace = ["strace", "-f", "-c", "-U", "name,calls,errors", "-o", str(log), *command]
    subprocess.run(strace, stdout=subprocess.DEVNULL, check=True, timeout=120)
    lines = [line.split() for line in log.read_text().splitlines()]
    return {
        line[0]: (int(line[1]), int(line[2]) if len(line) > 2 else 0)
        for line in lines
        if len(line) > 1 and line[1].isdigit() and line[0] != "total"
    }


def recorded(command: list[str], store: Path) -> dict[str, tuple[int, int]]:
    record = [*IODOCK, "record", "--backend", "bpf", "--quiet", "--force", "-o", str(store), "--", *command]
    subprocess.run(record, stdout=subprocess.DEVNULL, check=True, timeout=120)
    query = [*IODOCK, "query", str(store), COUNTS, "--format", "json"]
    rows = json.loads(subprocess.run(query, capture_output=True, check=True, timeout=120).stdout)["rows"]
    return {row["call"]: (row["n"], row["e"]) for row in rows}


def test_calls_and_errors_equal_those_of_strace(tmp_path: Path) -> None:
    reason = bpf_unavailable() or (None if shutil.which("strace") else "strace is not installed")
    if reason:
        pytest.skip(reason)
    for name, command in programs(tmp_path).items():
        # The program first runs once, so that all later runs see the same files.
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True, timeout=120)
        mine = recorded(command, tmp_path / "run.iodock")
        theirs = counted(command, tmp_path / "log")
        assert len(mine) > 5, name
        for call in sorted(set(mine) - UNCOMPARED):
            assert mine[call] == theirs.get(call), (name, call)


def test_a_recording_without_drops_reports_its_buffers(tmp_path: Path) -> None:
    if reason := bpf_unavailable():
        pytest.skip(reason)
    recorded(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=100000"], tmp_path / "run.iodock")
    manifest = json.loads((tmp_path / "run.iodock" / "manifest.json").read_text())
    assert manifest["captured"]["how"] == "bpf"
    assert "dropped-records" not in {loss["name"] for loss in manifest["losses"]}


def test_missing_capabilities_are_reported_with_a_remedy(tmp_path: Path) -> None:
    if os.getuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("rights can only be taken away by root with setpriv")
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all"]
    command = [*bare, *IODOCK, "record", "--backend", "bpf", "-o", str(tmp_path / "s"), "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and "CAP_BPF" in done.stderr and "--backend" in done.stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.whole
def test_a_low_limit_of_open_files_is_reported(tmp_path: Path) -> None:
    command = [*IODOCK, "record", "--backend", "bpf", "-o", str(tmp_path / "s"), "--", "true"]
    limited = ["bash", "-c", 'ulimit -n 16; exec "$@"', "bash", *command]
    done = subprocess.run(limited, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and "(ulimit -n)" in done.stderr, done.stderr
    assert "verifier" not in done.stderr and not (tmp_path / "s").exists()


def test_the_committed_bpf_programs_match_their_sources() -> None:
    check = [sys.executable, str(ROOT / "tools" / "bpf.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, timeout=120, check=False)
    if "skipped" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr


def followed(options: list[str], store: Path, running: subprocess.Popen[bytes]) -> dict[str, tuple[int, int]]:
    """Records with `options`, lets `running` make its calls, and ends the recording by a signal."""
    record = [*IODOCK, "record", "--quiet", "-o", str(store), *options]
    with subprocess.Popen(record, stderr=subprocess.PIPE) as recorder:
        deadline = time.monotonic() + 60
        while not list(store.glob("journal/*.journal")) and time.monotonic() < deadline:
            time.sleep(0.05)
        # The recorder creates the journal shortly before it loads the BPF programs.
        time.sleep(2)
        assert running.stdin is not None
        running.stdin.write(b"go\n")
        running.stdin.flush()
        time.sleep(1)
        recorder.send_signal(signal.SIGINT)
        _, messages = recorder.communicate(timeout=60)
    running.stdin.close()
    running.wait(timeout=60)
    assert store.exists(), messages
    query = [*IODOCK, "query", str(store), COUNTS, "--format", "json"]
    rows = json.loads(subprocess.run(query, capture_output=True, check=True, timeout=120).stdout)["rows"]
    return {row["call"]: (row["n"], row["e"]) for row in rows}


WAITING = "read line; cat /etc/hostname /no/such/file; read line"


def waiting(script: str = WAITING) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=quiet, stderr=quiet)


@pytest.mark.whole
def test_a_running_process_and_its_children_are_recorded(tmp_path: Path) -> None:
    if reason := bpf_unavailable():
        pytest.skip(reason)
    running = waiting()
    calls = followed(["--backend", "bpf", "-p", str(running.pid)], tmp_path / "run.iodock", running)
    assert calls["execve"] == (1, 0)
    assert calls["openat"][1] >= 1


@pytest.mark.whole
def test_all_processes_of_a_cgroup_are_recorded(tmp_path: Path) -> None:
    if reason := bpf_unavailable():
        pytest.skip(reason)
    places = [path.parent for path in Path("/sys/fs/cgroup").glob("**/cgroup.procs")]
    # A program that mistook the folder for a cgroup may have created a regular file of that name.
    roots = [place for place in places if place.is_mount() and (place / "cgroup.procs").stat().st_size == 0]
    if not roots:
        pytest.skip("no cgroups are mounted here")
    # This is the top cgroup of version 2, or of any controller's tree of version 1.
    group = min(roots, key=lambda path: len(path.parts)) / f"iodock-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no cgroup can be made here: {error}")
    try:
        running = waiting("read line; for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.02; done; read line")
        (group / "cgroup.procs").write_text(str(running.pid))
        calls = followed(["--cgroup", group.name], tmp_path / "run.iodock", running)
        assert calls["execve"] == (10, 0)
        # Processes born into the group must not be recorded a second time when the recorder lists the group's
        # processes.
        query = [
            *IODOCK,
            "query",
            str(tmp_path / "run.iodock"),
            "SELECT path FROM commands",
            "--format",
            "json",
        ]
        told = subprocess.run(query, capture_output=True, check=True, timeout=120).stdout
        assert [Path(row["path"]).name for row in json.loads(told)["rows"]] == ["sh", *["sleep"] * 10]
    finally:
        group.rmdir()


PACED = """
import os, time
out = os.open("out.dat", os.O_CREAT | os.O_WRONLY)
until = time.monotonic() + 3
while time.monotonic() < until:
    os.write(out, b"x" * 100)
    time.sleep(0.001)
"""


@pytest.mark.whole
def test_a_killed_recorder_loses_only_the_last_calls(tmp_path: Path) -> None:
    if reason := bpf_unavailable():
        pytest.skip(reason)
    program = tmp_path / "paced.py"
    program.write_text(PACED)
    store, out = tmp_path / "run.iodock", tmp_path / "out.dat"
    command = [*IODOCK, "record", "--backend", "bpf", "-o", str(store), "--", sys.executable, str(program)]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL) as recorder:
        deadline = time.monotonic() + 60
        while (not out.exists() or out.stat().st_size < 50_000) and time.monotonic() < deadline:
            time.sleep(0.01)
        written = out.stat().st_size // 100
        recorder.kill()
    query = (
        "SELECT count(*) AS n, sum(bytes)::BIGINT AS b FROM calls_seen "
        "WHERE call = 'write' AND file LIKE '%/out.dat'"
    )
    command = [*IODOCK, "query", str(store), query, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    row = json.loads(done.stdout)["rows"][0]
    # When the recorder is killed, the data in its buffers are lost.
    assert written * 0.5 <= row["n"] and row["b"] == 100 * row["n"]
    manifest = json.loads((store / "manifest.json").read_text())
    assert manifest["state"] == "cut"
    assert "journal-cut" in {loss["name"] for loss in manifest["losses"]}
    # The program continues after the recorder's end.
    while time.monotonic() < deadline and out.stat().st_size // 100 == written:
        time.sleep(0.01)
    assert out.stat().st_size // 100 > written


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.whole
def test_on_a_full_disk_every_call_is_kept_or_counted(small_disk: Path, tmp_path: Path) -> None:
    if reason := bpf_unavailable():
        pytest.skip(reason)
    program = "import os\nfor i in range(300000): os.write(1, b'x' * (i % 97))\nraise SystemExit(9)"
    store = small_disk / "run.iodock"
    command = [*IODOCK, "record", "--backend", "bpf", "-q", "-o", str(store), "--"]
    command += [sys.executable, "-S", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 9
    assert len(done.stdout) == sum(i % 97 for i in range(300000))
    assert "error: recording stopped early: " in done.stderr and "disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    query = "SELECT count(*) AS n FROM calls_seen WHERE call = 'write'"
    command = [*IODOCK, "query", str(store), query, "--format", "json"]
    rows = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)["rows"]
    command = [*IODOCK, "show", "summary", str(store), "--format", "json"]
    shown = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)
    dropped = sum(loss["count"] for loss in shown["losses"] if loss["name"] == "dropped-records")
    assert 299_990 <= rows[0]["n"] + dropped < 301_500 and dropped > 1000


GO = """
package main

import (
	"fmt"
	"os"
	"sync"
)

func main() {
	var group sync.WaitGroup
	for worker := 0; worker < 8; worker++ {
		group.Add(1)
		go func(worker int) {
			defer group.Done()
			for count := 0; count < 25; count++ {
				name := fmt.Sprintf("%s/%d-%d", os.Args[1], worker, count)
				file, err := os.Create(name)
				if err != nil {
					panic(err)
				}
				file.WriteAt(make([]byte, 1000+count), int64(count)*512)
				file.Close()
				os.Rename(name, name+".done")
				os.Remove(name)
			}
		}(worker)
	}
	group.Wait()
}
"""


def go_compiler() -> str | None:
    return shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")


@pytest.mark.whole
def test_a_go_program_is_recorded_completely(tmp_path: Path) -> None:
    compiler = go_compiler()
    reason = bpf_unavailable() or (None if compiler and shutil.which("strace") else "no Go or no strace here")
    if reason or not compiler:
        pytest.skip(reason or "")
    (tmp_path / "files.go").write_text(GO)
    surroundings = {**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off"}
    build = [compiler, "build", "-o", str(tmp_path / "files"), str(tmp_path / "files.go")]
    subprocess.run(build, env=surroundings, check=True, timeout=300)
    (tmp_path / "data").mkdir()
    command = [str(tmp_path / "files"), str(tmp_path / "data")]
    mine = recorded(command, tmp_path / "run.iodock")
    theirs = counted(command, tmp_path / "log")
    # The numbers of other calls depend on how the Go runtime schedules its threads.
    own = {"openat", "pwrite64", "close", "renameat", "unlinkat"}
    assert {call: mine[call] for call in own} == {call: theirs[call] for call in own}
    # Go's os.Remove tries both unlink and rmdir.
    assert (mine["pwrite64"], mine["unlinkat"]) == ((200, 0), (400, 400))
    query = (
        "SELECT count(DISTINCT file) AS files, sum(bytes)::BIGINT AS bytes FROM calls_seen "
        "WHERE call = 'pwrite64'"
    )
    command = [*IODOCK, "query", str(tmp_path / "run.iodock"), query, "--format", "json"]
    rows = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)["rows"]
    assert rows == [{"files": 200, "bytes": 8 * sum(1000 + count for count in range(25))}]
    manifest = json.loads((tmp_path / "run.iodock" / "manifest.json").read_text())
    assert "dropped-records" not in {loss["name"] for loss in manifest["losses"]}


@pytest.mark.whole
def test_a_missing_cgroup_is_refused(tmp_path: Path) -> None:
    if reason := bpf_unavailable():
        pytest.skip(reason)
    command = [*IODOCK, "record", "--cgroup", "no/such/group", "-o", str(tmp_path / "s")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and "no such cgroup" in done.stderr
    assert not (tmp_path / "s").exists()


@pytest.mark.whole
def test_requests_of_an_io_uring_are_recorded(tmp_path: Path) -> None:
    reason = bpf_unavailable() or (None if shutil.which("fio") else "fio is not installed")
    if reason:
        pytest.skip(reason)
    sizes = [
        "--size=1m",
        "--bs=16k",
        "--rw=randwrite",
        "--iodepth=8",
        "--thread",
        f"--filename={tmp_path}/data",
    ]
    job = ["fio", "--name=job", "--ioengine=io_uring", *sizes]
    if subprocess.run(job, capture_output=True, timeout=120, check=False).returncode:
        pytest.skip("fio can't use io_uring here")
    calls = recorded(job, tmp_path / "run.iodock")
    if "io_uring_write" not in calls:
        pytest.skip("this kernel shows no requests inside an io_uring")
    assert calls["io_uring_write"] == (64, 0)
    query = (
        "SELECT sum(bytes)::BIGINT AS b, count(DISTINCT offset_bytes) AS n FROM calls_seen "
        "WHERE call = 'io_uring_write'"
    )
    command = [*IODOCK, "query", str(tmp_path / "run.iodock"), query, "--format", "json"]
    rows = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=120).stdout)["rows"]
    assert rows == [{"b": 1 << 20, "n": 64}]
    manifest = json.loads((tmp_path / "run.iodock" / "manifest.json").read_text())
    assert "io-uring-contents" not in {loss["name"] for loss in manifest["losses"]}
