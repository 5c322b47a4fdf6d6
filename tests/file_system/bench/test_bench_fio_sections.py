"""Tests fio's results with several processes, sections and runs: which belong together, and what is
unknown."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from iodock.file_system.health import readers
from iodock.file_system.health.measurements import Cache, Cell, MeasurementError, Measurements, Unit
from places import ROOT

FIXTURES = ROOT / "fixtures" / "bench"
MIB = 1 << 20


def document(*jobs: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"fio version": "fio-3.33", "jobs": list(jobs), **others}


def entry(operation: str, moved: int, options: dict[str, str], **others: Any) -> dict[str, Any]:
    done = {"io_bytes": moved, "bw_bytes": moved, "runtime": 1000, "total_ios": moved >> 16}
    return {"jobname": "a", "groupid": 0, "error": 0, "job options": options, operation: done, **others}


def read(folder: Path, *documents: dict[str, Any]) -> Measurements:
    path = folder / "fio.json"
    path.write_text("\n".join(json.dumps(one, indent=1) for one in documents))
    return readers.read(path)


def by_operation(measured: Measurements) -> dict[str, Cell]:
    return {one.operation: one for one in measured.cells}


def test_the_processes_of_an_entry_are_its_numjobs(tmp_path: Path) -> None:
    """fio's JSON does not contain `--group_reporting` if the option was given without a value."""
    content = (FIXTURES / "fio-3.33-numjobs.json").read_text()
    assert "group_reporting" not in content
    [cell] = readers.read(FIXTURES / "fio-3.33-numjobs.json").cells
    assert (cell.processes, cell.size_bytes, cell.volume_bytes) == (4, 64 << 10, 16 * MIB)
    options = {"rw": "write", "bs": "64k", "numjobs": "2"}
    [cell] = read(tmp_path, document(entry("write", MIB, options), entry("write", MIB, options))).cells
    assert (cell.processes, cell.value) == (2, 2 * MIB)
    three = {**options, "numjobs": "3"}
    [cell] = read(tmp_path, document(entry("write", MIB, three), entry("write", MIB, three))).cells
    assert cell.processes is None


@pytest.mark.parametrize("name", ["fio-3.33-sections.json", "fio-3.33-sections.txt"])
def test_sections_in_one_result_have_unknown_options(name: str) -> None:
    """Section a reads 64 KiB with 2 processes, and b writes 4 KiB with 3. fio reports a with the options of
    b."""
    measured = readers.read(FIXTURES / name)
    found = by_operation(measured)
    assert [found[one].volume_bytes for one in ("read", "write")] == [16 * MIB, 24 * MIB]
    for cell in found.values():
        assert (cell.size_bytes, cell.processes, cell.variant) == (None, None, {"job": "a"})
        assert cell.cache is Cache.UNKNOWN
    assert any("sections that group_reporting made one result" in one for one in measured.protocol.notes)


@pytest.mark.parametrize(
    ("options", "is_merged"),
    [
        ({"name": "a", "rw": "write", "bs": "64k"}, False),
        ({"name": "b", "rw": "write", "bs": "64k"}, True),
        ({"rw": "randread", "bs": "64k"}, True),
        ({"rw": "write", "bs": "4k"}, True),
        ({"rw": "write", "bs": "1m"}, True),
        ({"rw": "write", "bsrange": "4k-1m"}, False),
        ({"rw": "read", "bs": "64k", "verify": "crc32c"}, False),
        ({"rw": "randwrite:8", "bs": "64k"}, False),
    ],
)
def test_several_sections_in_one_entry_are_recognised(
    tmp_path: Path, options: dict[str, str], is_merged: bool
) -> None:
    measured = read(tmp_path, document(entry("write", MIB, options)))
    assert measured.cells[0].processes == (None if is_merged else 1)
    assert any("group_reporting" in one for one in measured.protocol.notes) is is_merged


def test_sections_with_the_same_name_keep_their_options() -> None:
    """The file has a write, a read and a random read, all named a. `102kB` may be 101888 or 102400 bytes."""
    cells = readers.read(FIXTURES / "fio-3.33-kb-base.txt").cells
    assert [(one.variant["pattern"], one.size_bytes) for one in cells] == [
        ("write", 65536),
        ("read", None),
        ("randread", 1_024_000),
    ]


def test_sections_without_a_header_are_skipped(tmp_path: Path) -> None:
    """With `--output`, fio prints the first sections of its command line elsewhere."""
    text = (FIXTURES / "fio-3.33-kb-base.txt").read_text()
    (tmp_path / "fio.txt").write_text(re.sub(r"^a: \(g=[01]\).*\n", "", text, flags=re.MULTILINE))
    cells = readers.read(tmp_path / "fio.txt").cells
    assert [one.variant.get("pattern") for one in cells] == [None, None, "randread"]


def test_sections_with_the_same_name_and_group_are_not_added_up(tmp_path: Path) -> None:
    large = entry("write", MIB, {"rw": "write", "bs": "64k"})
    small = entry("write", MIB, {"rw": "write", "bs": "4k"})
    small["write"]["total_ios"] = MIB >> 12
    cells = read(tmp_path, document(large, small)).cells
    assert [(one.size_bytes, one.value) for one in cells] == [(64 << 10, MIB), (4 << 10, MIB)]


def test_terse_lines_have_an_unknown_number_of_processes() -> None:
    for one in readers.read(FIXTURES / "fio-3.33-terse-4.txt").cells:
        assert one.processes is None


def test_operations_on_files_transfer_no_bytes(tmp_path: Path) -> None:
    done = json.loads((FIXTURES / "fio-3.33-filecreate.json").read_text())["jobs"][0]["write"]
    [cell] = readers.read(FIXTURES / "fio-3.33-filecreate.json").cells
    assert (cell.operation, cell.unit, cell.value) == ("file-create", Unit.OPERATIONS_PER_S, done["iops"])
    assert (cell.size_bytes, cell.volume_bytes, cell.cache) == (None, None, None)
    nowhere = entry("write", MIB, {"rw": "write", "ioengine": "null", "bs": "64k"})
    measured = read(tmp_path, document(nowhere, entry("read", MIB, {"rw": "read", "bs": "64k"})))
    assert [one.operation for one in measured.cells] == ["read"]
    assert any("engine null" in one for one in measured.protocol.notes)


@pytest.mark.parametrize(
    ("options", "label"),
    [
        ({"fsync": "100000"}, Cache.PAGE_CACHE),
        ({"fdatasync": "17"}, Cache.PAGE_CACHE),
        ({"fsync": "16"}, None),
        ({"fsync": "100000", "end_fsync": "1"}, None),
    ],
)
def test_a_sync_interval_above_the_number_of_writes_means_no_sync(
    tmp_path: Path, options: dict[str, str], label: Cache | None
) -> None:
    [cell] = read(tmp_path, document(entry("write", MIB, {"rw": "write", "bs": "64k", **options}))).cells
    assert cell.cache is label


@pytest.mark.parametrize("version", ["2.20", "2.21", "3.1", "3.2"])
def test_volume_and_rate_of_all_fio_versions_are_read(tmp_path: Path, version: str) -> None:
    """fio 2.21 added `io_kbytes` and changed the unit of `io_bytes` to bytes. fio 3.2 added `bw_bytes`."""
    done: dict[str, Any] = {
        "io_bytes": 102400 if version == "2.20" else 104857600,
        "bw": 102400,
        "runtime": 1000,
    }
    if version != "2.20":
        done["io_kbytes"] = 102400
    if version == "3.2":
        done["bw_bytes"] = 104857600
    job = {"jobname": "a", "groupid": 0, "job options": {"rw": "write", "bs": "1m"}, "write": done}
    [cell] = read(tmp_path, {"fio version": f"fio-{version}", "jobs": [job]}).cells
    assert (cell.volume_bytes, cell.value) == (104857600, 104857600)


@pytest.mark.parametrize(
    ("options", "moved", "size"),
    [
        ({"bs": "64k"}, 64 << 14, 65536),
        ({"bs": "64ki"}, 64000 << 4, 64000),
        ({"bs": "64k", "kb_base": "1000"}, 64000 << 4, 64000),
        ({"bs": "64k", "kb_base": "1000"}, 64 << 14, 65536),
        ({"bs": "4k,64k,4k", "bs_is_seq_rand": "1"}, MIB, None),
    ],
)
def test_prefixes_of_sizes_are_converted(
    tmp_path: Path, options: dict[str, str], moved: int, size: int | None
) -> None:
    job = entry("write", moved, {"rw": "write", **options})
    job["write"]["total_ios"] = 16
    [cell] = read(tmp_path, document(job)).cells
    assert cell.size_bytes == size


def run(timestamp: int, moved: int, runtime: int, elapsed: int = 61, **others: Any) -> dict[str, Any]:
    job = entry("write", moved, {"rw": "write", "bs": "64k"}, elapsed=elapsed)
    job["write"] |= {"runtime": runtime, "bw_bytes": moved * 1000 // runtime}
    return document(job, timestamp=timestamp, **others)


HOSTS = [
    (run(1795000000, 6_291_456_000, 60000), run(1795000000, 6_920_601_600, 60001)),
    (run(1795000000, 6_291_456_000, 60000), run(1795000001, 6_353_000_000, 60001)),
    (run(1795000000, 6_291_456_000, 60000), run(1795000015, 6_291_456_000, 75000, 76)),
    (
        run(1795000000, 6_291_456_000, 60000, timestamp_ms=1795000000100),
        run(1795000000, 6_353_000_000, 60002, timestamp_ms=1795000000500),
    ),
]


@pytest.mark.parametrize("hosts", HOSTS, ids=["at-once", "a-second-later", "same-size", "milliseconds"])
@pytest.mark.parametrize("turned", [False, True], ids=["in-order", "turned"])
def test_simultaneous_runs_are_refused(tmp_path: Path, hosts: tuple[Any, Any], turned: bool) -> None:
    """The document is made up from fio's JSON and contains the results of two hosts."""
    with pytest.raises(MeasurementError, match="ran at the same time") as raised:
        read(tmp_path, *(hosts[::-1] if turned else hosts))
    assert "fio --client" in str(raised.value.hint)


def test_alternating_runs_of_two_hosts_are_refused(tmp_path: Path) -> None:
    first, second = run(1795000000, 6_291_456_000, 60000), run(1795000100, 6_291_456_000, 60000)
    other = run(1795000003, 6_300_000_000, 60000)
    with pytest.raises(MeasurementError, match="at the same time"):
        read(tmp_path, first, second, other)
    assert len(read(tmp_path, first, second).cells[0].values) == 2


def test_texts_of_two_hosts_are_refused(tmp_path: Path) -> None:
    head = "fio-3.33\na: (groupid=0, jobs=1): err= 0: pid={}: Sat Nov 28 06:23:{} 2026\n"
    line = "  write: IOPS=1, BW=100MiB/s (105MB/s)(6000MiB/60000msec)\nRun status group 0 (all jobs):\n"
    path = tmp_path / "fio.txt"
    path.write_text(head.format(7, "14") + line + head.format(9, "15") + line)
    with pytest.raises(MeasurementError, match="at the same time"):
        readers.read(path)
    path.write_text(head.format(7, "14") + line + head.format(9, "15").replace("06:23", "06:24") + line)
    assert len(readers.read(path).cells[0].values) == 2


def test_status_updates_of_one_run_stay_one_run(tmp_path: Path) -> None:
    """fio 3.33 can write the last status in the same second as the previous one. A pause in the output does
    not end a run."""
    states = [
        run(1795000002, 3_604_480, 863, 2, timestamp_ms=1795000002639),
        run(1795000003, 7_864_320, 1863, 3, timestamp_ms=1795000003653),
        run(1795000004, 7_864_320, 2863, 4, timestamp_ms=1795000004653),
        run(1795000004, 8_388_608, 2994, 4, timestamp_ms=1795000004788),
    ]
    measured = read(tmp_path, *states)
    assert measured.cells[0].volume_bytes == 8_388_608
    assert any("documents of one run: 4" in one for one in measured.protocol.notes)
