"""Tests iodock diff, which shows what changed between two runs, by file and by finding."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from diff_stores import ENGLISH, rows, run, said, seconds, written
from in_process import iodock
from iodock.program.comparison import compare
from iodock.program.comparison.data import Sureness
from iodock.program.findings import Finding
from iodock.program.views.diff_html import diff_html
from iodock.program.views.diff_json import diff_json
from iodock.program.views.diff_text import diff_text
from iodock.shared.sentences import say
from strace_log import Log
from synthetic import event_row, file_row, process_row, write_store


def test_gains_and_losses_are_shown_per_file(kyoto: tuple[str, str]) -> None:
    found = compare([kyoto[0]], [kyoto[1]])
    assert say(found.headline, ENGLISH).startswith("Slower: 3,120 s -> 3,480 s, 12 % more")
    assert "Most of the difference is outside of I/O" in " ".join(
        say(one, ENGLISH) for one in found.sentences
    )
    assert [row.name for row in found.faster.rows] == ["/data/catalogue.csv"]
    assert [row.name for row in found.slower.rows] == ["/data/update.log"]
    by_file = rows(found)
    assert seconds(by_file["/data/catalogue.csv"]["total_time_ns"]) == pytest.approx((13.5, 3.3), abs=0.01)
    assert seconds(by_file["/data/update.log"]["total_time_ns"]) == pytest.approx((21.6, 37.9), abs=0.01)
    writes = found.faster.rows[0].calls[0]
    assert (writes.name, writes.changes["count"].before, writes.changes["count"].after) == (
        "write",
        2600,
        203,
    )
    assert found.slower.rows[0].calls[0].changes["count"].difference == 0
    assert found.slower.total.changes["total_time_ns"].difference == pytest.approx(16.3e9, abs=2e7)


def test_opposite_changes_of_calls_on_one_file_are_both_shown(tmp_path: Path) -> None:
    before, after = Log(), Log()
    for log, read_s, write_s in ((before, 5.0, 1.0), (after, 1.0, 4.9)):
        written(log, "/d/both", 10, write_s)
        log.move("read", "/d/both", 10, 100, read_s)
        written(log, "/d/small", 10, 0.5 if log is before else 0.2)
    found = compare([before.store(tmp_path / "a.iodock")], [after.store(tmp_path / "b.iodock")])
    both, small = found.faster.rows
    assert (both.name, small.name) == ("/d/both", "/d/small")
    assert {row.name: row.changes["total_time_ns"].difference for row in both.calls} == {
        "read": pytest.approx(-4e9),
        "write": pytest.approx(3.9e9),
    }


def test_the_same_store_twice_shows_no_change(kyoto: tuple[str, str]) -> None:
    found = compare([kyoto[0]], [kyoto[0]], every_file=True)
    assert say(found.headline, ENGLISH) == "As fast as before: 3,120 s."
    assert (found.faster.of, found.slower.of, found.same_files) == (0, 0, 2)
    changes = [*found.totals.values(), *(one for row in found.files for one in row.changes.values())]
    assert {one.sureness for one in changes} <= {Sureness.SAME, Sureness.UNKNOWN}
    assert {one.state for one in found.findings} <= {"still"}
    assert not [one for one in found.remarks if one.kind != "losses"]
    assert "No file's calls changed." in diff_text(found, ENGLISH, False)


NAMES = [
    ("/w/out.4711.dat", "/w/out.4898.dat", "star"),
    ("/w/run-2026-01-31/x", "/w/run-2026-02-01/x", "star"),
    ("/w/rank0012.log", "/w/rank0007.log", "star"),
    ("/tmp/tmpab3_x9qz/part", "/tmp/tmpq0w_ee1r/part", "star"),
    ("/scratch/stage.Xy7Kq2", "/scratch/stage.aB0pLm", "star"),
    ("/w/3f2504e0-4f89-11d3-9a0c-0305e82c3301.h5", "/w/6ba7b810-9dad-11d1-80b4-00c04fd430c8.h5", "star"),
    (
        "/w/object-9fceb02d0ae598e95dc970b74767f19372d61af8",
        "/w/object-0123abcd0ae598e95dc970b74767f193",
        "star",
    ),
    ("/home/u/first/sub/in.txt", "/home/u/second/sub/in.txt", "place"),
    ("/w/same", "/w/same", "name"),
]


def test_files_are_matched_without_the_varying_part_of_their_name(tmp_path: Path) -> None:
    before, after = Log(pid=4711), Log(pid=4898)
    for number, (first, second, _) in enumerate(NAMES):
        written(before, first, 2, 1.0 + number)
        written(after, second, 2, 2.0 + 2 * number)
    stores = (
        before.store(tmp_path / "a.iodock", ["/home/u/first"]),
        after.store(tmp_path / "b.iodock", ["/home/u/second"]),
    )
    found = compare([stores[0]], [stores[1]])
    by_time = {round(seconds(row.changes["total_time_ns"])[0]): row for row in found.slower.rows}
    assert not found.faster.rows
    for number, (_, _, matched) in enumerate(NAMES):
        row = by_time[1 + number]
        assert row.matched == matched, row.name
        assert seconds(row.changes["total_time_ns"])[1] == pytest.approx(2 + 2 * number, abs=1e-3)


def test_equal_names_are_matched_before_patterns(tmp_path: Path) -> None:
    before, after = Log(), Log()
    for number in range(3):
        written(before, f"/w/part.{number}", 2, 1.0)
    for number in range(5):
        written(after, f"/w/part.{number}", 2, 2.0)
    stores = [before.store(tmp_path / "a.iodock")], [after.store(tmp_path / "b.iodock")]
    found = compare(*stores, by_pattern=False)
    shown = {row.name: (row.matched, row.files) for row in found.slower.rows}
    assert shown == {
        "/w/part.0": ("name", (1, 1)),
        "/w/part.1": ("name", (1, 1)),
        "/w/part.2": ("name", (1, 1)),
        "/w/part.*": ("after", (0, 2)),
    }


def test_sums_equal_those_of_the_summary(kyoto: tuple[str, str]) -> None:
    """The top rows, "other" and the total must equal the sums of `show summary`, which computes them
    differently."""
    found = compare([kyoto[0]], [kyoto[1]], most_files=1)
    for path, side in zip(kyoto, ("before", "after"), strict=True):
        summary = json.loads(iodock("show", "summary", path, "--kind", "all", "--format", "json").stdout)
        wanted = {
            row["call"]: (row["count"], row["total_time_ns"] or 0)
            for row in summary["rows"]
            if row["call"] != "exit_group"
        }
        shown = {
            row.name: (getattr(row.changes["count"], side), getattr(row.changes["total_time_ns"], side))
            for row in found.calls.rows
        }
        assert shown == wanted
        assert getattr(found.totals["count"], side) == sum(count for count, _ in wanted.values())
        total = found.calls.total.changes["total_time_ns"]
        assert getattr(total, side) == sum(time for _, time in wanted.values())


def test_findings_are_listed_as_gone_new_or_remaining(tmp_path: Path) -> None:
    def small_writes(path: Path, *names: str) -> str:
        log = Log()
        for name in names:
            written(log, name, 3000, 5.0, 10)
        return log.store(path)

    before = small_writes(tmp_path / "a.iodock", "/d/old.log", "/d/kept.4711.log")
    after = small_writes(tmp_path / "b.iodock", "/d/kept.9999.log", "/d/kept2.log")
    clean = run(tmp_path / "c.iodock", wall=5.0)

    def states(first: str, second: str) -> set[tuple[str, str]]:
        found = compare([first], [second]).findings
        return {(one.finding.rule, one.state) for one in found}

    assert ("small-requests", "still") in states(before, after)
    assert ("small-requests", "gone") in states(before, clean)
    assert ("small-requests", "new") in states(clean, after)
    (gone,) = (one for one in compare([before], [clean]).findings if one.finding.rule == "small-requests")
    assert gone.cost_seconds.after == 0 and (gone.cost_seconds.before or 0) > 1
    assert isinstance(gone.finding, Finding)


def test_without_durations_numbers_of_calls_are_compared(tmp_path: Path) -> None:
    stores = []
    for name, count in (("a", 5), ("b", 50)):
        log = Log(durations=False)
        written(log, "/d/out", count, 1.0)
        stores.append(log.store(tmp_path / f"{name}.iodock"))
    found = compare([stores[0]], [stores[1]])
    assert found.time is None
    assert "No call has a duration" in said(found, "durations")
    assert rows(found)["/d/out"]["count"].difference == 45
    assert rows(found)["/d/out"]["total_time_ns"].before is None
    assert "Files with more calls" in diff_text(found, ENGLISH, False)


def test_if_one_side_lacks_durations_numbers_of_calls_are_compared(tmp_path: Path) -> None:
    stores = []
    for durations in (True, False):
        log = Log(durations=durations)
        written(log, "/d/out", 5 if durations else 50, 1.0)
        stores.append(log.store(tmp_path / f"{durations}.iodock"))
    found = compare([stores[0]], [stores[1]])
    assert found.time is None
    assert "False.iodock" in said(found, "durations")
    changed = rows(found)["/d/out"]["total_time_ns"]
    assert changed.before == pytest.approx(1e9) and changed.after is None
    for view in (diff_text(found, ENGLISH, False), diff_html(found, ENGLISH), diff_json(found, ENGLISH)):
        assert "/d/out" in view


def test_system_cpu_time_is_compared_only_with_system_cpu_time(
    kyoto: tuple[str, str], tmp_path: Path
) -> None:
    def truss(name: str, each_ns: int) -> str:
        events = [
            event_row("write", ts=10**9 * n, sys_cpu_ns=each_ns, file_id=0, result=10, bytes=10, direction=2)
            for n in range(10)
        ]
        files, tasks = [file_row(0, "/data/update.log")], [process_row(0, 100)]
        return str(write_store(tmp_path / name, events, files, tasks))

    first, second = truss("a.iodock", 5_000_000), truss("b.iodock", 8_000_000)
    found = compare([first], [second])
    assert found.time == "system-cpu"
    assert rows(found)["/data/update.log"]["total_time_ns"].difference == 30_000_000
    assert "system CPU time" in said(found, "durations")
    assert "system CPU inside calls" in diff_text(found, ENGLISH, False)
    mixed = compare([first], [kyoto[0]])
    assert mixed.time is None
    assert "can't be compared" in said(mixed, "durations")
