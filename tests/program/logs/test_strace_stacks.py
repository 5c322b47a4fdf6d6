"""Tests stacks of `strace -k`: the line of each call, functions, modules, and the stacks themselves."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from in_process import asked, shown
from iodock.program.capture import import_logs
from iodock.program.store import Store
from iodock.program.store.anonymous import anonymous_copy
from marked import CPLUSPLUS, C, built, marks, share_in_chain

pytestmark = pytest.mark.skipif(
    shutil.which("strace") is None or shutil.which("gcc") is None, reason="needs strace and gcc"
)


def traced(folder: Path, program: Path) -> Path:
    log = folder / "log"
    subprocess.run(
        ["strace", "-k", "-f", "-ttt", "-T", "-o", log, program, folder / "out"],
        check=True,
        capture_output=True,
        timeout=120,
    )
    if " > " not in log.read_text(errors="replace"):
        pytest.skip("this strace has no stacks")
    return import_logs([str(log)], folder / "run.iodock").store


@pytest.mark.parametrize("options", [("-O2", "-g"), ("-O0", "-g"), ("-O2", "-g", "-fno-omit-frame-pointer")])
def test_the_marked_lines_of_a_c_program_are_in_the_stacks(tmp_path: Path, options: tuple[str, ...]) -> None:
    with Store.open(traced(tmp_path, built(tmp_path, C, *options))) as store:
        shares = {call: share_in_chain(store, call, line) for call, line in marks(C).items()}
    assert shares == dict.fromkeys(marks(C), 1.0)


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.parametrize("options", [("-O2", "-g"), ("-O0", "-g")])
def test_the_marked_lines_of_a_cpp_program_are_the_call_sites(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    store = traced(tmp_path, built(tmp_path, CPLUSPLUS, *options, name="marked.cc"))
    for call, line in marks(CPLUSPLUS).items():
        rows = shown(store, "summary", "--by", "line", "--call", call, "--file", "*/out")["rows"]
        assert rows[0]["line"] == f"marked.cc:{line}", (call, rows)


def test_the_summary_can_be_grouped_by_line_function_and_module(tmp_path: Path) -> None:
    program = built(tmp_path, C, "-O2", "-g")
    store = traced(tmp_path, program)
    line = f"marked.c:{marks(C)['lseek']}"
    (row,) = shown(store, "summary", "--by", "line,function,module", "--call", "lseek")["rows"]
    assert (row["line"], row["function"], row["module"]) == (line, "seek_back", str(program))
    assert row["count"] == 20
    (stack,) = shown(store, "stacks", "--call", "lseek")["rows"]
    assert (stack["line"], stack["count"]) == (line, 20)
    assert f"seek_back {line}" in stack["frames"] and stack["frames"][0].startswith(("lseek", "__lseek"))
    (row,) = shown(store, "summary", "--by", "stack", "--call", "lseek")["rows"]
    assert "seek_back < main" in row["stack"]


def test_changed_programs_give_no_source_lines(tmp_path: Path) -> None:
    program = built(tmp_path, C, "-O2", "-g")
    log = tmp_path / "log"
    traced(tmp_path, program)
    built(tmp_path, C.replace("static int data;", "int data; int main2(void) { return data; }"), "-O0", "-g")
    store = import_logs([str(log)], tmp_path / "again.iodock").store
    rows = shown(store, "summary", "--by", "line,function", "--call", "lseek")
    assert {(row["line"], row["function"]) for row in rows["rows"]} == {("seek_back", "seek_back")}
    assert "other-modules" in {loss["name"] for loss in rows["losses"]}


def test_without_debug_information_the_function_name_is_used(tmp_path: Path) -> None:
    store = traced(tmp_path, built(tmp_path, C, "-O2"))
    rows = shown(store, "summary", "--by", "line,function", "--call", "lseek")["rows"]
    assert [(row["line"], row["function"]) for row in rows] == [("seek_back", "seek_back")]


def test_a_store_without_stacks_names_the_option_to_record_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('1 read(3, "x", 1) = 1\n')
    store = import_logs([str(log)], tmp_path / "plain.iodock").store
    status, _, said = asked("show", "summary", store, "--by", "line")
    assert status != 0 and "strace -k" in said, said
    found = shown(store, "stacks", "--kind", "all")
    assert [(row["line"], row["count"], row["frames"]) for row in found["rows"]] == [(None, 1, [])]
    assert "--stacks" in " ".join(found["notes"])


def test_functions_of_missing_programs_are_named_by_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    frames = " > /nowhere/a.out(step+0x39) [0x1259]\n > /nowhere/b.out() [0x20]\n"
    log.write_text(f'1 write(1, "x", 1) = 1\n{frames}1 write(1, "x", 1) = 1\n > /nowhere/b.out() [0x20]\n')
    store = import_logs([str(log)], tmp_path / "run.iodock").store
    found = shown(store, "summary", "--by", "line,module", "--kind", "all")
    rows = {(row["line"], row["module"]) for row in found["rows"]}
    assert rows == {("step", "/nowhere/a.out"), ("b.out+0x20", "/nowhere/b.out")}
    assert {loss["name"]: loss["count"] for loss in found["losses"]}["other-modules"] == 2


def test_an_anonymous_copy_contains_no_functions_and_lines(tmp_path: Path) -> None:
    store = traced(tmp_path, built(tmp_path, C, "-O2", "-g"))
    with Store.open(anonymous_copy(store, tmp_path / "anonymous")) as copy:
        (told,) = copy.rows("SELECT count(*) AS symbols, count(line) AS lines FROM symbols")
        functions = {row["function"] for row in copy.rows("SELECT DISTINCT function FROM symbols")}
        modules = {row["module"] for row in copy.rows("SELECT DISTINCT module FROM sites")}
    assert told["symbols"] > 0 and told["lines"] == 0
    assert "seek_back" not in functions and not any("marked" in module for module in modules)
