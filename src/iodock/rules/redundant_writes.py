"""The same range of a file written again and again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.findings import Message
from iodock.language import N_
from iodock.rules import costs, transfers
from iodock.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.rules.places import Faults


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `redundant-writes`."""

    least_factor: float = 1.9
    """How many times what a file holds in the end must be written at least."""
    least_count: int = 20
    """Fewer rewriting calls than this are not worth a word."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: all places whose ranges are rewritten."""
    faults = Faults(facts.rows(_sql(settings)))
    count, cost = faults.total("count"), faults.time_ns
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
        count=count,
        time_ns=cost,
        evidence={
            "count": count,
            "written_bytes": moved,
            "again_bytes": again,
            "factor": round(factor, 2),
            "time_ns": cost,
        },
        query=_QUERY,
        **faults.where,
        gain=(0.4, 1.0),
    )


def _sql(settings: Settings) -> str:
    again = "coalesce(t.any_written_bytes, 0)"
    return transfers.by_place(
        transfers.again(again),
        where=f"t.direction = 2 AND t.bytes > 0 AND {costs.files('p')}",
        having=f"""sum({again}) >= {1 - 1 / settings.least_factor} * sum(t.bytes)
  AND sum(t.count * {again} / t.bytes) >= {settings.least_count}""",
    )


_QUERY = """SELECT f.name AS file, count(*) AS writes, sum(e.bytes) AS written_bytes,
  sum(e.any_written_bytes) AS again, sum(e.dur) AS time_ns
FROM events e JOIN files f ON f.file_id = e.file_id WHERE e.direction = 2
GROUP BY f.name ORDER BY again DESC"""
_MESSAGE = N_(
    "{written_bytes} are written into ranges that hold {kept_bytes} in the end: {factor} times as much; "
    "files: {files}"
)

RULE = Rule(
    name="redundant-writes",
    title=N_("The same ranges are written again"),
    looks_for=N_("Files whose ranges are overwritten several times within one run."),
    why=N_("Only the last content counts: what was written before it is lost work for program and disk."),
    advice=advise(
        any=N_("Keep what changes in memory and write it once at the end, or at intervals that are needed."),
        c=N_("Collect headers and tables in a struct and write them once with pwrite before closing."),
        cpp=N_("Leave out seekp to the header after each record; count in memory and write the header last."),
        fortran=N_("Take WRITE with a fixed REC= and REWIND out of the time loop."),
        python=N_(
            "Don't dump the whole state (json.dump, numpy.save) after each step: append what is new, or "
            "write every hundredth step."
        ),
        shell=N_("Don't rewrite the file in the loop; redirect the whole loop: `done > file`."),
        hdf5=N_("Call H5Fflush and attribute updates rarely; extend a data set by many rows at a time."),
    ),
    fine_when=N_("A checkpoint replaces the one before it, at intervals that a lost run is worth."),
    settings=Settings,
    find=find,
    needs=(Need.COVERAGE,),
    tables=("transfers", "place_names"),
    yields_to=("synchronous-flags", "read-after-write"),
    # What is written again is written before it can be read.
    yields_at=0.4,
)
