"""The same range of a file written again and again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iodock.program.rules import costs, transfers
from iodock.program.rules.base import Candidate, Facts, Need, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `redundant-writes`."""

    least_factor: float = 1.9
    """How many times what a file holds in the end must be written at least."""
    least_count: int = 20
    """Fewer rewriting calls than this, in all files together, are not worth a word."""
    least_opens: int = 10
    """Openings of one file to write it anew, from which on their time counts, too."""
    least_calls: float = 0.2
    """Share of a place's writes that go to a few ranges again and again, however small these are: a header
    that is brought up to date after each record."""
    least_repeats: int = 10
    """So often each of these ranges must be written on average."""
    first_looked_at: int = 50000
    """Writes that go again to where something was written: the first of them show whether that is so."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """One candidate: all places whose ranges are rewritten. Who empties a file to write it anew opens and
    closes it each time: that can take far longer than the writes, and goes with them, and so does formatting
    of text."""
    whole = _without_moved(facts, Faults(facts.rows(_sql(settings))), settings)
    headers, replaced = _headers(facts, settings), Faults([])
    if facts.rows(_has_moves_sql(settings)):
        replaced = Faults(facts.rows(_replaced_sql(settings)))
        away = facts.rows(_moved_sql(settings, replaced))
        whole = _without(whole, {row["place"] for row in away if row["is_replaced"]})
        headers = _without(headers, {row["place"] for row in away})
    faults = Faults([*whole.rows, *headers.rows, *replaced.rows])
    count, cost = faults.total("count"), faults.time_ns
    opened = _opened(facts, whole, settings)
    text_ns = costs.text_ns(facts, whole, 2)
    if cost is not None:
        cost += opened.total("time_ns") + text_ns
    if count < settings.least_count or not costs.worth_a_word(facts, cost, count):
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


def _headers(facts: Facts, settings: Settings) -> Faults:
    """The places of which a few ranges are written again and again between other writes. Their `bytes` are
    those that went there, `again` all of them but the last."""
    if not facts.sees(Need.OFFSETS):
        return Faults([])
    rows = facts.rows(_headers_sql(settings))
    if not rows:
        return Faults([])
    likely = facts.rows(_ranges_sql(settings, rows, f"LIMIT {settings.first_looked_at}"))
    ranges = facts.rows(_ranges_sql(settings, likely)) if likely else []
    known = {row["place"]: row for row in ranges}
    return Faults([row | known[row["place"]] for row in rows if row["place"] in known])


def _ranges_sql(settings: Settings, rows: Sequence[Mapping[str, Any]], limit: str = "") -> str:
    """Which of the places of ROWS have few ranges that are written again: `place again bytes`, by all such
    writes or by the first."""
    places = ", ".join(str(row["place"]) for row in rows)
    return f"""WITH rewrites AS (SELECT file_id, offset_bytes, bytes FROM events
  WHERE file_id IN (SELECT file_id FROM places WHERE place IN ({places})) AND direction = 2 AND bytes > 0
    AND any_written_bytes >= 0.5 * bytes {limit}),
ranges AS (SELECT file_id, count(*) AS count, max(bytes) AS kept, sum(bytes) AS bytes FROM rewrites
  GROUP BY file_id, offset_bytes)
SELECT p.place, CAST(sum(r.bytes) AS BIGINT) AS again, CAST(sum(r.bytes) + sum(r.kept) AS BIGINT) AS bytes
FROM ranges r JOIN places p ON p.file_id = r.file_id
GROUP BY p.place HAVING sum(r.count) >= {settings.least_repeats} * count(*)"""


def headers_of(facts: Facts) -> Faults:
    """The places of which a few ranges are written again and again between other writes: `count` is that of
    these writes."""
    return _headers(facts, facts.settings.of_rule("redundant-writes", Settings))


def without_headers(facts: Facts, faults: Faults) -> Faults:
    """The written places without those where a header is brought up to date: what lies between may well be
    written in order."""
    known = headers_of(facts) if faults else Faults([])
    updates = {row["place"]: int(row["count"]) for row in known.rows}
    return Faults(
        [row for row in faults.rows if _jumps(row) > _THERE_AND_BACK * updates.get(row["place"], 0)]
    )


_THERE_AND_BACK = 2.2
"""Jumps for each time that a header is brought up to date, and a few more."""


def _jumps(row: Mapping[str, Any]) -> int:
    return int(row.get("jumps", row["count"]) or 0)


def _headers_sql(settings: Settings) -> str:
    calls = f"sum(t.count * ({_AGAIN} / t.bytes))"
    return transfers.by_place(
        transfers.again(_AGAIN),
        where="t.direction = 2 AND t.bytes > 0 AND p.place IN (FROM plain_places)",
        having=f"""sum({_AGAIN}) < {1 - 1 / settings.least_factor} * sum(t.bytes)
  AND {calls} >= greatest({settings.least_count}, {settings.least_calls} * sum(t.count))""",
    )


# What got another name was written under its first one, as tools do it that leave no half-written file: each
# time it was another file, unless it took the place of the one before.
def _without_moved(facts: Facts, faults: Faults, settings: Settings) -> Faults:
    """The places without those whose files were given new names, nearly each time a different one."""
    if not faults:
        return faults
    places = ", ".join(str(row["place"]) for row in faults.rows)
    moved = facts.rows(
        f"""WITH names AS (SELECT source, count(DISTINCT target) AS targets
  FROM renamed_files GROUP BY source),
opened AS (SELECT file_id, sum(opens) AS opens FROM file_work WHERE writes > 0 GROUP BY file_id)
SELECT l.place FROM places l JOIN names n ON n.source = l.file_id JOIN opened o ON o.file_id = l.file_id
WHERE l.place IN ({places}) AND n.targets > 1 AND o.opens < {settings.least_factor} * n.targets
GROUP BY l.place"""
    )
    return _without(faults, {row["place"] for row in moved})


def _has_moves_sql(settings: Settings) -> str:
    return f"""SELECT 1 FROM uses WHERE call_id IN (SELECT id FROM calls WHERE family = 'rename')
HAVING sum(count) >= {settings.least_opens}"""


# What was moved away again and again is a new file each time.
def _moved_sql(settings: Settings, replaced: Faults) -> str:
    """Places whose files were given other names often, or one of those that are told as REPLACED: `place
    is_replaced`."""
    told = ", ".join(str(row["place"]) for row in replaced.rows) or "NULL"
    return f"""SELECT l.place, coalesce(bool_or(t.place IN ({told})), false) AS is_replaced
FROM renamed_files m
  JOIN places l ON l.file_id = m.source LEFT JOIN places t ON t.file_id = m.target
GROUP BY l.place HAVING is_replaced OR count(*) >= {settings.least_opens}"""


def _without(faults: Faults, places: set[int]) -> Faults:
    return Faults([row for row in faults.rows if row["place"] not in places])


# Each time another file is written and takes the place of the last one, which hardly anyone has opened,
# run or kept under another name. A log that moves on when the next one comes is kept.
def _replaced_sql(settings: Settings) -> str:
    """What was written to be renamed to one name, each time from another one, but the last time."""
    return f"""WITH named AS (SELECT DISTINCT target, source FROM renamed_files
  WHERE target NOT IN (SELECT source FROM renamed_files)),
turns AS (SELECT * FROM named
  QUALIFY count(*) OVER (PARTITION BY target) >= {settings.least_opens}
    AND count(*) OVER (PARTITION BY source) = 1),
unread AS (SELECT t.target, count(DISTINCT t.source) AS turns FROM turns t GROUP BY t.target
  HAVING 4 * coalesce((SELECT sum(u.count) FROM uses u WHERE u.file_id = t.target AND u.errno_id IS NULL
      AND u.call_id IN (SELECT id FROM calls WHERE family IN ('open', 'read', 'mmap', 'exec', 'link'))), 0)
    <= turns)
SELECT any_value(l.place) AS place, f.name, 1 AS file_count, 'rename' AS call,
  CAST(sum(w.writes) * (1 - 1 / any_value(n.turns)) AS BIGINT) AS count,
  CAST(sum(w.written_bytes) AS BIGINT) AS bytes,
  CAST(sum(w.written_bytes) * (1 - 1 / any_value(n.turns)) AS BIGINT) AS again,
  CAST(sum(w.write_ns + coalesce(w.metadata_ns, 0)) * (1 - 1 / any_value(n.turns)) AS BIGINT) AS time_ns
FROM turns t JOIN unread n ON n.target = t.target JOIN file_work w ON w.file_id = t.source
  JOIN files f ON f.file_id = t.target JOIN places l ON l.file_id = t.target
WHERE f.file_id IN (FROM plain_files) AND w.written_bytes > 0 GROUP BY f.file_id, f.name
ORDER BY time_ns DESC NULLS LAST, f.name"""


# Of those who write a file that hardly anyone reads: what is read in between, as an assembler does a
# compiler's output, was needed. One of each call is needed, or hung: the longest.
def _opened(facts: Facts, faults: Faults, settings: Settings) -> Faults:
    if not faults:
        return faults
    places = ", ".join(str(row["place"]) for row in faults.rows)
    return Faults(
        facts.rows(
            f"""WITH unread AS (SELECT file_id FROM file_work
  WHERE file_id IN (SELECT file_id FROM places WHERE place IN ({places})) GROUP BY file_id
  HAVING sum(opens) >= {settings.least_opens} AND 4 * sum(reads) <= sum(opens)),
writers AS (SELECT file_id, upid FROM file_work
  WHERE writes > 0 AND reads = 0 AND file_id IN (FROM unread)),
by_call AS (SELECT sum(u.count) - 1 AS count, sum(u.time_ns) - max(u.longest_ns) AS time_ns,
    sum(u.count) FILTER (WHERE c.family = 'open') AS opens
  FROM uses u JOIN processes p ON p.utid = u.utid JOIN calls c ON c.id = u.call_id
    JOIN writers w ON w.file_id = u.file_id AND w.upid = p.upid
  WHERE u.direction = 0 AND u.side <> 4 GROUP BY u.file_id, u.call_id)
SELECT CAST(sum(opens) AS BIGINT) AS opens, CAST(sum(count) AS BIGINT) AS count,
  CAST(sum(time_ns) AS BIGINT) AS time_ns FROM by_call"""
        )
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
        pandas=N_("Collect the new rows, and write the table once or every hundredth step."),
        zarr=N_("Write by whole chunks: a part of a chunk makes zarr read and write all of it."),
        hdf5=N_("Call H5Fflush and attribute updates rarely; extend a data set by many rows at a time."),
    ),
    fine_when=N_("A checkpoint replaces the one before it, at intervals that a lost run is worth."),
    settings=Settings,
    find=find,
    needs=(Need.COVERAGE,),
    views=(
        *("transfers", "place_names", "places", "uses", "file_work", "plain_files", "plain_places"),
        *("renamed_files",),
    ),
    yields_to=("synchronous-flags", "read-after-write"),
    # What is written again is written before it can be read.
    yields_at=0.4,
)
