"""Compares analyses with brute force on a made-up store."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from iodock.program import analyses
from iodock.program.relations.spread import SPREAD
from iodock.program.run import Run
from iodock.program.store import Store
from made_up import PATH_KINDS, START, brute_summary, mixed_events, whole_calls, wide
from synthetic import event_row, file_row, process_row, write_store

ROWS = mixed_events()
OF_CALLS = [one.name for one in analyses.every() if not one.profiles]
KEYS = [
    ("call",),
    ("family",),
    ("class",),
    ("interface",),
    ("file",),
    ("folder",),
    ("ending",),
    ("kind",),
    ("pattern",),
    ("pid",),
    ("tid",),
    ("rank",),
    ("host",),
    ("errno",),
    ("file", "call"),
    ("folder", "errno", "pid"),
    ("kind", "class", "tid"),
]


def summary(run: Run, keys: tuple[str, ...], **arguments: Any) -> dict[tuple[Any, ...], dict[str, Any]]:
    rows = run.show("summary", by=list(keys), **arguments).to_arrow().to_pylist()
    assert len(rows) == len({tuple(row[key] for key in keys) for row in rows})
    return {tuple(row[key] for key in keys): row for row in rows}


def check(found: dict[Any, dict[str, Any]], wanted: dict[Any, dict[str, Any]]) -> None:
    assert set(found) == set(wanted)
    for key, row in wanted.items():
        mine = found[key] | {"errnos": dict(found[key]["errnos"] or ())}
        assert {name: mine[name] for name in row} == row, key


@pytest.mark.parametrize("keys", KEYS, ids=",".join)
@pytest.mark.parametrize("kind", [None, "all", "pipe,standard"])
def test_the_summary_equals_a_brute_force_computation(
    mixed: Run, keys: tuple[str, ...], kind: str | None
) -> None:
    kinds = PATH_KINDS if kind is None else set(kind.split(","))
    found = summary(mixed, keys, kind=kind.split(",") if kind else None)
    check(found, brute_summary(ROWS, keys, lambda row: kind == "all" or row["kind"] in kinds))


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (
            {"file": "/data/*.dat"},
            lambda row: row["file"] in ("/data/in1.dat", "/data/in2.dat", "/data/[odd]*name.dat"),
        ),
        ({"file": "/data/**"}, lambda row: (row["file"] or "").startswith("/data/")),
        ({"file": "/data/[odd]*name.dat"}, lambda row: row["file"] == "/data/[odd]*name.dat"),
        ({"file": "stdout"}, lambda row: row["file"] == "stdout"),
        ({"file": "結果.dat"}, lambda row: row["file"] == "/データ/結果.dat"),
        (
            {"exclude_folder": ["/data/deep", "/etc"]},
            lambda row: row["kind"] in PATH_KINDS and row["folder"] not in ("/data/deep", "/etc"),
        ),
        ({"exclude_ending": [".dat"]}, lambda row: row["kind"] in PATH_KINDS and row["ending"] != "dat"),
        (
            {"call": ["read", "rename"]},
            lambda row: row["kind"] in PATH_KINDS and row["call"] in ("read", "rename"),
        ),
        ({"call": "*read*"}, lambda row: row["kind"] in PATH_KINDS and "read" in row["call"]),
        ({"call": "class:metadata"}, lambda row: row["kind"] in PATH_KINDS and row["class"] == "metadata"),
        ({"pid": 100, "kind": "all"}, lambda row: row["pid"] == 100),
        ({"tid": [101, 200], "kind": "all"}, lambda row: row["tid"] in (101, 200)),
        ({"rank": 1, "kind": "all"}, lambda row: row["rank"] == 1),
        ({"failed": True, "kind": "all"}, lambda row: row["errno"] is not None),
        (
            {"succeeded": True, "kind": "all"},
            lambda row: row["errno"] is None and row.get("result") is not None,
        ),
        (
            {"since": 0.5, "until": "1", "kind": "all"},
            lambda row: 5 * 10**8 <= row["ts"] - ROWS_START < 10**9,
        ),
        ({"min_time": "500us", "kind": "all"}, lambda row: (row["dur"] or 0) >= 500_000),
        (
            {"user_files": True},
            lambda row: row["kind"] in PATH_KINDS and row["file"] not in ("/etc/hosts", "/usr/lib/libc.so.6"),
        ),
    ],
)
def test_filters_select_calls(mixed: Run, arguments: dict[str, Any], wanted: Any) -> None:
    for keys in (("call",), ("file", "tid")):
        check(summary(mixed, keys, **arguments), brute_summary(ROWS, keys, wanted))


ROWS_START = min(row["ts"] for row in ROWS)


@pytest.mark.parametrize("keys", [("call",), ("file",), ("folder", "call"), ("tid",)], ids=",".join)
@pytest.mark.parametrize("top", [1, 2])
def test_other_and_total_count_each_call_once(mixed: Run, keys: tuple[str, ...], top: int) -> None:
    shown = mixed.show("summary", by=list(keys), top=top, kind="all")
    everything = summary(mixed, keys, kind="all")
    assert len(shown) == top
    totals = shown.totals
    assert totals is not None and totals.other is not None
    assert (totals.shown, totals.of) == (top, len(everything))
    kept = {tuple(row[key] for key in keys) for row in shown.to_arrow().to_pylist()}
    check({(): dict(totals.total)}, brute_summary(ROWS, (), lambda row: True))
    rest = brute_summary(ROWS, (), lambda row: tuple(row[key] for key in keys) not in kept)
    check({(): dict(totals.other)}, rest)


def test_total_is_the_number_of_calls(mixed: Run) -> None:
    totals = mixed.show("summary", by="file", kind="all").totals
    assert totals is not None
    assert totals.total["count"] == sum(1 for _ in whole_calls(ROWS))


@pytest.mark.parametrize("requested", [False, True])
def test_the_sizes_analysis_counts_requests_by_size(mixed: Run, requested: bool) -> None:
    def upper(size: int) -> int:
        return size if size < 2 else 1 << (size - 1).bit_length()

    name = "requested_bytes" if requested else "bytes"
    chosen = [row for row in map(wide, ROWS) if row.get("bytes") is not None]
    ways = {1: "read", 2: "write"}
    wanted = Counter((ways[row["direction"]], upper(row[name])) for row in chosen)
    rows = mixed.show("sizes", kind="all", requested=requested).to_arrow().to_pylist()
    assert {(row["direction"], row["upper_bytes"]): row["count"] for row in rows} == wanted
    exact = mixed.show("sizes", kind="all", requested=requested, exact=True).to_arrow().to_pylist()
    wanted = Counter((ways[row["direction"]], row[name]) for row in chosen)
    assert {(row["direction"], row["upper_bytes"]): row["count"] for row in exact} == wanted


def test_bins_are_exact_up_to_the_largest_integers(tmp_path: Path) -> None:
    sizes = [size for n in range(63) for size in (2**n - 1, 2**n, 2**n + 1)] + [2**63 - 1]
    events = [
        event_row("read", ts=1, file_id=0, direction=1, requested_bytes=size, bytes=0, result=0)
        for size in sizes
    ]
    path = write_store(tmp_path / "s.iodock", events, [file_row(0, "/x")], [process_row(0, 1)])
    rows = Run(Store.open(path)).show("sizes", requested=True).to_arrow().to_pylist()
    wanted = Counter(size if size < 2 else 1 << (size - 1).bit_length() for size in sizes)
    assert {row["upper_bytes"]: row["count"] for row in rows} == wanted


@pytest.mark.parametrize("every", ["1", "0.1", "7ms"])
def test_the_timeline_has_equal_intervals(mixed: Run, every: str) -> None:
    step = {"1": 10**9, "0.1": 10**8, "7ms": 7 * 10**6}[every]
    rows = mixed.show("timeline", every=every, kind="all").to_arrow().to_pylist()
    starts = [row["ts"] for row in rows]
    assert starts == list(range(starts[0], starts[-1] + 1, step))
    assert all(start % step == 0 for start in starts)
    wanted: dict[tuple[int, str], Fraction] = defaultdict(Fraction)
    for ends in whole_calls(ROWS):
        first = wide(ends[0])
        slot = (first["ts"] + (first["dur"] or 0)) // step * step
        wanted[slot, "count"] += 1
        wanted[slot, "failed"] += first["errno"] is not None
        wanted[slot, "success"] += first["errno"] is None and first.get("result") is not None
        for end in ends:
            if end.get("bytes") is not None:
                way = "read" if end["direction"] == 1 else "write"
                wanted[slot, f"{way}_count"] += 1
            if end["direction"]:
                way = "read" if end["direction"] == 1 else "write"
                bytes_name = "read_bytes" if way == "read" else "written_bytes"
                wanted[slot, bytes_name] += end.get("bytes") or 0
                wanted[slot, f"{way}_time_ns"] += end["dur"] or 0
                for at, part in shared_out(wide(end), step):
                    wanted[at, f"spread_{bytes_name}"] += (end.get("bytes") or 0) * part
                    wanted[at, f"spread_{way}_time_ns"] += (end["dur"] or 0) * part
    for row in rows:
        for name, value in row.items():
            near = 1 if name.startswith("spread_") else 0
            assert name == "ts" or abs(value - wanted[row["ts"], name]) <= near, (row["ts"], name)
    for name in SPREAD:
        assert sum(row[name] for row in rows) == sum(v for (_, one), v in wanted.items() if one == name)


def shared_out(end: dict[str, Any], step: int) -> Iterator[tuple[int, Fraction]]:
    """Yields, for each interval that the call touches, its start and the fraction of the call inside it."""
    first, length = end["ts"], end["dur"] or 0
    if first // step == (first + length) // step:
        yield first // step * step, Fraction(1)
        return
    for at in range(first // step * step, first + length + 1, step):
        yield at, Fraction(max(0, min(first + length, at + step) - max(first, at)), length)


def test_a_long_read_is_spread_over_its_duration(tmp_path: Path) -> None:
    """iodock once showed 30 MiB in 52.8 ms as 6 GiB/s, because all bytes counted for the last interval of 5
    ms."""
    rows = [
        event_row("read", ts=1_000_000, dur=50_000_000, bytes=5 << 20, result=5 << 20, direction=1, file_id=0)
    ]
    path = write_store(tmp_path / "s.iodock", rows, [file_row(0, "/a")], [process_row(0, 1)], [])
    found = Run(Store.open(path)).show("timeline", every="5ms").to_arrow().to_pylist()
    assert max(row["spread_read_bytes"] for row in found) <= (5 << 20) // 10 + 1
    assert sum(row["spread_read_bytes"] for row in found) == 5 << 20
    assert [row["read_bytes"] for row in found] == [0] * 10 + [5 << 20]
    assert [row["read_count"] for row in found] == [0] * 10 + [1]


def test_the_default_interval_fits_the_run(tmp_path: Path) -> None:
    rows = [event_row("read", ts=at * 10_000_000, dur=0, result=0, file_id=0) for at in range(76)]
    path = write_store(tmp_path / "s.iodock", rows, [file_row(0, "/a")], [process_row(0, 1)], [])
    shown = Run(Store.open(path)).show("timeline").to_arrow()
    assert 20 <= shown.num_rows <= 61


def test_the_last_nanosecond_of_an_interval_belongs_to_it(tmp_path: Path) -> None:
    # Time stamps since the epoch have more digits than a float can hold.
    whole = 1_795_242_994 * 10**9
    stamps = (whole - 1, whole, whole + 10**9 - 1)
    rows = [event_row("read", ts=ts, dur=0, result=0, file_id=0) for ts in stamps]
    path = write_store(tmp_path / "s.iodock", rows, [file_row(0, "/a")], [process_row(0, 1)], [])
    found = Run(Store.open(path)).show("timeline", every=1).to_arrow().select(["ts", "count"]).to_pylist()
    assert [(row["ts"] - whole, row["count"]) for row in found] == [(-(10**9), 1), (0, 2)]


def test_accesses_of_few_files_keep_their_order(tmp_path: Path) -> None:
    # The file has one call among thousands of other files' calls, and many calls after them. A parallel query
    # engine could return the two groups in the wrong order.
    rows = [
        event_row("read", ts=1_000 * at, dur=1, result=0, file_id=0 if at in (5, 2_500) or at > 5_000 else 1)
        for at in range(9_000)
    ]
    files = [file_row(0, "/a/one.so"), file_row(1, "/a/two")]
    path = write_store(tmp_path / "long.iodock", rows, files, [process_row(0, 1)], [])
    for chosen in ({"file": "*.so"}, {"exclude_folder": "/b", "file": "*.so"}, {"kind": "all", "pid": 1}):
        stamps = Run(Store.open(path)).show("accesses", **chosen).to_arrow()["ts"].to_pylist()
        assert stamps == sorted(stamps), chosen


def test_accesses_keep_their_order_and_null_values(mixed: Run) -> None:
    rows = mixed.show("accesses", kind="all").to_arrow().to_pylist()
    assert len(rows) == len(ROWS)
    for found, row in zip(rows, ROWS, strict=True):
        wanted = wide(row)
        side = [None, "in", "out", "old", "new"][row["side"]]
        assert found["side"] == side
        for name in (
            "ts",
            "dur",
            "pid",
            "tid",
            "call",
            "file",
            "offset_bytes",
            "requested_bytes",
            "result",
            "errno",
        ):
            assert found[name] == wanted.get(name), name


def test_the_errors_analysis_counts_failures(mixed: Run) -> None:
    rows = mixed.show("errors", kind="all").to_arrow().to_pylist()
    wanted = brute_summary(ROWS, ("call", "errno", "file"), lambda row: row["errno"] is not None)
    assert {(r["call"], r["errno"], r["file"]): r["count"] for r in rows} == {
        key: row["count"] for key, row in wanted.items()
    }
    assert [row["count"] for row in rows] == sorted((row["count"] for row in rows), reverse=True)


def test_the_files_analysis_sums_calls_per_file(mixed: Run) -> None:
    rows = {row["file"]: row for row in mixed.show("files", kind="all").to_arrow().to_pylist()}
    wanted = brute_summary(ROWS, ("file",), lambda row: row["file"] is not None)
    assert set(rows) == {key[0] for key in wanted}
    for (name,), row in wanted.items():
        for column in ("count", "failed", "total_time_ns", "read_bytes", "written_bytes", "io_count"):
            assert rows[name][column] == row[column], (name, column)


def test_the_processes_analysis_lists_the_process_tree(mixed: Run) -> None:
    rows = mixed.show("processes").to_arrow().to_pylist()
    assert [(row["pid"], row["process_pid"], row["parent_pid"], row["how"]) for row in rows] == [
        (100, 100, None, "root"),
        (101, 100, 100, "thread"),
        (200, 200, 100, "fork"),
    ]
    assert rows[0]["commands"] == ["/bin/one", "/bin/two"]
    assert rows[2]["commands"] == [] and rows[2]["exit_signal"] == "SIGKILL" and rows[2]["exit_code"] is None
    assert [row["pid"] for row in mixed.show("processes", pid=100).to_arrow().to_pylist()] == [100, 101]


def brute_union(intervals: list[tuple[int, int]]) -> int:
    total, reached = 0, 0
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def test_the_overview_sums_the_run(mixed: Run) -> None:
    overview = mixed.show("overview")
    totals = overview.totals
    assert totals is not None
    every, working = [], []
    for ends in whole_calls(ROWS):
        call = wide(ends[0])
        if call["dur"] is None or (call["file"] is None and call["call"] not in ("poll",)):
            continue
        waits = call["call"] == "poll" or (
            call["class"] == "data"
            and (call["kind"] == "pipe" or (call["kind"] == "standard" and call["direction"] == 1))
        )
        span = (call["ts"], call["ts"] + call["dur"])
        every.append(span)
        if not waits:
            working.append(span)
    assert totals.total["io_time_ns"] == brute_union(working)
    assert totals.total["waiting_time_ns"] == brute_union(every) - brute_union(working)
    costs = totals.total["largest"]
    assert (
        len(costs) == 3
        and costs[0]["total_time_ns"] >= costs[1]["total_time_ns"] >= costs[2]["total_time_ns"]
    )
    parts = overview.to_arrow().to_pylist()
    assert sum(row["count"] for row in parts) == totals.total["calls"]


def test_without_durations_times_are_null_not_zero(tmp_path: Path) -> None:
    events = [
        event_row("read", end_ts=START, sys_cpu_ns=5, result=3, bytes=3, direction=1, file_id=0),
        event_row("read", end_ts=START + 10**9, sys_cpu_ns=7, result=0, bytes=0, direction=1, file_id=0),
    ]
    path = write_store(tmp_path / "s.iodock", events, [file_row(0, "/x")], [process_row(0, 1)], clock="day")
    run = Run(Store.open(path))
    (row,) = run.show("summary").to_arrow().to_pylist()
    for name in ("total_time_ns", "mean_time_ns", "min_time_ns", "max_time_ns", "calls_per_s", "bytes_per_s"):
        assert row[name] is None
    assert (row["sys_cpu_time_ns"], row["count"], row["read_bytes"], row["written_bytes"]) == (12, 2, 3, None)
    timeline = run.show("timeline", every=1).to_arrow().to_pylist()
    assert [row["read_bytes"] for row in timeline] == [3, 0]
    assert [row["read_time_ns"] for row in timeline] == [None, None]
    assert run.show("sizes").to_arrow().column("total_time_ns").null_count == 2
    totals = run.show("overview").totals
    assert totals is not None and totals.total["io_time_ns"] is None
    assert any("no call durations" in note for note in run.show("summary").notes)


@pytest.mark.parametrize("name", OF_CALLS)
def test_every_analysis_answers_an_empty_store(tmp_path: Path, name: str) -> None:
    path = write_store(tmp_path / "empty.iodock", [], [], [])
    shown = Run(Store.open(path)).show(name)
    assert [column.name for column in shown.columns] == shown.to_arrow().column_names


@pytest.mark.parametrize("name", OF_CALLS)
def test_headers_of_analyses_are_complete(mixed: Run, name: str) -> None:
    analysis = analyses.find(name)
    assert analysis.name == name
    assert analysis.title and len(analysis.doc) > 40 and analysis.examples
    shown = mixed.show(name)
    types = {"int": "int", "float": "double", "str": "string", "bool": "bool", "map": "map", "list": "list"}
    for column, field in zip(shown.columns, shown.to_arrow().schema, strict=True):
        assert column.name == field.name
        assert len(column.doc) >= 3, column
        assert types[column.type] in str(field.type), (column.name, field.type)
        if column.name.endswith("_bytes"):
            assert column.unit == "bytes"
        if column.name.endswith("_ns"):
            assert column.unit == "ns"
    assert [column.name for column in analysis.columns] == shown.to_arrow().column_names
    for option in analysis.options:
        assert option.doc


@pytest.mark.parametrize("way", ["read", "write"])
def test_the_direction_filter_counts_a_copy_once(mixed: Run, way: str) -> None:
    number = {"read": 1, "write": 2}[way]
    wanted = brute_summary(ROWS, ("call", "file"), lambda end: end["direction"] == number)
    found = summary(mixed, ("call", "file"), direction=way, kind="all")
    assert found and {key: row["count"] for key, row in found.items()} == {
        key: row["count"] for key, row in wanted.items()
    }
    totals = mixed.show("summary", direction=way, kind="all").totals
    ends = [row for row in ROWS if row["direction"] == number]
    assert totals is not None and totals.total["count"] == len(ends)
    sizes = mixed.show("sizes", direction=way, kind="all").to_arrow()
    assert set(sizes["direction"].to_pylist()) == {way}
    files = mixed.show("files", direction=way, kind="all").to_arrow()
    assert sum(files["count"].to_pylist()) == len([row for row in ends if row["file_id"] is not None])


@pytest.mark.parametrize("kind", ["file", "file,pipe,standard"])
@pytest.mark.parametrize("top", [1, 3, 5])
def test_files_have_rows_other_and_total_like_the_summary(mixed: Run, kind: str, top: int) -> None:
    files, summary = (
        mixed.show("files", kind=kind, top=top),
        mixed.show("summary", by="file", kind=kind, top=top),
    )
    assert files.to_arrow()["file"].to_pylist() == summary.to_arrow()["file"].to_pylist()
    assert files.totals is not None and summary.totals is not None
    assert files.totals.other is not None and summary.totals.other is not None
    for name in ("count", "failed", "total_time_ns", "read_bytes", "written_bytes", "io_count"):
        assert files.totals.other[name] == summary.totals.other[name], name
        assert files.totals.total[name] == summary.totals.total[name], name
    assert files.totals.other["handles"] == sum(files_after(mixed, kind, top))
    assert mixed.show("files", kind=kind).totals.other is None


def files_after(run: Run, kind: str, top: int) -> list[int]:
    return run.show("files", kind=kind).to_arrow()["handles"].to_pylist()[top:]


def test_analyses_for_the_report_are_hidden_but_available(mixed: Run) -> None:
    assert "call_files" not in mixed.analyses() and "call_files" in analyses.names()
    assert mixed.analyses().index("machine") == mixed.analyses().index("errors") + 1
    assert mixed.show("call_files").to_arrow().num_rows > 0


def test_sums_of_sizes_beyond_int64_give_an_error(tmp_path: Path) -> None:
    read = {"file_id": 0, "direction": 1, "requested_bytes": 2**62, "bytes": 1, "result": 1}
    asked = [event_row("read", ts=START + number, dur=1, **read) for number in range(3)]
    path = write_store(tmp_path / "asked.iodock", asked, [file_row(0, "/a")], [process_row(0, 1)])
    shown = Run(Store.open(path)).show("sizes", requested=True)
    assert shown.to_arrow()["bytes"].to_pylist() == [2**63 - 1]
    assert any("9223372036854775807 stand for that and more" in note for note in shown.notes)
    assert not any("and more" in note for note in Run(Store.open(path)).show("sizes").notes)


def test_an_access_covers_its_whole_range_of_offsets(tmp_path: Path) -> None:
    """iodock once showed a read of 30 MiB as ending at 156 KiB, in the cell in which it begins."""
    rows = [
        event_row(
            "pread64",
            ts=1_000,
            dur=5,
            bytes=30 << 20,
            result=30 << 20,
            direction=1,
            file_id=0,
            offset_bytes=0,
        ),
        event_row("pread64", ts=1_000, dur=5, bytes=100, result=100, direction=1, file_id=0, offset_bytes=0),
    ]
    path = write_store(tmp_path / "s.iodock", rows, [file_row(0, "/a")], [process_row(0, 1)], [])
    found = Run(Store.open(path)).show("offsets").to_arrow().to_pylist()
    assert [(row["count"], row["bytes"]) for row in found] == [(1, 100), (1, 30 << 20)]
    short, long = (row["end_offset_bytes"] for row in found)
    assert short < 1 << 20 and long >= 30 << 20


def test_time_ranges_outside_the_run_are_mentioned(mixed: Run) -> None:
    assert any("over before --since 1000" in note for note in mixed.show("summary", since="1000").notes)
    assert any("began after --until -5" in note for note in mixed.show("summary", until="-5").notes)
    assert not any("--" in note for note in mixed.show("summary", since="0", until="1000").notes)
