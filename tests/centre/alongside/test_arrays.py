"""Tests counters of storage controllers, imported from CSV and from SNMP tools, on a run's time axis. Array,
servers and run are synthetic."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from alongside_site import HUNG, SECOND, centre_store, node_rows, opened, plot5, site
from in_process import asked
from iodock.cli.servers import servers_of
from iodock.shared.meanwhile import ServerCurve
from said_of_servers import said

JAPAN = timezone(timedelta(hours=9))
BUSY = range(HUNG - 10 * SECOND, HUNG + 30 * SECOND)
CSV_MAP = """
format = "csv"
host = "array07"
file_system = "lfs"
[time]
column = "Time"
form = "%Y/%m/%d %H:%M:%S"
zone = "Asia/Tokyo"
[[counters]]
column = "Busy(%)"
quantity = "busy"
target_column = "CTL"
[[counters]]
column = "Read(MB/s)"
quantity = "read_bytes"
unit = "MB"
target_column = "CTL"
[[counters]]
column = "Resp(ms)"
quantity = "response"
unit = "ms"
target_column = "CTL"
[targets]
"0" = "controller A"
"1" = "controller B"
"""
SNMP_MAP = """
format = "snmp"
host = "array07"
file_system = "lfs"
[[counters]]
oid = "ARRAY-MIB::ctlBusyTicks"
quantity = "busy"
unit = "ms"
[[counters]]
oid = "ARRAY-MIB::ctlReadBlocks"
quantity = "read_bytes"
unit = "sectors"
[targets]
"1" = "controller A"
"""


def moments() -> list[int]:
    return [HUNG // (10 * SECOND) * 10 * SECOND + at * 10 * SECOND for at in range(-30, 10)]


def busy(at: int) -> int:
    return 97 if at in BUSY else 21


def csv_lines() -> list[str]:
    lines = ["Performance Monitor, serial 12345", "", "Time,CTL,Busy(%),Read(MB/s),Resp(ms)"]
    for at in moments():
        stamp = datetime.fromtimestamp(at / SECOND, UTC).astimezone(JAPAN).strftime("%Y/%m/%d %H:%M:%S")
        lines += [f"{stamp},0,{busy(at)},400,{35 if at in BUSY else 0.8}", f"{stamp},1,5,100,0.8"]
    return lines


def snmp_lines() -> list[str]:
    """Returns lines of SNMP tools with busy time in ms and blocks read, as 32-bit counters. The count of
    blocks overflows."""
    lines, ticks, blocks = [], 5_000, (1 << 32) - 500_000
    for at in moments():
        ticks += busy(at) * 100
        blocks = (blocks + 100_000) % (1 << 32)
        lines += [
            str(at // SECOND),
            f"ARRAY-MIB::ctlBusyTicks.1 = Counter64: {ticks}",
            f"ARRAY-MIB::ctlReadBlocks.1 = Counter32: {blocks}",
            'ARRAY-MIB::ctlName.1 = STRING: "A"',
        ]
    return lines


def imported(folder: Path, form: str, lines: list[str]) -> str:
    (folder / "map.toml").write_text(CSV_MAP if form == "csv" else SNMP_MAP)
    (folder / "data").write_text("\n".join(lines) + "\n")
    status, _, told = asked(
        "monitor", "import-counters", folder / "data", "--map", folder / "map.toml", "--store", folder / "m"
    )
    assert status == 0, told
    return told


def curves(folder: Path, run: str) -> dict[tuple[str, str], ServerCurve]:
    settings = site(folder / "m", agree_s=1.0)
    with opened(run) as store:
        servers = servers_of(store, settings)
        assert servers is not None
        found = servers.meanwhile()
    assert found is not None
    return {(one.server, one.metric): one for one in found.curves}


@pytest.mark.parametrize("form", ["csv", "snmp"])
def test_counters_of_a_busy_controller_use_the_time_axis_of_the_run(tmp_path: Path, form: str) -> None:
    """None of the servers has an agent, so no source can say that they were healthy."""
    told = imported(tmp_path, form, csv_lines() if form == "csv" else snmp_lines())
    assert "array07: readings 40" in told and "left out" not in told
    run = plot5(tmp_path / "run.iodock")
    found = curves(tmp_path, run)
    points = dict(found["array07 controller A", "busy_share"].points)
    for at in moments()[20:-2]:
        if at in points:
            assert points[at] == pytest.approx(busy(at) / 100, abs=0.001)
    assert max(points.values()) == pytest.approx(0.97, abs=0.001)
    reads = dict(found["array07 controller A", "read_bytes_per_s"].points)
    wanted = 400e6 if form == "csv" else 100_000 * 512 / 10
    assert all(value == pytest.approx(wanted, rel=0.001) for value in reads.values())
    if form == "csv":
        slow = dict(found["array07 controller A", "response_s"].points)
        assert max(slow.values()) == pytest.approx(0.035)
        assert max(value for _, value in found["array07 controller B", "busy_share"].points) < 0.06
    at, whole = said(run, site(tmp_path / "m", agree_s=1.0))
    assert (
        "array07 controller A, behind lfs, was busy for 97 % of the time then, and for 21 % over the run"
        in at
    )
    assert "There are no readings of the servers of lfs" in at
    assert "healthy" not in whole.replace("whether they were healthy", "")


def test_readings_imported_twice_count_once(tmp_path: Path) -> None:
    lines = csv_lines()
    imported(tmp_path, "csv", lines[:43])
    imported(tmp_path, "csv", lines)
    found = curves(tmp_path, plot5(tmp_path / "run.iodock"))
    points = dict(found["array07 controller A", "busy_share"].points)
    assert max(points.values()) == pytest.approx(0.97, abs=0.001)


def test_imported_arrays_are_shown_next_to_servers_with_agents(tmp_path: Path) -> None:
    node_rows(centre_store(tmp_path / "m", None))
    imported(tmp_path, "csv", csv_lines())
    at, _ = said(plot5(tmp_path / "run.iodock"), site(tmp_path / "m"))
    assert "The file servers were healthy at that time: all 3 of lfs" in at
    assert "controller A, behind lfs, was busy for 97 %" in at


def test_bad_lines_are_counted_with_file_and_line(tmp_path: Path) -> None:
    lines = csv_lines()
    lines[10:10] = ["2026/03/02 21:04:00,0,12", "yesterday,0,1,2,3", "2026/03/02 21:04:01,0,-3,nan,\x00"]
    told = imported(tmp_path, "csv", lines)
    assert "1 (a truncated or damaged row; the first is 3 cells under 5 columns in" in told
    assert f"{tmp_path / 'data'}:11" in told
    assert "a line without its time: check [time] of the map" in told
    assert "3 (no number that was measured" in told


def test_a_falling_counter_counts_as_restarted(tmp_path: Path) -> None:
    lines = [line.replace("Counter32", "Counter64") for line in snmp_lines()]
    told = imported(tmp_path, "snmp", ["no time yet", "ARRAY-MIB::ctlBusyTicks.1 = Counter64: 1", *lines])
    assert "a counter became smaller: it restarted" in told
    assert "neither a time nor OID = TYPE: VALUE" in told
    assert "a value before the first time" in told


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("quantity = \"busy\"", "quantity = \"bussy\""), "no such quantity: bussy"),
        (("unit = \"MB\"", "unit = \"furlongs\""), "no such unit of read_bytes: furlongs"),
        (("zone = \"Asia/Tokyo\"", "zone = \"Asia/Nowhere\""), "has an unknown zone"),
        (("host = \"array07\"", "hots = \"array07\""), "hots is not known"),
        (("column = \"Busy(%)\"", "column = \"Busy\""), "data:3: no column 'Busy'"),
        (("column = \"Time\"", "column = \"time\""), "no line has a column 'time'"),
        (("\"controller A\"", "\"a/b\""), "names without /"),
        (("format = \"csv\"", "format = \"xls\""), "format is 'xls'"),
        (("[time]", "[time"), "is not TOML"),
    ],
)  # fmt: skip
def test_an_invalid_mapping_is_refused_with_a_correct_example(
    tmp_path: Path, change: tuple[str, str], told: str
) -> None:
    assert change[0] in CSV_MAP
    (tmp_path / "map.toml").write_text(CSV_MAP.replace(*change))
    (tmp_path / "data").write_text("\n".join(csv_lines()))
    options = ("--map", tmp_path / "map.toml", "--store", tmp_path / "m")
    status, _, error = asked("monitor", "import-counters", tmp_path / "data", *options)
    assert status == 2 and told in error and "hint:" in error and "Traceback" not in error
