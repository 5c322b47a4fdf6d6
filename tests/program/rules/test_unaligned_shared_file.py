"""Tests the rule `unaligned-shared-file`: when it gives a finding, its count and cost, and when it gives
none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Finding
from iodock.shared.settings import Settings
from metadata_log import Trace
from rank_log import MIB, ranks
from timed_strace import mounted

ODD = MIB + 2000
PADDED = MIB + 4096
PIECES = 50
RULE = "unaligned-shared-file"


def by_turns(
    size: int, took_us: int = 4000, place: Callable[[int, int], int] | None = None
) -> Callable[..., None]:
    """Returns the work of four ranks that write interleaved pieces of SIZE, all at the same time."""

    def work(log: Trace, number: int, pid: int) -> None:
        log.open("/data/field", flags="O_WRONLY|O_CREAT", pid=pid)
        for step in range(PIECES):
            at = place(step, number) if place else (step * 4 + number) * size
            log.call(f'pwrite64(3, ""..., {size}, {at})', str(size), took_us, pid)

    return work


def found(store: Path, fs_type: str, settings: Settings | None = None) -> list[Finding]:
    return of_rule(diagnosed(mounted(store, "/data", fs_type), settings), RULE)


def test_requests_that_share_pages_on_a_parallel_file_system_are_found(tmp_path: Path) -> None:
    diagnosis = diagnosed(mounted(ranks(by_turns(ODD), tmp_path), "/data", "lustre"))
    (one,) = of_rule(diagnosis, RULE)
    assert (one.evidence["count"], one.evidence["writers"]) == (4 * PIECES, 4)
    assert one.evidence["mean_bytes"] == ODD and one.files == ("/data/field",)
    assert "unknown here" in one.message.text
    # All four ranks are inside a write at the same time, for 0.2 s of the run. Copying the bytes in memory is
    # subtracted.
    assert one.cost_seconds == pytest.approx(0.2 * (1 - ODD / 2e9 / 4e-3), rel=0.02)
    assert [other.rule for other in diagnosis.worth_changing] == [RULE]


@pytest.mark.parametrize(
    ("size", "fs_type", "count"),
    [
        pytest.param(ODD, "lustre", 1, id="odd"),
        pytest.param(PADDED, "lustre", 0, id="padded to pages"),
        pytest.param(ODD, "ext4", 0, id="a local disk"),
    ],
)
def test_the_corrected_program_and_local_disks_give_no_finding(
    tmp_path: Path, size: int, fs_type: str, count: int
) -> None:
    assert len(found(ranks(by_turns(size), tmp_path), fs_type)) == count


@pytest.mark.parametrize(("size", "count"), [(PADDED, 1), (MIB, 0), (2 * MIB, 0)])
def test_configured_stripes_reveal_requests_aligned_only_to_pages(
    tmp_path: Path, size: int, count: int
) -> None:
    settings = Settings(rules={RULE: {"block_bytes": MIB}})
    told = found(ranks(by_turns(size), tmp_path), "lustre", settings)
    assert len(told) == count
    assert not any("unknown here" in one.message.text for one in told)


def test_long_parts_share_pages_only_at_their_ends(tmp_path: Path) -> None:
    def part(step: int, number: int) -> int:
        return (number * PIECES + step) * ODD

    assert not found(ranks(by_turns(ODD, place=part), tmp_path), "lustre")


def test_successive_writers_give_no_finding(tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.pause(250_000 * number, pid)
        by_turns(ODD)(log, number, pid)

    assert not found(ranks(work, tmp_path), "lustre")


def test_bytes_rewritten_by_all_are_not_an_alignment_problem(tmp_path: Path) -> None:
    work = by_turns(ODD, place=lambda step, number: step % 3 * ODD)
    assert not found(ranks(work, tmp_path), "lustre")


def on_nodes(store: Path, nodes: int | None = None, hosts: str | None = None) -> Path:
    """Changes the store as if its job had NODES nodes. Each letter of HOSTS is the host of one rank."""
    mounted(store, "/data", "lustre")
    manifest = json.loads((store / "manifest.json").read_text())
    (store / "manifest.json").write_text(json.dumps(manifest | {"job": {"nodes": nodes}}))
    if hosts:
        path = store / "processes.parquet"
        table = pq.read_table(path)
        column = pa.array([hosts[rank] for rank in table["rank"].to_pylist()], pa.string())
        pq.write_table(table.set_column(table.column_names.index("host"), "host", column), path)
    return store


@pytest.mark.parametrize(("nodes", "count"), [(1, 0), (2, 1), (None, 1)])
def test_processes_of_one_node_share_its_client(tmp_path: Path, nodes: int | None, count: int) -> None:
    assert len(of_rule(diagnosed(on_nodes(ranks(by_turns(ODD), tmp_path), nodes)), RULE)) == count


@pytest.mark.parametrize(("hosts", "count"), [("abab", 1), ("aabb", 0)])
def test_only_requests_of_different_nodes_conflict(tmp_path: Path, hosts: str, count: int) -> None:
    """Ranks 0 and 1 take turns in the first half of the file, and ranks 2 and 3 in the second."""

    def place(step: int, number: int) -> int:
        return ((number // 2 * PIECES + step) * 2 + number % 2) * ODD

    store = on_nodes(ranks(by_turns(ODD, place=place), tmp_path), 2, hosts)
    assert len(of_rule(diagnosed(store), RULE)) == count


def two_and_a_half(log: Trace, late_us: int) -> None:
    """Adds two processes on a local disk. Every second piece begins in a page that the other process wrote
    before."""
    size = MIB + 2048
    for pid in (201, 202):
        log.start(pid)
        log.open("/data/field", flags="O_WRONLY|O_CREAT", pid=pid)
    for step in range(PIECES):
        for number, pid in enumerate((201, 202)):
            at, took_us = (step * 2 + number) * size, late_us if number else 200
            log.pause(200 if number else 0, pid)
            log.call(f'pwrite64(3, ""..., {size}, {at})', str(size), took_us, pid)
            log.pause(0 if number else late_us, pid)
    for pid in (201, 202):
        log.end(pid)


@pytest.mark.parametrize(("late_us", "count"), [(1000, 1), (300, 0)])
def test_on_a_local_disk_the_cost_must_be_visible_in_the_run(
    tmp_path: Path, late_us: int, count: int
) -> None:
    log = Trace()
    two_and_a_half(log, late_us)
    told = found(log.imported(tmp_path, wall_us=1), "ext4")
    assert len(told) == count
    if told:
        assert told[0].evidence["count"] == 2 * PIECES
        # Each second piece takes 800 us more.
        assert told[0].cost_seconds == pytest.approx(PIECES * 800e-6, rel=0.02)


def test_without_durations_the_number_of_writes_decides(tmp_path: Path) -> None:
    log = Trace()
    two_and_a_half(log, 300)
    (one,) = found(log.imported(tmp_path, wall_us=1, durations=False), "lustre")
    assert one.evidence["count"] == 2 * PIECES and one.cost_seconds is None
