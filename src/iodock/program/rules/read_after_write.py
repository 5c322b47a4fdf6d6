"""Finds processes that read data which they wrote themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, redundant_writes, transfers
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `read-after-write`."""

    least_share: float = 0.5
    """Minimum share of the bytes read from a file (or file pattern) that the same process had written."""
    least_bytes: int = 1048576
    "Minimum number of bytes that were read after they were written, in all files together."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all places that a process wrote and then read. If the program kept the data in
    memory, it would save the reads, and the writes that are only made to be read."""
    faults = _without_refills(facts, Faults(facts.rows(_sql(settings))))
    count, cost = faults.total("count"), faults.time_ns
    handed = Faults(facts.rows(_handed_sql(settings)))
    scratch = _scratch(facts, faults)
    text_ns = costs.text_ns(facts, faults, 1)
    if cost is not None:
        cost += max(handed.total("time_ns"), scratch.total("time_ns")) + text_ns
    own = faults.total("again")
    if own < settings.least_bytes or not costs.worth_a_word(facts, cost, count):
        return
    values = {"own_bytes": own, "count": count, "files": faults.file_count}
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count + max(handed.total("count"), scratch.total("count")),
        time_ns=cost,
        evidence={
            "count": count,
            "own_bytes": own,
            "read_bytes": faults.total("bytes"),
            "rewrites": handed.total("count"),
            "text_ns": text_ns,
            "time_ns": cost,
        },
        work_ns=text_ns,
        query=_QUERY,
        **faults.where,
        gain=(0.4, 1.0),
    )


def _without_refills(facts: Facts, faults: Faults) -> Faults:
    """Returns the places without those where a library refills its buffer after it updated a header. The
    program did not request these bytes."""
    known = redundant_writes.headers_of(facts) if faults else Faults([])
    updates = {row["place"]: int(row["count"]) for row in known.rows}
    return Faults(
        [
            row
            for row in faults.rows
            if row["count"] > 1.1 * updates.get(row["place"], 0) or row["again"] > _BUFFER * row["count"]
        ]
    )


_BUFFER = 65536
"""Largest buffer that libraries use for a file, unless the program requests another size."""


# Regular expression for temporary files of sort and SQLite, which contain data that did not fit into memory.
# Other files that a program deletes after reading were written only to be read, so writing, opening and
# deleting them would be saved, too.
_SPILLED = "/(sort[A-Za-z0-9]{6}|etilqs_[0-9a-f]+)$"


def _scratch(facts: Facts, faults: Faults) -> Faults:
    if not faults:
        return faults
    places = ", ".join(str(row["place"]) for row in faults.rows)
    return Faults(
        facts.rows(
            f"""SELECT CAST(sum(w.writes + w.metadata + w.seeks + w.others) AS BIGINT) AS count,
  CAST(sum(coalesce(w.write_ns, 0) + coalesce(w.metadata_ns, 0) + coalesce(w.seek_ns, 0)
    + coalesce(w.other_ns, 0)) AS BIGINT) AS time_ns
FROM file_work w JOIN files f ON f.file_id = w.file_id
WHERE NOT regexp_matches(f.name, '{_SPILLED}') AND w.file_id IN (
  SELECT u.file_id FROM uses u JOIN places l ON l.file_id = u.file_id JOIN calls c ON c.id = u.call_id
  WHERE c.family = 'unlink' AND u.errno_id IS NULL AND l.place IN ({places}))"""
        )
    )


# Bytes that are read more often than they are written are left to `redundant-reads`, so the count is limited
# to the written bytes. After a rewrite the data is new for the reader, and so is the whole piece that it
# reads around the rewritten range.
def _sql(settings: Settings) -> str:
    own = "coalesce(t.own_written_bytes, 0)"
    read = "FILTER (WHERE t.direction = 1)"
    back = f"sum({own}) {read}"
    written = "FILTER (WHERE t.direction = 2)"
    pieces = f"sum(t.count * {own} / t.bytes) {written} * sum(t.bytes) {read} / sum(t.count) {read}"
    fresh = f"(sum(t.bytes) {written} + {pieces})"
    share = f"least(1.0, {fresh} / nullif({back}, 0))"
    return transfers.by_place(
        {
            "count": f"round({share} * sum(t.count * {own} / t.bytes) {read})",
            "bytes": f"sum(t.bytes) {read}",
            "again": f"{share} * {back}",
            "time_ns": f"{share} * sum(t.time_ns * ({own} / t.bytes)) {read}",
        },
        where="t.direction IN (1, 2) AND t.bytes > 0 AND p.place IN (FROM plain_places)",
        having=f"{back} > 0 AND {back} >= {settings.least_share} * sum(t.bytes) {read}",
    )


# SQL for writes to a range that the process writes again later, up to the number of bytes that it read back.
def _handed_sql(settings: Settings) -> str:
    own = "coalesce(t.own_written_bytes, 0)"
    again = f"coalesce(sum({own}) FILTER (WHERE t.direction = 2), 0)"
    back = f"coalesce(sum({own}) FILTER (WHERE t.direction = 1), 0)"
    part = f"t.direction = 2 AND {own} > 0"
    share = f"least(1.0, {back} / {again})"
    return transfers.by_place(
        {
            "count": f"round({share} * sum(t.count * {own} / t.bytes) FILTER (WHERE {part}))",
            "time_ns": f"{share} * sum(t.time_ns * ({own} / t.bytes)) FILTER (WHERE {part})",
        },
        where="t.direction IN (1, 2) AND t.bytes > 0 AND p.place IN (FROM plain_places)",
        having=f"""{again} > 0 AND {back} > 0
  AND {back} >= {settings.least_share} * sum(t.bytes) FILTER (WHERE t.direction = 1)""",
    )


_QUERY = """SELECT f.name AS file, count(*) AS reads, sum(e.bytes) AS read_bytes,
  sum(e.own_written_bytes) AS written_by_the_reader, sum(e.dur) AS time_ns
FROM events e JOIN files f ON f.file_id = e.file_id WHERE e.direction = 1
GROUP BY f.name ORDER BY written_by_the_reader DESC"""
_MESSAGE = N_("Reads of what the same process had written: {own_bytes} in {count} reads; files: {files}")

RULE = Rule(
    name="read-after-write",
    title=N_("A program reads back its own output"),
    looks_for=N_("Files that a process writes and then reads again in the same run."),
    why=N_(
        "The data was already in memory. On network and parallel file systems reading it back may wait "
        "until it is written out."
    ),
    advice=advise(
        any=N_("Keep the data in memory between the two steps; if they don't fit, use a local scratch disk."),
        c=N_("Hold intermediate results in an array, or in a memory file (memfd_create, open_memstream)."),
        cpp=N_("Hold intermediate results in a std::vector or std::stringstream in place of a file."),
        fortran=N_("Use an allocatable array or an internal file in place of a scratch unit."),
        python=N_(
            "Pass the object itself, or io.BytesIO; tempfile.SpooledTemporaryFile stays in memory while "
            "small."
        ),
        shell=N_("Join the commands by a pipe; give sort enough memory for its data: sort -S 2G."),
        hdf5=N_("Keep small intermediate files in memory with the core driver: H5Pset_fapl_core."),
    ),
    fine_when=N_("The data don't fit into memory (external sorting), or are read back to check them."),
    settings=Settings,
    find=find,
    needs=(Need.COVERAGE,),
    views=("transfers", "place_names", "places", "uses", "file_work", "plain_places", "rewritten_ranges"),
    yields_to=("chunks-against-access", "collective-overhead", "collective-buffering-off"),
)
