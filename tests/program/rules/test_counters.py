"""Tests rules on counters instead of calls: each finds its pattern and ignores good I/O."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from counter_log import ALL, Record, counted, findings, layout, mpi_io, posix, stdio
from diagnosing import diagnosed
from in_process import asked, printed
from iodock.program import rules
from iodock.program.capture import import_logs
from iodock.program.findings import Severity
from iodock.program.rules.facts import Need
from iodock.program.run import open as open_run
from places import FIXTURES

DATA = "/lustre/data"
MIB = 1 << 20


def found_in(folder: Path, *records: Record, **job: Any) -> dict[str, Any]:
    return findings(folder, *records, **job)


def large(**more: float) -> Record:
    """Returns the record of a file that is read efficiently."""
    return posix(DATA, reads=1000, read_size=4 * MIB, read_seconds=80.0, **more)


def test_large_sequential_requests_give_no_finding(tmp_path: Path) -> None:
    found = found_in(tmp_path, posix(DATA, 0, reads=1000, read_size=4 * MIB, read_seconds=50.0), processes=1)
    assert found == {}


@pytest.mark.parametrize(("way", "other"), [("read", "write"), ("write", "read")])
def test_small_requests_are_found_in_counters(tmp_path: Path, way: str, other: str) -> None:
    counts = {f"{way}s": 40_000, f"{way}_size": 47_008, f"{way}_seconds": 80.0}
    found = found_in(tmp_path, posix(DATA, **counts))
    one = found[f"small-requests {way}"]
    assert one.evidence["count"] == 40_000
    assert one.evidence["bytes"] == 40_000 * 47_008
    # The cost is the mean time of the four processes, from which few large requests would subtract little.
    assert 15.0 < one.cost_seconds < 20.0
    # Darshan cannot show whether Lustre's servers are faster with large requests, so the gain is unknown.
    assert one.gain is None
    assert one.severity is Severity.MEDIUM
    assert f"small-requests {other}" not in found


def test_the_limit_of_small_requests_is_lower_on_a_local_disk(tmp_path: Path) -> None:
    local = {"reads": 40_000, "read_size": 47_008, "read_seconds": 80.0, "FILE_ALIGNMENT": 4096}
    assert "small-requests read" not in found_in(tmp_path, posix("/scratch/a", **local))
    tiny = local | {"read_size": 1000}
    found = found_in(tmp_path, posix("/scratch/a", **tiny))["small-requests read"]
    assert 10.0 < found.gain.low_seconds < found.gain.high_seconds < 20.0


def test_few_small_requests_among_large_ones_give_no_finding(tmp_path: Path) -> None:
    few = posix("/lustre/log", 0, writes=200, write_size=80, write_seconds=0.3)
    many = posix(DATA, 0, writes=20_000, write_size=MIB, write_seconds=60.0)
    assert "small-requests write" not in found_in(tmp_path, few, many, processes=1)


def test_interleaved_parts_of_a_shared_file_are_random_access(tmp_path: Path) -> None:
    found = found_in(
        tmp_path, posix(DATA, writes=4000, write_size=47_008, write_jumps=4000, write_seconds=90.0)
    )
    one = found["random-access write"]
    assert one.evidence["jumps"] == 4000
    assert one.severity.at_least(Severity.MEDIUM)


def test_forward_jumps_of_one_process_are_not_random_access(tmp_path: Path) -> None:
    ahead = {"reads": 4000, "read_size": 8192, "read_jumps": 4000, "read_seconds": 90.0}
    assert "random-access read" not in found_in(tmp_path, posix(DATA, 0, **ahead), processes=1)
    back = ahead | {"read_returns": 2000}
    assert "random-access read" in found_in(tmp_path, posix(DATA, 0, **back), processes=1)


def test_large_random_requests_give_a_note(tmp_path: Path) -> None:
    found = found_in(tmp_path, posix(DATA, reads=4000, read_size=MIB, read_jumps=3900, read_seconds=300.0))
    assert found["random-access read"].severity is Severity.NOTE


def test_unaligned_requests_are_found_in_counters(tmp_path: Path) -> None:
    odd = {"writes": 4000, "write_size": 2_000_000, "write_seconds": 200.0}
    found = found_in(tmp_path, posix(DATA, FILE_NOT_ALIGNED=3900, **odd))
    one = found["unaligned-requests write"]
    assert one.evidence["count"] == 3900
    assert one.evidence["block_bytes"] == MIB
    assert one.gain is None
    assert "unaligned-requests write" not in found_in(tmp_path, posix(DATA, FILE_NOT_ALIGNED=100, **odd))
    local = odd | {"write_jumps": 4000, "FILE_NOT_ALIGNED": 4000, "FILE_ALIGNMENT": 4096}
    found = found_in(tmp_path, posix("/scratch/a", **local))
    assert found["unaligned-requests write"].gain is not None
    assert "unaligned-requests write" not in found_in(
        tmp_path, posix("/scratch/a", **local | {"write_jumps": 0})
    )


def test_the_cost_of_small_unaligned_requests_is_not_estimated(tmp_path: Path) -> None:
    found = found_in(
        tmp_path, posix(DATA, writes=90_000, write_size=2000, write_seconds=90.0, FILE_NOT_ALIGNED=89_000)
    )
    one = found["unaligned-requests write"]
    assert one.severity is Severity.NOTE
    assert one.gain is None


def test_a_shared_file_written_across_stripes_needs_its_layout(tmp_path: Path) -> None:
    shared = posix(DATA, writes=4000, write_size=MIB, write_seconds=200.0, FILE_NOT_ALIGNED=4000)
    assert "unaligned-shared-file write" not in found_in(tmp_path, shared)
    one = found_in(tmp_path, shared, layout(DATA, range(8)))["unaligned-shared-file write"]
    assert one.evidence["writers"] == 4
    silent = {one.rule: one.why for one in diagnosed(counted(tmp_path, [shared])).silent}
    assert silent["unaligned-shared-file"] == Need.LAYOUT.why
    assert silent["uneven-servers"] == Need.LAYOUT.why


def test_metadata_calls_slower_than_data_calls_are_found(tmp_path: Path) -> None:
    made = [
        posix(
            f"/lustre/{at}",
            at % 4,
            writes=1,
            write_size=4096,
            write_seconds=0.001,
            meta_seconds=0.04,
            STATS=3,
        )
        for at in range(600)
    ]
    found = found_in(tmp_path, *made, seconds=20.0)
    assert found["metadata-heavy"].evidence["calls"] == 2400
    assert found["metadata-heavy"].severity is not Severity.NOTE
    assert found["tiny-file-flood"].evidence["files"] == 600
    assert found["file-per-process"].evidence["workers"] == 4
    few = [posix(f"/lustre/{at}", 0, meta_seconds=0.04, STATS=3) for at in range(5)]
    assert found_in(tmp_path, *few)["metadata-heavy"].severity is Severity.NOTE
    assert "metadata-heavy" not in found_in(tmp_path, large(meta_seconds=1.0))


def test_repeated_reads_are_found_in_counters(tmp_path: Path) -> None:
    again = posix(DATA, 0, reads=1000, read_size=MIB, read_extent=100 * MIB, read_seconds=50.0)
    one = found_in(tmp_path, again, processes=1)["redundant-reads read"]
    assert one.evidence["factor"] == 10.0
    once = posix(DATA, 0, reads=1000, read_size=MIB, read_seconds=50.0)
    assert "redundant-reads read" not in found_in(tmp_path, once, processes=1)


def test_repeated_writes_are_found_in_counters(tmp_path: Path) -> None:
    again = posix(DATA, 0, writes=1000, write_size=MIB, write_extent=100 * MIB, write_seconds=50.0)
    one = found_in(tmp_path, again, processes=1)["redundant-writes write"]
    assert one.evidence["factor"] == 10.0
    assert one.cost_seconds == pytest.approx(45.0)
    once = posix(DATA, 0, writes=1000, write_size=MIB, write_seconds=50.0)
    assert "redundant-writes write" not in found_in(tmp_path, once, processes=1)


def test_a_file_that_each_rank_reads_once_is_found(tmp_path: Path) -> None:
    each = posix(DATA, reads=400, read_size=MIB, read_extent=100 * MIB, read_seconds=50.0)
    one = found_in(tmp_path, each)["redundant-reads read"]
    assert "Each process reads the same bytes" in one.message.text
    parts = posix(DATA, reads=400, read_size=MIB, read_seconds=50.0)
    assert "redundant-reads read" not in found_in(tmp_path, parts)


def test_a_file_that_ranks_share_is_found(tmp_path: Path) -> None:
    assert found_in(tmp_path, large())["shared-file-contention"].severity is Severity.NOTE
    small = found_in(tmp_path, posix(DATA, writes=4000, write_size=5000, write_seconds=200.0))
    assert small["shared-file-contention"].severity is Severity.MEDIUM
    own = [posix(f"/lustre/{at}", at, reads=100, read_size=4 * MIB, read_seconds=9.0) for at in range(4)]
    assert "shared-file-contention" not in found_in(tmp_path, *own)


def test_a_file_used_by_one_rank_is_not_shared(tmp_path: Path) -> None:
    alone = {
        "SLOWEST_RANK": 0,
        "SLOWEST_RANK_BYTES": 1000 * 4 * MIB,
        "FASTEST_RANK": 1,
        "FASTEST_RANK_BYTES": 0,
    }
    assert "shared-file-contention" not in found_in(tmp_path, large(**alone))


def test_a_rank_that_does_most_io_is_found(tmp_path: Path) -> None:
    uneven = [
        posix(f"/lustre/{at}", at, writes=size, write_size=MIB, write_seconds=size / 10)
        for at, size in enumerate((900, 100, 100, 100))
    ]
    one = found_in(tmp_path, *uneven)["rank-imbalance"]
    assert one.evidence["worker"] == 0
    assert one.evidence["workers"] == 4
    assert one.cost_seconds == pytest.approx(90 - 30)
    even = [posix(f"/lustre/{at}", at, writes=300, write_size=MIB, write_seconds=9.0) for at in range(4)]
    assert "rank-imbalance" not in found_in(tmp_path, *even)


def test_of_a_shared_file_only_the_slowest_rank_is_known(tmp_path: Path) -> None:
    slowest = {
        "SLOWEST_RANK": 2, "SLOWEST_RANK_BYTES": 3000 * MIB, "F_SLOWEST_RANK_TIME": 70.0, "FASTEST_RANK": 1,
        "FASTEST_RANK_BYTES": 300 * MIB, "F_FASTEST_RANK_TIME": 3.0,
    }  # fmt: skip
    one = found_in(tmp_path, large(**slowest))["rank-imbalance"]
    assert one.evidence["worker"] == 2
    assert one.evidence["most_bytes"] == 3000 * MIB


def test_syncs_after_few_bytes_each_are_found(tmp_path: Path) -> None:
    synced = {"writes": 1000, "write_size": 5000, "write_seconds": 50.0}
    found = found_in(tmp_path, posix(DATA, 0, FSYNCS=1000, FDSYNCS=0, **synced), processes=1)
    one = found["sync-heavy"]
    assert one.evidence["count"] == 1000
    # Darshan counts the time of syncs as write time, so the saving of a change is unknown.
    assert 45.0 < one.cost_seconds < 50.0 and one.gain is None
    assert "small-requests write" not in found
    many = {"writes": 40_000, "write_size": 100, "write_seconds": 50.0}
    found = found_in(tmp_path, posix(DATA, 0, FSYNCS=1000, FDSYNCS=0, **many), processes=1)
    assert found["sync-heavy"].cost_seconds is None
    assert "small-requests write" in found
    assert "sync-heavy" not in found_in(tmp_path, posix(DATA, 0, FSYNCS=4, FDSYNCS=0, **synced), processes=1)


def test_unnecessary_seeks_are_found_in_counters(tmp_path: Path) -> None:
    few = found_in(tmp_path, large(SEEKS=500, OPENS=4, meta_seconds=2.0))
    assert "seek-storm" not in few
    many = found_in(tmp_path, large(SEEKS=3000, OPENS=4, meta_seconds=2.0))["seek-storm"]
    assert many.evidence["needless"] == 3000 - 12
    needed = found_in(tmp_path, large(SEEKS=1000, OPENS=4, read_jumps=1000))
    assert "seek-storm" not in needed


def test_repeated_stats_are_found_in_counters(tmp_path: Path) -> None:
    one = found_in(tmp_path, large(STATS=3000, OPENS=4, meta_seconds=5.0))["stat-storm"]
    assert one.evidence["asked"] == 3000
    assert "stat-storm" not in found_in(tmp_path, large(STATS=4, OPENS=4))


def test_repeated_opens_and_closes_are_found_in_counters(tmp_path: Path) -> None:
    loop = {"writes": 2000, "write_size": 200, "write_seconds": 1.0, "meta_seconds": 60.0}
    one = found_in(tmp_path, posix(DATA, 0, OPENS=2000, **loop), processes=1)["open-close-loop"]
    assert one.evidence["count"] == 1999
    assert one.cost_seconds == pytest.approx(60 * 1999 / 2000)
    assert "open-close-loop" not in found_in(tmp_path, posix(DATA, 0, OPENS=2, **loop), processes=1)


def test_a_file_on_few_targets_is_found(tmp_path: Path) -> None:
    one = found_in(tmp_path, large(), layout(DATA, [3]))["uneven-servers"]
    assert (one.evidence["used"], one.evidence["targets"]) == (1, 8)
    assert one.gain is None
    assert one.severity is Severity.MEDIUM
    assert "uneven-servers" not in found_in(tmp_path, large(), layout(DATA, range(4)))


def test_a_file_that_is_read_and_written_counts_once(tmp_path: Path) -> None:
    both = large(writes=1000, write_size=4 * MIB, write_seconds=80.0)
    found = found_in(tmp_path, both, layout(DATA, [3]))
    for rule in ("uneven-servers", "many-processes-without-parallel-io", "shared-file-contention"):
        assert found[rule].files == (DATA,), rule
        assert found[rule].file_count == 1, rule
        assert found[rule].message.values["files"] == 1, rule


def test_one_target_suffices_for_one_process_or_few_bytes(tmp_path: Path) -> None:
    alone = posix(DATA, 0, reads=1000, read_size=4 * MIB, read_seconds=50.0)
    assert "uneven-servers" not in found_in(tmp_path, alone, layout(DATA, [3]), processes=1)
    little = posix(DATA, reads=100, read_size=4096, read_seconds=50.0)
    assert "uneven-servers" not in found_in(tmp_path, little, layout(DATA, [3]))


def test_files_of_ranks_on_different_targets_are_balanced(tmp_path: Path) -> None:
    own = [posix(f"/lustre/{at}", at, reads=100, read_size=4 * MIB, read_seconds=9.0) for at in range(4)]
    spread = [layout(f"/lustre/{at}", [at]) for at in range(4)]
    assert "uneven-servers" not in found_in(tmp_path, *own, *spread)
    together = [layout(f"/lustre/{at}", [5]) for at in range(4)]
    assert "uneven-servers" in found_in(tmp_path, *own, *together)


def test_large_volumes_through_stdio_are_found(tmp_path: Path) -> None:
    one = found_in(tmp_path, stdio(DATA, 0, writes=100_000, write_size=1000, write_seconds=50.0), large())
    assert one["low-level-interface write"].evidence["moved_bytes"] == 100_000_000
    few = found_in(tmp_path, stdio("/lustre/log", 0, writes=100, write_size=100, write_seconds=0.1), large())
    assert "low-level-interface write" not in few
    screen = found_in(tmp_path, stdio("<STDOUT>", writes=100_000, write_size=100, write_seconds=9.0))
    assert "low-level-interface write" not in screen


def test_many_ranks_without_mpi_io_are_found(tmp_path: Path) -> None:
    one = found_in(tmp_path, large())["many-processes-without-parallel-io"]
    assert one.evidence["processes"] == 4
    assert one.severity is Severity.NOTE
    both = found_in(tmp_path, large(), mpi_io(DATA, COLL_READS=1000, BYTES_READ=1000 * 4 * MIB))
    assert "many-processes-without-parallel-io" not in both
    one_rank = posix(DATA, 0, reads=1000, read_size=4 * MIB, read_seconds=50.0)
    assert "many-processes-without-parallel-io" not in found_in(tmp_path, one_rank)


def test_independent_calls_that_could_be_collective_are_found(tmp_path: Path) -> None:
    name = "independent-io-where-collective-would-do write"
    below = posix(DATA, writes=4000, write_size=50_000, write_seconds=99.0)
    alone = mpi_io(DATA, writes=4000, write_size=50_000, write_seconds=100.0, COLL_WRITES=0)
    one = found_in(tmp_path, below, alone)[name]
    assert one.evidence["count"] == 4000
    assert one.severity is Severity.MEDIUM
    together = mpi_io(DATA, writes=10, write_size=20_000_000, COLL_WRITES=4000)
    assert name not in found_in(tmp_path, below, together)
    in_order = mpi_io(DATA, writes=4000, write_size=4 * MIB, write_seconds=100.0, COLL_WRITES=0)
    assert (
        found_in(tmp_path, posix(DATA, writes=4000, write_size=4 * MIB), in_order)[name].severity
        is Severity.NOTE
    )


def test_shared_files_without_mpi_io_could_use_collective_io_too(tmp_path: Path) -> None:
    name = "independent-io-where-collective-would-do write"
    pieces = {"writes": 4000, "write_size": 50_000, "write_seconds": 99.0}
    assert name in found_in(tmp_path, posix(DATA, write_jumps=4000, **pieces))
    assert name not in found_in(tmp_path, posix(DATA, **pieces))


def test_a_missing_counter_does_not_count_as_zero(tmp_path: Path) -> None:
    """Without the counters of the order of accesses, a rule reports nothing and calls nothing good."""
    record = posix(DATA, writes=4000, write_size=50_000, write_seconds=99.0, write_jumps=4000)
    for name in [one for one in record.counters if "CONSEC" in one or "SEQ" in one]:
        del record.counters[name]
    assert "random-access write" not in found_in(tmp_path, record)


def test_rules_that_need_single_calls_are_listed_as_not_checked(tmp_path: Path) -> None:
    told = {one.rule: one.why for one in diagnosed(counted(tmp_path, [large()])).silent}
    without = {rule.name for rule in rules.every() if rule.counters is None}
    assert without <= set(told)
    assert len(without) > 20
    assert {told[name].text for name in without} == {Need.EVENTS.value}
    text = printed("diagnose", counted(tmp_path, [large()]))
    assert "write-in-compute-loop" in text
    assert "The store has counters of files, not single calls" in text


def test_the_command_and_python_give_the_same_findings(tmp_path: Path) -> None:
    store = counted(tmp_path, [posix(DATA, writes=40_000, write_size=5000, write_seconds=200.0)])
    told = json.loads(printed("diagnose", store, "--format", "json"))
    with open_run(store) as run:
        assert [one.rule for one in run.diagnose().findings] == [one["rule"] for one in told["findings"]]
    assert told["verdict"]["io_share"] == pytest.approx(0.5)
    assert told["verdict"]["judges"] is True
    for one in told["findings"]:
        status, out, _ = asked("query", store, one["query"], "--format", "json")
        assert status == 0
        assert json.loads(out)["rows"]


def test_an_empty_diagnosis_mentions_the_limits_of_counters(tmp_path: Path) -> None:
    alone = posix(DATA, 0, reads=1000, read_size=4 * MIB, read_seconds=50.0)
    text = printed("diagnose", counted(tmp_path, [alone], 1))
    assert "Patterns that need single calls were not checked" in " ".join(text.split())


def test_the_diagnosis_of_counters_is_in_japanese(tmp_path: Path) -> None:
    store = counted(tmp_path, [posix(DATA, writes=40_000, write_size=5000, write_seconds=200.0)])
    text = printed("diagnose", store, "--lang", "ja")
    assert "MPI-IO" in text
    assert "worth changing" not in text
    assert "processes move" not in text


def test_a_log_without_records_is_not_called_efficient(tmp_path: Path) -> None:
    log = FIXTURES / "darshan" / "empty.darshan"
    found = diagnosed(import_logs([str(log)], tmp_path / "log.iodock").store)
    assert "no counters of any file" in found.verdict.text.text
    assert not found.verdict.judges


def test_a_log_with_a_loss_names_the_missing_data(tmp_path: Path) -> None:
    whole = (FIXTURES / "darshan" / "imbalanced-io.darshan").read_bytes()
    cut = tmp_path / "cut.darshan"
    cut.write_bytes(whole[: len(whole) // 2])
    store = import_logs([str(cut)], tmp_path / "cut.iodock").store
    text = " ".join(printed("diagnose", store).split())
    assert "counters is missing" in text
    assert "darshan-cut-region" in text
    assert not diagnosed(store).verdict.judges


def test_a_light_recording_lists_the_rules_that_counters_support(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text('1 1700000000.000000 openat(AT_FDCWD, "/a", O_RDONLY) = 3 <0.000010>\n')
    found = diagnosed(import_logs([str(log)], tmp_path / "run.iodock").store)
    told = {one.rule: one.why for one in found.silent}
    assert told["low-level-interface"] == Need.COUNTERS.why
    assert all(told.get(rule.name) for rule in rules.every() if Need.COUNTERS in rule.needs)


def test_a_record_of_all_ranks_is_never_split_into_ranks(tmp_path: Path) -> None:
    store = counted(tmp_path, [large()])
    with open_run(store) as run:
        work = run.query("SELECT worker, bytes FROM counted_work").to_pylist()
    assert work == [{"worker": None, "bytes": 1000 * MIB}]
    assert ALL == -1
