"""Finds threads in which computing and large I/O strictly alternate, although they could overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.findings import Severity
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.costs import READ_BYTES_PER_S, WRITE_BYTES_PER_S
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `io-not-overlapped`."""

    least_turns: int = 10
    "Minimum number of turns of I/O and computing: a few are the steps of a program, not a rhythm."
    least_turn_bytes: int = 250_000
    """Mean number of bytes transferred in each turn: with smaller turns there are many of them, and each
    must be handed to a thread."""
    least_share: float = 0.15
    """Minimum share of the time of the alternating phases that the I/O takes, and also the computing: no
    more than that can overlap."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for the thread that moves most of the bytes in large requests."""
    row = facts.one(_TURNS_SQL)
    if not row or row["pause_ns"] is None:
        return
    io, pause, turns = int(row["typical_ns"]), int(row["pause_ns"]), int(row["turns"])
    read, written = int(row["read_bytes"]), int(row["written_bytes"])
    if turns < settings.least_turns or read + written < settings.least_turn_bytes * turns:
        return
    # A thread that waits between its requests, for example for computing threads, computes less than its
    # pauses last, so the processor time limits the computing. (Without processor times, only processes with a
    # single thread are judged.)
    computing = pause if row["cpu_user_ns"] is None else min(pause, int(row["cpu_user_ns"]))
    # Transfers between a file in the page cache and memory do not wait for a device. The first read of cached
    # data may take up to twice as long as later ones.
    memory = 1e9 * (2 * read / READ_BYTES_PER_S + written / WRITE_BYTES_PER_S)
    if min(io, computing) < settings.least_share * int(row["whole_ns"]) or io < memory:
        return
    values: dict[str, Scalar] = {
        "phases": turns,
        "io_ns": io // turns,
        "compute_ns": pause // max(1, turns - 1),
        "mean_bytes": (read + written) / int(row["requests"]),
        "io_share": io / (io + pause),
    }
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=int(row["requests"]),
        time_ns=io,
        evidence={"count": int(row["requests"]), "time_ns": io, "pause_ns": pause, **values},
        query=_QUERY,
        confidence=0.4,
        wall_seconds=min(io, pause) / 1e9,
        gain=(0.3, 0.9),
        at_most=Severity.MEDIUM,
    )


_TURNS_SQL = """SELECT t.*, p.cpu_user_ns FROM io_turns t JOIN processes p ON p.utid = t.utid
  JOIN programs g ON g.upid = p.upid
WHERE 2 * (t.read_bytes + t.written_bytes) > (SELECT sum(read_bytes + written_bytes) FROM io_turns)
  AND g.is_tool IS NOT TRUE AND (p.cpu_user_ns IS NOT NULL
    OR p.upid IN (SELECT upid FROM processes GROUP BY upid HAVING count(*) = 1))"""
_QUERY = """SELECT ts, dur, direction, bytes, file FROM call_ends WHERE bytes >= 65536 ORDER BY ts"""
_MESSAGE = N_(
    "I/O ({io_ns} on average, in requests of {mean_bytes}) and computing ({compute_ns}) alternated "
    "{phases} times; {io_share} of that time was I/O."
)

RULE = Rule(
    name="io-not-overlapped",
    title=N_("Computing waits for I/O, and I/O for computing"),
    looks_for=N_(
        "Computation and large requests that alternate regularly, where both take a considerable part of "
        "the time."
    ),
    why=N_("With two buffers, the next piece could be read, or the last one written, during the computing."),
    advice=advise(
        any=N_(
            "Use two buffers in turn: a thread reads or writes one while the program computes on the other."
        ),
        c=N_("Use a thread, POSIX aio_write or io_uring; posix_fadvise(WILLNEED) starts reading ahead."),
        cpp=N_("Start std::async for the next block, and compute on the current one."),
        fortran=N_("Open with ASYNCHRONOUS='YES', and WAIT before the buffer is used again."),
        python=N_("Let concurrent.futures.ThreadPoolExecutor(1) read the next block: I/O releases the lock."),
        mpi_io=N_("Use MPI_File_iwrite_at (or iwrite_all) and MPI_Wait before the buffer is used again."),
        hdf5=N_("Use the asynchronous VOL connector, or write in a thread of its own."),
    ),
    fine_when=N_("The run is short, memory is scarce, or the next piece depends on the result of this one."),
    settings=Settings,
    find=find,
    needs=(Need.DURATIONS, Need.TIMES),
    views=("io_turns", "programs"),
    yields_to=(
        *("serial-phases", "redundant-reads", "sync-heavy", "slow-call", "synchronous-flags"),
        *("read-after-write", "redundant-writes", "random-access", "backward-access"),
        *("copy-through-user-space", "whole-file-for-a-few-bytes"),
    ),
    # The cost is the time of all I/O that could overlap with computing, whether it is necessary or not.
    yields_at=0.2,
    is_of_waiting=True,
    # If the program's other faults are corrected first, less I/O remains that could overlap.
    comes_last=True,
)
