"""Tests how typical values and knees of curves get from measurements into a site's settings."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from in_process import iodock
from iodock.file_system.health.measurements import Cache, Cell, Limit, Measurements, Protocol, Unit, repeated
from iodock.file_system.health.measurements_json import text_of
from iodock.file_system.health.site_file import merged, section, write
from iodock.file_system.health.typical import Value, typical
from iodock.shared.errors import RequestError
from iodock.shared.settings import FileSystem, load
from places import FIXTURES

PROTOCOL = Protocol(
    tool="iodock health",
    started="2026-11-21",
    host="node1",
    target="/scratch/t",
    file_system="lustre",
    limits=(Limit("link", 12.5e9), Limit("server", 6e9)),
    settings={"stripe_count": 4},
)


def cell(
    operation: str, value: float, size: int | None = None, processes: int = 1, cache: Cache | None = None
) -> Cell:
    unit = Unit.OPERATIONS_PER_S if operation.startswith(("file", "directory")) else Unit.BYTES_PER_S
    test = "metadata" if unit is Unit.OPERATIONS_PER_S else "large-transfer"
    blank = Cell(test, operation, size, processes, 1, value, unit, 3, 0.01, cache)
    return repeated(blank, (0.99 * value, value, 1.01 * value))


CELLS = (
    cell("write", 4e6, 4096),
    cell("write", 8.9e8, 1 << 20),
    cell("write", 9e8, 16 << 20),
    cell("write", 2e9, 16 << 20, 8),
    cell("read", 8.192e6, 4096, cache=Cache.UNCACHED),
    cell("read", 1e9, 1 << 20, cache=Cache.UNCACHED),
    cell("read", 9.9e8, 16 << 20, cache=Cache.UNCACHED),
    cell("read", 9e9, 1 << 20, cache=Cache.CACHED),
    cell("file-create", 1000),
    cell("file-remove", 500),
    *(cell("file-stat", min(count, 8) * 2000, processes=count) for count in (1, 2, 4, 8, 16, 32)),
)
MEASURED = Measurements(PROTOCOL, CELLS)
EXPECTED = FileSystem(
    kind="parallel",
    link_bytes_per_s=6e9,
    read_bytes_per_s=1e9,
    write_bytes_per_s=9e8,
    small_read_per_s=2000,
    small_write_per_s=977,
    read_knee_bytes=1 << 20,
    write_knee_bytes=1 << 20,
    metadata_per_s=857,
    stat_knee_processes=8,
    stripe_count=4,
)


def test_values_are_those_of_one_process_without_a_cache(tmp_path: Path) -> None:
    values, missing = typical(MEASURED)
    assert not missing
    path = tmp_path / "site.toml"
    path.write_text(section("/scratch", values, PROTOCOL))
    # The mean rate is 3 / (1/1000 + 1/2000 + 1/500) = 857.
    assert load(path).file_systems == {"/scratch": EXPECTED}


def test_the_stream_rate_comes_from_large_transfers(tmp_path: Path) -> None:
    other = replace(cell("write", 9e9, 1 << 20), test="constant-volume")
    values, _ = typical(
        Measurements(Protocol(), (other, cell("write", 8e8, 1 << 20), cell("write", 7e8, 2 << 20)))
    )
    assert [one.value for one in values] == [800_000_000]
    (alone,), _ = typical(Measurements(Protocol(), (other,)))
    assert alone.value == 9_000_000_000


def test_missing_measurements_are_named() -> None:
    values, missing = typical(Measurements(Protocol(), (cell("write", 2e9, 1 << 20, 8),)))
    assert not values
    assert [one.name for one in missing] == [
        "read_bytes_per_s",
        "write_bytes_per_s",
        "small_read_per_s",
        "small_write_per_s",
        "read_knee_bytes",
        "write_knee_bytes",
        "metadata_per_s",
        "stat_knee_processes",
    ]


def test_a_rate_that_keeps_growing_has_no_knee() -> None:
    cells = tuple(cell("file-stat", count * 2000, processes=count) for count in (1, 2, 4, 8, 16, 32))
    values, _ = typical(Measurements(Protocol(), cells))
    assert [one.name for one in values] == ["metadata_per_s"]


SIZES = (4096, 65536, 1 << 20, 16 << 20, 64 << 20)


def by_size(
    operation: str, values: tuple[float, ...], processes: int, cache: Cache | None
) -> tuple[Cell, ...]:
    return tuple(
        cell(operation, value, size, processes, cache) for size, value in zip(SIZES, values, strict=True)
    )


def test_the_size_from_which_one_process_reaches_full_rate_is_found() -> None:
    rising, slow = (1e7, 3e8, 1.0e9, 1.01e9, 1.0e9), (1e7, 1e8, 3e8, 1.0e9, 1.01e9)
    cells = (
        *by_size("write", rising, 1, None),
        *by_size("write", slow, 8, None),
        # These reads come from a cache. For one process, no value from outside a cache remains.
        *by_size("read", rising, 1, Cache.CACHED),
        *by_size("read", slow, 8, Cache.UNCACHED),
    )
    found = {one.name: one for one in typical(Measurements(Protocol(), cells))[0]}
    assert (
        found["write_knee_bytes"].value == 1 << 20 and "below at most 30%" in found["write_knee_bytes"].source
    )
    assert "read_knee_bytes" not in found
    steady = by_size("write", (1e9, 1.01e9, 1e9, 1.01e9, 1e9), 1, None)
    assert not [one for one in typical(Measurements(Protocol(), steady))[0] if "knee" in one.name]


def test_without_a_knee_of_stat_another_operation_is_used() -> None:
    creates = tuple(
        cell("file-create", min(count, 4) * 100, processes=count) for count in (1, 2, 4, 8, 16, 32)
    )
    (knee,) = [one for one in typical(Measurements(Protocol(), creates))[0] if "knee" in one.name]
    assert knee.value == 4 and "file-create" in knee.source


SITE = """\
# ours
[severity]
high = 0.3
[file_systems."/scratch"]   # the big one
kind = "network"
# iodock: measured by something old
small_read_per_s = 1  # iodock: old
probe_store = "/p"   # ask Hanako

[ratio]
io_below = 0.2
"""


def test_only_sections_written_by_iodock_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    path.write_text(SITE)
    path.chmod(0o640)
    values, _ = typical(MEASURED)
    write(path, "/scratch", values, PROTOCOL)
    once = path.read_text()
    write(path, "/scratch", values, PROTOCOL)
    assert path.read_text() == once
    found = load(path)
    work = found.file_systems["/scratch"]
    assert (work.kind, work.probe_store) == ("network", "/p")
    assert (work.small_read_per_s, work.metadata_per_s) == (2000, 857)
    assert (found.severity.high, found.ratio.io_below) == (0.3, 0.2)
    lines = SITE.splitlines()
    assert [line for line in lines if "iodock:" not in line] == [
        line for line in once.splitlines() if "iodock:" not in line
    ]
    assert path.stat().st_mode & 0o777 == 0o640 and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("mount", ["/scratch", "/a b", '/q"uo\\te', "/日本"])
@pytest.mark.parametrize("before", ["", "[severity]\nhigh = 0.3", "[severity]\nhigh = 0.3\n\n"])
def test_an_added_section_is_found_again(mount: str, before: str, tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    values = (Value("metadata_per_s", 5, "x"),)
    path.write_text(merged(merged(before, mount, values, PROTOCOL), mount, values, PROTOCOL))
    assert load(path).file_systems == {mount: FileSystem(metadata_per_s=5)}
    assert path.read_text().count("metadata_per_s") == 1


def test_hostile_names_cannot_break_the_settings_file(tmp_path: Path) -> None:
    evil = Protocol(tool="x\n[severity]\nhigh = 0.9", target="/t")
    path = tmp_path / "site.toml"
    path.write_text(section("/scratch", (Value("metadata_per_s", 5, "a\nb = 1"),), evil))
    assert load(path).severity.high == 0.2


def test_an_invalid_settings_file_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "site.toml"
    for wrong in ("[severity\n", '[file_systems]\n"/scratch" = {kind = "local"}\n'):
        path.write_text(wrong)
        with pytest.raises(RequestError):
            write(path, "/scratch", (Value("metadata_per_s", 5, "x"),), PROTOCOL)
        assert path.read_text() == wrong and len(list(tmp_path.iterdir())) == 1


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return iodock("fs", "typical", *arguments)


def test_the_command_writes_settings_that_can_be_read(tmp_path: Path) -> None:
    result, site = tmp_path / "work.json", tmp_path / "site.toml"
    result.write_text(text_of(MEASURED))
    done = run(result, "--mount", "/scratch/", "-o", site)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert load(site).file_systems == {"/scratch": EXPECTED}
    shown = run(result, "--mount", "/scratch")
    assert shown.stdout == site.read_text()
    relative = run(result, "--mount", "work")
    assert relative.returncode == 2 and "mount points begin with /" in relative.stderr
    bare = tmp_path / "bare.json"
    bare.write_text(text_of(Measurements(Protocol(), (cell("write", 2e9, 1 << 20, 8),))))
    none = run(bare, "--mount", "/scratch")
    assert none.returncode == 1 and "no value that is typical" in none.stderr


def test_results_of_other_benchmarks_are_accepted() -> None:
    fio = FIXTURES / "bench" / "fio-3.33.json"
    done = run(fio, "--mount", "/scratch")
    assert done.returncode == 0 and "small_read_per_s = " in done.stdout
    assert "note: metadata_per_s: " in done.stderr
