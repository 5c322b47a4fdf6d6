"""Tests `iodock symbolize`, which adds source lines that were not available when the run was recorded."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from in_process import asked, iodock, printed, shown
from iodock.program.store import Store
from marked import C, built, marks

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
LINE = f"marked.c:{marks(C)['lseek']}"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a folder with the store of a stripped program, that program, and `program`, the same with debug
    information."""
    folder = tmp_path_factory.mktemp("stripped")
    program = built(folder, C, "-O2", "-g", "-Wl,--build-id")
    shutil.copy(program, folder / "program")
    run = ["objcopy", "--strip-all", str(program)]
    subprocess.run(run, check=True, timeout=60)
    found = iodock(
        "record", "--quiet", "--stacks", "all", "-o", folder / "run.iodock", "--", program, folder / "out"
    )
    assert found.returncode == 0, found.stderr
    return folder


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    shutil.copytree(recorded / "run.iodock", tmp_path / "run.iodock")
    shutil.copy(recorded / "program", tmp_path / "program")
    return tmp_path


def lines(store: Path) -> set[str | None]:
    return {row["line"] for row in shown(store, "summary", "--by", "line")["rows"]}


def program_of(store: Path) -> tuple[Path, str]:
    """Returns the path of the recorded program and its build id."""
    with Store.open(store) as opened:
        (row,) = opened.rows("SELECT DISTINCT module, build_id FROM sites WHERE module LIKE '%marked-c'")
    return Path(row["module"]), row["build_id"]


def tells(store: Path) -> bytes:
    return (store / "symbols.parquet").read_bytes()


def test_without_program_files_the_names_are_kept(folder: Path) -> None:
    store = folder / "run.iodock"
    assert LINE not in lines(store)
    before = lines(store)
    said = printed("symbolize", store)
    assert "marked-c: no debug information. Compile with -g" in said
    assert lines(store) == before


def debug_file(folder: Path, into: Path) -> None:
    into.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["objcopy", "--only-keep-debug", str(folder / "program"), str(into)], check=True, timeout=60
    )


@pytest.mark.parametrize("layout", ["program", "below its path", "build id of it", "debug file"])
def test_program_files_are_found_in_given_folders(folder: Path, layout: str) -> None:
    store, there = folder / "run.iodock", folder / "debug"
    path, build_id = program_of(store)
    named = there / ".build-id" / build_id[:2]
    target = {
        "program": there / path.name,
        "below its path": there / str(path).lstrip("/"),
        "build id of it": named / build_id[2:],
        "debug file": named / f"{build_id[2:]}.debug",
    }[layout]
    target.parent.mkdir(parents=True)
    if layout == "debug file":
        debug_file(folder, target)
    else:
        shutil.copy(folder / "program", target)
    said = printed("symbolize", store, "--debug-dir", there)
    assert LINE in lines(store)
    assert "no debug information" not in said
    (row,) = shown(store, "stacks", "--call", "lseek")["rows"]
    assert f"seek_back {LINE}" in row["frames"]
    again = tells(store)
    printed("symbolize", store)
    assert tells(store) == again


def test_a_file_of_another_build_gives_no_lines(folder: Path) -> None:
    store, there = folder / "run.iodock", folder / "debug"
    there.mkdir()
    other = built(there, C.replace("data++", "data += 2"), "-O1", "-g", "-Wl,--build-id")
    assert other.name == program_of(store)[0].name
    printed("symbolize", store, "--debug-dir", there)
    assert LINE not in lines(store)


def test_symbolizing_keeps_checksums_and_other_tables(folder: Path) -> None:
    store = folder / "run.iodock"
    (folder / "debug").mkdir()
    shutil.move(folder / "program", folder / "debug" / program_of(store)[0].name)
    before = json.loads((store / "manifest.json").read_text())
    printed("symbolize", store, "--debug-dir", folder / "debug", "--lang", "ja")
    after = json.loads((store / "manifest.json").read_text())
    changed = {name for name, sum_ in after["checksums"].items() if before["checksums"][name] != sum_}
    assert changed == {"symbols.parquet"}
    with Store.open(store) as opened:
        (row,) = opened.rows("SELECT count(*) AS n FROM symbols")
    assert row["n"] == after["tables"]["symbols"] > before["tables"]["symbols"]
    assert not list(store.glob("*.partial*"))


def test_stores_without_stacks_are_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("1 1700000000.1 close(3) = 0 <0.1>\n")
    printed("import", tmp_path / "log", "-o", tmp_path / "log.iodock")
    status, _, said = asked("symbolize", tmp_path / "log.iodock")
    assert status != 0
    assert "does not contain the places from which its calls were made" in said
    assert asked("symbolize", folder / "run.iodock", "--debug-dir", folder / "none")[0] != 0


def test_a_library_with_a_relative_name_is_found(tmp_path: Path) -> None:
    (tmp_path / "put.c").write_text(
        "#include <unistd.h>\n"
        'void put(int file) {\n    for (int i = 0; i < 9; i++)\n        write(file, "abc", 3);\n}\n'
    )
    (tmp_path / "use.c").write_text(
        "#include <fcntl.h>\nvoid put(int);\n"
        'int main(void) {\n    put(open("out", O_WRONLY | O_CREAT, 0644));\n    return 0;\n}\n'
    )
    for command in (
        ("gcc", "-g", "-shared", "-fPIC", "put.c", "-o", "libput.so"),
        ("gcc", "-g", "use.c", "./libput.so", "-o", "use"),
    ):
        subprocess.run(command, check=True, cwd=tmp_path, timeout=60)
    store = tmp_path / "run.iodock"
    found = iodock("record", "--quiet", "--stacks", "sites", "-o", store, "--", "./use", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    rows = shown(store, "summary", "--by", "line", "--call", "write")["rows"]
    assert [(row["line"], row["count"]) for row in rows] == [("put.c:4", 9)]
