"""Finds seeks without effect: a program queries the current position, seeks to it, or seeks back to data
that it has just read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.program.rules import costs, counted, transfers
from iodock.program.rules.base import Candidate, Facts, Rule, advise
from iodock.program.rules.places import Faults
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `seek-storm`."""

    least_count: int = 1000
    "Number of seeks, in all such files together, below which nothing is reported."
    least_per_transfer: float = 0.7
    "Minimum number of seeks for each read or write."
    free_per_open: int = 3
    """Seeks that are normal for each open: libraries query position and size."""
    least_needless: float = 0.1
    "Minimum number of unnecessary seeks for each read or write."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate: all places with more seeks than their accesses need. A seek is needed if the
    next access does not begin where the previous one ended, unless it begins in the data just read."""
    faults = needless(facts, settings)
    count, cost = faults.total("count"), faults.time_ns
    if not faults or not costs.worth_a_word(facts, cost, count):
        return
    seeks, moved = faults.total("seeks"), faults.total("transfers")
    values = {
        "seeks": seeks, "transfers": moved, "needless": count, "files": faults.file_count,
    }  # fmt: skip
    yield Candidate(
        message=Message(_MESSAGE, values),
        count=count,
        time_ns=cost,
        evidence={"seeks": seeks, "transfers": moved, "count": count, "time_ns": cost},
        query=_QUERY,
        files=faults.files,
        file_count=faults.file_count,
        call="lseek",
        confidence=0.9,
        gain=(0.5, 1.0),
    )


def needless(facts: Facts, settings: Settings) -> Faults:
    """Returns places with too many seeks. `count` and `time_ns` are those of the unnecessary seeks."""
    faults = Faults(facts.rows(_sql(settings)))
    return faults if faults.total("seeks") >= settings.least_count else Faults([])


def _sql(settings: Settings) -> str:
    # A step back into data that was just read needs no seek, because the program could use its buffer.
    return f"""WITH moved AS (SELECT t.place, sum(t.count) AS transfers,
    coalesce(sum(t.count - t.overlapping) FILTER (WHERE t.pattern IN (3, 4, 5, 6)), 0) AS moves
  FROM transfers t GROUP BY t.place),
opened AS (SELECT l.place, sum(u.count) AS opens FROM uses u JOIN places l ON l.file_id = u.file_id
    JOIN calls c ON c.id = u.call_id
  WHERE c.family = 'open' AND u.errno_id IS NULL GROUP BY l.place),
sought AS (SELECT l.place, sum(u.count) AS seeks, sum(u.time_ns) AS time_ns FROM uses u
    JOIN calls c ON c.id = u.call_id JOIN places l ON l.file_id = u.file_id
  WHERE c.class = 'seek' AND u.errno_id IS NULL GROUP BY l.place),
counted AS (SELECT s.place, s.seeks, s.time_ns, coalesce(m.transfers, 0) AS transfers,
    greatest(s.seeks - coalesce(m.moves, 0) - {settings.free_per_open} * coalesce(o.opens, 0), 0) AS needless
  FROM sought s LEFT JOIN moved m ON m.place = s.place LEFT JOIN opened o ON o.place = s.place)
SELECT p.name, p.file_count, CAST(n.seeks AS BIGINT) AS seeks, CAST(n.transfers AS BIGINT) AS transfers,
  CAST(round(n.needless) AS BIGINT) AS count, CAST(n.time_ns * (n.needless / n.seeks) AS BIGINT) AS time_ns
FROM counted n JOIN place_names p ON p.place = n.place
WHERE (p.place IN (FROM plain_places) OR p.kind = 'standard') AND n.seeks >= {transfers.FEW}
  AND n.seeks >= {settings.least_per_transfer} * n.transfers
  AND n.needless >= {settings.least_needless} * n.transfers
ORDER BY time_ns DESC NULLS LAST, count DESC, p.name"""


_QUERY = """SELECT file, count(*) FILTER (WHERE class = 'seek') AS seeks,
  count(*) FILTER (WHERE direction IS NOT NULL) AS transfers,
  sum(dur) FILTER (WHERE class = 'seek') AS time_ns
FROM call_ends GROUP BY file HAVING seeks > 0 ORDER BY seeks DESC"""
_MESSAGE = N_(
    "{needless} of {seeks} seeks were unnecessary, for {transfers} reads and writes; files: {files}"
)


def in_counters(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields one candidate for the seeks in counters. Seeks are not counted as unnecessary if they belong
    to an open, or to a request that does not begin where the previous one ended. The time of the others is
    estimated as their share of the time of metadata calls."""
    faults = Faults(facts.rows(_counted_sql(settings)))
    count, seeks, moved = (faults.total(name) for name in ("needless", "seeks", "transfers"))
    if seeks < settings.least_count or not counted.matters(facts, None, count):
        return
    values: dict[str, Scalar] = {
        "seeks": seeks, "transfers": moved, "needless": count, "files": faults.file_count,
    }  # fmt: skip
    cost = round(sum(row["meta_ns"] * row["needless"] / counted.metadata(row) for row in faults.rows))
    yield counted.candidate(
        facts, faults, _MESSAGE, values, cost_ns=cost, count=count, call="lseek", gain=(0.5, 1.0)
    )


def _counted_sql(settings: Settings) -> str:
    return f"""WITH jumps AS (SELECT file_id, sum(count - consecutive) AS n FROM counted_transfers
  WHERE interface = 'posix' GROUP BY file_id)
SELECT f.*, f.files AS file_count,
  CAST(f.seeks - j.n - {settings.free_per_open} * f.opens AS BIGINT) AS needless
FROM counted_files f JOIN jumps j ON j.file_id = f.file_id
WHERE NOT f.is_together AND f.seeks >= {settings.least_per_transfer} * f.transfers
  AND needless >= {settings.least_needless} * f.transfers AND needless > 0 ORDER BY needless DESC, f.name"""


RULE = Rule(
    name="seek-storm",
    title=N_("Unnecessary seeks"),
    looks_for=N_(
        "Files with about as many seeks as reads and writes, or more, though the accesses follow one another "
        "or return to the same bytes."
    ),
    why=N_(
        "Querying the position is a system call too, and with stream libraries each seek discards the "
        "buffer, so that the next read fetches it again."
    ),
    advice=advise(
        any=N_(
            "Keep count of the position in the program, and seek only where the next access is elsewhere."
        ),
        c=N_("Leave out fseek and ftell between consecutive freads; use pread/pwrite, which need no seek."),
        cpp=N_(
            "tellg and seekg call lseek each time: add up gcount() instead of calling tellg, and don't "
            "seek to the current position."
        ),
        fortran=N_("Don't call INQUIRE(POS=) or give POS= for accesses that follow one another."),
        python=N_("Leave out f.tell() and f.seek() in the loop; add up len() of what was read."),
        shell=N_(
            "bash's `read` goes back to the end of each line: let awk, sed or cut handle the whole file."
        ),
    ),
    fine_when=N_("Each seek leads to another part of the file that is then read or written."),
    settings=Settings,
    find=find,
    counters=in_counters,
    views=(
        "transfers",
        "place_names",
        "places",
        "uses",
        "plain_places",
        "counted_files",
        "counted_transfers",
    ),
    yields_to=("bytewise-read", "polling-at-end"),
    case="ifstream-tellg",
)
