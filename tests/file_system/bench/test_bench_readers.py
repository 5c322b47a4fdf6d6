"""Tests readers of other benchmarks: each fixture is compared with numbers that the program printed elsewhere
in it."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from statistics import stdev

import pytest

from iodock.file_system.health import measurements_json, readers
from iodock.file_system.health.measurements import Cache, Cell, MeasurementError, Measurements, Unit
from iodock.file_system.health.readers.base import Source, option, size, words
from iodock.shared.errors import IodockError, RequestError
from places import ROOT

FIXTURES = ROOT / "fixtures" / "bench"
MIB = 1 << 20
REFUSED = (
    *("ior-3.0.1.json", "ior-3.2.1-posix.txt", "README.md", "iozone-3.489-disk-full-t.txt"),
    *("iozone-3.489-no-folder.txt", "iozone-3.489-microseconds.txt"),
)
FILES = sorted(path for path in FIXTURES.iterdir() if path.name not in REFUSED)
IOR_TEXT = [path for path in FILES if re.match(r"ior-.*\.txt", path.name)]
IOR_JSON = [path for path in FILES if re.match(r"ior-.*\.json", path.name)]


def cell(measured: Measurements, operation: str, **wanted: object) -> Cell:
    """Returns the only cell of an operation with these values."""
    found = [
        one
        for one in measured.cells
        if one.operation == operation and all(getattr(one, name) == value for name, value in wanted.items())
    ]
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_benchmark_fixture_is_read(path: Path) -> None:
    measured = readers.read(path)
    assert measured.cells
    assert measured.protocol.tool
    for one in measured.cells:
        assert one.value > 0
        assert one.source and str(path) in one.source
        reads = one.operation == "read"
        assert (one.cache is not None) or not reads
    content = measurements_json.to_json(measured)
    assert measurements_json.from_json(content, "x").cells == measured.cells


@pytest.mark.parametrize("path", IOR_TEXT, ids=lambda path: path.name)
def test_ior_text_gives_the_summary_of_ior(path: Path) -> None:
    """The expected values are IOR's own mean, minimum and maximum in MiB/s, from its last table."""
    measured = readers.read(path)
    for operation in ("write", "read"):
        found = re.findall(
            rf"^{operation}\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)", path.read_text(), re.M
        )
        most, least, mean, deviation = (float(one) for one in found[-1])
        got = cell(measured, operation)
        assert got.value / MIB == pytest.approx(mean, rel=2e-4)
        assert got.best / MIB == pytest.approx(most, rel=2e-4)
        assert (got.processes, got.nodes, got.size_bytes) == (2, 1, MIB)
        assert min((*got.values, got.minimum or got.value)) / MIB == pytest.approx(least, rel=2e-4)
        if got.repeats == 2:
            # IOR prints the population's standard deviation, and iodock that of the sample.
            assert got.spread == pytest.approx(deviation * 2**0.5 / mean, rel=1e-2)


@pytest.mark.parametrize("path", IOR_JSON, ids=lambda path: path.name)
def test_ior_json_gives_the_summary_of_ior(path: Path) -> None:
    measured = readers.read(path)
    text = path.read_text()
    for operation in ("write", "read"):
        part = text[text.index(f'"operation": "{operation}"') :]
        mean, most = (float(re.search(rf'"{name}": ([\d.]+)', part)[1]) for name in ("bwMeanMIB", "bwMaxMIB"))  # type: ignore[index]
        got = cell(measured, operation)
        assert (got.value / MIB, got.best / MIB) == pytest.approx((mean, most), rel=1e-6)
        assert (got.processes, got.nodes, got.size_bytes, got.repeats) == (2, 1, MIB, 2)
        assert got.variant["api"] == "POSIX"


def test_ior_versions_and_settings_are_read() -> None:
    old = readers.read(FIXTURES / "ior-2.10.3-fpp-v.txt")
    assert (old.protocol.version, old.cells[0].variant["access"]) == ("2.10.3", "file-per-process")
    collective = readers.read(FIXTURES / "ior-4.1dev-mpiio-coll.txt")
    assert collective.protocol.version == "4.1.0+dev"
    assert collective.cells[0].variant["collective"] == "yes"
    assert collective.protocol.started == "2026-11-21T02:52:32"
    banner = readers.read(FIXTURES / "ior-3.2.1.json")
    assert banner.protocol.version == "3.2.1"
    rows = readers.read(FIXTURES / "ior-4.1dev.csv")
    assert cell(rows, "write").values == pytest.approx((2798.1847 * MIB, 1381.5088 * MIB))


@pytest.mark.parametrize(
    ("name", "place", "said", "hint"),
    [
        ("ior-3.2.1-posix.txt", 10, "N:1 (strided) requires xfer-size == block-size", "-s 1"),
        ("ior-3.0.1.json", 3, 'Unrecognized parameter "summaryFormat"', "run it without -O summaryFormat"),
    ],
)
def test_outputs_without_result_are_refused(name: str, place: int, said: str, hint: str) -> None:
    with pytest.raises(MeasurementError) as raised:
        readers.read(FIXTURES / name)
    assert str(raised.value).startswith(f"{FIXTURES / name}:{place}: IOR stopped before any result: ")
    assert said in str(raised.value)
    assert hint in str(raised.value.hint)


MDTEST = sorted(FIXTURES.glob("mdtest-*"))


@pytest.mark.parametrize("path", MDTEST, ids=lambda path: path.name)
def test_mdtest_rows_are_read(path: Path) -> None:
    measured = readers.read(path)
    rows = [
        line for line in path.read_text().splitlines() if re.match(r"^\s+(File|Directory|Tree) \w+", line)
    ]
    assert len(measured.cells) == len(rows)
    row = next(line for line in rows if "File creation" in line)
    most, least, mean, _ = (float(one) for one in re.findall(r"[\d.]+", row))
    got = cell(measured, "file-create")
    assert (got.maximum, got.minimum, got.value, got.unit) == (most, least, mean, Unit.OPERATIONS_PER_S)
    assert (got.processes, got.repeats, got.variant) == (2, 3, {"directories": "one-per-process"})
    assert cell(measured, "directory-remove").value > 0


def test_mdtest_deviations_are_sample_deviations() -> None:
    """Since 4.0 mdtest prints the deviation of the sample. Of three iterations, the third follows from mean,
    minimum and maximum."""
    got = cell(readers.read(FIXTURES / "mdtest-4.0.0.txt"), "directory-create")
    assert got.maximum is not None and got.minimum is not None
    third = 3 * got.value - got.maximum - got.minimum
    assert got.spread == pytest.approx(stdev((got.maximum, got.minimum, third)) / got.value, rel=1e-6)


def test_phases_that_mdtest_skipped_are_left_out() -> None:
    measured = readers.read(FIXTURES / "io500" / "2026.11.21-03.00.00" / "mdtest-hard-write.txt")
    assert [one.operation for one in measured.cells] == ["file-create", "tree-create"]
    assert measured.protocol.notes == (
        "not measured, so left out: file-stat, file-read, file-remove, tree-remove",
    )


def test_elbencho_csv_json_and_text_agree() -> None:
    rows, lines = readers.read(FIXTURES / "elb.csv"), readers.read(FIXTURES / "elb.json")
    assert [one.operation for one in rows.cells] == [one.operation for one in lines.cells]
    for one, other in zip(rows.cells, lines.cells, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-4)
        assert (one.processes, one.variant, one.latency_ns) == (
            other.processes,
            other.variant,
            other.latency_ns,
        )
    write = cell(lines, "write")
    assert (write.value, write.size_bytes, write.processes) == (134785613.0, 4096, 2)
    assert write.latency_ns and write.latency_ns.max == 16079e3
    table = readers.read(FIXTURES / "elbencho-table.txt")
    read = cell(table, "read")
    assert (read.value, read.processes, read.size_bytes) == (3840 * 131072, 4, 131072)
    assert (read.cache, read.cache_reason) == (Cache.UNCACHED, "O_DIRECT")
    assert cell(table, "file-remove").value == 33333
    latency = cell(table, "write").latency_ns
    assert latency and (latency.min, latency.max) == (91e3, pytest.approx(1.583e9))


def test_fio_rates_and_percentiles_are_read() -> None:
    measured = readers.read(FIXTURES / "fio-3.33.json")
    jobs = json.loads((FIXTURES / "fio-3.33.json").read_text())["jobs"]
    write = cell(measured, "write", size_bytes=MIB)
    assert write.value == sum(job["write"]["bw_bytes"] for job in jobs if job["jobname"] == "seq")
    assert (write.processes, write.volume_bytes) == (2, 32 * MIB)
    read = cell(measured, "read")
    percentiles = jobs[2]["read"]["clat_ns"]["percentile"]
    assert read.latency_ns and read.latency_ns.p99_9 == percentiles["99.900000"]
    assert read.latency_ns.count == jobs[2]["read"]["total_ios"]


def test_fio_2_units_are_converted() -> None:
    read = cell(readers.read(FIXTURES / "fio-2.json"), "read")
    assert (read.value, read.processes, read.volume_bytes) == (51200 * 1024, 4, 262144 * 1024)
    assert read.latency_ns and (read.latency_ns.p50, read.latency_ns.max) == (71e3, 9173e3)


def test_empty_iozone_columns_stay_unknown() -> None:
    measured = readers.read(FIXTURES / "iozone-auto.txt")
    small = [one for one in measured.cells if one.size_bytes == 4096]
    assert [(one.operation, one.variant["pattern"], one.value / 1024) for one in small] == [
        ("write", "sequential", 2604),
        ("write", "rewrite", 2666),
        ("read", "random", 9959),
        ("write", "random", 2652),
    ]
    together = readers.read(FIXTURES / "iozone-throughput.txt")
    first = together.cells[0]
    assert (first.value, first.processes, first.size_bytes) == (4732581.09 * 1024, 12, 256 << 10)
    assert len(together.cells) == 5


def test_md_workbench_phases_are_read() -> None:
    measured = readers.read(FIXTURES / "md-workbench.txt")
    creates = [one for one in measured.cells if one.operation == "file-create"]
    benchmark = next(one for one in creates if one.variant["phase"] == "benchmark")
    assert benchmark.values == (95602.1, 41932.6, 47314.4)
    assert benchmark.latency_ns and benchmark.latency_ns.max == pytest.approx(4.4611e6)
    assert (benchmark.processes, benchmark.nodes) == (2, 1)


def test_h5bench_text_and_csv_are_read() -> None:
    written = readers.read(FIXTURES / "h5bench-write.txt")
    assert [round(one.value / MIB, 1) for one in written.cells] == [round(2.496 * 1024, 1), 1546.4]
    read = readers.read(FIXTURES / "h5bench-read.csv").cells
    assert [(one.operation, one.processes, one.variant["rate"]) for one in read] == [
        ("read", 4, "raw"),
        ("read", 4, "observed"),
    ]


def test_an_io500_folder_is_read() -> None:
    measured = readers.read(FIXTURES / "io500")
    easy = cell(measured, "write", test="io500-ior-easy")
    assert (easy.value, easy.processes, easy.nodes, easy.size_bytes) == (11.25 * 1024 * MIB, 64, 4, 2 * MIB)
    assert cell(measured, "file-create", test="io500-mdtest-hard").variant["file_bytes"] == "3901"
    assert cell(measured, "total").value == 14.283
    assert measured.protocol.notes == ("invalid by the rules of the IO500: ior-hard-write",)
    assert measured.protocol.version == "io500-isc24_v3"


def test_io500_results_without_a_summary_are_read(tmp_path: Path) -> None:
    shutil.copy(FIXTURES / "io500" / "2026.11.21-03.00.00" / "result.txt", tmp_path)
    measured = readers.read(tmp_path)
    assert {one.operation: one.value for one in measured.cells}["write"] == 11.25 * 1024 * MIB
    assert cell(measured, "total").value == 14.283


def test_a_truncated_file_never_breaks_a_reader(tmp_path: Path) -> None:
    """iodock reads truncated output up to the cut, or refuses it with a place and a hint."""
    for path in FILES:
        if path.is_dir():
            continue
        content = path.read_bytes()
        for end in range(0, len(content), max(1, len(content) // 25)):
            check(tmp_path / path.name, content[:end])


def test_damage_never_breaks_a_reader(tmp_path: Path) -> None:
    chance = random.Random(7)
    for path in FILES:
        if path.is_dir():
            continue
        for _ in range(30):
            content = bytearray(path.read_bytes())
            for _ in range(chance.randint(1, 40)):
                content[chance.randrange(len(content))] = chance.choice(b"0123456789.,:-e{}[]\"'() \n\xff")
            check(tmp_path / path.name, bytes(content))


def check(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    try:
        measured = readers.read(path)
    except IodockError as error:
        assert str(error).startswith(str(path)) and error.hint
    else:
        measurements_json.text_of(measured)


def test_files_that_are_not_results_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("we ran IOR on Monday\n")
    for path in (tmp_path, tmp_path / "notes.txt", tmp_path / "none.txt", FIXTURES / "README.md"):
        with pytest.raises(MeasurementError):
            readers.read(path)
    with pytest.raises(RequestError):
        readers.read(tmp_path / "notes.txt", "iorr")


def test_sizes_and_options_are_parsed() -> None:
    assert [size(one) for one in ("1 MiB", "47008", "16m", "4k", "9920000m", "2 KiB", "x", None)] == [
        *(MIB, 47008, 16 * MIB, 4096, 9920000 * MIB, 2048, None, None)
    ]
    given = words("ior -t 1m -b16m --posix.x -s=2 'a b'")
    assert [option(given, name) for name in ("-t", "-b", "-s", "-p")] == ["1m", "16m", "2", None]


def test_compressed_files_are_read(tmp_path: Path) -> None:
    import gzip

    packed = tmp_path / "elb.json.gz"
    packed.write_bytes(gzip.compress((FIXTURES / "elb.json").read_bytes()))
    assert len(readers.read(packed).cells) == 8
    packed.write_bytes(gzip.compress((FIXTURES / "elb.json").read_bytes())[:-40])
    with pytest.raises(MeasurementError):
        Source(packed).text  # noqa: B018
