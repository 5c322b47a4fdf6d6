"""Tests the rule `read-after-write`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data_faults import made
from diagnosing import blamed, diagnosed, of_rule
from log_shapes import at, pwrite
from made_store import without_checksums
from metadata_log import Trace, of_log
from timed_strace import StraceLog

RECORD = 700
MIB = 1 << 20


@pytest.mark.parametrize(("extra_reads", "found"), [(0, 0), (1, 1)], ids=["refills", "reads of its own"])
def test_refilling_a_buffer_after_the_header_is_not_a_read_back(
    tmp_path: Path, extra_reads: int, found: int
) -> None:
    def write(log: Trace) -> None:
        log.open("/data/events.rec", flags="O_RDWR|O_CREAT|O_TRUNC")
        pwrite(log, 4096, 0)
        for number in range(1000):
            pwrite(log, RECORD, 4096 + number * RECORD)
            pwrite(log, 16, 0)
            for _ in range(1 + extra_reads):
                log.call('pread64(3, ""..., 4096, 0)', "4096", 20)

    diagnosis = of_log(tmp_path, write)
    assert len(of_rule(diagnosis, "read-after-write")) == found
    assert bool(of_rule(diagnosis, "redundant-writes")) != found


def test_records_that_are_read_back_are_not_taken_for_refills(tmp_path: Path) -> None:
    def write(log: Trace) -> None:
        log.open("/data/checkpoint", flags="O_RDWR|O_CREAT|O_TRUNC")
        for number in range(200):
            pwrite(log, MIB, 4096 + number * MIB, 1000)
            pwrite(log, 16, 0)
            log.call(f'pread64(3, ""..., {MIB}, {4096 + number * MIB})', str(MIB), 1000)

    (found,) = of_rule(of_log(tmp_path, write), "read-after-write")
    assert found.evidence["count"] == 200


@pytest.mark.parametrize("passes", [1, 40])
def test_a_table_written_once_is_read_back_once_and_then_read_again(tmp_path: Path, passes: int) -> None:
    def write(log: Trace) -> None:
        log.open("/data/table", flags="O_RDWR|O_CREAT")
        for _ in range(16):
            log.write(MIB, 500)
        for _ in range(passes):
            log.call("lseek(3, 0, SEEK_SET)", "0", 1)
            for _ in range(16):
                log.read(MIB, 500)

    diagnosis = of_log(tmp_path, write)
    (handed,) = of_rule(diagnosis, "read-after-write")
    assert handed.evidence["own_bytes"] == 16 * MIB
    again = of_rule(diagnosis, "redundant-reads")
    assert [one.evidence["again_bytes"] for one in again] == [39 * 16 * MIB] * (passes > 1)
    assert diagnosis.worth_changing[0].rule == ("redundant-reads" if passes > 1 else "read-after-write")


def handed_over(log: StraceLog, readings: int) -> None:
    """Writes a state 30 times and reads it back after the first READINGS writes."""
    log.open("/data/state", "O_RDWR|O_CREAT")
    for number in range(30):
        log.pwrite(MIB, 0, 5000)
        if number < readings:
            log.pread(MIB, 0, 1000)


def test_data_rewritten_before_each_read_is_not_expected_in_memory(tmp_path: Path) -> None:
    diagnosis = diagnosed(made(lambda log: handed_over(log, 30), tmp_path))
    (found,) = diagnosis.worth_changing
    assert (found.rule, found.evidence["rewrites"]) == ("read-after-write", 29)
    assert found.cost_seconds == pytest.approx(30 * 0.001 + 29 * 0.005, rel=0.01)


def test_a_state_that_is_read_back_once_is_written_too_often(tmp_path: Path) -> None:
    diagnosis = diagnosed(made(lambda log: handed_over(log, 1), tmp_path))
    assert diagnosis.worth_changing[0].rule == "redundant-writes"
    (found,) = of_rule(diagnosis, "read-after-write")
    assert found.cost_seconds == pytest.approx(0.001 + 0.005, rel=0.01)


def test_rewritten_data_that_is_read_back_is_found(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/state", flags="O_RDWR|O_CREAT")
    for _ in range(400):
        log.call('pwrite64(3, ""..., 65536, 0)', "65536", 500)
        log.call('pread64(3, ""..., 65536, 0)', "65536", 300)
    rules = blamed(diagnosed(log.imported(tmp_path)))
    assert rules[0] == "read-after-write" and "redundant-writes" not in rules


@pytest.mark.parametrize(("name", "seconds"), [("stage.csv", 0.00204 + 0.02), ("stage.bin", 0.00204)])
def test_parsing_a_programs_own_text_output_is_found(tmp_path: Path, name: str, seconds: float) -> None:
    log = Trace()
    log.open(f"/data/{name}", flags="O_RDWR|O_CREAT", took_us=10)
    for _ in range(4):
        log.write(1_000_000, 1000)
        log.pause(20_000)
    log.call("lseek(3, 0, SEEK_SET)")
    for _ in range(4):
        log.read(1_000_000, 510)
        log.pause(20_000)
    path = log.imported(tmp_path)
    table = path / "processes.parquet"
    rows = pq.read_table(table)
    at = rows.column_names.index("cpu_user_ns")
    pq.write_table(rows.set_column(at, "cpu_user_ns", pa.array([160_000_000], pa.int64())), table)
    without_checksums(table.parent)
    (found,) = of_rule(diagnosed(path), "read-after-write")
    assert found.cost_seconds == pytest.approx(seconds, rel=0.01)


def scratch(folder: Path, deleted: bool, name: str) -> Path:
    log = Trace()
    for number in range(20):
        log.open(f"/scratch/{name}{number:02d}", flags="O_RDWR|O_CREAT|O_EXCL")
        log.write(1 << 20, 4000)
        at(log, "pread64", 1 << 20, 0, 1000)
        log.close()
        if deleted:
            log.call(f'unlink("/scratch/{name}{number:02d}")', took_us=1000)
    return log.imported(folder)


@pytest.mark.parametrize(
    ("deleted", "name", "seconds"), [(True, "part-", 0.12), (False, "part-", 0.02), (True, "sortQ7xb", 0.02)]
)
def test_temporary_files_deleted_in_the_run_are_found(
    tmp_path: Path, deleted: bool, name: str, seconds: float
) -> None:
    (found,) = of_rule(diagnosed(scratch(tmp_path, deleted, name)), "read-after-write")
    assert found.cost_seconds == pytest.approx(seconds, rel=0.01)
