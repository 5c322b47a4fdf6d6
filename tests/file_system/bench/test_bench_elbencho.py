"""Tests reading elbencho's results: mixed reads and writes, units, several runs in one file, damaged rows.

The inputs follow elbencho's own output code (Statistics.cpp, 1.0 to 3.1), except those of fixtures/."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from iodock.file_system.health import readers
from iodock.file_system.health.measurements import Cell, MeasurementError, Measurements
from iodock.file_system.health.readers.elbencho_table import host_count
from places import FIXTURES

MIB = 1 << 20
HEAD = """OPERATION   RESULT TYPE         FIRST DONE   LAST DONE
=========== ================    ==========   =========
"""


def read(path: Path, content: str) -> Measurements:
    path.write_text(content)
    return readers.read(path)


def rates(measured: Measurements) -> dict[tuple[str, str], float]:
    return {(one.operation, one.variant.get("mix", "")): one.value for one in measured.cells}


def only(measured: Measurements, operation: str) -> Cell:
    (found,) = [one for one in measured.cells if one.operation == operation]
    return found


def test_a_mixed_phase_has_reads_and_writes() -> None:
    measured = readers.read(FIXTURES / "public" / "elbencho-mixed" / "rwmix-table.txt")
    assert rates(measured) == {
        ("write", ""): 1939 * MIB,
        ("write", "RWMIX75"): 963 * MIB,
        ("read", "RWMIX75"): 2890 * MIB,
        ("read", ""): 4026e6,
    }
    assert measured.protocol.notes == ()
    mixed = [one for one in measured.cells if one.variant.get("mix")]
    assert [one.volume_bytes for one in mixed] == [8192 * MIB, 24576 * MIB]
    assert {one.seconds for one in mixed} == {8.501}


def test_decimal_and_binary_prefixes_are_read(tmp_path: Path) -> None:
    for unit, factor in (("MB/s", 10**6), ("MiB/s", MIB), ("GB/s", 10**9), ("GiB/s", 1 << 30)):
        for rows, operation in (
            (f"            Throughput {unit:<6} :        4103        4026\n", "read"),
            (f"            {unit + ' read':<17}:        4103        4026\n", "read"),
        ):
            text = f"{HEAD}READ        Elapsed time     :    2m3.241s    2m5.755s\n{rows}---\n"
            cell = only(read(tmp_path / "table.txt", text), operation)
            assert (cell.value, cell.seconds) == (4026 * factor, 125.755)


def test_the_number_of_blocks_makes_decimal_rates_exact(tmp_path: Path) -> None:
    text = (
        'ISO DATE: 2026-11-21T05:00:00+0000\nCOMMAND LINE: "elbencho" "-r" "--base10" "-b" "1m" "/x" \n\n'
        f"{HEAD}READ        Elapsed time     :      8.120s      8.333s\n"
        "            IOPS             :        3913        3840\n"
        "            Throughput MB/s  :        4103        4026\n---\n"
    )
    assert only(read(tmp_path / "table.txt", text), "read").value == 3840 * MIB


def test_readers_next_to_writers_have_their_own_files_and_latencies(tmp_path: Path) -> None:
    text = (
        f"{HEAD}MIX-T4      Elapsed time     :      8.248s      8.501s\n"
        "            Files/s write    :          99          96\n"
        "            Files/s read     :         297         289\n"
        "            Files/s total    :         396         385\n"
        "            MiB/s write      :         990         963\n"
        "            MiB/s read       :        2970        2890\n"
        "            MiB/s total      :        3960        3853\n"
        "            MiB write        :        8100        8192\n"
        "            MiB read         :       24300       24576\n"
        "            IO wr latency    : [ min=91us avg=2.05ms max=1.58s ]\n"
        "            IO rd latency    : [ min=9us avg=205us max=158ms ]\n"
    )
    measured = read(tmp_path / "table.txt", text)
    assert rates(measured) == {
        ("write", "MIX-T4"): 963 * MIB,
        ("file-create", "MIX-T4"): 96,
        ("read", "MIX-T4"): 2890 * MIB,
        ("file-read", "MIX-T4"): 289,
    }
    write, reading = only(measured, "write").latency_ns, only(measured, "read").latency_ns
    assert write and reading
    assert (write.mean, write.max) == (pytest.approx(2.05e6), pytest.approx(1.58e9))
    assert (reading.min, reading.mean, reading.max) == (9e3, 205e3, 158e6)


@pytest.mark.parametrize("form", ["csv", "json"])
def test_a_mixed_phase_is_read_from_csv_and_json(tmp_path: Path, form: str) -> None:
    if form == "csv":
        head, _, row, *_ = (FIXTURES / "bench" / "elb.csv").read_text().splitlines()
        columns, fields = head.split(","), row.split(",")
        values = dict(zip(columns, fields, strict=True))
        values |= {"operation": "RWMIX70", "MiB/s [last]": "963", "IOPS [last]": ""}
        values |= {"rwmix read MiB/s [last]": "2890", "rwmix read MiB [last]": "24576"}
        values |= {f"rwmix read IO lat us [{one}]": "7" for one in ("min", "avg", "max")}
        content = f"{head}\n{','.join(values[one] for one in columns)}\n"
    else:
        lines = (FIXTURES / "bench" / "elb.json").read_text().splitlines()
        phase = json.loads(lines[1])
        phase["phase_type"] = "RWMIX70"
        phase["last_done"]["bytes/s"] = str(963 * MIB)
        phase["last_done"]["rwmix_read"] = {"bytes/s": str(2890 * MIB), "bytes": str(24576 * MIB)}
        phase["last_done"]["latency"]["IO"]["rwmix_read"] = {"min_us": 7, "avg_us": 7, "max_us": 7}
        content = json.dumps(phase, separators=(",", ":"))
    measured = read(tmp_path / f"mix.{form}", content)
    assert rates(measured)[("write", "RWMIX70")] == 963 * MIB
    reading = only(measured, "read")
    assert (reading.value, reading.volume_bytes) == (2890 * MIB, 24576 * MIB)
    assert reading.latency_ns and reading.latency_ns.mean == 7000


def test_the_oldest_table_names_its_phase_in_each_row(tmp_path: Path) -> None:
    text = """OPERATION RESULT TYPE      FIRST DONE  LAST DONE
========= =============    ==========  =========
MKDIRS    time ms       :          1          2
MKDIRS    entries/s     :       1606       1441
MKDIRS    entries       :          2          4
---
WRITE     time ms       :       1624       1650
WRITE     entries/s     :        246        242
WRITE     IOPS          :       1969       1939
WRITE     I/Os          :       3985       4000
WRITE     MiB/s         :       1969       1939
WRITE     MiB           :       3985       4000
---
"""
    measured = read(tmp_path / "table.txt", text)
    assert {one.operation: one.value for one in measured.cells} == {
        "directory-create": 1441,
        "write": 1939 * MIB,
        "file-create": 242,
    }
    assert (only(measured, "write").seconds, only(measured, "write").volume_bytes) == (1.65, 4000 * MIB)


def test_phases_without_a_rate_are_named(tmp_path: Path) -> None:
    text = (
        f"{HEAD}SYNC        Elapsed time     :        16ms        17ms\n---\n"
        "DROPCACHE   Elapsed time     :        16ms        17ms\n---\n"
        "WRITE+s     Elapsed time     :      8.120s      8.333s\n"
        "            Files/s          :         489         480\n"
        "            Dirs/s           :           4           4\n---\n"
        "Phase: READ: Skipping stats print due to unavailable worker results.\n---\n"
    )
    measured = read(tmp_path / "table.txt", text)
    (create,) = measured.cells
    assert (create.operation, create.value, dict(create.variant)) == ("file-create", 480, {"inline": "stat"})
    assert measured.protocol.notes[0] == "phases without a rate, left out: DROPCACHE, SYNC"
    assert "a phase has no results of its workers" in measured.protocol.notes[1]


def test_live_statistics_before_a_row_are_skipped(tmp_path: Path) -> None:
    live = "\x1b[2K\rWRITE: 1234 IOPS; 1234 MiB/s; 5 MiB; 4 threads; 12% CPU; 1s"
    text = (
        f"{HEAD}{live}{live}\x1b[2K\rWRITE       Elapsed time     :      8.120s      8.333s\n"
        "WRITE: 77 IOPS; 77 MiB/s; 5 MiB; 4 threads; 12% CPU; 1s\n"
        "            Throughput MiB/s :         489         480\n---\n"
    )
    (write,) = read(tmp_path / "table.txt", text).cells
    assert (write.operation, write.value, write.seconds) == ("write", 480 * MIB, 8.333)


def test_each_elbencho_run_in_a_file_has_its_own_command(tmp_path: Path) -> None:
    def run(threads: int, block: str, hosts: str) -> str:
        return (
            f"ISO DATE: 2026-11-21T05:00:0{threads}+0000\n"
            f'COMMAND LINE: "elbencho" "-w" "-t" "{threads}" "-b" "{block}" {hosts}"/x" \n\n'
            f"{HEAD}WRITE       Elapsed time     :      8.120s      8.333s\n"
            "            Throughput MiB/s :         489         480\n---\n\n"
        )

    several = run(2, "1m", "") + run(4, "64k", '"--hosts" "node[1-4],login" ')
    measured = read(tmp_path / "results.txt", several)
    assert [(one.processes, one.nodes, one.size_bytes) for one in measured.cells] == [
        (2, 1, MIB),
        (20, 5, 64 << 10),
    ]


def test_hosts_in_a_host_list_are_counted() -> None:
    assert host_count("192.168.0.[1,3,5]") == 3
    assert host_count("node[001-128]") == 128
    assert host_count("a,b,rack[1-2]node[01-16]") == 34
    assert host_count("node[5-1]") is None
    assert host_count(None) is None


def test_damaged_rows_are_counted_and_the_others_kept(tmp_path: Path) -> None:
    table = (
        f"{HEAD}WRITE       Elapsed time     :      8.120s      8.333s\n"
        "            Throughput MiB/s :         489\n"
        "            Files/s          :         489         480\n---\n"
        "READ        Elapsed time     :      8.120s      8.333s\n"
        "            Throughput MiB/s :         489         nan\n"
    )
    rows = (FIXTURES / "bench" / "elb.csv").read_text().splitlines()
    lines = (FIXTURES / "bench" / "elb.json").read_text().splitlines()
    for name, content, whole in (
        ("table.txt", table, 1),
        ("rows.csv", "\n".join([*rows[:3], rows[3][:80], *rows[4:]]), 5),
        ("lines.json", "\n".join([*lines[:2], lines[2][:200], *lines[3:]]), 5),
    ):
        measured = read(tmp_path / name, content)
        assert len({one.source for one in measured.cells}) == whole, name
        assert any("unusable values left out: 1" in note for note in measured.protocol.notes), name


def test_live_csv_is_refused_and_the_needed_file_named(tmp_path: Path) -> None:
    head = "ISO Date,Label,Phase,RuntimeMS,Rank,MixType,Done%,DoneBytes,MiB/s,IOPS,Entries,Entries/s,\n"
    with pytest.raises(MeasurementError) as raised:
        read(tmp_path / "live.csv", head)
    assert "live statistics of elbencho" in str(raised.value)
    assert "--csvfile" in (raised.value.hint or "")
