"""iodock diff: what changed between runs, on stores whose times and names are known."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from iodock.comparison import Comparison, compare
from iodock.comparison.data import Change, Sureness
from iodock.comparison.significance import change, p_value
from iodock.errors import IodockError, RequestError
from iodock.findings import Finding
from iodock.language import language_in
from iodock.settings import load
from iodock.views.diagnosis_words import say
from iodock.views.diff_csv import COLUMNS, diff_csv
from iodock.views.diff_html import diff_html
from iodock.views.diff_json import diff_json
from iodock.views.diff_text import diff_text, print_diff
from strace_log import Log
from synthetic import event_row, file_row, process_row, write_store

# The package's function of that name hides the module.
compare_module = import_module("iodock.comparison.compare")
ENGLISH = language_in("en")
HOSTILE = (
    "/d/a'b\\\"c;--",
    "/d/<b>x</b>&amp;@BODY@",
    "/d/{n} {before}%s",
    "/d/日本語 file",
    "/d/[bold]*?",
    "/d/\\n\\t",
)


@pytest.fixture(scope="module", autouse=True)
def stores_read_once() -> Iterator[None]:
    """Stores don't change here, and to diagnose one takes most of the time."""
    settings = load()
    reading = compare_module.sums_of
    once = cache(lambda path: reading(path, settings))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare_module, "sums_of", lambda path, _: once(path))
        yield


def iodock(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "iodock", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def written(log: Log, name: str, count: int, seconds: float, size: int = 100) -> None:
    log.open(name)
    log.move("write", name, count, size, seconds)


def run(path: Path, *, wall: float = 10.0, **seconds: float) -> str:
    """A run that writes to `/out/NAME` for that many seconds, 10 calls each."""
    log = Log()
    for name, took in seconds.items():
        written(log, f"/out/{name}", 10, took)
    log.compute(wall - sum(seconds.values()))
    return log.store(path)


def rows(comparison: Comparison) -> dict[str, dict[str, Change]]:
    listed = (*comparison.faster.rows, *comparison.slower.rows)
    return {row.name: dict(row.changes) for row in listed}


def seconds(one: Change) -> tuple[float, float]:
    assert one.before is not None and one.after is not None
    return one.before / 1e9, one.after / 1e9


def said(comparison: Comparison, kind: str) -> str:
    return " ".join(say(one.message, ENGLISH) for one in comparison.remarks if one.kind == kind)


@pytest.fixture(scope="module")
def kyoto(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Kyoto's second try, with a thousandth of its calls: one file gained what another one lost and more."""
    folder = tmp_path_factory.mktemp("kyoto")
    before, after = Log(), Log()
    written(before, "/data/catalogue.csv", 2600, 13.5, 60)
    written(after, "/data/catalogue.csv", 203, 3.3, 768)
    written(before, "/data/update.log", 500, 21.6)
    written(after, "/data/update.log", 500, 37.9)
    for log, minutes in ((before, 52), (after, 58)):
        log.compute(minutes * 60 - (log.now_s - 1_700_000_000))
    return before.store(folder / "before.iodock"), after.store(folder / "after.iodock")


def test_each_file_is_credited_and_blamed_apart(kyoto: tuple[str, str]) -> None:
    found = compare([kyoto[0]], [kyoto[1]])
    assert say(found.headline, ENGLISH).startswith("Slower: 3,120 s -> 3,480 s, 12 % more")
    assert "Most of the difference lies outside of I/O" in " ".join(
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


@pytest.mark.parametrize("form", ["text", "html", "json", "csv"])
def test_credit_and_blame_are_in_every_form(kyoto: tuple[str, str], form: str) -> None:
    found = compare([kyoto[0]], [kyoto[1]], every_file=True)
    shown = {
        "text": lambda: diff_text(found, ENGLISH, False),
        "html": lambda: diff_html(found, ENGLISH),
        "json": lambda: diff_json(found, ENGLISH),
        "csv": lambda: "".join(diff_csv(found)),
    }[form]()
    faster, slower = shown.index("/data/catalogue.csv"), shown.index("/data/update.log")
    assert faster != slower
    if form == "text":
        assert re.search(r"catalogue.csv\s+13.5 s\s+3.3 s\s+-10.2 s", shown)
        assert re.search(r"update.log\s+21.6 s\s+37.9 s\s+\+16.3 s", shown)


def test_calls_of_one_file_that_changed_in_opposite_ways_are_both_shown(tmp_path: Path) -> None:
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


def test_files_are_matched_without_what_varies(tmp_path: Path) -> None:
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


def test_names_that_match_are_not_mixed_with_others_of_their_pattern(tmp_path: Path) -> None:
    before, after = Log(), Log()
    for number in range(3):
        written(before, f"/w/part.{number}", 2, 1.0)
    for number in range(5):
        written(after, f"/w/part.{number}", 2, 2.0)
    found = compare([before.store(tmp_path / "a.iodock")], [after.store(tmp_path / "b.iodock")])
    shown = {row.name: (row.matched, row.files) for row in found.slower.rows}
    assert shown == {
        "/w/part.0": ("name", (1, 1)),
        "/w/part.1": ("name", (1, 1)),
        "/w/part.2": ("name", (1, 1)),
        "/w/part.*": ("after", (0, 2)),
    }


@pytest.mark.parametrize("seed", range(5))
def test_exact_test_against_all_divisions(seed: int) -> None:
    pick = random.Random(seed)
    first = [pick.randrange(8) for _ in range(pick.randrange(2, 6))]
    second = [pick.randrange(8) for _ in range(pick.randrange(2, 6))]
    values = [*first, *second]

    def rank(one: int) -> float:
        return sum(other < one for other in values) + (sum(other == one for other in values) + 1) / 2

    ranks = [rank(one) for one in values]
    middle = sum(ranks) * len(first) / len(values)
    found = abs(sum(ranks[: len(first)]) - middle)
    every = [
        abs(sum(ranks[at] for at in chosen) - middle)
        for chosen in combinations(range(len(values)), len(first))
    ]
    assert p_value(first, second) == pytest.approx(sum(one >= found - 1e-9 for one in every) / len(every))


def test_known_values_of_the_exact_test() -> None:
    # Tables of the Mann-Whitney test: complete separation of 4 and 4, and of 5 and 5.
    assert p_value([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)
    assert p_value([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(2 / 252)
    assert p_value([1, 1, 1, 1], [1, 1, 1, 1]) == 1
    assert p_value(range(40), range(40, 80)) < 1e-20


@pytest.mark.parametrize(
    ("before", "after", "sureness"),
    [
        ([1.0], [2.0], Sureness.SINGLE),
        ([1.0], [1.0], Sureness.SAME),
        ([1.0, 1.1, 1.2], [2.0, 2.1, 2.2], Sureness.FEW),
        ([1.0, 2.5, 1.2], [2.0, 2.1, 2.2], Sureness.NOISE),
        ([1.0, 1.1, 1.2, 1.3], [2.0, 2.1, 2.2, 2.3], Sureness.CLEAR),
        ([1.0, 2.2, 1.2, 1.3], [1.1, 2.1, 1.25, 1.4], Sureness.NOISE),
        ([None], [2.0], Sureness.UNKNOWN),
        ([], [], Sureness.UNKNOWN),
    ],
)
def test_what_can_be_said_of_a_difference(before: list[Any], after: list[Any], sureness: Sureness) -> None:
    assert change(before, after).sureness is sureness


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """5 runs of each: `steady` differs within its spread, `worse` clearly."""
    folder = tmp_path_factory.mktemp("several")
    steady = ([1.0, 1.3, 1.1, 1.25, 1.05], [1.15, 0.95, 1.28, 1.12, 1.2])
    worse = ([2.0, 2.1, 2.2, 2.05, 2.15], [3.0, 3.3, 3.1, 3.2, 3.15])
    sides = ("before", "after")
    stores = [
        [
            run(
                folder / f"{side}{number}.iodock",
                wall=10 + worse[at][number],
                steady=steady[at][number],
                worse=worse[at][number],
            )
            for number in range(5)
        ]
        for at, side in enumerate(sides)
    ]
    return stores[0], stores[1]


def test_several_runs_give_medians_and_noise(several: tuple[list[str], list[str]]) -> None:
    found = compare(*several)
    by_file = {row.name: row.changes["total_time_ns"] for row in (*found.faster.rows, *found.slower.rows)}
    assert seconds(by_file["/out/worse"]) == pytest.approx((2.1, 3.15), abs=1e-3)
    assert by_file["/out/worse"].sureness is Sureness.CLEAR
    assert by_file["/out/worse"].p_value == pytest.approx(2 / 252)
    assert by_file["/out/steady"].sureness is Sureness.NOISE
    assert found.totals["wall_time_ns"].sureness is Sureness.CLEAR
    assert "noise" in diff_text(found, ENGLISH, False)


def test_three_runs_can_not_tell(several: tuple[list[str], list[str]]) -> None:
    found = compare(several[0][:3], several[1][:3])
    assert found.totals["wall_time_ns"].sureness is Sureness.FEW
    text = diff_text(found, ENGLISH, False)
    assert "Too few to be sure of a difference" in " ".join(text.split())
    assert "too few runs to tell" in text


def test_noise_is_the_headline_where_the_wall_time_is_noise(tmp_path: Path) -> None:
    stores = [run(tmp_path / f"{number}.iodock", wall=10 + number % 4 * 0.3, out=1.0) for number in range(10)]
    found = compare(stores[0::2], stores[1::2])
    assert say(found.headline, ENGLISH).startswith("No clear difference")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """320 records before, 200 after, each with the same calls, in 0.05 s and 0.02 s."""
    folder = tmp_path_factory.mktemp("records")
    stores = []
    for name, count, each in (("before", 320, 0.05), ("after", 200, 0.02)):
        log = Log()
        log.open("/d/in")
        log.stat("/d/in", count * 8192)
        log.move("read", "/d/in", count, 8192, count * each)
        written(log, "/d/log", count, count * 0.01, 6000)
        stores.append(log.store(folder / f"{name}.iodock"))
    return stores[0], stores[1]


def test_unequal_work_is_said_unless_something_was(records: tuple[str, str]) -> None:
    before, after = records
    assert "may not have been equal" in said(compare([before], [after]), "work")
    for per in ("run", "records=320,200", "files", "bytes"):
        assert not said(compare([before], [after], per=per), "work")


def test_per_record(records: tuple[str, str]) -> None:
    found = compare([records[0]], [records[1]], per="records=320,200")
    by_file = rows(found)
    assert seconds(by_file["/d/in"]["total_time_ns"]) == pytest.approx((0.05, 0.02), rel=1e-3)
    reads = next(row for row in found.calls.rows if row.name == "read").changes
    assert reads["count"].before == reads["count"].after == 1
    assert reads["read_bytes"].after == 8192
    assert found.slower.of <= 1, "the log took as long per record, but for rounding"
    text = " ".join(diff_text(found, ENGLISH, False).split())
    assert "per unit of work (records): 320 before, 200 after" in text


def test_per_bytes_and_files(records: tuple[str, str]) -> None:
    by_bytes = compare([records[0]], [records[1]], per="bytes")
    moved = [by_bytes.totals[name].after or 0 for name in ("read_bytes", "written_bytes")]
    assert sum(moved) == pytest.approx(1 << 20)
    by_files = compare([records[0]], [records[1]], per="files")
    assert by_files.work is not None and by_files.work.before == (2,)
    assert by_files.totals["files"].after == 1


@pytest.mark.parametrize(
    "per",
    ["records", "records=", "records=a,b", "records=0,1", "records=1,2,3", "=1,2", "records=-1,2", "x=inf,1"],
)
def test_units_that_are_none(records: tuple[str, str], per: str) -> None:
    with pytest.raises(RequestError) as error:
        compare([records[0]], [records[1]], per=per)
    assert error.value.hint


def test_reading_the_same_data_less_often_is_no_less_work(tmp_path: Path) -> None:
    stores = []
    for name, times in (("a", 3), ("b", 1)):
        log = Log()
        log.open("/d/in")
        log.stat("/d/in", 4_000_000)
        for _ in range(times):
            log.seek("/d/in")
            log.move("read", "/d/in", 40, 100_000, 0.4)
        stores.append(log.store(tmp_path / f"{name}.iodock"))
    assert not said(compare([stores[0]], [stores[1]]), "work")


def test_sums_are_those_of_the_summary(kyoto: tuple[str, str]) -> None:
    """Top rows, other and total against another way to the same numbers."""
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


def test_top_lists_keep_other_and_total(tmp_path: Path) -> None:
    first, second = Log(), Log()
    for number in range(12):
        name = f"/w/{'abcdefghijkl'[number] * 3}"
        written(first, name, 2, 1.0)
        written(second, name, 2, 1.5 + number)
    stores = [first.store(tmp_path / "a.iodock")], [second.store(tmp_path / "b.iodock")]
    found = compare(*stores, most_files=5)
    assert (len(found.slower.rows), found.slower.of) == (5, 12)
    assert found.slower.other is not None
    parts = [*found.slower.rows, found.slower.other]
    for measure in ("total_time_ns", "count", "written_bytes"):
        total = found.slower.total.changes[measure]
        assert sum(row.changes[measure].after or 0 for row in parts) == pytest.approx(total.after)
    assert found.slower.total.changes["total_time_ns"].difference == pytest.approx(12 * 0.5e9 + 66e9)
    assert "(5 of 12)" in diff_text(found, ENGLISH, False)


def test_findings_gone_new_and_still_there(tmp_path: Path) -> None:
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


def test_without_durations_calls_are_ranked(tmp_path: Path) -> None:
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


def test_one_side_without_durations(tmp_path: Path) -> None:
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


def edited(store: str, path: Path, **changes: Any) -> str:
    """The store with other entries in its manifest."""
    shutil.copytree(store, path)
    manifest = json.loads((path / "manifest.json").read_text())
    for key, value in changes.items():
        manifest[key] = {**manifest[key], **value} if isinstance(value, dict) else value
    (path / "manifest.json").write_text(json.dumps(manifest))
    return str(path)


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("capture", {"captured": {"how": "ptrace"}}, "strace -> ptrace"),
        ("clock", {"clock": "day"}, "epoch -> day"),
        ("end", {"state": "cut"}, "was cut"),
        ("end", {"captured": {"exit_status": 3}}, "ended with status 3"),
        ("end", {"captured": {"exit_signal": "SIGKILL"}}, "ended by SIGKILL"),
        (
            "losses",
            {"losses": [{"name": "truncated-paths", "count": 7, "cure": "x"}]},
            "truncated-paths 0 -> 7",
        ),
        ("program", {"ranks": 4}, "MPI ranks differs: 1 -> 4"),
    ],
)
def test_what_may_spoil_a_comparison_is_said(
    records: tuple[str, str], tmp_path: Path, kind: str, changes: dict[str, Any], words: str
) -> None:
    other = edited(records[0], tmp_path / "other.iodock", **changes)
    assert not said(compare([records[0]], [records[0]]), kind)
    assert words in said(compare([records[0]], [other]), kind)


def test_hostile_names_in_every_form(tmp_path: Path) -> None:
    first, second = Log(), Log()
    for number, name in enumerate(HOSTILE):
        written(first, name, 2, 1.0)
        written(second, name, 2, 2.0 + number)
    found = compare(
        [first.store(tmp_path / "a.iodock")], [second.store(tmp_path / "b.iodock")], every_file=True
    )
    names = {row.name for row in found.files}
    assert len(names) == len(HOSTILE) and "/d/\n\t" in names
    assert {row["file"] for row in json.loads(diff_json(found, ENGLISH))["slower"]["rows"]} == names
    table = list(csv.DictReader(io.StringIO("".join(diff_csv(found)))))
    assert {row["file"] for row in table} == names
    page = diff_html(found, ENGLISH)
    assert "<b>x" not in page and "&lt;b&gt;x&lt;/b&gt;&amp;amp;@BODY@" in page
    text = diff_text(found, ENGLISH, False)
    assert "/d/[bold]*?" in text and "/d/{n} {before}%s" in text and "/d/\\n\\t" in text


def test_empty_stores(kyoto: tuple[str, str], tmp_path: Path) -> None:
    empty = str(write_store(tmp_path / "empty.iodock", [], [], []))
    for before, after in ((empty, empty), (empty, kyoto[0]), (kyoto[0], empty)):
        found = compare([before], [after], every_file=True)
        assert "empty.iodock holds no calls" in said(found, "end")
        for shown in (diff_text(found, ENGLISH, False), diff_html(found, ENGLISH), diff_json(found, ENGLISH)):
            assert shown
    with pytest.raises(RequestError, match=r"empty\.iodock"):
        compare([kyoto[0]], [empty], per="files")


@pytest.mark.parametrize("damage", ["manifest.json", "events", "files.parquet"])
def test_a_damaged_store_is_named(kyoto: tuple[str, str], tmp_path: Path, damage: str) -> None:
    broken = tmp_path / "broken.iodock"
    shutil.copytree(kyoto[0], broken)
    for path in [broken / damage] if damage != "events" else (broken / damage).iterdir():
        path.write_bytes(b"PAR1 nothing of use PAR1")
    with pytest.raises(IodockError, match=r"broken\.iodock") as error:
        compare([kyoto[0]], [str(broken)])
    assert error.value.hint
    done = iodock("diff", broken, kyoto[0])
    assert (done.returncode, done.stdout) == (1, "")
    assert "broken.iodock" in done.stderr and "hint: " in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_text_fits_the_terminal(
    kyoto: tuple[str, str], several: tuple[list[str], list[str]], tmp_path: Path, width: int
) -> None:
    long = Log()
    written(long, "/very/long/" + "folder/" * 30 + "日本語の名前.dat", 123_456 // 100, 3.3)
    other = long.store(tmp_path / "long.iodock")
    for stores in (([kyoto[0]], [kyoto[1]]), ([kyoto[0]], [other]), several):
        into = io.StringIO()
        print_diff(compare(*stores), Console(file=into, width=width, highlight=False), ENGLISH)
        assert max(cell_len(line.rstrip()) for line in into.getvalue().splitlines()) <= width


def test_command_line(several: tuple[list[str], list[str]], tmp_path: Path) -> None:
    before, after = several
    done = iodock("diff", *before[:2], "--", *after[:2], "--format", "json", "--lang", "en")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [len(answer[side]) for side in ("before", "after")] == [2, 2]
    page = tmp_path / "diff.html"
    assert iodock("diff", before[0], after[0], "-o", page).returncode == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    table = iodock("diff", before[0], after[0], "--format", "csv").stdout.splitlines()
    assert table[0].split(",") == list(COLUMNS) and len(table) == 3


@pytest.mark.parametrize("stores", [0, 1, 3])
def test_which_are_before_must_be_clear(several: tuple[list[str], list[str]], stores: int) -> None:
    done = iodock("diff", *several[0][:stores])
    assert (done.returncode, done.stdout) == (2, "")
    assert "hint: " in done.stderr or "Usage" in done.stderr


def test_sides_must_both_have_stores(several: tuple[list[str], list[str]]) -> None:
    done = iodock("diff", several[0][0], "--")
    assert done.returncode == 2 and "before and after" in done.stderr


def test_every_key_of_the_json_is_documented(kyoto: tuple[str, str]) -> None:
    document = json.loads(diff_json(compare([kyoto[0]], [kyoto[1]], per="records=2,3"), ENGLISH))
    page = (Path(__file__).parent.parent / "docs" / "how-to" / "compare-two-runs.md").read_text()

    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*(keys(one) for one in value.values()))
        return set().union(*(keys(one) for one in value)) if isinstance(value, list) else set()

    assert {key for key in keys(document) if f"`{key}`" not in page} == set()
    assert {
        column
        for column in COLUMNS
        if f"`{column}`" not in page and "_before" not in column and "_after" not in column
    } == set()


@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_needs_nothing_and_fits(kyoto: tuple[str, str], tmp_path: Path, width: int) -> None:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    page_path = tmp_path / "diff.html"
    page_path.write_text(diff_html(compare([kyoto[0]], [kyoto[1]]), language_in("ja")))
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": width, "height": 900})
        problems: list[str] = []
        requests: list[str] = []
        page.on("console", lambda message: problems.append(message.text))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(page_path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        bars = page.evaluate(
            "[...document.querySelectorAll('#files .is')].map(b => b.getBoundingClientRect().width)"
        )
        browser.close()
    assert problems == [] and requests == [page_path.as_uri()]
    assert min(bars) > 0 and max(bars) > 5 * min(bars), "3.3 s beside 37.9 s, on one scale"


def test_system_cpu_time_is_compared_with_itself_only(kyoto: tuple[str, str], tmp_path: Path) -> None:
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


def test_a_run_of_no_length_is_not_compared_by_its_length(tmp_path: Path) -> None:
    empty = Log()
    empty.open("/out/a")
    shown = diff_text(compare([empty.store(tmp_path / "a")], [run(tmp_path / "b", x=1.0)]), ENGLISH, False)
    assert "Whether the run got faster is not known" in shown and "How long the run took" in shown
    (wall,) = (line.split() for line in shown.splitlines() if re.match(r"wall time +[^i ]", line))
    assert wall == ["wall", "time", "?", "10", "s"]


@pytest.mark.parametrize("named", [[0, 0], [0, 1, 0], [0, 1, 2, 3, 3]])
def test_a_run_named_twice_is_no_second_run(
    several: tuple[list[str], list[str]], named: list[int], tmp_path: Path
) -> None:
    again = [several[0][at] for at in named]
    link = tmp_path / "link.iodock"
    link.symlink_to(again[-1])
    for stores in (again, [*dict.fromkeys(again), str(link)]):
        with pytest.raises(RequestError, match="twice among the runs before"):
            compare(stores, several[1])
        with pytest.raises(RequestError, match="twice among the runs after"):
            compare(several[1], stores)


def argued(path: Path, calls: int, command: list[str]) -> str:
    log = Log()
    log.open("/d/in")
    log.stat("/d/in", 1 << 20)
    log.move("read", "/d/in", calls, (1 << 20) // calls, 1.0)
    return edited(log.store(path.with_suffix(".made")), path, captured={"command": command})


@pytest.mark.parametrize(
    ("calls", "command", "told"),
    [
        (1024, ["/bin/sum", "-n", "2"], True),
        (1024, ["./sum", "-n", "2"], True),
        # The same arguments: that is what a change of the program does.
        (1024, ["./sum", "-n", "1"], False),
        (300, ["./sum", "-n", "2"], False),
        (1024, ["./other", "-n", "2"], False),
        (1024, [], False),
    ],
)
def test_other_arguments_and_many_more_calls_may_be_other_work(
    tmp_path: Path, calls: int, command: list[str], told: bool
) -> None:
    before = argued(tmp_path / "before.iodock", 256, ["./sum", "-n", "1"])
    after = argued(tmp_path / "after.iodock", calls, command)
    found = said(compare([before], [after]), "work")
    assert ("sum was started with other arguments" in found, "--per records=N,M" in found) == (told, told)
    assert not said(compare([before], [after], per="run"), "work")
