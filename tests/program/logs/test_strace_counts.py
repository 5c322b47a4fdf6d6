"""Tests tables of strace -c: analyses of a store of counts, and analyses that refuse it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from in_process import printed, shown
from iodock.cli.run import run
from iodock.program.capture import import_logs
from iodock.program.run import open as open_run
from iodock.shared.errors import RequestError
from places import FIXTURES

TABLES = FIXTURES / "strace-c"
PROGRAM = """
import os, sys
for at in range(7):
    with open(sys.argv[1], "ab", 0) as file:
        file.write(b"x" * 100)
    try:
        os.stat(sys.argv[1] + ".none")
    except OSError:
        pass
if os.fork():
    os.wait()
"""
needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")


def counts(tmp_path: Path, *tables: Path, form: str | None = None) -> Path:
    return import_logs([str(table) for table in tables], tmp_path / "run.iodock", format=form).store


def by_call(store: Path, *options: str) -> dict[str, dict[str, object]]:
    return {row["call"]: row for row in shown(store, "summary", *options)["rows"]}


def test_a_store_of_counts_is_replaced(tmp_path: Path) -> None:
    store = counts(tmp_path, TABLES / "default.table")
    import_logs([str(TABLES / "columns.table")], store, force=True)
    assert "vfork" in by_call(store)
    assert not [path for path in tmp_path.iterdir() if path != store]


def test_impossible_numbers_are_unknown(tmp_path: Path) -> None:
    table = tmp_path / "run.table"
    row = "  0.00    0.000000           0 9223372036854775807           "
    rule = " ".join("-" * 11 for _ in range(6))
    head = f"% time     seconds  usecs/call     calls    errors syscall\n{rule}\n"
    table.write_text(head + row + "read\n" + row + "write\n")
    store = counts(tmp_path, table)
    assert {name: one["count"] for name, one in by_call(store).items()} == {"read": None, "write": None}
    losses = {loss["name"]: loss["count"] for loss in shown(store, "summary")["losses"]}
    assert losses["incredible-numbers"] == 2


def test_the_summary_equals_the_table_of_strace(tmp_path: Path) -> None:
    store = counts(tmp_path, TABLES / "default.table")
    found = shown(store, "summary")
    rows = {row["call"]: row for row in found["rows"]}
    assert len(rows) == 36
    openat = rows["openat"]
    assert (openat["count"], openat["success"], openat["failed"]) == (71, 41, 30)
    assert (openat["sys_cpu_time_ns"], openat["total_time_ns"]) == (73_000, None)
    # Values that the table lacks are unknown, never 0.
    unknown = ("no_result", "read_bytes", "written_bytes", "io_count", "mean_size_bytes")
    assert {name: openat[name] for name in unknown} == dict.fromkeys(unknown)
    total = found["totals"]["total"]
    assert (total["count"], total["failed"], total["read_bytes"]) == (354, 60, None)
    assert any("counts by call" in note for note in found["notes"])
    assert any("strace-c-w" in note for note in found["notes"])
    assert {loss["name"]: loss["count"] for loss in found["losses"]} == {"unreadable-lines": 1}
    families = {row["family"]: row for row in shown(store, "summary", "--by", "family")["rows"]}
    assert families["stat"]["count"] == 66 + 1
    top = shown(store, "summary", "--top", "3")["totals"]
    assert (top["shown"], top["of"]) == (3, 36)
    assert top["other"]["count"] == 354 - sum(row["count"] for row in found["rows"][:3])


def test_wall_clock_times_of_a_table_are_read(tmp_path: Path) -> None:
    store = counts(tmp_path, TABLES / "default.table", form="strace-c-w")
    found = shown(store, "summary")
    first = found["rows"][0]
    assert (first["call"], first["total_time_ns"], first["mean_time_ns"]) == ("wait4", 850_000, 212_500.0)
    assert (first["sys_cpu_time_ns"], first["min_time_ns"]) == (None, None)
    assert not any("strace-c-w" in note for note in found["notes"])


def test_several_tables_form_one_run(tmp_path: Path) -> None:
    both = by_call(counts(tmp_path, TABLES / "default.table", TABLES / "columns.table"))
    assert (both["openat"]["count"], both["openat"]["failed"]) == (142, 60)
    # The second table does not contain the system time.
    assert both["openat"]["sys_cpu_time_ns"] is None


@pytest.mark.parametrize(
    "words",
    [
        ("show", "overview"),
        ("show", "files"),
        ("show", "errors"),
        ("show", "timeline"),
        ("show", "accesses"),
        ("show", "processes"),
        ("diagnose",),
        ("report", "-o", "-"),
        ("bundle",),
    ],
    ids="-".join,
)
def test_analyses_that_need_calls_refuse_counts(
    tmp_path: Path, words: tuple[str, ...], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = counts(tmp_path, TABLES / "default.table")
    verb, options = (
        words[:2] if words[0] == "show" else words[:1],
        words[2:] if words[0] == "show" else words[1:],
    )
    assert run([*verb, str(store), *options]) == 2
    said = capfd.readouterr().err
    assert "counts by call only" in said and "iodock show summary" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.iodock"]


@pytest.mark.parametrize("options", [{"by": ["file"]}, {"by": ["pid"]}, {"file": ["/x"]}, {"failed": True}])
def test_counts_cannot_be_filtered_by_file_or_process(tmp_path: Path, options: dict[str, object]) -> None:
    with open_run(counts(tmp_path, TABLES / "default.table")) as opened:
        with pytest.raises(RequestError, match="can't be divided"):
            opened.show("summary", **options)
        assert len(opened.show("summary", kind=["all"])) == 36
        (row,) = opened.query("SELECT sum(calls) AS n, count(time_ns) AS timed FROM call_totals").to_pylist()
        assert (row["n"], row["timed"]) == (354, 0)
        with pytest.raises(RequestError, match="counts by call only"):
            opened.diagnose()


@pytest.mark.parametrize("form", ["table", "csv", "json", "svg"])
def test_every_format_shows_counts(tmp_path: Path, form: str, capfd: pytest.CaptureFixture[str]) -> None:
    store = counts(tmp_path, TABLES / "default.table")
    assert run(["show", "summary", str(store), "--format", form, "-o", str(tmp_path / "out")]) == 0
    assert b"openat" in (tmp_path / "out").read_bytes()


def test_the_title_of_counts_does_not_mention_files(tmp_path: Path) -> None:
    store = counts(tmp_path, TABLES / "default.table")
    assert printed("show", "summary", store).startswith("Calls by call\n")


def test_the_import_reports_that_the_store_has_counts_only(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "run.iodock"
    assert run(["import", str(TABLES / "default.table"), "-o", str(store)]) == 0
    assert "strace-c: counts of 354 calls in " in capfd.readouterr().err


def test_a_log_and_a_table_cannot_be_merged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("7 close(3) = 0\n7 close(4) = 0\n")
    with pytest.raises(RequestError, match="don't make one run"):
        counts(tmp_path, TABLES / "default.table", log)


def traced(tmp_path: Path, *options: str) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    log = tmp_path / f"log{len(list(tmp_path.iterdir()))}"
    command = ["strace", "-f", *options, "-o", log, sys.executable, "-S", "-B", "-E"]
    subprocess.run(
        [*command, tmp_path / "program.py", tmp_path / "file"], check=True, stderr=subprocess.DEVNULL
    )
    return log


# Calls that never return, or whose number depends on the order of two processes or on the use of memory.
OF_CHANCE = {"exit_group", "futex", "brk", "mmap", "munmap", "rt_sigreturn", "wait4", "getrandom"}


@needs_strace
@pytest.mark.parametrize(
    "options", [("-c",), ("-c", "-w"), ("-c", "-U", "name,calls,errors"), ("-c", "-S", "calls")]
)
def test_counts_equal_those_of_a_log_of_the_same_program(tmp_path: Path, options: tuple[str, ...]) -> None:
    table = by_call(counts(tmp_path, traced(tmp_path, *options)))
    log = traced(tmp_path, "-ttt", "-T")
    of_log = by_call(import_logs([str(log)], tmp_path / "log.iodock").store, "--kind", "all")

    def pairs(rows: dict[str, dict[str, object]]) -> dict[str, tuple[object, object]]:
        return {name: (row["count"], row["failed"]) for name, row in rows.items() if name not in OF_CHANCE}

    assert pairs(table) == pairs(of_log)
    assert table["write"]["count"] == 7


@needs_strace
def test_a_table_after_its_log_is_skipped(tmp_path: Path) -> None:
    log = traced(tmp_path, "-ttt", "-T", "-C", "-U", "name,calls,errors,max-time")
    text = log.read_text()
    at = text.index("syscall  ")
    (tmp_path / "table").write_text(text[at:])
    store = import_logs([str(log)], tmp_path / "log.iodock").store
    manifest = json.loads((store / "manifest.json").read_text())
    assert [loss["name"] for loss in manifest["losses"] if loss["name"] == "unreadable-lines"] == []
    of_log = by_call(store, "--kind", "all")
    table = by_call(counts(tmp_path, tmp_path / "table"))
    counted = {name: row["count"] for name, row in table.items()}
    assert counted == {
        name: row["count"] - row["no_result"]
        for name, row in of_log.items()
        if row["count"] > row["no_result"]
    }
