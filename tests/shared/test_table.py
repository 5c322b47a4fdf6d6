"""Tests tables for the terminal: unknown values are empty, and omitted columns are named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rich.cells import cell_len

import iodock
from in_process import printed, shown
from iodock.program import analyses
from iodock.program.capture import import_logs
from iodock.shared.errors import RequestError
from iodock.shared.tables import table

LOG = """\
1 1700000000.000000 openat(AT_FDCWD, "/d/a", O_RDONLY) = 3 <0.000010>
1 1700000000.000100 fstat(3, {st_mode=S_IFREG|0644, st_size=8192, ...}) = 0 <0.000010>
1 1700000000.000200 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f0000000000 <0.000010>
1 1700000000.000300 close(3) = 0 <0.000010>
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    log = tmp_path / "log"
    log.write_text(LOG)
    import_logs([str(log)], str(tmp_path / "s.iodock"))
    return tmp_path / "s.iodock"


def at_width(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setattr(table, "terminal_width", lambda: width)


LONG = "/scratch/project/users/me/experiment/2026/output/data.bin"


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Imports a run with eight reads of a file with a long name, and a write of another file."""
    start = "7 1700000000.0"
    lines = [f'{start}00000 openat(AT_FDCWD, "{LONG}", O_RDONLY) = 3 <0.000010>']
    lines += [f"{start}{at}0000 read(3, ..., 4096) = 4096 <0.000{at}00>" for at in range(10, 90, 10)]
    lines += [
        f'{start}91000 openat(AT_FDCWD, "/data/short", O_WRONLY|O_CREAT, 0666) = 4 <0.000010>',
        f"{start}92000 write(4, ..., 100) = 100 <0.000900>",
        f'{start}93000 openat(AT_FDCWD, "/data/short/x", O_RDONLY) = -1 ENOTDIR (Not a directory) <0.00001>',
        f"{start}94000 close(4) = 0 <0.000005>",
    ]
    folder = tmp_path_factory.mktemp("long")
    (folder / "log").write_text("\n".join(lines) + "\n")
    import_logs([str(folder / "log")], str(folder / "s.iodock"))
    return folder / "s.iodock"


def test_a_mapped_file_with_unknown_accesses_has_no_share(store: Path) -> None:
    rows = iodock.open(str(store)).show("maps").to_arrow().to_pylist()
    assert [row["touched_share"] for row in rows] == [None]
    assert "touched" not in printed("show", "maps", store)


def test_a_query_shows_all_columns_that_it_names(store: Path) -> None:
    asked = printed("query", store, "SELECT call, bytes, 0 AS none, by_path FROM calls_seen LIMIT 1")
    heading, row = asked.splitlines()[1:3]
    assert heading.split() == ["call", "bytes", "none", "by_path"]
    assert row.split() == ["openat", "0", "true"]


def test_columns_that_do_not_fit_are_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_width(monkeypatch, 40)
    narrow = printed("show", "files", store)
    assert "columns hidden (--wide): " in narrow
    assert "hidden" not in printed("show", "files", store, "--wide")
    at_width(monkeypatch, 300)
    assert "hidden" not in printed("show", "files", store)


KEPT = {
    80: {
        "accesses": "ts time tid call file offset bytes",
        "summary": "call calls failed time mean longest read written mean size",
        "files": "file size calls failed time read written",
        "processes": "pid process pid made start calls failed time read written",
        "timeline": "ts read written reads writes read time write time calls",
    },
    120: {
        "accesses": "ts time pid tid call file offset requested error bytes",
        "files": "file kind size calls failed opens time read written access pattern",
    },
}


@pytest.mark.parametrize(("width", "analysis"), [(width, name) for width in KEPT for name in KEPT[width]])
def test_the_least_important_columns_are_dropped_first(
    long_run: Path, monkeypatch: pytest.MonkeyPatch, width: int, analysis: str
) -> None:
    at_width(monkeypatch, width)
    lines = printed("show", analysis, long_run, "-q").splitlines()
    assert all(cell_len(line) <= width for line in lines)
    assert lines[1].split() == KEPT[width][analysis].split()


def test_files_have_complete_names_and_all_columns(
    long_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    asked = printed("show", "accesses", long_run, "-q")
    assert LONG in asked and "…" not in asked and "hidden" not in asked
    assert "direction" in asked.splitlines()[1] and "2023-11-14 22:13:20" in asked
    printed("show", "accesses", long_run, "-q", "-o", str(tmp_path / "table.txt"))
    assert (tmp_path / "table.txt").read_text() == asked


def test_the_date_is_printed_once(long_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    at_width(monkeypatch, 80)
    title, _, first = printed("show", "accesses", long_run, "-q").splitlines()[:3]
    assert title == "Single calls, 2023-11-14" and first.startswith("22:13:20.000000 ")
    assert printed("show", "summary", long_run, "-q").startswith("Calls on files with a path by call\n")


def test_rows_can_be_sorted_by_any_column(long_run: Path) -> None:
    longest = shown(long_run, "accesses", "--top", "2", "--sort", "dur")
    assert [row["dur"] for row in longest["rows"]] == [900_000, 800_000]
    assert longest["totals"]["text"] == "2 of 13 calls"
    # --sort also accepts the heading of a column.
    assert shown(long_run, "accesses", "--top", "2", "--sort", "time")["rows"] == longest["rows"]
    by_name = shown(long_run, "files", "--sort", "file", "--top", "1")
    assert [row["file"] for row in by_name["rows"]] == ["/data/short", "other"]
    assert by_name["rows"][1]["count"] == 10
    sizes = shown(long_run, "sizes", "--sort", "count", "--top", "1")
    assert [row["count"] for row in sizes["rows"]] == [8] and sizes["totals"]["text"] == "1 of 2 rows"
    folders = shown(long_run, "summary", "--by", "folder", "--sort", "read_bytes", "--top", "1")
    assert folders["rows"][0]["read_bytes"] == 8 * 4096


@pytest.mark.parametrize(
    "analysis",
    [one.name for one in analyses.every() if not one.profiles and not one.hidden and one.name != "cache"],
)
def test_every_analysis_has_top_and_sort(long_run: Path, analysis: str) -> None:
    columns = [column["name"] for column in shown(long_run, analysis)["columns"] if column["type"] != "map"]
    rows = shown(long_run, analysis, "--sort", columns[-1], "--top", "1")["rows"]
    assert [row[columns[0]] for row in rows[1:]] in ([], ["other"])
    # The result is the same in Python.
    found = iodock.open(str(long_run)).show(analysis, sort=columns[-1], top=1)
    assert found.to_arrow().to_pylist()[:1] == found.to_arrow().to_pylist()


def test_an_unknown_sort_column_gets_a_suggestion(long_run: Path) -> None:
    with pytest.raises(RequestError) as refused:
        iodock.open(str(long_run)).show("accesses", sort="durr")
    assert refused.value.hint == "did you mean dur"


@pytest.mark.parametrize(
    ("columns", "told", "width"), [(0, "", None), (1, "", None), (0, "90", 90), (80, "90", 80)]
)
def test_a_terminal_of_unknown_width_gets_80_columns(
    monkeypatch: pytest.MonkeyPatch, columns: int, told: str, width: int | None
) -> None:
    monkeypatch.setattr("os.get_terminal_size", lambda _: os.terminal_size((columns, 24)))
    monkeypatch.setenv("COLUMNS", told)
    assert table.terminal_width() == width


def test_hidden_columns_are_counted_if_their_names_do_not_fit(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_width(monkeypatch, 20)
    last = printed("show", "files", store, "-q").splitlines()[-1]
    assert last.endswith(" hidden: --wide") and int(last.split()[0]) == 7


@pytest.mark.parametrize(
    ("text", "width", "cut"), [("abcdefghij", 7, "ab…ghij"), ("日本語日本語", 7, "日…本語")]
)
def test_long_texts_are_shortened_in_the_middle(text: str, width: int, cut: str) -> None:
    assert table.elided(text, width) == cut


def test_the_width_of_a_long_text_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[int] = []

    def measure(text: str) -> int:
        measured.append(len(text))
        return cell_len(text)

    monkeypatch.setattr(table, "cell_len", measure)
    assert len(table.elided("ab" * 20_000, 40)) == 40
    assert sum(measured) < 50_000
