"""Finds collective calls of MPI-IO that take longer than independent ones would. The pieces may be large
or small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `collective-overhead`."""

    least_calls: int = 8
    "Number of collective calls for large pieces. Fewer may be a checkpoint that is made once."
    below_bytes: int = 65536
    """Number of bytes that all ranks together request in one call. Larger requests are worth the messages of
    a collective call."""
    least_small_calls: int = 100
    "Number of small collective calls below which nothing is reported: headers and tables need some."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for large pieces that aggregators moved for the other ranks. Yields one for
    small pieces if the ranks spent more time on messages to each other than on the file."""
    rows = facts.rows(_sql(settings))
    for is_small in (False, True):
        faults = Faults([row for row in rows if row["is_small"] == is_small])
        if faults and faults.total("lost_ns") >= costs.LEAST_SHARE * (facts.wall_ns or 0):
            yield _candidate(faults, is_small)


def _candidate(faults: Faults, is_small: bool) -> Candidate:
    first, count = faults.rows[0], faults.total("count")
    values: dict[str, Scalar] = {
        "call": first["call"],
        "count": count,
        "ranks": first["ranks"],
        "movers": first["movers"],
        "mean_bytes": faults.total("bytes") / faults.total("pieces"),
        "exchange_ns": faults.total("exchange_ns"),
        "moving_ns": faults.total("moving_ns"),
        "files": faults.file_count,
    }
    lost = faults.total("lost_ns")
    return Candidate(
        message=Message(_SMALL if is_small else _LARGE, values),
        count=count,
        time_ns=lost,
        evidence={"time_ns": lost, **values},
        query=_QUERY,
        files=faults.files,
        confidence=0.7,
        wall_seconds=lost / 1e9,
        gain=(0.5, 1.0) if is_small else (1 / 3, 1.0),
        title=_TITLE_SMALL if is_small else None,
        advice=_ADVICE_SMALL if is_small else None,
    )


# The lost time is that of the messages between ranks. For large pieces, it also contains the time that would
# be saved if all ranks, and not only a few aggregators, moved pieces at the same time.
def _sql(settings: Settings) -> str:
    return f"""WITH judged AS (SELECT *, requested_bytes < {settings.below_bytes} AS is_small
  FROM collective_calls WHERE requested_bytes < {settings.below_bytes}
    OR is_contiguous AND movers < ranks AND requested_bytes >= {costs.PIECE_BYTES} * ranks)
SELECT f.name, c.is_small, string_agg(DISTINCT c.call, ', ' ORDER BY c.call) AS call, count(*) AS count,
  max(ranks) AS ranks, max(movers) AS movers, CAST(sum(ranks) AS BIGINT) AS pieces,
  CAST(sum(requested_bytes) AS BIGINT) AS bytes, CAST(sum(moving_ns) AS BIGINT) AS moving_ns,
  CAST(sum(exchange_ns) AS BIGINT) AS exchange_ns, CAST(sum(exchange_ns + CASE WHEN is_small THEN 0
    ELSE moving_ns * (1 - movers / ranks) END) AS BIGINT) AS lost_ns
FROM judged c JOIN files f ON f.file_id = c.file_id GROUP BY f.name, c.is_small
HAVING CASE WHEN is_small THEN count(*) >= {settings.least_small_calls} AND sum(exchange_ns) > sum(moving_ns)
  ELSE count(*) >= {settings.least_calls} END ORDER BY lost_ns DESC, f.name"""


_QUERY = """SELECT k.call, p.rank, count(DISTINCT k.id) AS calls, sum(e.bytes) AS moved_bytes,
  sum(e.dur) AS moving_ns
FROM interface_calls k JOIN processes p ON p.utid = k.utid LEFT JOIN events e ON e.interface_call_id = k.id
  AND e.file_id = k.file_id WHERE k.is_collective AND k.direction > 0
GROUP BY k.call, p.rank ORDER BY k.call, p.rank"""
_LARGE = N_(
    "In {count} calls of {call} at most {movers} of {ranks} ranks transferred the contiguous pieces of "
    "all, {mean_bytes} each: messages between the ranks took {exchange_ns}, the transfers {moving_ns}; "
    "files: {files}"
)
_SMALL = N_(
    "{count} calls of {call} by {ranks} ranks for pieces of {mean_bytes}: messages between the ranks took "
    "{exchange_ns}, the transfers {moving_ns}; files: {files}"
)
_TITLE_SMALL = N_("Collective calls for small pieces")
_ADVICE_SMALL = advise(
    any=N_("Gather the pieces of many steps in memory, and transfer them with one collective call."),
    mpi_io=N_(
        "Describe the pieces of many steps with a file view (MPI_File_set_view), and transfer them with "
        "one MPI_File_write_all or MPI_File_read_all. On a local disk MPI_File_write_at is faster."
    ),
    hdf5=N_(
        "Buffer several steps, and write them by one hyperslab; extend the data set by many rows at once."
    ),
)

RULE = Rule(
    name="collective-overhead",
    title=N_("Aggregators move pieces that are large already"),
    looks_for=N_(
        "Collective calls of MPI-IO in which few ranks transfer large contiguous pieces for all; and "
        "collective calls for small pieces, in which messages between the ranks take longer than the "
        "transfers."
    ),
    why=N_(
        "Collective buffering first sends all bytes to aggregators. That pays off for small "
        "interleaved pieces. Large pieces are copied for nothing, and few ranks transfer them "
        "instead of all. Each call also makes the ranks wait for each other's messages."
    ),
    advice=advise(
        any=N_(
            "Let each rank transfer its own pieces: large contiguous pieces gain nothing from aggregators."
        ),
        mpi_io=N_(
            "Set the hints romio_cb_write and romio_cb_read of ROMIO to automatic or disable; with OMPIO use "
            "mpirun --mca fcoll individual. Or call MPI_File_write_at and MPI_File_read_at."
        ),
        hdf5=N_("Make independent transfers: H5FD_MPIO_INDEPENDENT with H5Pset_dxpl_mpio."),
    ),
    fine_when=N_(
        "The servers cannot serve all ranks at once, or the ranks of many nodes would wait for locks of the "
        "same stripes."
    ),
    settings=Settings,
    find=find,
    views=("collective_calls",),
)
