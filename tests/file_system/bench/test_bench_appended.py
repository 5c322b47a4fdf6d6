"""Tests files with the output of several runs: each run has its own command, unit and number of processes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from iodock.file_system.health import readers
from iodock.file_system.health.measurements import Cache, Cell, MeasurementError, Measurements, Unit
from places import ROOT

FIXTURES = ROOT / "fixtures" / "bench"
SEVERAL = "runs of 2 commands in one file"


def read(folder: Path, *texts: str) -> Measurements:
    path = folder / "out.txt"
    path.write_text("".join(texts))
    return readers.read(path)


def caches(measured: Measurements, operation: str) -> list[Cache | None]:
    return [one.cache for one in measured.cells if one.operation == operation]


def with_command(name: str, pattern: str, options: str) -> str:
    """Returns a fixture with other OPTIONS in its command line."""
    return re.sub(pattern, lambda found: f"{found[1]} {options}", (FIXTURES / name).read_text(), count=1)


IOR = r"(?m)^(Command line(?: used)?\s*:\s*\S+).*$"
IOR_JSON = r'("Command line"\s*:\s*"[^" ]+)'


@pytest.mark.parametrize("options", ["--posix.odirect -w -r", "-e -w -r"])
@pytest.mark.parametrize("name", ["ior-4.0.0-posix.txt", "ior-3.3.0-posix.txt", "ior-2.10.3-posix.txt"])
def test_each_ior_run_in_a_file_has_its_own_command(tmp_path: Path, name: str, options: str) -> None:
    first, second = with_command(name, IOR, options), with_command(name, IOR, "-w -r")
    measured = read(tmp_path, first, second)
    half = len(caches(measured, "write")) // 2
    assert caches(measured, "write") == [None] * half + [Cache.PAGE_CACHE] * half
    is_direct = "odirect" in options
    assert caches(measured, "read")[half:] == [Cache.UNKNOWN] * half
    assert (Cache.UNCACHED in caches(measured, "read")[:half]) is is_direct
    assert any(SEVERAL in note for note in measured.protocol.notes)
    turned = read(tmp_path, second, first)
    assert caches(turned, "write") == [Cache.PAGE_CACHE] * half + [None] * half
    alone = re.sub(IOR, "", second)
    assert caches(read(tmp_path, first, alone), "write")[half:] == [Cache.UNKNOWN] * half


def test_each_ior_json_run_in_a_file_has_its_own_command(tmp_path: Path) -> None:
    text = (FIXTURES / "ior-3.3.0.json").read_text()
    text = re.sub(r'"(useO_DIRECT|fsync|fsyncPerWrite)"\s*:\s*\w+,', "", text)
    first = re.sub(IOR_JSON, r"\1 -e", text, count=1)
    measured = read(tmp_path, first, "\n", text)
    half = len(caches(measured, "write")) // 2
    assert half and caches(measured, "write")[:half] == [None] * half
    assert caches(measured, "write")[half:] == [Cache.PAGE_CACHE] * half


def iozone(options: str, unit: str = "Output is in Kbytes/sec") -> str:
    text = with_command("iozone-auto.txt", r"(Command line used: \S+).*", options)
    return re.sub(r"Output is in .*", unit, text)


OPERATIONS = "OPS Mode. Output is in operations per second."


def units(measured: Measurements) -> list[Unit]:
    return [one.unit for one in measured.cells]


def test_each_iozone_run_in_a_file_has_its_own_unit(tmp_path: Path) -> None:
    plain, counted = iozone("-a"), iozone("-a -O", OPERATIONS)
    measured = read(tmp_path, plain, counted)
    half = len(measured.cells) // 2
    assert units(measured) == [Unit.BYTES_PER_S] * half + [Unit.OPERATIONS_PER_S] * half
    assert [one.value for one in measured.cells[:half]] == [one.value * 1024 for one in measured.cells[half:]]
    assert units(read(tmp_path, counted, plain)) == [Unit.OPERATIONS_PER_S] * half + [Unit.BYTES_PER_S] * half
    assert any(SEVERAL in note for note in measured.protocol.notes)


def test_each_iozone_run_in_a_file_has_its_own_command(tmp_path: Path) -> None:
    direct, plain = iozone("-a -I"), iozone("-a -s 1m")
    for banner in (True, False):
        second = plain if banner else plain[plain.index("\tCommand line used") :]
        # The second run has files of another size, because equal cells would count as repeats.
        second = re.sub(r"(?m)^( +)102400( +\d+ )", r"\g<1>777777\2", second)
        cells = read(tmp_path, direct, second).cells
        assert labels(cells, "777777") == {Cache.PAGE_CACHE, Cache.UNKNOWN}
        assert Cache.PAGE_CACHE not in labels(cells, None)


def labels(cells: tuple[Cell, ...], kib: str | None) -> set[Cache | None]:
    """Returns the cache labels of the cells with files of this size, or of all others if KIB is None."""
    said = str(int(kib or "777777") << 10)
    return {one.cache for one in cells if (one.variant["file_bytes"] == said) is (kib is not None)}


def test_unfinished_iozone_runs_are_counted(tmp_path: Path) -> None:
    text = iozone("-a")
    cut = text.replace("iozone test complete.", "")
    notes = read(tmp_path, text, cut).protocol.notes
    assert any("did not end or are truncated: 1 of 2" in note for note in notes)


def test_each_md_workbench_run_has_its_own_number_of_processes(tmp_path: Path) -> None:
    first = (FIXTURES / "md-workbench.txt").read_text()
    second = first.replace("Nodemap: 11", "Nodemap: 1100").replace('"-I"', '"-S" "1000" "-I"')
    measured = read(tmp_path, first, second)
    assert {one.processes: one.variant["file_bytes"] for one in measured.cells} == {2: "3901", 4: "1000"}
    assert {one.processes: one.nodes for one in measured.cells} == {2: 1, 4: None}
    assert any(SEVERAL in note for note in measured.protocol.notes)


@pytest.mark.parametrize("seconds", ["-3.32", "nan", "-inf", "1774012345.5"])
def test_a_rate_over_an_impossible_time_is_left_out(tmp_path: Path, seconds: str) -> None:
    head = (
        "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),numTasks,iter"
    )
    head += "\n"
    row = "{},6162.0,1,1,1,1024.0,0,0,0,{},2,0\n"
    measured = read(tmp_path, head, row.format("write", seconds), row.format("read", "0.66"))
    assert [one.operation for one in measured.cells] == ["read"]
    assert any("so its rate is wrong too" in note for note in measured.protocol.notes)
    with pytest.raises(MeasurementError, match="so its rate is wrong too"):
        read(tmp_path, head, row.format("write", seconds))


@pytest.mark.parametrize(
    ("name", "pattern", "replacement"),
    [
        ("ior-4.0.0.json", r'("totalTime"\s*:\s*)[\d.]+', r"\g<1>-1.5"),
        ("fio-3.33.json", r'("runtime" : )[1-9]\d*', r"\g<1>-5"),
        ("fio-3.33-group.txt", r"/\d+msec", "/-5msec"),
        ("h5bench-write.txt", r"(Raw write time[:=]\s*)\S+", r"\g<1>-1.5"),
        ("elb.json", r'("elapsed_time_ms":\s*)"\d+"', r'\g<1>"-5"'),
        ("io500/2026.11.21-03.00.00/result_summary.txt", r"time \S+ seconds", "time -5.0 seconds"),
    ],
)
def test_a_negative_time_is_counted_as_damaged(
    tmp_path: Path, name: str, pattern: str, replacement: str
) -> None:
    text = re.sub(pattern, replacement, (FIXTURES / name).read_text())
    path = tmp_path / Path(name).name
    path.write_text(text)
    try:
        said = " ".join(readers.read(path).protocol.notes)
    except MeasurementError as error:
        said = str(error)
    assert "a duration below 0, or not a number, so its rate is wrong too" in said
