"""Tests that recordings of sysstat become the samples that an agent would have sent, and count once."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from in_process import iodock
from iodock.centre.monitor.sar import read
from iodock.centre.store import MonitorStore
from iodock.shared.errors import RequestError
from places import FIXTURES

IODOCK = [sys.executable, "-m", "iodock"]
RECORDED = FIXTURES / "monitor" / "sadf-12.6.1.json"
SECOND = 1_000_000_000


def ran(*arguments: object, status: int = 0) -> str:
    done = iodock("monitor", "import-sar", *arguments)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def rows(folder: Path) -> list[dict[str, Any]]:
    sql = "SELECT * FROM targets ORDER BY end_ts"
    store = MonitorStore(folder)
    return store.table(sql, begin=0, end=time.time_ns(), resolution="fine").to_pylist()


def sums(folder: Path) -> dict[tuple[str, str, str], int]:
    found: dict[tuple[str, str, str], int] = {}
    for row in rows(folder):
        if not row["is_level"]:
            key = (row["source"], row["target"], row["metric"])
            found[key] = found.get(key, 0) + row["value"]
    return found


def statistics() -> list[dict[str, Any]]:
    return list(json.loads(RECORDED.read_text())["sysstat"]["hosts"][0]["statistics"])


def test_sums_equal_the_rates_over_all_intervals(tmp_path: Path) -> None:
    said = ran("--store", tmp_path / "store", RECORDED)
    assert f"{RECORDED}: oss07: readings {len(statistics())}" in said
    found = sums(tmp_path / "store")
    disks = [disk for one in statistics() for disk in one["disk"] if disk["disk-device"] == "vda"]
    assert found["sar_disk", "vda", "write_bytes"] == pytest.approx(
        sum(d["wkB"] for d in disks) * 1024, abs=1
    )
    assert found["sar_disk", "vda", "transfers"] == pytest.approx(sum(d["tps"] for d in disks), abs=1)
    # The times of two cores add up to twice the elapsed time.
    busy = sum(value for (source, _, _), value in found.items() if source == "sar_cpu")
    assert busy == pytest.approx(2e6 * len(statistics()), rel=0.02)
    load = [row["value"] for row in rows(tmp_path / "store") if row["metric"] == "load1_percent"]
    assert load == [round(one["queue"]["ldavg-1"] * 100) for one in statistics()]
    assert {row["host"] for row in rows(tmp_path / "store")} == {"oss07"}


def test_a_file_that_has_grown_since_the_last_import_counts_once(tmp_path: Path) -> None:
    document = json.loads(RECORDED.read_text())
    whole = document["sysstat"]["hosts"][0]["statistics"]
    # The store keeps fine rows for a few days only, so the recording must be from yesterday.
    yesterday = time.strftime("%Y-%m-%d", time.gmtime(time.time() - 86_400))
    for reading in whole:
        reading["timestamp"]["date"] = yesterday
    grown, short = tmp_path / "grown.json", tmp_path / "short.json"
    grown.write_text(json.dumps(document))
    document["sysstat"]["hosts"][0]["statistics"] = whole[:2]
    short.write_text(json.dumps(document))
    ran("--quiet", "--store", tmp_path / "store", short)
    ran("--quiet", "--store", tmp_path / "store", grown, grown)
    ran("--quiet", "--store", tmp_path / "at once", grown)
    assert sums(tmp_path / "store") == sums(tmp_path / "at once")


def test_values_are_not_spread_over_the_time_a_machine_was_off(tmp_path: Path) -> None:
    document = json.loads(RECORDED.read_text())
    for one in document["sysstat"]["hosts"][0]["statistics"][:2]:
        one["timestamp"]["time"] = one["timestamp"]["time"].replace("08:", "05:")
    apart = tmp_path / "apart.json"
    apart.write_text(json.dumps(document))
    ran("--store", tmp_path / "store", apart)
    grown = [row for row in rows(tmp_path / "store") if not row["is_level"]]
    assert max(row["end_ts"] - row["begin_ts"] for row in grown) <= 2 * SECOND
    ran("--store", tmp_path / "whole", RECORDED)
    assert sums(tmp_path / "store") == sums(tmp_path / "whole")


def test_a_reading_without_a_load_gives_no_load(tmp_path: Path) -> None:
    document = json.loads(RECORDED.read_text())
    del document["sysstat"]["hosts"][0]["statistics"][0]["queue"]
    (tmp_path / "x.json").write_text(json.dumps(document))
    ran("--store", tmp_path / "store", tmp_path / "x.json")
    load = [row["value"] for row in rows(tmp_path / "store") if row["metric"] == "load1_percent"]
    assert load == [round(one["queue"]["ldavg-1"] * 100) for one in statistics()[1:]]


def test_sectors_of_an_older_sadf_are_converted(tmp_path: Path) -> None:
    """The document is as sysstat 10 writes it: no rkB, `avgqu-sz`, and numbers instead of names."""
    disk = {"disk-device": "dev8-0", "tps": 10.0, "rd_sec": 2048.0, "wr_sec": 0.0, "avgqu-sz": 0.5,
            "await": 3, "svctm": 1, "util-percent": 25.0}  # fmt: skip
    one = {
        "timestamp": {"date": "2026-10-03", "time": "00:10:01", "utc": 1, "interval": 600},
        "disk": [disk],
    }
    old = tmp_path / "old.json"
    old.write_text(json.dumps({"sysstat": {"hosts": [{"nodename": "mds1", "statistics": [one]}]}}))
    ran("--store", tmp_path / "store", old)
    found = sums(tmp_path / "store")
    assert found["sar_disk", "dev8-0", "read_bytes"] == 600 * 2048 * 512
    assert found["sar_disk", "dev8-0", "busy_time"] == 150_000_000
    assert found["sar_disk", "dev8-0", "queued_time"] == 300_000_000


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "sadf"),
        (b"{", "neither JSON nor"),
        (b"[1]", "sadf"),
        (b'{"sysstat": 3}', "not in the format of sadf"),
        (b'{"sysstat": {"hosts": []}}', "no readings"),
        (b'{"sysstat": {"hosts": [{"nodename": "a", "statistics": [{"timestamp": 7}]}]}}', "no readings"),
        (b"\x96\xd5\x75\x21\0\0\0", "sadf"),
        (b'{"a":' + b"[" * 100_000, "neither JSON nor"),
    ],
)
def test_files_that_are_not_recordings_give_an_error(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(RequestError, match=words):
        read(tmp_path / "x")


def test_times_without_a_zone_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text(RECORDED.read_text().replace('"utc": 1', '"utc": 0'))
    with pytest.raises(RequestError, match="unknown zone"):
        read(tmp_path / "x")


def test_a_missing_destination_or_collector_gives_an_error(tmp_path: Path) -> None:
    assert "either --url" in ran(RECORDED, status=2)
    assert "no collector answers" in ran("--url", "http://127.0.0.1:9", RECORDED, status=1)
    assert "read on their way" in ran("--url", "http://monitor.example:9847", RECORDED, status=2)
    assert "not an address" in ran("--url", "ftp://x", RECORDED, status=2)


@pytest.mark.skipif(not shutil.which("sadf"), reason="sysstat is not installed")
def test_a_binary_file_of_sadc_is_read_with_the_local_sadf(tmp_path: Path) -> None:
    binary = tmp_path / "sa01"
    sadc = next((path for path in ("/usr/lib/sysstat/sadc", "/usr/lib64/sa/sadc") if Path(path).exists()), "")
    if not sadc or subprocess.run([sadc, "1", "2", binary], check=False, timeout=60).returncode:
        pytest.skip("no sadc that runs here")
    assert "readings 1" in ran("--store", tmp_path / "store", binary)
    assert any(source == "sar_cpu" for source, _, _ in sums(tmp_path / "store"))


@pytest.mark.parametrize(
    "value",
    ["3689348814741910323.20", "1e300", "Infinity", "-5.00", "nan", "-nan", "inf", '"x"', "null", "[]"],
)
def test_an_impossible_value_is_unknown_and_the_others_are_kept(tmp_path: Path, value: str) -> None:
    """3.7e18 is 2^64 / 5: a counter of sysstat overflowed in an interval of 5 s."""
    wrong = statistics()
    vda = next(disk for disk in wrong[2]["disk"] if disk["disk-device"] == "vda")
    vda["tps"] = "HERE"
    document = json.loads(RECORDED.read_text())
    document["sysstat"]["hosts"][0]["statistics"] = wrong
    path = tmp_path / "sa.json"
    path.write_text(json.dumps(document).replace('"HERE"', value))
    said = ran("--store", tmp_path / "store", path)
    assert "unusable values left out: 1 (" in said and "vda tps" in said
    ran("--store", tmp_path / "right", RECORDED)
    found, right = sums(tmp_path / "store"), sums(tmp_path / "right")
    transfers = ("sar_disk", "vda", "transfers")
    known = [disk["tps"] for one in statistics() for disk in one["disk"] if disk["disk-device"] == "vda"]
    assert found[transfers] == pytest.approx(sum(known) - known[2], abs=1)
    assert {**found, transfers: 0} == {**right, transfers: 0}


def test_impossible_levels_and_processor_counts_are_left_out(tmp_path: Path) -> None:
    document = json.loads(RECORDED.read_text())
    document["sysstat"]["hosts"][0]["number-of-cpus"] = 0
    document["sysstat"]["hosts"][0]["statistics"][1]["queue"]["ldavg-1"] = 1e18
    path = tmp_path / "sa.json"
    path.write_text(json.dumps(document))
    said = ran("--store", tmp_path / "store", path)
    assert "number-of-cpus 0" in said and "ldavg-1 1e+18" in said
    load = [row["value"] for row in rows(tmp_path / "store") if row["metric"] == "load1_percent"]
    assert len(load) == len(statistics()) - 1
    assert not any(source == "sar_cpu" for source, _, _ in sums(tmp_path / "store"))


def test_a_reading_with_another_structure_is_left_out(tmp_path: Path) -> None:
    for change in (
        {"interval": 1e18},
        {"interval": "x"},
        {"date": "0000-00-00"},
        {"time": None},
        {"interval": -1},
    ):
        document = json.loads(RECORDED.read_text())
        document["sysstat"]["hosts"][0]["statistics"][1]["timestamp"] |= change
        document["sysstat"]["hosts"][0]["statistics"][2]["disk"] = [{"tps": 1.0}, 7]
        path = tmp_path / "sa.json"
        path.write_text(json.dumps(document))
        (found,) = read(path)
        assert len(found.notes) == 2, change
        assert "reading 2" in found.notes[0] and "unusable values left out: 2" in found.notes[1]
