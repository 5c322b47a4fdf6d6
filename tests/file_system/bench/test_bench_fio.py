"""Tests reading fio's JSON documents, text and terse lines, for one host and several, complete and cut."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from iodock.file_system.health import readers
from iodock.file_system.health.measurements import Cell, MeasurementError, Measurements
from places import ROOT

FIXTURES = ROOT / "fixtures" / "bench"
MIB = 1 << 20


def job(name: str, moved: int, milliseconds: int, **others: Any) -> dict[str, Any]:
    rate = moved * 1000 // milliseconds
    done = {"io_bytes": moved, "bw_bytes": rate, "bw": rate // 1024, "runtime": milliseconds}
    return {"jobname": name, "groupid": 0, "error": 0, "write": done, **others}


def document(*jobs: dict[str, Any], **others: Any) -> str:
    return json.dumps({"fio version": "fio-3.36", "jobs": list(jobs), **others}, indent=2)


def read(folder: Path, text: str) -> Measurements:
    path = folder / "fio.out"
    path.write_text(text)
    return readers.read(path)


def the_only(measured: Measurements) -> Cell:
    assert len(measured.cells) == 1, measured.cells
    return measured.cells[0]


def test_text_between_json_documents_is_skipped(tmp_path: Path) -> None:
    first, second = document(job("a", MIB, 1000)), document(job("a", 8 * MIB, 2000))
    for text in (
        f"{first}\n{second}\n",
        f"{first}{second}",
        f'fio: a warning\n{first}\nJobs: 1 (f=1): [W(1)][50.0%]\n{{"level": "info"}}\n{second}\nthe end\n',
        f"{first}\n{second}\n".replace("\n", "\r\n"),
    ):
        measured = read(tmp_path, text)
        assert the_only(measured).value == 4 * MIB
        assert any("documents of one run: 2" in note for note in measured.protocol.notes)


def test_a_truncated_last_document_is_reported(tmp_path: Path) -> None:
    first, second = document(job("a", MIB, 1000)), document(job("a", 8 * MIB, 2000))
    measured = read(tmp_path, f"{first}\n{second[: len(second) // 2]}")
    assert the_only(measured).value == MIB
    assert any("ends in the middle of a JSON document" in note for note in measured.protocol.notes)
    line = first.count("\n") + 2
    assert any(f"fio.out:{line}: a JSON document of fio is damaged" in one for one in measured.protocol.notes)
    with pytest.raises(MeasurementError, match="not complete JSON") as raised:
        read(tmp_path, first[: len(first) // 2])
    assert "fio.out:" in str(raised.value) and "copy the whole file" in str(raised.value.hint)


def test_a_damaged_document_in_the_middle_is_reported(tmp_path: Path) -> None:
    first, second = document(job("a", MIB, 1000)), document(job("a", 8 * MIB, 2000))
    measured = read(tmp_path, f"{first}\n{first[:40]}\n{second}\n")
    assert the_only(measured).value == 4 * MIB
    assert any("is damaged or cut" in note for note in measured.protocol.notes)
    assert not any("ends in the middle" in note for note in measured.protocol.notes)


@pytest.mark.parametrize(
    "second",
    [
        document(job("a", MIB, 500)),
        document(job("a", 2 * MIB, 1000, elapsed=1), timestamp=1_000_500),
        document(job("a", 2 * MIB, 1000, job_start=5000)),
    ],
    ids=["less-time", "later-begin", "job-start"],
)
def test_runs_appended_to_a_file_are_repeats(tmp_path: Path, second: str) -> None:
    extra: dict[str, Any] = {"elapsed": 1} if "timestamp" in second else {}
    extra |= {"job_start": 1000} if "job_start" in second else {}
    first = document(job("a", MIB, 1000, **extra), timestamp=1_000_000)
    measured = read(tmp_path, f"{first}\n{second}\n")
    assert the_only(measured).values == (MIB, 2 * MIB)
    assert not any("documents of one run" in note for note in measured.protocol.notes)


def test_all_runs_of_different_jobs_are_read(tmp_path: Path) -> None:
    measured = read(tmp_path, document(job("a", MIB, 1000)) + document(job("b", 2 * MIB, 1000)))
    assert {one.variant["job"]: one.value for one in measured.cells} == {"a": MIB, "b": 2 * MIB}


def clients(*hosts: tuple[str, int], total: int | None) -> str:
    parts = [job("w", moved, 1000, hostname=name, port=8765) for name, moved in hosts]
    if total is not None:
        parts.append(job("All clients", total, 1000, hostname=hosts[0][0], port=8765))
    return json.dumps({"fio version": "fio-3.36", "client_stats": parts})


def test_results_of_several_hosts_are_added_up(tmp_path: Path) -> None:
    for total in (3 * MIB, None):
        measured = read(tmp_path, clients(("n1", MIB), ("n2", 2 * MIB), total=total))
        cell = the_only(measured)
        assert (cell.value, cell.nodes, cell.processes) == (3 * MIB, 2, 2)
        assert measured.protocol.notes == ("on the hosts n1:8765, n2:8765: their rates are added up",)
    short = read(tmp_path, clients(("n1", MIB), ("n2", 2 * MIB), total=9 * MIB))
    assert any("a host may be missing" in note for note in short.protocol.notes)
    sum_only = json.dumps(
        {"fio version": "fio-3.36", "client_stats": [job("All clients", MIB, 1000, hostname="n1", port=1)]}
    )
    cell = the_only(read(tmp_path, sum_only))
    assert (cell.value, cell.nodes) == (MIB, None)


def test_results_of_two_servers_are_read_from_json_and_text() -> None:
    measured = readers.read(FIXTURES / "fio-3.33-clients.json")
    stats = json.loads((FIXTURES / "fio-3.33-clients.json").read_text())["client_stats"]
    own = [one for one in stats if one["jobname"] != "All clients"]
    found = {one.operation: one for one in measured.cells}
    for operation in ("read", "write"):
        assert found[operation].value == sum(one[operation]["bw_bytes"] for one in own)
        assert (found[operation].processes, found[operation].volume_bytes) == (2, 8 * MIB)
    assert any("127.0.0.1:18765, 127.0.0.1:18766" in note for note in measured.protocol.notes)
    text = {one.operation: one for one in readers.read(FIXTURES / "fio-3.33-clients.txt").cells}
    assert (text["write"].value, text["write"].processes) == (8000 * MIB, 2)
    assert text["read"].value == pytest.approx((66.7 + 93.0) * MIB)


def test_text_output_of_fio_3_is_read() -> None:
    read_, write = readers.read(FIXTURES / "fio-3.33-group.txt").cells
    assert (read_.value, write.value) == (pytest.approx(66.1 * MIB), pytest.approx(71.8 * MIB))
    assert (read_.size_bytes, read_.processes, read_.volume_bytes) == (4096, 2, 3928 << 10)
    assert read_.latency_ns and (read_.latency_ns.p50, read_.latency_ns.max) == (68e3, 3782e3)
    assert write.latency_ns and (write.latency_ns.p99, write.latency_ns.min) == (13248, 2464)
    measured = readers.read(FIXTURES / "fio-3.33-interval.txt")
    printed = re.findall(r"BW=([\d.]+)MiB/s", (FIXTURES / "fio-3.33-interval.txt").read_text())
    assert len(printed) == 4
    assert the_only(measured).value == pytest.approx(float(printed[-1]) * MIB)
    assert any("documents of one run: 4" in note for note in measured.protocol.notes)


def test_text_output_of_fio_2_is_read() -> None:
    measured = readers.read(FIXTURES / "fio-2.2.txt")
    found = {(one.variant["job"], one.operation): one for one in measured.cells}
    write = found["seq", "write"]
    assert (write.value, write.volume_bytes, write.processes) == (100 * MIB, 2 << 30, 2)
    assert (write.size_bytes, write.seconds, write.variant["io_depth"]) == (MIB, 20.48, "4")
    assert write.latency_ns and (write.latency_ns.p50, write.latency_ns.p99) == (78e6, 131e6)
    assert [found["rnd", one].value for one in ("read", "write", "trim")] == [25256, 10 * MIB, MIB]
    assert measured.protocol.version == "2.2.8"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  read: IOPS=1, BW=1049kB/s (1024KiB/s)(10.0MiB/10000msec)", 1_049_000),
        ("  read: IOPS=1, BW=8192Kibit/s (8389kbit/s)(10.0MiB/10000msec)", MIB),
        ("  mixed: IOPS=1, BW=1024KiB/s (1049kB/s)(10.0MiB/10000msec)", MIB),
        ("  trim: IOPS=0, BW=512B/s (512B/s)(5120B/10000msec); 0 zone resets", 512),
    ],
)
def test_units_in_text_output_are_converted(tmp_path: Path, line: str, expected: int) -> None:
    head = "a b: c: (groupid=0, jobs=1): err=28 (file:x.c:1, error=No space: left): pid=7: Fri Nov 27\n"
    measured = read(tmp_path, f"{head}{line}\nRun status group 0 (all jobs):\n")
    assert the_only(measured).value == expected
    assert the_only(measured).variant["job"] == "a b: c"
    assert "job a b: c ended with error 28" in measured.protocol.notes


def test_truncated_text_is_reported(tmp_path: Path) -> None:
    text = (FIXTURES / "fio-3.33-group.txt").read_text()
    measured = read(tmp_path, text[: text.index("lat (usec)   : 4=")])
    assert len(measured.cells) == 2
    assert any("is truncated" in note for note in measured.protocol.notes)
    part = read(tmp_path, text[: text.index("18.4k") + 3])
    assert [one.operation for one in part.cells] == ["read"]
    assert any("the line is truncated" in note for note in part.protocol.notes)


@pytest.mark.parametrize("version", [4, 5])
def test_terse_output_is_read(version: int) -> None:
    path = FIXTURES / f"fio-3.33-terse-{version}.txt"
    measured = readers.read(path)
    fields = path.read_text().strip().split(";")
    at = {4: 46, 5: 52}[version]
    write = next(one for one in measured.cells if one.operation == "write")
    assert (write.volume_bytes, write.value) == (int(fields[at]) << 10, int(fields[at + 1]) << 10)
    assert write.seconds == int(fields[at + 3]) / 1000
    assert len(measured.cells) == (2 if version == 5 else 1)


def test_terse_lines_of_an_unknown_version_are_refused(tmp_path: Path) -> None:
    line = (FIXTURES / "fio-3.33-terse-4.txt").read_text()
    with pytest.raises(MeasurementError, match="several terse lines of job a"):
        read(tmp_path, line + line)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"bw_bytes": 0}, "a rate of 0"),
        ({"bw_bytes": -1}, "no number"),
        ({"bw_bytes": 1e18}, "more than any file system"),
        ({"runtime": 1_751_892_628_000}, "a date, no duration"),
        ({"bw_bytes": float("nan")}, "no number"),
    ],
)
def test_impossible_numbers_are_left_out(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    bad = job("bad", MIB, 1000)
    bad["write"] |= change
    measured = read(tmp_path, document(bad, job("good", MIB, 1000)))
    assert [one.variant["job"] for one in measured.cells] == ["good"]
    assert any(reason in note and "fio" in note for note in measured.protocol.notes)


def test_an_overflowed_volume_is_unknown_and_the_rate_kept(tmp_path: Path) -> None:
    wrapped = job("a", MIB, 1000)
    wrapped["write"]["io_bytes"] = 2**64 - 4096
    measured = read(tmp_path, document(wrapped))
    assert (the_only(measured).value, the_only(measured).volume_bytes) == (MIB, None)
    assert any("volume_bytes 1.84467e+19" in note for note in measured.protocol.notes)


@pytest.mark.skipif(not shutil.which("fio"), reason="fio is not installed")
def test_text_and_json_of_one_run_give_the_same_values(tmp_path: Path) -> None:
    command = [
        "fio",
        "--name=j",
        "--rw=randrw",
        "--size=2m",
        "--bs=8k",
        "--numjobs=2",
        f"--directory={tmp_path}",
    ]
    text, both = tmp_path / "text", tmp_path / "both"
    subprocess.run([*command, f"--output={text}"], check=True, timeout=120, capture_output=True)
    subprocess.run(
        [*command, f"--output={both}", "--output-format=normal,json,terse"],
        check=True, timeout=120, capture_output=True,
    )  # fmt: skip
    assert {one.operation: one.processes for one in readers.read(text).cells} == {"read": 2, "write": 2}
    content = both.read_text()
    whole = json.loads(content[content.index("\n{") : content.rindex("\n}") + 2])
    for one in readers.read(both).cells:
        assert one.value == sum(part[one.operation]["bw_bytes"] for part in whole["jobs"])
