"""Tests reports and check-ups of whole stores: they contain the analyses' numbers, and the page stays
small."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from iodock.program.capture import import_logs
from iodock.program.store import Store
from iodock.program.views.checkup import checkup_of, print_checkup
from iodock.program.views.report import report_html
from iodock.program.views.report.budget import fit
from iodock.program.views.report.run import report_of
from made_store import START, Shape, make_store
from report_samples import HOSTILE

pytestmark = pytest.mark.usefixtures("few_rules")

MOST_BYTES = 5_000_000


def page_of(folder: Path) -> dict[str, Any]:
    with Store.open(folder) as store:
        document = report_html(store)
    assert len(document.encode()) < MOST_BYTES
    data = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', document, re.DOTALL)
    assert data
    page: dict[str, Any] = json.loads(data[1])["page"]
    return page


def column(table: dict[str, Any], name: str, rows: list[list[Any]] | None = None) -> list[Any]:
    place = table["columns"].index(name)
    return [row[place] for row in (table["rows"] if rows is None else rows)]


def test_numbers_add_up_from_calls_to_files_of_a_call(tmp_path: Path) -> None:
    page = page_of(make_store(tmp_path / "run.iodock", Shape()))
    assert dict(zip(column(page["calls"], "call"), column(page["calls"], "count"), strict=True)) == {
        "read": 1100, "write": 400, "close": 200, "lseek": 200, "openat": 100,
    }  # fmt: skip
    assert sum(column(page["call_files"]["read"], "count")) == 1100
    assert (
        sum(column(page["files"], "count"))
        == column(page["calls"], "count", [page["calls"]["total"]])[0]
        == 2000
    )
    details = page["details"].values()
    assert sum(sum(column(detail["calls"], "count")) for detail in details) == 2000
    assert sum(sum(column(detail["sizes"], "count")) for detail in details) == 1500
    assert sum(sum(column(detail["timeline"], "read_count")) for detail in details) == 1100
    assert sum(column(page["timeline"], "read_bytes")) == sum(column(page["files"], "read_bytes"))
    assert page["processes"]["depth"] == [0, 1, 2, 3]


def test_threads_are_not_called_processes(tmp_path: Path) -> None:
    log = [
        '1 0.1 openat(AT_FDCWD, "/data/a", O_RDONLY) = 3 <0.001>',
        "1 0.2 clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 2 <0.001>",
        "2 0.3 read(3, 0x7f, 10) = 10 <0.001>",
    ]
    (tmp_path / "log").write_text("\n".join(log) + "\n")
    import_logs([str(tmp_path / "log")], tmp_path / "run.iodock")
    with Store.open(tmp_path / "run.iodock") as store:
        facts = dict(report_of(store).facts)
    assert facts["processes"] == "1 process, 1 further thread"


def test_shortened_lists_and_their_remainder_add_up(tmp_path: Path) -> None:
    names = tuple(f"/data/file-{n:05}" for n in range(1500))
    page = page_of(make_store(tmp_path / "run.iodock", Shape(40_000, names)))
    files = page["files"]
    assert len(files["rows"]) == 300 < files["of"]
    assert sum(column(files, "count")) + column(files, "count", [files["other"]])[0] == 40_000
    read = page["call_files"]["read"]
    assert len(read["rows"]) == 20 and read["of"] > 1000
    assert sum(column(read, "count")) + column(read, "count", [read["other"]])[0] == 22_000


def test_hostile_names_appear_unchanged(tmp_path: Path) -> None:
    page = page_of(make_store(tmp_path / "run.iodock", Shape(5000, tuple(HOSTILE))))
    assert set(page["names"]) == set(HOSTILE)
    assert all(detail["sizes"]["rows"] for detail in page["details"].values())


@pytest.mark.parametrize(
    "shape", [Shape(durations=False), Shape(times=False, durations=False), Shape(events=0), Shape(events=1)]
)
def test_reports_omit_statements_without_data(tmp_path: Path, shape: Shape) -> None:
    page = page_of(make_store(tmp_path / "run.iodock", shape))
    assert (page["timeline"] is None) == (not shape.times)
    assert "total_time_ns" not in page["calls"]["columns"] or shape.durations


@pytest.mark.whole
def test_the_report_of_a_huge_run_has_a_limited_size(tmp_path: Path) -> None:
    names = tuple(f"/scratch/{'<' * 3000 if n % 50 == 0 else 'name'}/{n:06}.dat" for n in range(100_000))
    page = page_of(make_store(tmp_path / "run.iodock", Shape(1_000_000, names)))
    assert page["files"]["of"] > 90_000 and len(page["details"]) == 24


def test_the_size_limit_drops_details_of_the_last_files_first() -> None:
    data = {"names": ["a"], "details": {number: {"sizes": "x" * 1000} for number in range(8)}}
    assert list(fit(data, 2500)["details"]) == [0, 1]


def test_the_size_limit_shortens_names_first_and_mentions_them() -> None:
    data = {"names": ["short", "x" * 3000], "details": {0: {}}}
    fitted = fit(data, 1500)
    assert fitted["cut"] == [1] and len(fitted["names"][1]) == 1000 and fitted["details"] == {0: {}}


def test_the_report_contains_the_check_up(tmp_path: Path) -> None:
    stream = io.StringIO()
    with Store.open(make_store(tmp_path / "run.iodock", Shape())) as store:
        print_checkup(checkup_of(store, "run.iodock"), Console(file=stream, width=90))
    text = stream.getvalue()
    assert "2,000 I/O calls: " in text and "/data/a.dat" in text and "iodock report run.iodock" in text


def test_machine_samples_are_rates_on_the_runs_time_axis(tmp_path: Path) -> None:
    folder = make_store(tmp_path / "run.iodock", Shape(500_000))
    (folder / "samples").mkdir()
    seconds = range(0, 11, 2)
    rows = [
        {
            "ts": START + second * 10**9,
            "source": source,
            "target": target,
            "metric": metric,
            "value": value,
            "kind": kind,
        }
        for second in seconds
        for source, target, metric, value, kind in (
            ("pressure", "io", "some_us", second * 250_000.0, "counter"),
            ("pressure", "cpu", "some_us", second * 900_000.0, "counter"),
            ("diskstats", "sda", "read_bytes", second * 1e6, "counter"),
            ("diskstats", "sdb", "read_bytes", 7.0, "counter"),
            ("loadavg", "", "load_1min", 1.5, "gauge"),
        )
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "samples" / "part-00000.parquet")
    drawn = {(one["source"], one["target"]): one for one in page_of(folder)["samples"]}
    assert set(drawn) == {("pressure", "io"), ("diskstats", "sda"), ("loadavg", "")}
    assert drawn["pressure", "io"]["unit"] == "share" and drawn["pressure", "io"]["points"][0] == [
        2 * 10**9,
        0.25,
    ]
    assert drawn["diskstats", "sda"]["unit"] == "byterate" and drawn["diskstats", "sda"]["points"][-1] == [
        10**10,
        1e6,
    ]


@pytest.mark.parametrize(
    ("how", "said"), [("strace", True), ("ptrace", True), ("strace+truss", True), ("truss", False)]
)
def test_the_verdict_mentions_that_tracing_slows_calls(tmp_path: Path, how: str, said: bool) -> None:
    folder = make_store(tmp_path / "made.iodock", Shape(events=200))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["captured"]["how"] = how
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with Store.open(folder) as store:
        assert ("Tracing itself adds a few µs to every call" in report_html(store)) == said


MAPPED_LOG = """\
7 1.000000 openat(AT_FDCWD, "/usr/lib/libc.so.6", O_RDONLY) = 3 <0.000010>
7 2.000000 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f0000000000 <0.000010>
7 3.000000 openat(AT_FDCWD, "/data/<big>.npy", O_RDONLY) = 4 <0.000010>
7 4.000000 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 4, 0) = 0x7f0000001000 <0.000010>
7 5.000000 openat(AT_FDCWD, "/data/failed", O_RDONLY) = 5 <0.000010>
7 6.000000 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 5, 0) = -1 ENODEV (No such device) <0.000010>
"""


@pytest.mark.parametrize("more", [0, 30])
def test_mapped_files_are_named_next_to_the_unseen_accesses(tmp_path: Path, more: int) -> None:
    lines = [MAPPED_LOG]
    for number in range(more):
        lines.append(
            f'7 {7 + number}.000000 openat(AT_FDCWD, "/data/part-{number:02}", O_RDONLY) = 6 <0.000010>\n'
        )
        lines.append(
            f"7 {7 + number}.1 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 6, 0) = 0x7f0000002000 <0.000010>\n"
        )
    (tmp_path / "log").write_text("".join(lines))
    import_logs([str(tmp_path / "log")], tmp_path / "run.iodock")
    with Store.open(tmp_path / "run.iodock") as store:
        page = report_html(store).split('id="unseen"')[1].split("<script")[0]
    assert "/data/&lt;big&gt;.npy" in page and "/data/failed" not in page
    assert ("/usr/lib/libc.so.6" in page) == (more == 0)
    assert ("and 12 more" in page) == (more == 30)
