"""Tests page faults in mapped files: recorded live, shown by `show maps`, and judged by `mmap-random`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iodock
from iodock.program.capture import import_logs
from iodock.program.diagnosis import diagnose
from iodock.program.relations import faults
from iodock.program.store import Store
from iodock.program.store.anonymous import anonymous_copy
from iodock.program.views.report.run import report_html
from made_store import without_checksums
from places import FIXTURES
from recorded import bpf_unavailable

IODOCK = [sys.executable, "-m", "iodock"]
BACKENDS = ("ptrace", "rewrite")
MIB = 1 << 20

live = pytest.mark.skipif(
    sys.platform != "linux" or os.uname().machine != "x86_64" or not shutil.which("gcc"),
    reason="live recording is for x86-64 Linux, and gcc makes the program",
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("program") / "touch_map"
    source = FIXTURES / "programs" / "touch_map.c"
    subprocess.run(["gcc", "-O1", "-pthread", "-o", made, source], check=True)
    return made


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("data") / "data"
    with path.open("wb") as out:
        for _ in range(96):
            out.write(os.urandom(MIB))
        out.flush()
        os.fsync(out.fileno())
    yield path
    path.unlink()


def record(folder: Path, command: Sequence[object], *options: str) -> tuple[Path, str]:
    """Returns the store and the program's output. Skips the test if the system refuses the recording."""
    store = folder / "run.iodock"
    arguments = [
        *IODOCK,
        "record",
        "--quiet",
        "--force",
        "-o",
        str(store),
        *options,
        "--",
        *map(str, command),
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, check=True)
    if state(store) == "refused":
        pytest.skip("this system does not allow sampling page faults")
    return store, done.stdout


def state(store: Path) -> str:
    found: str = json.loads((store / "manifest.json").read_text())["captured"]["page_faults"]
    return found


def shown(store: Path, file: Path, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        iodock.open(store).show("maps", file=str(file), **options).to_arrow().to_pylist()
    )
    return rows


def pages(text: str) -> set[int]:
    return {int(line) for line in text.split()}


def touched(store: Path, file: Path) -> set[int]:
    found = shown(store, file, ranges=True)
    return {page for row in found for page in range(row["offset_bytes"] // 4096, row["end_bytes"] // 4096)}


def is_cold(row: dict[str, Any]) -> bool:
    return bool(row["major_faults"] >= 0.9 * row["faults"])


@pytest.mark.whole
@live
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_cold_random_readers_pages_are_known_exactly(
    program: Path, data: Path, tmp_path: Path, backend: str
) -> None:
    store, printed = record(tmp_path, [program, "random", data, 3000], "--backend", backend)
    (row,) = shown(store, data)
    if not is_cold(row):
        pytest.skip("the file could not be dropped from memory here")
    assert touched(store, data) == pages(printed)
    assert row["pages"] == len(pages(printed)) and row["pattern"] == "random" and row["maps"] == 1
    assert row["touched_bytes"] == 4096 * row["pages"]


@pytest.mark.whole
@live
@pytest.mark.parametrize("backend", BACKENDS)
def test_bytes_of_a_sequential_reader_are_exact(
    program: Path, data: Path, tmp_path: Path, backend: str
) -> None:
    store, printed = record(tmp_path, [program, "sequential", data], "--backend", backend)
    (row,) = shown(store, data)
    assert row["touched_bytes"] == pytest.approx(int(printed), rel=0.02)
    assert row["pattern"] == "sequential"
    assert faults_found(store) == []


@pytest.mark.whole
@live
@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_and_children_of_a_watched_process_are_watched(
    program: Path, data: Path, tmp_path: Path, backend: str
) -> None:
    store, printed = record(tmp_path, [program, "family", data, 300], "--backend", backend)
    (row,) = shown(store, data)
    if not is_cold(row):
        pytest.skip("the file could not be dropped from memory here")
    assert row["processes"] == 2
    assert touched(store, data) == pages(printed) and len(pages(printed)) == 600
    with Store.open(store) as opened:
        tasks = opened.rows("SELECT count(DISTINCT utid) AS n FROM faults WHERE file_id = "
                            "(SELECT file_id FROM files WHERE name LIKE '%/data')")  # fmt: skip
    assert tasks[0]["n"] == 2


@pytest.mark.whole
@live
def test_a_map_of_a_linked_name_belongs_to_the_opened_file(program: Path, data: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(data)
    store, _ = record(tmp_path, [program, "sequential", link])
    assert [row["file"] for row in shown(store, link)] == [str(link)]
    assert shown(store, data) == []


@pytest.mark.whole
@live
def test_programs_without_data_maps_are_not_sampled(program: Path, data: Path, tmp_path: Path) -> None:
    store, _ = record(tmp_path, [sys.executable, "-c", "pass"])
    assert state(store) == "not-needed" and not (store / "faults").exists()
    small = tmp_path / "small"
    small.write_bytes(bytes(MIB - 1))
    store, _ = record(tmp_path, [program, "sequential", small])
    assert state(store) == "not-needed"
    with Store.open(store) as opened:
        assert faults.sees_page_faults(opened) and not faults.are_known(opened)


@pytest.mark.whole
@live
def test_page_faults_always_and_never_are_respected(program: Path, data: Path, tmp_path: Path) -> None:
    store, _ = record(tmp_path, [program, "sequential", data], "--page-faults", "never")
    assert state(store) == "off" and not (store / "faults").exists()
    (row,) = shown(store, data)
    assert row["faults"] is None and row["maps"] == 1
    store, _ = record(tmp_path, [sys.executable, "-c", "pass"], "--page-faults", "always")
    with Store.open(store) as opened:
        found = opened.rows("SELECT count(*) AS n FROM faults JOIN files USING (file_id) "
                            "WHERE name LIKE '%libc.so.6'")  # fmt: skip
    assert found[0]["n"] > 0


@pytest.mark.whole
@live
def test_bpf_reports_vanished_maps_and_always_misses_none(tmp_path: Path) -> None:
    if reason := bpf_unavailable():
        pytest.skip(reason)
    file = tmp_path / "data"
    file.write_bytes(bytes(MIB))
    command = [sys.executable, "-S", "-c", f"""
import mmap
with open({str(file)!r}, "rb") as data, mmap.mmap(data.fileno(), 0, prot=mmap.PROT_READ) as map:
    sum(map[page] for page in range(0, {MIB}, 4096))
"""]  # fmt: skip
    store, _ = record(tmp_path, command, "--backend", "bpf")
    # By default the recorder examines a map after the mmap call. The short program may have removed the map
    # by then.
    assert state(store) in ("too-late", "recorded")
    store, _ = record(tmp_path, command, "--backend", "bpf", "--page-faults", "always")
    (row,) = shown(store, file)
    assert (state(store), row["touched_bytes"]) == ("recorded", MIB)


def faults_found(store: Path) -> list[str]:
    with Store.open(store) as opened:
        return [one.rule for one in diagnose(opened).findings if one.rule == "mmap-random"]


SECOND = 1_000_000_000


def made_store(
    folder: Path, offsets: Sequence[int], *, major: bool = True, name: str = "/data/index"
) -> Path:
    """Imports a run of 10 s whose only task has page faults at these offsets of one file, evenly distributed
    over time."""
    folder.mkdir(exist_ok=True)
    log = folder / "log"
    log.write_text(
        f'7 0.000000 openat(AT_FDCWD, "{name}", O_RDONLY) = 3 <0.000010>\n'
        "7 0.000100 fstat(3, {st_mode=S_IFREG|0644, st_size=1073741824, ...}) = 0 <0.000010>\n"
        "7 0.001000 mmap(NULL, 1073741824, PROT_READ, MAP_SHARED, 3, 0) = 0x7f0000000000 <0.000010>\n"
        "7 10.000000 close(3) = 0 <0.000010>\n"
    )
    import_logs([str(log)], folder / "made.iodock")
    store = folder / "made.iodock"
    with Store.open(store) as opened:
        (file,) = opened.rows(f"SELECT file_id FROM files WHERE name = '{name}'")
    count = len(offsets)
    table = pa.table(
        {
            "ts": pa.array([SECOND * (index + 1) * 9 // count for index in range(count)], pa.int64()),
            "utid": pa.array([0] * count, pa.uint32()),
            "file_id": pa.array([file["file_id"]] * count, pa.uint32()),
            "offset_bytes": pa.array(offsets, pa.int64()),
            "is_major": pa.array([major] * count, pa.bool_()),
        }
    )
    (store / "faults").mkdir()
    pq.write_table(table, store / "faults" / "part-00000.parquet")
    without_checksums(store)
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["captured"]["page_faults"] = "recorded"
    manifest["tables"]["faults"] = count
    (store / "manifest.json").write_text(json.dumps(manifest))
    return store


def scattered(count: int) -> list[int]:
    return [(index * 150001 % 262144) * 4096 for index in range(count)]


def test_gaps_count_only_between_rising_addresses(tmp_path: Path) -> None:
    page = 4096
    run = [index * 16 * page for index in range(10)]
    alone = [500 * page, 505 * page, 300 * page]
    store = made_store(tmp_path, [*run, *alone])
    found = shown(store, Path("/data/index"), ranges=True)
    assert [(row["offset_bytes"] // page, row["end_bytes"] // page, row["faults"]) for row in found] == [
        (0, 160, 10), (300, 301, 1), (500, 501, 1), (505, 506, 1),
    ]  # fmt: skip
    (row,) = shown(store, Path("/data/index"))
    assert (row["faults"], row["pages"], row["ranges"]) == (13, 13, 4)
    assert row["touched_bytes"] == 163 * page


def test_an_anonymous_copy_keeps_page_faults(tmp_path: Path) -> None:
    copy = anonymous_copy(made_store(tmp_path, scattered(100)), tmp_path / "copy.iodock")
    (row,) = iodock.open(copy).show("maps").to_arrow().to_pylist()
    assert row["faults"] == 100 and "index" not in row["file"]


@pytest.mark.usefixtures("few_rules")
def test_the_report_lists_accessed_parts_of_mapped_files(tmp_path: Path) -> None:
    with Store.open(made_store(tmp_path, [index * 65536 for index in range(10)])) as store:
        page = report_html(store)
        japanese = report_html(store, "ja")
    section = page.split("Read and written through maps")[1].split("</table>")[0]
    assert "/data/index" in section and "in order" in section and "640 KiB" in section
    assert "マップを通じた読み書き" in japanese
    with Store.open(made_store(tmp_path / "empty", [])) as store:
        assert "Read and written through maps" not in report_html(store)


@pytest.mark.whole
@live
@pytest.mark.parametrize("backend", BACKENDS)
def test_page_faults_of_a_killed_recorder_are_kept(
    program: Path, data: Path, tmp_path: Path, backend: str
) -> None:
    store, _ = record(tmp_path, [program, "sequential", data], "--backend", backend)
    shutil.rmtree(store)
    command = f"{program} sequential {data}; sleep 1.5; kill -9 $PPID; sleep 5"
    arguments = [
        *IODOCK,
        "record",
        "--quiet",
        "-o",
        str(store),
        "--backend",
        backend,
        "--",
        "sh",
        "-c",
        command,
    ]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert done.returncode == -9
    (row,) = shown(store, data)
    assert row["touched_bytes"] == pytest.approx(96 * MIB, rel=0.02)


def test_gaps_of_large_folios_count_if_nothing_waited(tmp_path: Path) -> None:
    offsets = [index * MIB for index in range(10)]
    (row,) = shown(made_store(tmp_path / "minor", offsets, major=False), Path("/data/index"))
    assert row["touched_bytes"] == 10 * MIB and row["pattern"] == "sequential"
    twice = [offset for offset in offsets for _ in "rw"]
    (row,) = shown(made_store(tmp_path / "twice", twice, major=False), Path("/data/index"))
    assert (row["touched_bytes"], row["faults"]) == (10 * MIB, 20)
    (row,) = shown(made_store(tmp_path / "major", offsets), Path("/data/index"))
    assert row["touched_bytes"] == 10 * 4096 and row["pattern"] == "rising"
    aside = [offset + 4096 for offset in offsets]
    (row,) = shown(made_store(tmp_path / "aside", aside, major=False), Path("/data/index"))
    assert row["touched_bytes"] == 10 * 4096


@pytest.mark.parametrize("count", [60, 500, 5000])
def test_random_page_faults_that_wait_are_found(tmp_path: Path, count: int) -> None:
    assert faults_found(made_store(tmp_path, scattered(count))) == ["mmap-random"]


def test_the_cost_of_page_faults_may_exceed_the_time_in_calls(tmp_path: Path) -> None:
    with Store.open(made_store(tmp_path, scattered(5000))) as opened:
        (found,) = (one for one in diagnose(opened).findings if one.rule == "mmap-random")
    assert found.gain is not None and found.cost_seconds is not None
    assert found.gain.high_seconds == pytest.approx(0.9 * found.cost_seconds, rel=0.05)


def rays(count: int) -> list[int]:
    """Returns the offsets of groups of eight accesses. Each group begins anywhere and goes forward in equal
    steps."""
    starts = scattered(count)
    return [(start + step * 200 * 4096) % (1 << 30) for start in starts for step in range(8)]


@pytest.mark.parametrize("count", [20, 600])
def test_short_rising_runs_at_random_places_are_found(tmp_path: Path, count: int) -> None:
    assert faults_found(made_store(tmp_path, rays(count))) == ["mmap-random"]


@pytest.mark.parametrize(
    ("offsets", "major", "name"),
    [
        ([index * 65536 for index in range(5000)], True, "/data/in-order"),
        ([at * MIB + turn * 65536 for turn in range(4) for at in range(1024)], True, "/data/four-times"),
        (rays(5), True, "/data/few-pieces"),
        (scattered(5000), False, "/data/in-memory"),
        (scattered(5000), True, "/usr/lib/big.so"),
        (scattered(5000), True, "/data/base.sqlite"),
    ],
)
def test_other_access_to_maps_gives_no_finding(
    tmp_path: Path, offsets: list[int], major: bool, name: str
) -> None:
    assert faults_found(made_store(tmp_path, offsets, major=major, name=name)) == []


def test_page_faults_of_a_log_are_reported_as_unknown(tmp_path: Path) -> None:
    store = made_store(tmp_path, scattered(10))
    shutil.rmtree(store / "faults")
    manifest = json.loads((store / "manifest.json").read_text())
    del manifest["captured"]["page_faults"], manifest["tables"]["faults"]
    (store / "manifest.json").write_text(json.dumps(manifest))
    answer = iodock.open(store).show("maps")
    assert any("not recorded" in note for note in answer.notes)
    with Store.open(store) as opened:
        assert "mmap-random" in {one.rule for one in diagnose(opened).silent}
