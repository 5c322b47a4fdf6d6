"""Compares a recording with an imported `strace -f` log of the same deterministic program: counts, errors and
bytes by call and by file, and every access with its offset."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from in_process import shown
from places import FIXTURES

PROGRAMS = FIXTURES / "programs"
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "4"]
GIT = "git -c user.name=a -c user.email=a@b -c gc.auto=0 -c core.fsmonitor=false"
SQLITE = """
import sqlite3
c = sqlite3.connect('t.db')
c.execute('create table t(a, b)')
for i in range(20):
    c.execute('insert into t values (?, ?)', (i, 'x' * 500)); c.commit()
c.execute('select count(*) from t').fetchall(); c.close()
"""


@dataclass(frozen=True)
class Program:
    """Commands to run in an empty folder. With `everything`, calls on files outside the folder are also the
    same in each run."""

    command: list[str]
    needs: tuple[str, ...] = ()
    everything: bool = True
    prepare: Callable[[Path], None] = lambda folder: None


def some_files(folder: Path) -> None:
    for number in range(30):
        path = folder / "tree" / f"sub-{number % 3}" / f"file-{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(range(256)) * (number * 7 % 50 + 1))
        # The files are older than git's index. git reads files again if they are as young as its index.
        os.utime(path, (1_500_000_000, 1_500_000_000))


def built(*command: str) -> Callable[[Path], None]:
    return lambda folder: subprocess.run([*command], cwd=folder, check=True, timeout=120) and None


def source_and_binary(folder: Path) -> None:
    shutil.copy(PROGRAMS / "hello.c", folder)


def go_environment(folder: Path) -> None:
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    binary = folder.parent / "files-go"
    subprocess.run(
        ["go", "build", "-o", binary, PROGRAMS / "files.go"], check=True, env=environment, timeout=300
    )


def static_between(folder: Path) -> None:
    some_files(folder)
    built("gcc", "-static", "-o", "../between", str(PROGRAMS / "between.c"))(folder)


MIXED = """
for i in 1 2 3; do cat tree/sub-1/file-7.txt > a$i.txt; ../between cat tree/sub-0/file-3.txt > b$i.txt; done
../between ../between sh -c 'echo words > c.txt; ../between ../absent; cat c.txt'
../absent; exec ../between cat tree/sub-0/file-0.txt > d.txt
"""


PROGRAM = {
    "cp": Program(["cp", "-r", "tree", "copy"], prepare=some_files),
    "dd": Program(
        ["dd", "if=tree/sub-1/file-7.txt", "of=out.bin", "bs=129", "seek=3", "status=none"],
        prepare=some_files,
    ),
    "sort": Program(
        ["sort", "-o", "sorted.txt", "tree/sub-0/file-3.txt"], prepare=some_files, everything=False
    ),
    "tar": Program(["tar", "cf", "tree.tar", "tree"], needs=("tar",), prepare=some_files),
    "grep": Program(["grep", "-rc", "z", "tree"], needs=("grep",), prepare=some_files),
    "git": Program(
        ["sh", "-c", f"{GIT} init -q . && {GIT} add tree && {GIT} commit -qm first"],
        needs=("git",),
        prepare=some_files,
        everything=False,
    ),
    "sqlite": Program([sys.executable, "-S", "-c", SQLITE]),
    "gcc": Program(
        ["gcc", "-o", "hello", "hello.c"], needs=("gcc",), prepare=source_and_binary, everything=False
    ),
    "python": Program([sys.executable, "-S", str(PROGRAMS / "mixture.py")], everything=False),
    "static": Program(
        ["../hello-static"],
        needs=("gcc",),
        prepare=built("gcc", "-static", "-o", "../hello-static", str(PROGRAMS / "hello.c")),
    ),
    "go": Program(["../files-go"], needs=("go",), prepare=go_environment, everything=False),
    "static between dynamic": Program(["sh", "-c", MIXED], needs=("gcc",), prepare=static_between),
    "go between dynamic": Program(
        ["sh", "-c", "echo words > a.txt; ../files-go; cat a.txt gone.txt > b.txt"],
        needs=("go",),
        prepare=go_environment,
        everything=False,
    ),
    "shell": Program(
        ["sh", "-c", "for i in 1 2 3; do cat tree/sub-1/*.txt > all-$i.txt; done; ls absent tree"],
        prepare=some_files,
    ),
    "fio": Program(
        [
            "fio",
            "--name=a",
            "--rw=randrw",
            "--size=256k",
            "--bs=4k",
            "--ioengine=psync",
            "--randseed=7",
            "--filename=fio.dat",
            "--thread",
            "--output=/dev/null",
        ],
        needs=("fio",),
        everything=False,
    ),
    "mpi": Program(
        [*MPIRUN, "../ranks"],
        needs=("mpirun", "mpicc"),
        everything=False,
        prepare=built("mpicc", "-o", "../ranks", str(PROGRAMS / "ranks.c")),
    ),
}


def iodock(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "iodock", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, cwd=cwd, stdin=subprocess.DEVNULL, check=False
    )


@cache
def show(store: Path, analysis: str, *options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = shown(store, analysis, *options)["rows"]
    return rows


def losses(store: Path) -> dict[str, int]:
    manifest = json.loads((store / "manifest.json").read_text())
    return {loss["name"]: loss["count"] for loss in manifest["losses"]}


def fresh(program: Program, parent: Path) -> Path:
    """Creates an empty folder that always has the same name, so that both runs see the same paths."""
    folder = parent / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    program.prepare(folder)
    return folder


RANDOM = re.compile(r"/\.git/(objects/|t\w{6}$)|tmp_obj")
"""Names that git creates each time."""
MOVING = {"read", "write", "pread64", "pwrite64", "lseek", "readv", "writev", "copy_file_range", "sendfile"}
COUNTS = ("count", "success", "failed", "no_result", "errnos", "read_bytes", "written_bytes", "io_count")


def by_call(store: Path, recorded: set[str]) -> dict[str, Any]:
    """Returns counts by call without mmap: recordings lack mmap without a descriptor, so mmap is compared by
    file only."""
    rows = show(store, "summary", "--by", "call", "--kind", "all")
    return {row["call"]: [row[c] for c in COUNTS] for row in rows if row["call"] in recorded - {"mmap"}}


def by_file(store: Path, recorded: set[str], keep: Callable[[str], bool]) -> dict[Any, Any]:
    rows = show(store, "summary", "--by", "file,call")
    return {
        (row["file"], row["call"]): [row[c] for c in COUNTS]
        for row in rows
        if row["call"] in recorded and keep(row["file"])
    }


def accesses(store: Path, recorded: set[str], keep: Callable[[str], bool]) -> Counter[Any]:
    """Counts accesses by their properties. Includes only results that are bytes or positions, because
    descriptors depend on the order of threads."""
    names = ("file", "call", "side", "offset_bytes", "requested_bytes", "errno")
    return Counter(
        (*(row[n] for n in names), row["result"] if row["call"] in MOVING else None)
        for row in show(store, "accesses")
        if row["call"] in recorded and keep(row["file"])
    )


@pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed: nothing to compare with")
@pytest.mark.parametrize("name", PROGRAM)
def test_recording_agrees_with_strace(name: str, tmp_path: Path) -> None:
    from iodock import _native

    program = PROGRAM[name]
    for tool in program.needs:
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    recorded = set(_native.recorded_calls())
    traced, complete, chosen, logged = (
        tmp_path / f"{name}.iodock" for name in ("traced", "complete", "chosen", "logged")
    )
    ways = {traced: ["--backend", "ptrace"], complete: ["--backend", "rewrite", "--complete"], chosen: []}
    statuses = []
    for store, way in ways.items():
        folder = fresh(program, tmp_path)
        done = iodock("record", "--quiet", *way, "-o", str(store), "--", *program.command, cwd=folder)
        statuses.append(done.returncode)
        assert "error:" not in done.stderr, done.stderr
    folder = fresh(program, tmp_path)
    log = tmp_path / "log"
    strace = ["strace", "-f", "-ttt", "-T", "-o", str(log), *program.command]
    alone = subprocess.run(
        strace, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=300, check=False
    )
    assert statuses == [alone.returncode] * 3
    done = iodock("import", str(log), "-o", str(logged), "--cwd", str(folder), "--quiet")
    assert done.returncode == 0, done.stderr

    assert not {"unreached-programs", "unknown-parent"} & losses(chosen).keys()

    def mine(file: str) -> bool:
        return file.startswith(str(folder)) and not RANDOM.search(file)

    for store in ways:
        assert by_file(store, recorded, mine) == by_file(logged, recorded, mine), store
        assert accesses(store, recorded, mine) == accesses(logged, recorded, mine), store
    if program.everything:
        # A recording knows the names of inherited descriptors, and a log does not.
        inherited = {"/dev/null"}

        def named(file: str) -> bool:
            return file not in inherited and not file.startswith("/proc/")

        # Without --complete, a recording lacks the first calls of the dynamic linker. grep reads
        # /proc/self/maps, in which the recorder's library appears.
        assert by_call(traced, recorded) == by_call(logged, recorded)
        for store in (traced, complete):
            assert by_file(store, recorded, named) == by_file(logged, recorded, named), store
            assert "before-load" not in losses(store)
