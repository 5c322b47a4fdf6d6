"""Runs every query in documents and help, and compares it with the matching `iodock show`."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import iodock
from iodock.cli.query import EXAMPLES
from iodock.program.run import Run
from places import FIXTURES, ROOT

# Calls with two descriptors in all forms: names; copies between files, into a pipe and within one file;
# failures; and completions of several requests by one call, in two threads with interleaved lines.
REQUESTS = [("PREAD", 3, "0x5000", 4096), ("PWRITE", 4, '"x"...', 512), ("PREAD", 3, "0x7000", 100)]
SUBMITTED = ", ".join(
    f"{{aio_data={key:#x}, aio_lio_opcode=IOCB_CMD_{way}, aio_fildes={fd}, aio_buf={memory}, "
    f"aio_nbytes={size}, aio_offset=0}}"
    for key, (way, fd, memory, size) in enumerate(REQUESTS, 1)
)
COMPLETED = ", ".join(
    f"{{data={key:#x}, obj=0x6000, res={size}, res2=0}}" for key, (*_, size) in enumerate(REQUESTS, 1)
)
LOG = rf"""
100 1700000000.000100 execve("/bin/x", ["x"], 0x7ffc /* 1 vars */) = 0 <0.000005>
100 1700000000.001000 openat(AT_FDCWD, "a", O_RDONLY) = 3 <0.000100>
100 1700000000.002000 openat(AT_FDCWD, "b", O_RDWR|O_CREAT, 0600) = 4 <0.000100>
100 1700000000.003000 pipe2([5, 6], 0) = 0 <0.000010>
100 1700000000.004000 rename("a", "c") = 0 <0.000010>
101 1700000000.004001 rename("x", "y") = -1 ENOENT (No such file or directory) <0.000010>
100 1700000000.005000 rename("c", "a") = 0 <0.000010>
100 1700000000.006000 link("a", "d") = 0 <0.000010>
100 1700000000.007000 link("a", "a") = -1 EEXIST (File exists) <0.000010>
100 1700000000.010000 sendfile(4, 3, NULL, 1000) = 1000 <0.000020>
101 1700000000.010001 sendfile(4, 3, [0] => [500], 500) = 500 <0.000020>
100 1700000000.011000 copy_file_range(3, [0], 4, [0], 700, 0) = 700 <0.000020>
100 1700000000.012000 copy_file_range(4, [0], 4, [4096], 300, 0) = 300 <0.000020>
100 1700000000.013000 copy_file_range(4, [0], 3, [0], 300, 0) = -1 EBADF (Bad file descriptor) <0.000020>
100 1700000000.014000 splice(3, [0], 6, NULL, 200, 0) = 200 <0.000020>
100 1700000000.015000 splice(5, NULL, 4, [0], 200, 0) = 200 <0.000020>
100 1700000000.016000 tee(5, 6, 50, 0) = 50 <0.000020>
100 1700000000.020000 io_setup(8, [0x7f0000000000]) = 0 <0.000010>
100 1700000000.021000 io_submit(0x7f0000000000, 3, [{SUBMITTED}]) = 3 <0.000010>
100 1700000000.022000 io_getevents(0x7f0000000000, 3, 3, [{COMPLETED}], NULL) = 3 <0.000020>
100 1700000000.030000 read(3, ""..., 4096) = 96 <0.000010>
100 1700000000.031000 write(4, "x"..., 77) = 77 <0.000010>
100 1700000000.032000 write(1, "x"..., 7) = 7 <0.000010>
100 1700000000.033000 brk(NULL) = 0x55 <0.000001>
100 1700000000.040000 exit_group(0) = ?
"""
TWO_ENDED = {"rename": 3, "link": 2, "sendfile": 2, "copy_file_range": 3, "splice": 2, "tee": 1}

# Query -> arguments of the summary that must agree with it; None: the query counts nothing.
MATCHING: dict[str, dict[str, Any] | None] = {
    "SELECT call, count(*) AS calls FROM calls_seen GROUP BY call ORDER BY calls DESC": {"kind": ["all"]},
    "SELECT call, count(*) FROM calls_seen GROUP BY call ORDER BY 2 DESC": {"kind": ["all"]},
    "SELECT call, sum(read_bytes) AS read_bytes, sum(written_bytes) AS written_bytes FROM calls_seen "
    "GROUP BY call": {"kind": ["all"]},
    "SELECT call, count(*) AS calls, sum(dur) AS total_time_ns FROM calls_seen WHERE by_path "
    "GROUP BY call": {},
    "SELECT file, call, count(*) FILTER (WHERE NOT is_again) AS calls, sum(bytes) AS bytes FROM call_ends "
    "GROUP BY file, call": {"kind": ["all"], "by": ["file", "call"]},
    "SELECT file, sum(bytes) AS read_bytes FROM call_ends WHERE direction = 'read' GROUP BY file": {
        "kind": ["all"],
        "by": ["file"],
    },
    "SELECT count(*) FROM calls_seen": {"kind": ["all"], "by": ["interface"]},
    "SELECT * FROM files": None,
    "SELECT * FROM calls_seen JOIN 'names.csv' n ON n.pid = calls_seen.pid": None,
    "DESCRIBE calls_seen": None,
}
# Queries for stores of counters (Darshan) -> number of rows, from PyDarshan's records and bins; None: not
# checked.
PROFILED = {
    "SELECT f.name, p.interface, p.written_bytes FROM profiles p JOIN files f USING (file_id)": 5,
    "SELECT * FROM histograms": None,
    "SELECT quantity, low, high, sum(count) FROM histograms GROUP BY ALL ORDER BY ALL": None,
}
_NAMED = {"calls": "count", "count_star()": "count"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documented")
    (folder / "run.log").write_text(LOG.lstrip())
    from iodock.cli.run import run

    assert (
        run(["import", str(folder / "run.log"), "-o", str(folder / "run.iodock"), "--cwd", "/w", "-q"]) == 0
    )
    return folder / "run.iodock"


@pytest.fixture
def opened(store: Path) -> Run:
    return iodock.open(store)


def documented() -> set[str]:
    """Returns the queries in documents and in help."""
    found = set()
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.strip().startswith("iodock query "):
                words = [word for word in shlex.split(line, comments=True) if word != "--unsafe"]
                found.update(words[3:4] if words[3:4] != ["[OPTIONS]"] else [])
            found.update(re.findall(r"""run\.query\("([^"]+)"\)""", line))
    return found | {shlex.split(example)[3] for example in EXAMPLES}


def test_every_documented_query_is_tested() -> None:
    assert documented() == {*MATCHING, *PROFILED}


@pytest.mark.parametrize("sql", PROFILED)
def test_a_documented_query_of_counters_runs(tmp_path: Path, sql: str) -> None:
    from iodock.program.capture import import_logs

    log = FIXTURES / "darshan" / "ior-hdf5.darshan"
    found = iodock.open(import_logs([str(log)], tmp_path / "job.iodock").store).query(sql).to_pylist()
    if PROFILED[sql] is not None:
        assert len(found) == PROFILED[sql]
        written = {row["interface"]: row["written_bytes"] for row in found}
        assert written["posix"] >= written["mpi-io"] > 0
    else:
        assert {row["quantity"] for row in found} >= {"read-size", "write-size"}
        assert all(row["high"] is None or row["low"] <= row["high"] for row in found)


def said(run: Run, arguments: dict[str, Any], names: list[str]) -> Counter[tuple[Any, ...]]:
    """Returns the summary's columns with these names, as a count of equal rows."""
    table = run.show("summary", **arguments).to_arrow().to_pylist()
    for row in table:
        row["bytes"] = (row["read_bytes"] or 0) + (row["written_bytes"] or 0) if row["io_count"] else None
    return Counter(tuple(row[_NAMED.get(name, name)] for name in names) for row in table)


@pytest.mark.parametrize("sql", sorted(sql for sql, matching in MATCHING.items() if matching is not None))
def test_a_documented_query_gives_the_result_of_show(opened: Run, mixed: Run, sql: str) -> None:
    arguments = MATCHING[sql]
    assert arguments is not None
    for run in (opened, mixed):
        answer = run.query(sql)
        names = answer.column_names
        asked = Counter(tuple(row.values()) for row in answer.to_pylist())
        shown = said(run, arguments, names)
        if "direction = 'read'" in sql:
            shown = Counter({row: n for row, n in shown.items() if row[1] is not None})
        assert sum(asked.values()) > 0
        assert asked == shown, sql


@pytest.mark.parametrize("sql", sorted(sql for sql, matching in MATCHING.items() if matching is None))
def test_a_documented_query_without_counts_runs(
    opened: Run, sql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "names.csv").write_text("pid,name\n100,one\n")
    assert opened.query(sql, unsafe="names.csv" in sql).num_rows > 0


def test_a_call_on_two_files_is_one_row(opened: Run) -> None:
    counted = opened.query("SELECT call, count(*) AS n FROM calls_seen GROUP BY call").to_pylist()
    counts = {row["call"]: row["n"] for row in counted}
    assert {name: counts[name] for name in TWO_ENDED} == TWO_ENDED
    assert counts["io_getevents"] == 1
    ends = opened.query("SELECT call, count(*) AS n FROM call_ends GROUP BY call").to_pylist()
    counts = {row["call"]: row["n"] for row in ends}
    assert {name: counts[name] for name in TWO_ENDED} == {name: 2 * n for name, n in TWO_ENDED.items()}
    assert counts["io_getevents"] == 3


def test_the_row_of_a_copy_has_both_names_and_all_bytes(opened: Run) -> None:
    columns = "call, file, other_file, direction, bytes, read_bytes, written_bytes, result, errno"
    found = opened.query(
        f"SELECT {columns} FROM calls_seen "
        "WHERE call IN ('rename', 'splice', 'io_getevents', 'tee') ORDER BY ts"
    ).to_pylist()
    rows = [tuple(row.values()) for row in found]
    assert rows == [
        ("rename", "/w/a", "/w/c", None, None, None, None, 0, None),
        ("rename", "/w/x", "/w/y", None, None, None, None, -1, "ENOENT"),
        ("rename", "/w/c", "/w/a", None, None, None, None, 0, None),
        ("splice", "/w/a", "pipe", "both", 400, 200, 200, 200, None),
        ("splice", "pipe", "/w/b", "both", 400, 200, 200, 200, None),
        ("tee", "pipe", "pipe", "both", 100, 50, 50, 50, None),
        ("io_getevents", "/w/a", "/w/a", "both", 4708, 4196, 512, 3, None),
    ]


def test_views_have_their_documented_columns(opened: Run) -> None:
    from iodock.program.store import VIEWS

    for view in VIEWS:
        found = opened.query(f"DESCRIBE {view.name}").to_pylist()
        assert [row["column_name"] for row in found] == [column.name for column in view.columns]
        assert all(column.doc for column in view.columns)
