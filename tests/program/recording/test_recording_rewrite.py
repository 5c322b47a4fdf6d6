"""Compares `iodock record --backend rewrite` with a recording by ptrace."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from places import FIXTURES, ROOT

IODOCK = [sys.executable, "-m", "iodock"]
# The leak checker of AddressSanitizer must still report the leaked bytes at the program's end.
LEAK = """
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	char *volatile bytes = malloc(100);
	read(open("/dev/zero", O_RDONLY), bytes, 100);
	bytes = 0;
	return 0;
}
"""
PROGRAM = "f=$1; printf 'one\\ntwo\\n' > $f; cat $f $f missing; (cd /; cat $f); exit 3"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64", reason="rewriting calls is for x86-64 Linux"
)


def recorded(folder: Path, backend: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    store = folder / f"{backend}.iodock"
    command = [*IODOCK, "record", "--backend", backend, "--quiet", "-o", str(store), "--"]
    command += ["sh", "-c", PROGRAM, "sh", str(folder / "data")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    return done, store


def accesses(store: Path) -> list[dict[str, object]]:
    command = [*IODOCK, "show", "accesses", str(store), "--file", "**/data", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    kept = ("call", "offset_bytes", "requested_bytes", "result")
    return [{key: row[key] for key in kept} for row in json.loads(done.stdout)["rows"]]


def test_output_status_and_accesses_equal_those_with_ptrace(tmp_path: Path) -> None:
    by_ptrace, traced = recorded(tmp_path, "ptrace")
    by_rewrite, rewritten = recorded(tmp_path, "rewrite")
    assert (by_rewrite.returncode, by_rewrite.stdout) == (3, by_ptrace.stdout)
    assert by_rewrite.stdout == "one\ntwo\n" * 3
    assert accesses(rewritten) == accesses(traced) != []


def test_unseen_calls_are_counted(tmp_path: Path) -> None:
    _, store = recorded(tmp_path, "rewrite")
    manifest = json.loads((store / "manifest.json").read_text())
    assert manifest["captured"]["how"] == "rewrite"
    losses = {loss["name"]: loss["count"] for loss in manifest["losses"]}
    # The three programs are the shell and two cats. The recorder misses the calls before its library is
    # loaded.
    assert losses["before-load"] == 3


def test_attaching_with_rewrite_is_refused_with_a_remedy(tmp_path: Path) -> None:
    command = [*IODOCK, "record", "--backend", "rewrite", "-o", str(tmp_path / "s"), "-p", str(os.getpid())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and "--backend ptrace" in done.stderr
    assert not (tmp_path / "s").exists()


# The following tests end or kill the recorder itself.

WRITER = """
import os, sys
f = os.open("out.dat", os.O_WRONLY | os.O_CREAT)
for part in range(2):
    for i in range(3000):
        os.write(f, b"x" * 97)
    os.write(1, b"half\\n")
    sys.stdin.readline()
"""


def counted(store: Path, where: str) -> int:
    query = f"SELECT count(*) AS n FROM calls_seen WHERE {where}"
    command = [*IODOCK, "query", str(store), query, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return int(json.loads(done.stdout)["rows"][0]["n"])


def losses_of(store: Path) -> dict[str, int]:
    command = [*IODOCK, "show", "summary", str(store), "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return {loss["name"]: loss["count"] for loss in json.loads(done.stdout)["losses"]}


def sessions_of(recorder: int) -> list[str]:
    places = (Path("/dev/shm"), Path(tempfile.gettempdir()))
    return [str(found) for place in places for found in place.glob(f"iodock-{recorder}-*")]


@pytest.mark.whole
@pytest.mark.parametrize("seconds", [0, 1.5], ids=["before it wrote", "after it wrote"])
def test_no_call_is_lost_by_kill_9_of_the_recorder(tmp_path: Path, seconds: float) -> None:
    store = tmp_path / "run.iodock"
    command = [*IODOCK, "record", "--backend", "rewrite", "-q", "-o", str(store), "--"]
    command += [sys.executable, "-S", "-c", WRITER]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as recorder:
        assert recorder.stdin and recorder.stdout
        assert recorder.stdout.readline() == "half\n"
        time.sleep(seconds)
        recorder.kill()
        recorder.wait()
        # The program continues after the recorder's end.
        print(file=recorder.stdin, flush=True)
        assert recorder.stdout.readline() == "half\n"
        assert sessions_of(recorder.pid)
        assert counted(store, "call = 'write' AND file LIKE '%/out.dat'") == 6000
        assert not sessions_of(recorder.pid)
        print(file=recorder.stdin, flush=True)
    assert losses_of(store)["journal-cut"] == 1
    assert "dropped-records" not in losses_of(store)


@pytest.mark.whole
def test_without_its_session_the_saved_calls_are_kept(tmp_path: Path) -> None:
    store = tmp_path / "run.iodock"
    command = [*IODOCK, "record", "--backend", "rewrite", "-q", "-o", str(store), "--"]
    command += [sys.executable, "-S", "-c", WRITER]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as recorder:
        assert recorder.stdin and recorder.stdout
        assert recorder.stdout.readline() == "half\n"
        time.sleep(2.5)
        recorder.kill()
        recorder.wait()
        for session in sessions_of(recorder.pid):
            shutil.rmtree(session)
    calls = store / "journal" / "main.calls"
    with calls.open("ab") as file:
        file.write(b"\3\0\0\0torn")
    assert counted(store, "call = 'write' AND file LIKE '%/out.dat'") == 3000


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
def test_a_full_disk_ends_the_recording_but_not_the_program(small_disk: Path, tmp_path: Path) -> None:
    program = "import os\nfor i in range(300000): os.write(1, b'x' * (i % 97))\nraise SystemExit(9)"
    store = small_disk / "run.iodock"
    command = [*IODOCK, "record", "--backend", "rewrite", "-q", "-o", str(store), "--"]
    command += [sys.executable, "-S", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 9
    assert len(done.stdout) == sum(i % 97 for i in range(300000))
    assert "error: recording stopped early: " in done.stderr and "disk is full" in done.stderr
    assert "Traceback" not in done.stderr and "bug" not in done.stderr
    written = counted(store, "call = 'write'")
    dropped = losses_of(store).get("dropped-records", 0)
    # Each call is either recorded or counted as dropped.
    assert 299990 <= written + dropped < 301500 and dropped > 1000


@pytest.mark.parametrize(
    ("name", "define", "loss"),
    [
        ("sandboxes", "NOTHING", "stopped-processes"),
        ("own_calls", "NOTHING", "own-system-calls"),
        ("own_calls", "TOLD", "own-system-calls"),
    ],
)
def test_unrecordable_programs_are_named(tmp_path: Path, name: str, define: str, loss: str) -> None:
    source = ROOT / "crates" / "iodock-preload" / "tests" / "programs" / f"{name}.c"
    program, store = tmp_path / name, tmp_path / "s.iodock"
    subprocess.run(
        ["cc", "-O2", "-w", "-pthread", f"-D{define}", "-o", program, source], check=True, timeout=120
    )
    command = [*IODOCK, "record", "--backend", "rewrite", "-q", "-o", str(store), "--"]
    # The path is relative, as users type it, and only the program knows its working directory.
    command += [f"./{name}", "strict"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0
    losses = json.loads((store / "manifest.json").read_text())["losses"]
    assert {one["name"]: one["count"] for one in losses} == {"before-load": 1, loss: 1}


FIO = ["--name=a", "--size=2m", "--bs=4k", "--rw=randrw", "--ioengine=libaio", "--iodepth=8", "--direct=1"]
REQUESTS = """SELECT call, direction, count(*) AS parts, sum(bytes)::BIGINT AS moved,
sum(requested_bytes)::BIGINT AS asked, sum(offset_bytes)::BIGINT AS places FROM call_ends
WHERE file LIKE '%/fio.dat' AND call IN ('io_submit', 'io_getevents') GROUP BY ALL ORDER BY ALL"""


@pytest.mark.whole
@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_asynchronous_requests_equal_those_of_ptrace(tmp_path: Path) -> None:
    found = {}
    for backend in ("ptrace", "rewrite"):
        store = str(tmp_path / f"{backend}.iodock")
        command = [*IODOCK, "record", "--backend", backend, "--quiet", "-o", store, "--", "fio", *FIO]
        done = subprocess.run(
            [*command, f"--filename={tmp_path}/fio.dat"], capture_output=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        command = [*IODOCK, "query", store, REQUESTS, "--format", "json"]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        found[backend] = json.loads(shown.stdout)["rows"]
    by_direction = {row["direction"]: row["moved"] for row in found["rewrite"]}
    assert found["rewrite"] == found["ptrace"]
    assert sum(by_direction.values()) == 2 << 20 and len(by_direction) == 2


@pytest.mark.whole
@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
def test_children_made_while_handlers_run_have_their_parent(tmp_path: Path) -> None:
    program, store = tmp_path / "forks", str(tmp_path / "run.iodock")
    source = FIXTURES / "programs" / "forks_in_handlers.c"
    subprocess.run(["gcc", "-O1", "-w", "-o", program, source], check=True)
    command = [*IODOCK, "record", "--backend", "rewrite", "--quiet", "-o", store, "--", program]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert not {"unknown-parent", "unknown-descriptors"} & losses_of(Path(store)).keys()
    assert counted(Path(store), "call = 'read' AND file = '/dev/zero'") == 300


@pytest.mark.whole
@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
def test_a_program_with_address_sanitizer_runs(tmp_path: Path) -> None:
    (tmp_path / "leak.c").write_text(LEAK)
    program, store = tmp_path / "leak", str(tmp_path / "run.iodock")
    built = subprocess.run(["gcc", "-fsanitize=address", "-o", program, tmp_path / "leak.c"], check=False)
    if built.returncode:
        pytest.skip("AddressSanitizer is not installed")
    alone = subprocess.run([program], capture_output=True, text=True, timeout=120, check=False)
    command = [*IODOCK, "record", "--backend", "rewrite", "--quiet", "-o", store, "--", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == alone.returncode != 0, done.stderr
    assert "100 byte(s) leaked" in alone.stderr and "100 byte(s) leaked" in done.stderr
    assert counted(Path(store), "call = 'read' AND file = '/dev/zero'") == 1


@pytest.mark.whole
@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed")
def test_threads_and_children_under_a_filter_count_as_one_stopped_process(tmp_path: Path) -> None:
    program, store = tmp_path / "sandboxed", str(tmp_path / "run.iodock")
    source = FIXTURES / "programs" / "sandboxed.c"
    subprocess.run(["gcc", "-O1", "-w", "-pthread", "-o", program, source], check=True)
    command = [*IODOCK, "record", "--backend", "rewrite", "--quiet", "-o", store, "--", program]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert counted(Path(store), "call = 'pread64'") == 0
    assert losses_of(Path(store))["stopped-processes"] == 1
