"""Tests the source lines of recorded calls against marked lines in C, C++ and Fortran."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from in_process import shown
from iodock.program.relations.sites import keep_callers
from iodock.program.store import Store
from marked import CPLUSPLUS, FORTRAN, C, built, marks, share_in_chain
from recorded import IODOCK, live, needs_gcc, record, run

pytestmark = [live, needs_gcc]


def recorded(folder: Path, program: Path, stacks: str = "all") -> Path:
    done = record(folder, "--backend", "rewrite", "--stacks", stacks, "--", program, folder / "out")
    assert done.returncode == 0, done.stderr
    return folder / "run.iodock"


@pytest.mark.parametrize("stacks", ["sites", "all"])
@pytest.mark.parametrize(
    "options",
    [("-O0",), ("-O2", "-fomit-frame-pointer"), ("-O2", "-fno-omit-frame-pointer"), ("-O3", "-march=native")],
    ids=" ".join,
)
def test_the_marked_lines_of_a_c_program_are_in_the_stacks(
    tmp_path: Path, options: tuple[str, ...], stacks: str
) -> None:
    program = built(tmp_path, C, "-g", *options)
    with Store.open(recorded(tmp_path, program, stacks)) as store:
        shares = {call: share_in_chain(store, call, line) for call, line in marks(C).items()}
    assert shares == dict.fromkeys(marks(C), 1.0)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("options", [("-O2",), ("-O0",)], ids=" ".join)
def test_the_marked_lines_of_a_cpp_program_are_the_call_sites(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    store = recorded(tmp_path, built(tmp_path, CPLUSPLUS, "-g", *options, name="marked.cc"), "sites")
    for call, line in marks(CPLUSPLUS).items():
        rows = shown(store, "summary", "--by", "line", "--call", call, "--file", "*/out")["rows"]
        assert [row["line"] for row in rows] == [f"marked.cc:{line}"], call


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="needs gfortran")
def test_the_marked_lines_of_a_fortran_program_are_the_call_sites(tmp_path: Path) -> None:
    store = recorded(tmp_path, built(tmp_path, FORTRAN, "-g", "-O2", name="marked.f90"), "sites")
    for form, line in marks(FORTRAN).items():
        rows = shown(store, "summary", "--by", "line", "--call", "write", "--file", f"*/out.{form}")["rows"]
        calls = {row["line"]: row["count"] for row in rows}
        # The line of `close` also writes, because it flushes the rest of the buffer.
        assert calls[f"marked.f90:{line}"] >= 19 and sum(calls.values()) <= calls[f"marked.f90:{line}"] + 2


def test_complete_stacks_end_at_main_or_the_thread_function(tmp_path: Path) -> None:
    store = recorded(tmp_path, built(tmp_path, C, "-g", "-O2"))
    (stack,) = shown(store, "stacks", "--call", "lseek")["rows"]
    line = marks(C)["lseek"]
    assert (stack["line"], stack["count"]) == (f"marked.c:{line}", 20)
    functions = [frame.split(" ")[0] for frame in stack["frames"]]
    assert functions[1:3] == ["seek_back", "main"] and functions[-1] == "_start"
    (stack,) = shown(store, "stacks", "--call", "pread64")["rows"]
    assert "work" in {frame.split(" ")[0] for frame in stack["frames"]}


def test_a_finding_names_the_source_line(tmp_path: Path) -> None:
    store = recorded(tmp_path, built(tmp_path, C, "-g", "-O2"), "sites")
    text = run([*IODOCK, "diagnose", store], tmp_path).stdout
    assert f"marked.c:{marks(C)['fsync']} in main" in text


HELPER = """#include <fcntl.h>
#include <unistd.h>
static __attribute__((noinline)) int put(int fd, const void *from, size_t size) {
  int written = (int)write(fd, from, size);
  return written == (int)size;
}
static __attribute__((noinline)) int head(int fd) {
  int count = 0;
  for (int i = 0; i < 400; i++) count += put(fd, &i, 4);
  return count;
}
static __attribute__((noinline)) int cells(int fd) {
  int count = 0;
  for (int i = 0; i < 1600; i++) count += put(fd, &i, 4);
  return count;
}
int main(int count, char **names) {
  int fd = open(names[1], O_CREAT | O_WRONLY, 0600);
  int done = head(fd) + cells(fd);
  close(fd);
  return count != 2 || done != 2000;
}
"""


@pytest.mark.parametrize("stacks", ["sites", "all"])
def test_a_finding_names_the_caller_of_a_helper_function(tmp_path: Path, stacks: str) -> None:
    store = recorded(tmp_path, built(tmp_path, HELPER, "-g", "-O2"), stacks)
    found = json.loads(run([*IODOCK, "diagnose", store, "--format", "json"], tmp_path).stdout)["findings"]
    (put,) = next(one for one in found if one["rule"] == "small-requests")["locations"]
    assert (put["place"], put["calls"], put["share"]) == ("marked.c:4", 2000, 1.0)
    caller = put["called_from"]
    assert (caller["place"], caller["function"], caller["line"]) == ("marked.c:14", "cells", 14)
    assert caller["share"] == 0.8


INTERRUPTED = """#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
static int file;
static __attribute__((noinline)) long get(size_t size) {
  char text[8];
  long got = pread(file, text, size, 0);
  __asm__ volatile("");
  return got + 1;
}
static __attribute__((noinline)) long one(void) { return get(1) + 1; }
static __attribute__((noinline)) long two(void) { return get(2) + 1; }
static __attribute__((noinline)) void handler(int signal) { get(3), (void)signal; }
int main(int count, char **names) {
  struct itimerval often = {{0, 50}, {0, 50}};
  file = open("/etc/passwd", O_RDONLY);
  signal(SIGALRM, handler);
  setitimer(ITIMER_REAL, &often, 0);
  for (int i = 0; i < 100000; i++) one(), one(), two(), two(), two();
  often.it_interval.tv_usec = often.it_value.tv_usec = 0;
  setitimer(ITIMER_REAL, &often, 0);
  return close(open(names[1], O_CREAT | O_WRONLY, 0600)) || count != 2;
}
"""


@pytest.mark.parametrize("stacks", ["sites", "all"])
def test_callers_that_alternate_and_interrupt_each_other_are_told_apart(tmp_path: Path, stacks: str) -> None:
    program = built(tmp_path, INTERRUPTED, "-g", "-O2", "-fno-optimize-sibling-calls")
    with Store.open(recorded(tmp_path, program, stacks)) as store:
        keep_callers(store)
        found = store.rows("""SELECT e.bytes, k.function, count(*) AS calls FROM events e
            JOIN calls c ON c.id = e.call_id LEFT JOIN stack_callers k ON k.stack_id = e.stack_id
            WHERE c.name = 'pread64' AND e.bytes BETWEEN 1 AND 3 GROUP BY 1, 2 ORDER BY 1, 2""")
    calls = {(row["bytes"], row["function"]): row["calls"] for row in found}
    # If a signal handler interrupts the recorder's own code, its calls have no call site.
    interrupting = calls.pop((3, "handler"), 0) + calls.pop((3, None), 0)
    assert interrupting > 100
    assert calls == {(1, "one"): 200_000, (2, "two"): 300_000}


def test_with_stacks_off_none_are_recorded(tmp_path: Path) -> None:
    with Store.open(recorded(tmp_path, built(tmp_path, C, "-g"), "off")) as store:
        assert store.rows("SELECT count(*) AS n FROM events WHERE stack_id IS NOT NULL") == [{"n": 0}]


@pytest.mark.parametrize("options", [("-static",), ()], ids=["static", "dynamic"])
def test_call_sites_of_static_programs_are_a_named_loss(tmp_path: Path, options: tuple[str, ...]) -> None:
    program = built(tmp_path, C, "-O2", *options)
    command = ["--backend", "rewrite", "--stacks", "sites", "--", "sh", "-c", f"{program} {tmp_path}/out; :"]
    done = record(tmp_path, *command)
    assert done.returncode == 0, done.stderr
    with Store.open(tmp_path / "run.iodock") as store:
        losses = {loss.name: loss.count for loss in store.manifest.losses}
    # The loss counts both threads.
    assert losses.get("unknown-places") == (2 if options else None)


@pytest.mark.parametrize("options", [("--light",), ("--backend", "ptrace")], ids=" ".join)
def test_sources_without_stacks_refuse_stack_analyses(tmp_path: Path, options: tuple[str, ...]) -> None:
    done = record(tmp_path, *options, "--stacks", "all", "--", "true")
    assert done.returncode != 0 and "--stacks" in done.stderr
    assert not (tmp_path / "run.iodock").exists()
