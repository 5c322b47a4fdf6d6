"""Tests iodock diff of several runs, of unequal work, and of runs that cannot be compared."""

from __future__ import annotations

import random
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from diff_stores import ENGLISH, argued, edited, rows, run, said, seconds
from iodock.program.comparison import compare
from iodock.program.comparison.data import Sureness
from iodock.program.comparison.significance import change, p_value
from iodock.program.views.diff_text import diff_text
from iodock.shared.errors import RequestError
from iodock.shared.sentences import say
from strace_log import Log


@pytest.mark.parametrize("seed", range(5))
def test_the_exact_test_equals_an_enumeration(seed: int) -> None:
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


def test_the_exact_test_gives_published_values() -> None:
    # The values are from tables of the Mann-Whitney test, for complete separation of 4 and 4, and of 5 and 5.
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
def test_the_significance_of_a_difference_is_reported(
    before: list[Any], after: list[Any], sureness: Sureness
) -> None:
    assert change(before, after).sureness is sureness


def test_several_runs_give_medians_and_noise(several: tuple[list[str], list[str]]) -> None:
    found = compare(*several)
    by_file = {row.name: row.changes["total_time_ns"] for row in (*found.faster.rows, *found.slower.rows)}
    assert seconds(by_file["/out/worse"]) == pytest.approx((2.1, 3.15), abs=1e-3)
    assert by_file["/out/worse"].sureness is Sureness.CLEAR
    assert by_file["/out/worse"].p_value == pytest.approx(2 / 252)
    # The median of `steady` differs by 0.05 s, which is less than the repeats differ among themselves.
    assert "/out/steady" not in by_file
    assert (found.noise.files, found.noise.change.sureness) == (1, Sureness.NOISE)
    assert found.totals["wall_time_ns"].sureness is Sureness.CLEAR
    assert "noise" in diff_text(found, ENGLISH, False)


def test_three_runs_are_too_few_for_significance(several: tuple[list[str], list[str]]) -> None:
    found = compare(several[0][:3], several[1][:3])
    assert found.totals["wall_time_ns"].sureness is Sureness.FEW
    text = diff_text(found, ENGLISH, False)
    assert "Too few runs to be certain of a difference" in " ".join(text.split())
    assert "too few runs to tell" in text


def test_a_wall_time_within_the_noise_is_stated_in_the_headline(tmp_path: Path) -> None:
    stores = [run(tmp_path / f"{number}.iodock", wall=10 + number % 4 * 0.3, out=1.0) for number in range(8)]
    found = compare(stores[0::2], stores[1::2])
    assert say(found.headline, ENGLISH).startswith("No clear difference")


def test_unequal_work_is_reported_unless_already_explained(records: tuple[str, str]) -> None:
    before, after = records
    assert "may not have been equal" in said(compare([before], [after]), "work")
    for per in ("run", "records=320,200", "files", "bytes"):
        assert not said(compare([before], [after], per=per), "work")


def test_amounts_can_be_compared_per_record(records: tuple[str, str]) -> None:
    found = compare([records[0]], [records[1]], per="records=320,200")
    by_file = rows(found)
    assert seconds(by_file["/d/in"]["total_time_ns"]) == pytest.approx((0.05, 0.02), rel=1e-3)
    reads = next(row for row in found.calls.rows if row.name == "read").changes
    assert reads["count"].before == reads["count"].after == 1
    assert reads["read_bytes"].after == 8192
    assert found.slower.of <= 1, "the log took as long per record, but for rounding"
    text = " ".join(diff_text(found, ENGLISH, False).split())
    assert "per unit of work (records): 320 before, 200 after" in text


def test_amounts_can_be_compared_per_byte_and_file(records: tuple[str, str]) -> None:
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
def test_invalid_units_are_refused(records: tuple[str, str], per: str) -> None:
    with pytest.raises(RequestError) as error:
        compare([records[0]], [records[1]], per=per)
    assert error.value.hint


def test_fewer_reads_of_the_same_data_count_as_the_same_work(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("named", [[0, 0], [0, 1, 0], [0, 1, 2, 3, 3]])
def test_a_run_given_twice_counts_once(
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


@pytest.mark.parametrize(
    ("calls", "command", "told"),
    [
        (1024, ["/bin/sum", "-n", "2"], True),
        (1024, ["./sum", "-n", "2"], True),
        # The arguments are equal, so the difference comes from a change of the program.
        (1024, ["./sum", "-n", "1"], False),
        (300, ["./sum", "-n", "2"], False),
        (1024, ["./other", "-n", "2"], False),
        (1024, [], False),
    ],
)
def test_other_arguments_or_many_more_calls_hint_at_different_work(
    tmp_path: Path, calls: int, command: list[str], told: bool
) -> None:
    before = argued(tmp_path / "before.iodock", 256, ["./sum", "-n", "1"])
    after = argued(tmp_path / "after.iodock", calls, command)
    found = said(compare([before], [after]), "work")
    assert ("sum was started with other arguments" in found, "--per records=N,M" in found) == (told, told)
    assert not said(compare([before], [after], per="run"), "work")


@pytest.mark.parametrize(
    ("kind", "changes", "words"),
    [
        ("capture", {"captured": {"how": "ptrace"}}, "strace -> ptrace"),
        ("clock", {"clock": "day"}, "epoch -> day"),
        ("end", {"state": "cut"}, "is incomplete"),
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
def test_limits_of_a_comparison_are_listed(
    records: tuple[str, str], tmp_path: Path, kind: str, changes: dict[str, Any], words: str
) -> None:
    other = edited(records[0], tmp_path / "other.iodock", **changes)
    assert not said(compare([records[0]], [records[0]]), kind)
    assert words in said(compare([records[0]], [other]), kind)


def test_a_run_of_zero_duration_has_no_relative_change(tmp_path: Path) -> None:
    empty = Log()
    empty.open("/out/a")
    shown = diff_text(compare([empty.store(tmp_path / "a")], [run(tmp_path / "b", x=1.0)]), ENGLISH, False)
    assert "Whether the run got faster is not known" in shown and "The elapsed time of the run" in shown
    (wall,) = (line.split() for line in shown.splitlines() if re.match(r"wall time +[^i ]", line))
    assert wall == ["wall", "time", "?", "10", "s"]
