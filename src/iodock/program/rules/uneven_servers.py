"""Finds large files on few of the file system's servers, which then carry all of the traffic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, counted
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise, not_of_calls
from iodock.shared.engine.sql import quoted
from iodock.shared.language import N_
from iodock.shared.message import Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `uneven-servers`."""

    least_bytes: int = 1 << 22
    """Minimum number of bytes transferred to or from files whose layout is known: less than this fits into a
    few stripes of 1 MiB."""
    most_share: float = 0.5
    """Share of the targets in use among all available ones, weighted by traffic as if each target in use
    had the same traffic."""


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for each file system whose traffic goes to at most half of the storage targets
    that could serve it. The number of targets that could serve it is limited by the number of processes
    and of stripes, because a single process or stripe uses only one target."""
    for row in facts.rows(_TARGETS_SQL):
        moved = int(row["bytes"])
        stripes = -(-moved // int(row["stripe_bytes"] or costs.PIECE_BYTES))
        usable = min(int(row["targets"] or 0), facts.ranks, stripes)
        if moved < settings.least_bytes or row["even"] > settings.most_share * usable:
            continue
        faults = counted.main(counted.transfers(facts, _on(row["mount_point"])))
        values: dict[str, Scalar] = {
            "moved_bytes": moved, "used": int(row["used"]), "targets": int(row["targets"]),
            "most_share": float(row["most"]) / moved, "files": len(set(faults.files)),
        }  # fmt: skip
        count = faults.total("count")
        if counted.matters(facts, faults.time_ns, count):
            yield counted.candidate(facts, faults, _MESSAGE, values, cost_ns=faults.time_ns, count=count)


# The bytes of a file are distributed evenly over its targets. `even` is the square of the sum of the targets'
# bytes, divided by the sum of squares. It is the number of targets that would have the same unevenness if
# each had the same traffic and the others none.
_TARGETS_SQL = f"""WITH parts AS (SELECT coalesce(f.mount_point, '') AS mount_point, l.file_system_targets,
    l.stripe_bytes, unnest(l.targets) AS target,
    s.bytes / (sum(len(l.targets)) OVER (PARTITION BY l.file_id)) AS bytes
  FROM layouts l JOIN files f ON f.file_id = l.file_id JOIN (SELECT file_id, sum(bytes) AS bytes
    FROM counted_transfers WHERE interface <> 'mpi-io' GROUP BY file_id) s ON s.file_id = l.file_id
  WHERE len(l.targets) > 0 AND s.bytes > 0),
traffic AS (SELECT mount_point, target, max(file_system_targets) AS targets,
    max(stripe_bytes) AS stripe_bytes, sum(bytes) AS bytes,
    sum(sum(bytes)) OVER (PARTITION BY mount_point) AS whole FROM parts GROUP BY mount_point, target)
SELECT mount_point, CAST(sum(bytes) AS BIGINT) AS bytes, max(targets) AS targets,
  count(*) FILTER (WHERE bytes >= {counted.LEAST_PART} * whole) AS used,
  max(bytes) AS most, max(stripe_bytes) AS stripe_bytes, sum(bytes) * sum(bytes) / sum(bytes * bytes) AS even
FROM traffic GROUP BY mount_point ORDER BY bytes DESC"""


def _on(mount_point: str) -> str:
    return f"""t.interface <> 'mpi-io' AND t.bytes > 0 AND t.file_id IN (SELECT l.file_id FROM layouts l
  JOIN files f ON f.file_id = l.file_id WHERE coalesce(f.mount_point, '') = {quoted(mount_point)})"""


_MESSAGE = N_(
    "{moved_bytes} go to and from {used} of the file system's {targets} storage targets; the busiest of them "
    "has {most_share} of it; files: {files}"
)

RULE = Rule(
    name="uneven-servers",
    title=N_("Few of the storage servers do most of the work"),
    looks_for=N_("Large files that lie on few storage targets (OSTs), while several processes use them."),
    why=N_(
        "A file is as fast as the servers that hold it: with one target it is one server's speed, however "
        "many processes and other servers there are."
    ),
    advice=advise(
        any=N_(
            "Spread large files that several processes use over more targets before they are made: "
            "lfs setstripe -c N FOLDER (Lustre), with N up to the number of targets, or -1 for all of them."
        ),
        mpi_io=N_("Set the hints striping_factor and striping_unit before the file is made."),
        hdf5=N_("Pass the hints striping_factor and striping_unit to H5Pset_fapl_mpio."),
        administrator=N_("Give folders for large shared files a progressive layout (lfs setstripe -E)."),
    ),
    fine_when=N_("The servers are otherwise idle, and one is as fast as the processes need."),
    settings=Settings,
    find=not_of_calls,
    needs=(Need.COUNTERS, Need.LAYOUT),
    counters=in_counters,
    counters_need=(Need.LAYOUT,),
    views=("counted_transfers",),
)
