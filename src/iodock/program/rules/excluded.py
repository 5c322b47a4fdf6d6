"""Decides from sums of a run's calls which rules can't find anything. iodock skips them.

Each condition must hold if its rule is to find something, and is cheaper than the rule's query. It may hold
although the rule finds nothing. tests/program/rules/test_excluded.py compares conditions and rules on
recorded runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from iodock.program.relations.known import READS, WRITES, Sums
from iodock.program.rules import costs
from iodock.program.rules.direct_io_unaligned import O_DIRECT
from iodock.program.rules.facts import Facts
from iodock.program.rules.synchronous_flags import O_DSYNC


class Thresholds(Protocol):
    """Describes a rule's settings, which are numbers by name."""

    def __getattr__(self, name: str) -> float: ...


MayFind = Callable[[Facts, Thresholds], bool]


def may_find(name: str, facts: Facts, settings: Thresholds) -> bool:
    """Returns whether the rule of this name may find something. For stores without single calls this is
    unknown, so it returns true."""
    if facts.store.manifest.profiles_only or facts.store.manifest.counts_only:
        return True
    condition = CONDITIONS.get(name)
    return condition is None or condition(facts, settings)


def _worth(facts: Facts, of: Sums, more_ns: int = 0) -> bool:
    """Returns whether these calls together, or those of them without a time, are worth reporting."""
    untimed = of.where(untimed=True).total()
    if untimed and costs.worth_a_word(facts, None, untimed):
        return True
    # The typical time is a geometric mean, for which 1 ns is added to each time and later subtracted.
    # Rounding may make it slightly larger than the sum of the times, so 2 ns are added for each call.
    spent = None if of.time_ns is None else of.time_ns + 2 * of.total() + more_ns
    return costs.worth_a_word(facts, spent, of.total())


def _calls(facts: Facts, **chosen: object) -> Sums:
    return facts.known.calls.where(**chosen)


def _moved(facts: Facts, **chosen: object) -> Sums:
    return facts.known.moved.where(**chosen)


def _backward(facts: Facts, settings: Thresholds) -> bool:
    least = settings.least_share * settings.least_count
    return any(_moved(facts, direction=one, pattern=(4, 5)).total() >= least for one in (READS, WRITES))


def _bytewise(facts: Facts, settings: Thresholds) -> bool:
    single = _moved(facts, direction=READS, pattern=(0, 1, 2), size_bin=0).total()
    # A shell that reads line by line seeks back after nine of ten reads or more.
    sought = _calls(facts, **{"class": "seek"}).total()
    return single >= settings.least_count or sought >= 0.9 * settings.least_count


def _cache_speed(facts: Facts, settings: Thresholds) -> bool:
    return any(_moved(facts, direction=one).total("bytes") >= settings.least_bytes for one in (READS, WRITES))


def _chunks(facts: Facts, settings: Thresholds) -> bool:
    return facts.store.rows_of("datasets") > 0


def _collects(facts: Facts, settings: Thresholds) -> bool:
    return facts.collects is True


def _copies(facts: Facts, settings: Thresholds) -> bool:
    reads, writes = (_calls(facts, direction=one) for one in (READS, WRITES))
    return writes.total("bytes") > 0 and _worth(facts, Sums([*reads.rows, *writes.rows]))


def _interfaces(facts: Facts, settings: Thresholds) -> bool:
    return facts.collects is not None and facts.processes >= 2


def _listings(facts: Facts, settings: Thresholds) -> bool:
    return _calls(facts, family="getdents").total() >= min(
        settings.least_scans, settings.least_scans_elsewhere
    )


def _missed(facts: Facts, settings: Thresholds) -> bool:
    families = ("open", "access", "stat", "execve", "readlink")
    missed = _calls(facts, family=families, missing=True)
    return missed.total() >= settings.least_count and _worth(facts, missed)


def _attributes(facts: Facts, settings: Thresholds) -> bool:
    return _calls(facts, family=("xattr", "acl"), failed=True).total() >= settings.least_count


def _file_per_process(facts: Facts, settings: Thresholds) -> bool:
    stripes = max((one.stripe_count or 1 for one in facts.settings.file_systems.values()), default=1)
    return facts.known.files * stripes >= settings.least_files and facts.known.tasks >= settings.least_workers


def _turns(facts: Facts, settings: Thresholds) -> bool:
    large = _moved(facts, size_bin=range(16, 64)).total("bytes")
    return large >= settings.least_turns * settings.least_turn_bytes


def _metadata(facts: Facts, settings: Thresholds) -> bool:
    asked = _calls(facts, **{"class": "metadata"})
    if asked.total() < settings.least_count:
        return False
    if facts.durations and facts.summed_io_ns:
        return (asked.time_ns or 0) >= settings.least_share * facts.summed_io_ns
    return True


def _opens(facts: Facts, settings: Thresholds) -> bool:
    return _calls(facts, family="open", failed=False).total() >= settings.least_count


def _pipes(facts: Facts, settings: Thresholds) -> bool:
    waited = facts.overview.get("waiting_time_ns")
    passed = [
        _calls(facts, kind=("pipe", "fifo", "socket"), direction=one).total() for one in (READS, WRITES)
    ]
    return bool(waited) and all(passed) and costs.worth_a_word(facts, waited, sum(passed))


def _nothing_read(facts: Facts, settings: Thresholds) -> bool:
    return _moved(facts, direction=READS, size_bin=-1).total() >= settings.least_count


def _processes(facts: Facts, settings: Thresholds) -> bool:
    return facts.known.tasks + facts.known.commands >= settings.least_alike


def _random(facts: Facts, settings: Thresholds) -> bool:
    return any(
        _moved(facts, direction=one, pattern=(4, 5, 6)).total("back") >= settings.least_returns
        for one in (READS, WRITES)
    )


def _several(facts: Facts, settings: Thresholds) -> bool:
    return facts.known.tasks >= 3


def _crew(facts: Facts, settings: Thresholds) -> bool:
    return facts.known.tasks >= settings.least_workers


def _read_back(facts: Facts, settings: Thresholds) -> bool:
    return _moved(facts, direction=READS).total("own_written_bytes") >= settings.least_bytes


def _read_again(facts: Facts, settings: Thresholds) -> bool:
    reads = _moved(facts, direction=READS)
    again = max(reads.total("own_read_bytes"), reads.total("any_read_bytes"))
    return again > 0 and _worth(facts, reads, costs.TEXT_NS * again)


def _written_again(facts: Facts, settings: Thresholds) -> bool:
    again = _moved(facts, direction=WRITES).total("any_written_bytes")
    return again > 0 or _calls(facts, family="rename", failed=False).total() > 1


def _seeks(facts: Facts, settings: Thresholds) -> bool:
    sought = _calls(facts, **{"class": "seek"}, failed=False)
    return sought.total() >= settings.least_count and _worth(facts, sought)


def _shared(facts: Facts, settings: Thresholds) -> bool:
    moved = _calls(facts, direction=WRITES).total()
    locked = _calls(facts, family=("fcntl", "flock")).total()
    return facts.processes >= 2 and max(moved, locked) >= 2 * settings.least_each


def _slow(facts: Facts, settings: Thresholds) -> bool:
    return _calls(facts).longest_ns >= settings.least_seconds * 1e9


def _closes(facts: Facts, settings: Thresholds) -> bool:
    spent, summed = _calls(facts, family="close").time_ns, facts.summed_io_ns
    return bool(spent) and bool(summed) and (spent or 0) >= settings.least_share * (summed or 0)


def _small(facts: Facts, settings: Thresholds) -> bool:
    largest = max((int(one) - 1).bit_length() for one in (settings.below_bytes, settings.below_bytes_remote))
    small = {"pattern": (0, 2, 3, 4), "size_bin": range(largest + 1)}
    return any(_worth(facts, _moved(facts, direction=one, **small)) for one in (READS, WRITES))


def _stats(facts: Facts, settings: Thresholds) -> bool:
    return _worth(facts, _calls(facts, family=("stat", "access", "readlink")))


def _lines(facts: Facts, settings: Thresholds) -> bool:
    small = range((int(settings.below_bytes) - 1).bit_length() + 1)
    return _moved(facts, direction=WRITES, size_bin=small).total() >= settings.least_count


def _syncs(facts: Facts, settings: Thresholds) -> bool:
    least = min(settings.least_count, settings.least_commits)
    return _calls(facts, **{"class": "sync"}).total() >= least


def _synchronous(facts: Facts, settings: Thresholds) -> bool:
    has_flagged = _calls(facts, name=("pwritev2", "pwritev64v2")).total() > 0
    is_enough = _calls(facts, direction=WRITES).total() >= settings.least_count
    return is_enough and (has_flagged or bool(facts.opened_flags & O_DSYNC))


def _direct(facts: Facts, settings: Thresholds) -> bool:
    return bool(facts.opened_flags & O_DIRECT)


def _page_faults(facts: Facts, settings: Thresholds) -> bool:
    return facts.store.rows_of("faults") > 0


def _flood(facts: Facts, settings: Thresholds) -> bool:
    return facts.known.files >= settings.least_files


def _unaligned(facts: Facts, settings: Thresholds) -> bool:
    reads, writes = _moved(facts, direction=READS, pattern=(3, 4, 5, 6, 7)), _moved(facts, direction=WRITES)
    return any(one.total("unaligned") > 0 and _worth(facts, one) for one in (reads, writes))


def _unaligned_shared(facts: Facts, settings: Thresholds) -> bool:
    return facts.processes >= 2 and _calls(facts, direction=WRITES).total() >= settings.least_turns


def _unused(facts: Facts, settings: Thresholds) -> bool:
    least = min(settings.least_bytes, settings.least_small_bytes)
    return _calls(facts, direction=WRITES, failed=False).total("bytes") >= least


def _whole_files(facts: Facts, settings: Thresholds) -> bool:
    return max(facts.known.files, facts.processes) >= settings.least_times


def _small_writes(facts: Facts, settings: Thresholds) -> bool:
    writes = _calls(facts, direction=WRITES)
    moved = _moved(facts, direction=WRITES)
    # The mean size can be small only if at least one write is small, or moved nothing.
    small = moved.where(size_bin=range(-1, (int(settings.most_bytes) - 1).bit_length() + 1)).total()
    are_small = small > 0 or writes.total() > moved.total()
    return are_small and moved.total("bytes") > 0 and _worth(facts, writes)


CONDITIONS: Mapping[str, MayFind] = {
    "backward-access": _backward,
    "bytewise-read": _bytewise,
    "cache-speed": _cache_speed,
    "chunks-against-access": _chunks,
    "collective-buffering-off": _interfaces,
    "collective-overhead": _collects,
    "copy-through-user-space": _copies,
    "direct-io-unaligned": _direct,
    "directory-scan-storm": _listings,
    "failed-open-storm": _missed,
    "failed-xattr": _attributes,
    "file-per-process": _file_per_process,
    "independent-io-where-collective-would-do": _interfaces,
    "io-not-overlapped": _turns,
    "metadata-heavy": _metadata,
    "mmap-random": _page_faults,
    "open-close-loop": _opens,
    "pipe-bound": _pipes,
    "polling-at-end": _nothing_read,
    "process-storm": _processes,
    "random-access": _random,
    "rank-imbalance": _several,
    "read-after-write": _read_back,
    "redundant-reads": _read_again,
    "redundant-writes": _written_again,
    "seek-storm": _seeks,
    "serial-phases": _crew,
    "shared-file-contention": _shared,
    "slow-call": _slow,
    "slow-close": _closes,
    "small-requests": _small,
    "stat-storm": _stats,
    "stdout-unbuffered": _lines,
    "straggler": _several,
    "sync-heavy": _syncs,
    "synchronous-flags": _synchronous,
    "tiny-file-flood": _flood,
    "two-phase": _collects,
    "unaligned-requests": _unaligned,
    "unaligned-shared-file": _unaligned_shared,
    "unused-output": _unused,
    "whole-file-for-a-few-bytes": _whole_files,
    "write-in-compute-loop": _small_writes,
}
"""Maps a rule to its condition. Rules without a condition, such as those of other packages, always run."""
