"""Finds ranges of a file that are written repeatedly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, counted, transfers
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `redundant-writes`."""

    least_factor: float = 1.9
    """Minimum number of times that the final contents of a file are written."""
    least_repeats: int = 10
    """Mean number of times that each range must be written again with other writes in between: for example
    a header that is updated after each record."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all places whose ranges are rewritten. A program that truncates a file to
    rewrite it also opens and closes it each time. These calls can take far longer than the writes, so the
    cost includes them. It also includes the time for formatting text."""
    away = {row["place"] for row in facts.rows(_AWAY_SQL)}
    whole = _without(Faults(facts.rows(_sql(settings))), away)
    headers = _without(headers_of(facts), away)
    faults = Faults([*whole.rows, *headers.rows, *facts.rows(_REPLACED_SQL)])
    count, cost = faults.total("count"), faults.time_ns
    opened = _opened(facts, whole)
    text_ns = costs.text_ns(facts, whole, 2)
    if cost is not None:
        cost += opened.total("time_ns") + text_ns
    if not faults or not costs.worth_a_word(facts, cost, count):
        return
    moved, again = faults.total("bytes"), faults.total("again")
    factor = moved / max(1, moved - again)
    values = {
        "written_bytes": moved, "kept_bytes": moved - again, "factor": round(factor, 1),
        "files": faults.file_count,
    }  # fmt: skip
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count + opened.total("count"),
        time_ns=cost,
        evidence={
            "count": count,
            "opens": opened.total("opens"),
            "written_bytes": moved,
            "again_bytes": again,
            "factor": round(factor, 2),
            "text_ns": text_ns,
            "time_ns": cost,
        },
        work_ns=text_ns,
        query=_QUERY,
        **faults.where,
        gain=(0.4, 1.0),
    )


def _sql(settings: Settings) -> str:
    return transfers.by_place(
        transfers.again(_AGAIN),
        where="t.direction = 2 AND t.bytes > 0 AND p.place IN (FROM plain_places)",
        having=f"sum({_AGAIN}) >= {1 - 1 / settings.least_factor} * sum(t.bytes)",
    )


_AGAIN = "coalesce(t.any_written_bytes, 0)"


def headers_of(facts: Facts) -> Faults:
    """Returns places with a few ranges that are rewritten repeatedly between other writes. `count` is the
    number of writes to these ranges, `bytes` the number of their bytes, and `again` the same without the
    last write of each."""
    settings = facts.settings.of_rule("redundant-writes", Settings)
    if not facts.sees(Need.OFFSETS):
        return Faults([])
    return Faults(
        facts.rows(
            f"""SELECT p.place, p.name, p.file_count, any_value(c.name) AS call,
  CAST(sum(r.count) AS BIGINT) AS count, CAST(sum(r.bytes) + sum(r.kept_bytes) AS BIGINT) AS bytes,
  CAST(sum(r.bytes) AS BIGINT) AS again, CAST(sum(r.time_ns) AS BIGINT) AS time_ns
FROM rewritten_ranges r JOIN places l ON l.file_id = r.file_id JOIN place_names p ON p.place = l.place
  JOIN calls c ON c.id = r.call_id
WHERE p.place IN (FROM plain_places) GROUP BY p.place, p.name, p.file_count
HAVING sum(r.count) >= {settings.least_repeats} * count(*) AND sum(r.bytes) < {1 - 1 / settings.least_factor}
  * (SELECT sum(t.bytes) FROM transfers t WHERE t.place = p.place AND t.direction = 2)
ORDER BY time_ns DESC NULLS LAST, p.name"""
        )
    )


# SQL for files that a program wrote and renamed repeatedly, each time to a different name. The contents were
# kept under these names. Files that replaced an earlier one of the same name are handled below.
_AWAY_SQL = """SELECT l.place FROM renamed_files m JOIN places l ON l.file_id = m.source
GROUP BY l.place HAVING count(*) > 1 OR bool_or(m.target IN (SELECT file_id FROM replaced_files))"""


def _without(faults: Faults, places: set[int]) -> Faults:
    return Faults([row for row in faults.rows if row["place"] not in places])


# SQL for temporary files that a program wrote and then renamed to a permanent name, which replaced the
# previous file. The last one is not counted.
_REPLACED_SQL = """WITH written AS (SELECT DISTINCT m.target, m.source FROM renamed_files m)
SELECT any_value(l.place) AS place, f.name, 1 AS file_count, 'rename' AS call,
  CAST(sum(w.writes) * (1 - 1 / any_value(r.turns)) AS BIGINT) AS count,
  CAST(sum(w.written_bytes) AS BIGINT) AS bytes,
  CAST(sum(w.written_bytes) * (1 - 1 / any_value(r.turns)) AS BIGINT) AS again,
  CAST(sum(w.write_ns + coalesce(w.metadata_ns, 0)) * (1 - 1 / any_value(r.turns)) AS BIGINT) AS time_ns
FROM replaced_files r JOIN written m ON m.target = r.file_id JOIN file_work w ON w.file_id = m.source
  JOIN files f ON f.file_id = r.file_id JOIN places l ON l.file_id = r.file_id
WHERE f.file_id IN (FROM plain_files) AND w.written_bytes > 0 GROUP BY f.file_id, f.name
ORDER BY time_ns DESC NULLS LAST, f.name"""


# Returns the opens and closes of files that are read less often than rewritten. If another program reads a
# file after each rewrite, as an assembler reads a compiler's output, each rewrite was necessary. The longest
# call of each kind is not counted, because it was necessary or hung.
def _opened(facts: Facts, faults: Faults) -> Faults:
    if not faults:
        return faults
    places = ", ".join(str(row["place"]) for row in faults.rows)
    return Faults(
        facts.rows(
            f"""SELECT CAST(sum(opens) AS BIGINT) AS opens, CAST(sum(opens + closes) AS BIGINT) AS count,
  CAST(sum(open_ns + close_ns - longest_open_ns - longest_close_ns) AS BIGINT) AS time_ns
FROM file_work WHERE writes > 0 AND file_id IN (SELECT w.file_id FROM file_work w
    JOIN places l ON l.file_id = w.file_id
  WHERE l.place IN ({places}) GROUP BY w.file_id
  HAVING sum(w.reads) < sum(w.opens) FILTER (WHERE w.writes > 0))"""
        )
    )


_QUERY = """SELECT f.name AS file, count(*) AS writes, sum(e.bytes) AS written_bytes,
  sum(e.any_written_bytes) AS again, sum(e.dur) AS time_ns
FROM events e JOIN files f ON f.file_id = e.file_id WHERE e.direction = 2
GROUP BY f.name ORDER BY again DESC"""
_MESSAGE = N_(
    "{written_bytes} are written into ranges that finally contain {kept_bytes}: {factor} times as "
    "much; files: {files}"
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields files into which more bytes were written than lie before the furthest byte that was written."""
    more = f"t.bytes >= {settings.least_factor} * t.extent_bytes"
    if not facts.sees(Need.RANKS):
        # The commands of a script may append to a file one after the other. Each counts bytes from where it
        # began, so their sum is no sign of rewriting.
        more += " AND t.movers = 1"
    faults = counted.transfers(facts, f"t.direction = 2 AND t.interface = 'posix' AND {more}")
    count, moved, kept = (faults.total(name) for name in ("count", "bytes", "extent_bytes"))
    if not faults or not counted.matters(facts, faults.time_ns, count):
        return
    values: dict[str, Scalar] = {
        "written_bytes": moved, "kept_bytes": kept, "factor": round(moved / max(1, kept), 1),
        "files": faults.file_count,
    }  # fmt: skip
    spent = faults.time_ns
    yield counted.candidate(
        facts, faults, _MESSAGE, values, count=count, call="write", gain=(0.4, 1.0),
        cost_ns=None if spent is None else round(spent * (1 - kept / moved)),
    )  # fmt: skip


RULE = Rule(
    name="redundant-writes",
    title=N_("The same ranges are written again"),
    looks_for=N_("Files whose ranges are overwritten several times within one run."),
    why=N_("Only the last content counts: earlier writes are unnecessary work for the program and the disk."),
    advice=advise(
        any=N_(
            "Keep changing data in memory and write it once at the end, or at the intervals that are needed."
        ),
        c=N_("Collect headers and tables in a struct and write them once with pwrite before closing."),
        cpp=N_("Leave out seekp to the header after each record; count in memory and write the header last."),
        fortran=N_("Take WRITE with a fixed REC= and REWIND out of the time loop."),
        python=N_(
            "Don't dump the whole state (json.dump, numpy.save) after each step: append what is new, or "
            "write every hundredth step."
        ),
        shell=N_("Don't rewrite the file in the loop; redirect the whole loop: `done > file`."),
        pandas=N_("Collect the new rows, and write the table once or every hundredth step."),
        zarr=N_("Write by whole chunks: a part of a chunk makes zarr read and write all of it."),
        hdf5=N_("Call H5Fflush and attribute updates rarely; extend a data set by many rows at a time."),
    ),
    fine_when=N_(
        "A checkpoint replaces the previous one, at intervals chosen by how much work a crash may cost."
    ),
    settings=Settings,
    find=find,
    counters=in_counters,
    needs=(Need.COVERAGE,),
    views=(
        *("transfers", "place_names", "places", "uses", "file_work", "plain_files", "plain_places"),
        *("renamed_files", "replaced_files", "rewritten_ranges", "counted_transfers"),
    ),
    yields_to=(
        *("synchronous-flags", "read-after-write", "chunks-against-access"),
        "collective-buffering-off",
    ),
    # If a program writes data again before it reads it, reading the data is only a part of the problem.
    yields_at=0.4,
)
