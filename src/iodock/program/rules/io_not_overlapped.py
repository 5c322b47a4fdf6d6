"""Computing and large I/O take strict turns, though one could go on during the other."""

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
    """Thresholds of `io-not-overlapped`."""

    least_turns: int = 10
    """Turns of I/O and computing: a few are the steps of a program, no rhythm."""
    least_share: float = 0.15
    """Of the time of the turns that the I/O must take, and the computing, too: no more than that can go on
    during the other."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate for the thread that moves most of the bytes in large requests."""
    row = facts.one(_TURNS_SQL)
    if not row or int(row["turns"]) < settings.least_turns:
        return
    busy, pause, turns = int(row["busy_ns"]), int(row["pause_ns"]), int(row["turns"])
    # Who waits between its requests, say for others that compute, computes less than that itself.
    computing = pause if row["computed_ns"] is None else min(pause, int(row["computed_ns"]))
    if min(busy, computing) < settings.least_share * (busy + pause):
        return
    # What comes from memory, or goes there, waits for no device. One call of all is no turn.
    if busy < int(row["memory_ns"]) or 2 * int(row["longest_ns"]) > busy:
        return
    values: dict[str, Scalar] = {
        "phases": turns,
        "io_ns": busy // turns,
        "compute_ns": pause // (turns - 1),
        "mean_bytes": int(row["bytes"]) / int(row["requests"]),
        "io_share": busy / (busy + pause),
    }
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=int(row["requests"]),
        time_ns=busy,
        evidence={"count": int(row["requests"]), "time_ns": busy, "pause_ns": pause, **values},
        query=_QUERY,
        confidence=0.4,
        wall_seconds=min(busy, pause) / 1e9,
        gain=(0.3, 0.9),
        at_most=Severity.MEDIUM,
    )


# A turn begins where the pause is no shorter than half of the mean one.
_TURNS_SQL = f"""WITH pauses AS (SELECT *,
    coalesce(pause_ns > 0 AND 2 * pause_ns >= avg(pause_ns) OVER (PARTITION BY utid), true) AS begins
  FROM large_requests),
turns AS (SELECT utid, count(*) FILTER (WHERE begins) AS turns, count(bytes) AS requests, sum(bytes) AS bytes,
    sum(pause_ns) FILTER (WHERE begins) AS pause_ns, max(ts + dur) - min(ts) AS whole_ns,
    max(dur) AS longest_ns, sum(bytes / CASE direction WHEN 1 THEN {READ_BYTES_PER_S / 1e9}
      ELSE {WRITE_BYTES_PER_S / 1e9} END) AS memory_ns
  FROM pauses GROUP BY utid)
SELECT t.turns, t.requests, CAST(t.bytes AS BIGINT) AS bytes, CAST(t.pause_ns AS BIGINT) AS pause_ns,
  CAST(t.whole_ns - t.pause_ns AS BIGINT) AS busy_ns, t.longest_ns, CAST(t.memory_ns AS BIGINT) AS memory_ns,
  p.cpu_user_ns AS computed_ns
FROM turns t JOIN processes p ON p.utid = t.utid JOIN programs g ON g.upid = p.upid
WHERE 2 * t.bytes > (SELECT sum(bytes) FROM turns) AND g.is_tool IS NOT TRUE"""
_QUERY = """SELECT ts, dur, direction, bytes, file FROM call_ends WHERE bytes >= 65536 ORDER BY ts"""
_MESSAGE = N_(
    "{phases} times I/O ({io_ns} on average, in requests of {mean_bytes}) and computing ({compute_ns}) "
    "took turns; {io_share} of that time was I/O."
)

RULE = Rule(
    name="io-not-overlapped",
    title=N_("Computing waits for I/O, and I/O for computing"),
    looks_for=N_(
        "Regular turns of computing and of large requests, of which both take a good part of the time."
    ),
    why=N_("With two buffers, the next piece could be read, or the last one written, during the computing."),
    advice=advise(
        any=N_("Use two buffers in turn: read or write the one in a thread while the other is computed on."),
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
    views=("large_requests", "programs"),
    yields_to=(
        *("serial-phases", "redundant-reads", "sync-heavy", "slow-call", "synchronous-flags"),
        *("read-after-write", "redundant-writes", "random-access", "backward-access"),
        *("copy-through-user-space", "whole-file-for-a-few-bytes"),
    ),
    # Its cost is all I/O that could go on meanwhile, needed or not.
    yields_at=0.2,
    is_of_waiting=True,
    # There is less to hide once other faults are gone.
    comes_last=True,
)
