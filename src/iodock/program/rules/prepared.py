"""What one process or thread reads and takes apart before those that compute are at work, or puts together
and writes when they have ended. Little of that time lies inside calls: most of it goes into the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iodock.program.rules import costs
from iodock.program.rules.facts import Facts
from iodock.program.rules.phases import Settings

_MOST_CALLS = 200_000
"""Who makes more calls makes them small, which other rules tell."""
_MOST_HELPERS = 1024
"""And so many stretches between them."""
_MOST_MAKERS = 4
"""Of the processes and threads that move most bytes, so many are looked at."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What one does while its helpers don't work yet, or no more."""

    maker: int
    """upid, or utid of the thread."""
    are_threads: bool
    helpers: int
    """That work at the same time."""
    calls: int
    bytes: int
    share: float
    """Of the bytes of all of them."""
    time_ns: int
    """Inside calls."""
    alone_ns: int
    """From the first call that reads to the helpers' begin, and from their end to the last that writes."""


@dataclass(frozen=True, slots=True)
class _Maker:
    """Who may have helpers: a process and those that it started, or a thread and others of its process."""

    number: int
    are_threads: bool
    own: str
    """SQL: its utids."""
    others: str
    """SQL: those of all its helpers."""
    first_ts: int
    last_ts: int
    """Of its calls on data."""
    cpu_ns: int


def of_helpers(facts: Facts, settings: Settings) -> list[Prepared]:
    """What processes and threads prepare or gather for at least two helpers, in so little of the time inside
    calls that other measures miss it. Needs the derived tables `siblings`, `file_work`, `thread_io` and
    `programs`; CPU times, else nothing is found."""
    found = []
    for maker, helpers in [*_with_processes(facts, settings), *_with_threads(facts, settings)]:
        spans, many = _side_by_side(helpers)
        if many < 2 or not spans:
            continue
        one = _prepared(facts, settings, maker, spans, many)
        if one is not None:
            found.append(one)
    return found


def _with_processes(facts: Facts, settings: Settings) -> list[tuple[_Maker, list[dict[str, Any]]]]:
    found = []
    for row in facts.rows(_parents_sql(settings)):
        parent = int(row["upid"])
        helpers = facts.rows(_children_sql(parent))
        if not 2 <= len(helpers) <= _MOST_HELPERS:
            continue
        numbers = ", ".join(str(one["upid"]) for one in helpers)
        maker = _Maker(
            parent,
            False,
            f"SELECT utid FROM processes WHERE upid = {parent}",
            f"SELECT utid FROM processes WHERE upid IN ({numbers})",
            int(row["first_ts"]),
            int(row["last_ts"]),
            int(row["cpu_ns"] or 0),
        )
        found.append(
            (maker, _at_work(helpers, facts.rows(_handed_sql(maker)), facts.rows(_shared_sql(maker))))
        )
    return found


def _at_work(
    helpers: list[dict[str, Any]], handed: list[dict[str, Any]], sharing: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The processes with the times of their work; without those of other programs that are HANDED nothing by
    a pipe, and are not SHARING a file."""
    handed_to = {int(row["upid"]): row for row in handed}
    partners = {*handed_to, *(int(row["upid"]) for row in sharing)}
    working = [one for one in helpers if one["is_alike"] or int(one["upid"]) in partners]
    for one in working:
        at = handed_to.get(int(one["upid"]), {})
        one["start_ts"] = max(one["start_ts"], at.get("first_ts") or 0)
        one["end_ts"] = max(one["start_ts"], min(one["end_ts"], at.get("last_ts") or one["end_ts"]))
    return working


def _with_threads(facts: Facts, settings: Settings) -> list[tuple[_Maker, list[dict[str, Any]]]]:
    found = []
    for row in facts.rows(_one_thread_sql(settings)):
        upid, utid = int(row["upid"]), int(row["utid"])
        first, last = int(row["first_ts"]), int(row["last_ts"])
        threads = facts.rows(_threads_sql(upid, utid))
        middle = facts.one(_middle_sql(utid))["ts"]
        # Who is there while most is moved may compute meanwhile, or belong to the runtime.
        beside = [one for one in threads if middle and one["start_ts"] <= middle < one["end_ts"]]
        helpers = [one for one in threads if one not in beside]
        if sum(one["cpu_ns"] for one in beside) > sum(one["cpu_ns"] for one in helpers):
            continue
        # The first thread ends with the process: what it computed may have been at any time.
        if row["main_ns"] and row["main_ns"] >= settings.least_helping * row["cpu_ns"]:
            continue
        others = f"SELECT utid FROM processes WHERE upid = {upid} AND utid <> {utid}"
        maker = _Maker(utid, True, f"SELECT {utid}", others, first, last, int(row["cpu_ns"] or 0))
        found.append((maker, _busy(helpers, settings)))
    return found


def _busy(helpers: list[dict[str, Any]], settings: Settings) -> list[dict[str, Any]]:
    """Those of the threads that compute, if they are not too many."""
    most = max((int(one["cpu_ns"] or 0) for one in helpers), default=0)
    if not most or len(helpers) > _MOST_HELPERS:
        return []
    return [one for one in helpers if int(one["cpu_ns"] or 0) >= settings.least_helping * most]


def _side_by_side(helpers: list[dict[str, Any]]) -> tuple[list[tuple[int, int]], int]:
    """The times in which any of them works, and how many do at most at the same time."""
    spans: list[tuple[int, int]] = []
    for start, end in sorted((int(one["start_ts"]), int(one["end_ts"])) for one in helpers):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    steps = [(int(one["start_ts"]), 1) for one in helpers] + [(int(one["end_ts"]), -1) for one in helpers]
    live = most = 0
    for _, step in sorted(steps):
        live += step
        most = max(most, live)
    return spans, most


def _prepared(
    facts: Facts, settings: Settings, maker: _Maker, spans: list[tuple[int, int]], many: int
) -> Prepared | None:
    wall = facts.wall_ns or 0
    gaps = _gaps(maker, spans, wall, settings)
    if not gaps or sum(end - start for start, end in spans) < settings.least_wall * wall:
        return None
    worked = []
    for row in facts.rows(_gaps_sql(maker, gaps, settings)):
        gap = gaps[int(row["number"])]
        length = _length(facts, row, gap, (spans[0][0], spans[-1][1]), settings)
        if length:
            worked.append((row, length))
    alone = sum(length for _, length in worked)
    calls, moved, read, spent = (_sum(worked, name) for name in ("calls", "bytes", "read", "time_ns"))
    is_long = alone * (1 - 1 / many) >= settings.least_prepared * wall
    if not is_long or moved < settings.least_bytes or maker.cpu_ns < settings.least_prepared_cpu * alone:
        return None
    whole = facts.one(_whole_sql(maker))
    way, same = (read, whole["read"]) if 2 * read >= moved else (moved - read, whole["written"])
    if way < settings.least_prepared_share * int(same or 0):
        return None
    share = moved / max(1, moved, int(whole["bytes"] or 0))
    return Prepared(maker.number, maker.are_threads, many, calls, moved, share, spent, alone)


def _sum(worked: list[tuple[dict[str, Any], int]], name: str) -> int:
    return sum(int(row[name] or 0) for row, _ in worked)


def _gaps(
    maker: _Maker, spans: list[tuple[int, int]], wall_ns: int, settings: Settings
) -> list[tuple[int, int]]:
    """When no helper works: from the maker's first call on, and to the end of the run."""
    edges = [maker.first_ts - 1, *(edge for span in spans for edge in span), maker.last_ts + wall_ns]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return [gap for gap in gaps if gap[1] - gap[0] >= settings.least_stretch_ns][:_MOST_HELPERS]


def _length(
    facts: Facts, row: dict[str, Any], gap: tuple[int, int], helped: tuple[int, int], settings: Settings
) -> int:
    """How long the work on what was read or written in a GAP took, ns: of texts with what goes before the
    helpers' begin and after their end (HELPED: the first and the last), or from the first to the last call. 0
    where that is too long or too short for so many bytes, or mostly inside calls."""
    first, last = int(row["first_ts"]), int(row["last_ts"])
    before = first if gap[0] < helped[0] or row["read"] >= row["written"] else gap[0]
    after = last if gap[1] > helped[1] or row["written"] > row["read"] else gap[1]
    with_text = last - first + settings.text_after_ns * int(row["text_bytes"])
    inside = int(row["time_ns"] or 0) + int(row["calls"]) * facts.tracing_ns
    lengths = (round(min(after - before, with_text)), last - first)
    return next((one for one in lengths if _is_work(one, inside, int(row["bytes"]), settings)), 0)


def _is_work(length: int, inside: int, moved: int, settings: Settings) -> bool:
    """Whether so much time may go into so many bytes, and INSIDE calls only the smaller part of it."""
    is_text = costs.TEXT_NS * moved <= length <= settings.most_worked_ns * moved
    return is_text and inside <= (1 - settings.least_worked) * length


def _parents_sql(settings: Settings) -> str:
    """Who started others and moved data itself: `upid first_ts last_ts cpu_ns`."""
    return f"""WITH moved AS (SELECT w.upid, sum(w.read_bytes + w.written_bytes) AS bytes,
    sum(w.reads + w.writes) AS calls, min(w.first_ts) AS first_ts, max(w.last_ts) AS last_ts
  FROM file_work w JOIN files f ON f.file_id = w.file_id
  WHERE f.file_id IN (FROM data_files) AND w.upid IN (SELECT parent FROM siblings) GROUP BY w.upid),
busy AS (SELECT upid, sum(cpu_user_ns) AS cpu_ns FROM processes GROUP BY upid)
SELECT m.*, b.cpu_ns FROM moved m JOIN busy b ON b.upid = m.upid JOIN programs g ON g.upid = m.upid
WHERE m.bytes >= {settings.least_bytes} AND m.calls <= {_MOST_CALLS} AND b.cpu_ns > 0
  AND m.first_ts IS NOT NULL AND g.is_tool IS NOT TRUE
ORDER BY m.bytes DESC LIMIT {_MOST_MAKERS}"""


# Of one program: a pipeline's stages are no workers. Who began before it ran was a wrapper's.
def _children_sql(parent: int) -> str:
    return f"""SELECT upid, start_ts, end_ts,
  program IS NULL OR program = (SELECT any_value(program) FROM programs WHERE upid = {parent}) AS is_alike
FROM siblings
WHERE parent = {parent} AND end_ts IS NOT NULL AND start_ts >= coalesce((SELECT max(c.ts) FROM commands c
    JOIN processes p ON p.utid = c.utid WHERE p.upid = {parent}), start_ts)
  AND coalesce(program, '') = (SELECT coalesce(program, '') FROM siblings WHERE parent = {parent}
    GROUP BY program ORDER BY sum(end_ts - start_ts) DESC NULLS LAST LIMIT 1)
LIMIT {_MOST_HELPERS + 1}"""


# A pool may be there before its work is: a worker begins when it has been handed data, and ends with its last
# answer.
def _handed_sql(maker: _Maker) -> str:
    return f"""WITH own AS (SELECT DISTINCT u.file_id, u.direction FROM uses u
    JOIN files f ON f.file_id = u.file_id
  WHERE f.kind IN ('pipe', 'fifo', 'socket') AND u.direction IN (1, 2) AND u.bytes > 0
    AND u.utid IN ({maker.own})),
ends AS (SELECT p.upid, e.direction, e.ts, e.ts + coalesce(e.dur, 0) AS end_ts FROM events e
    JOIN own o ON o.file_id = e.file_id AND o.direction = 3 - e.direction JOIN processes p ON p.utid = e.utid
  WHERE e.utid IN ({maker.others}) AND e.bytes > 0)
SELECT upid, min(end_ts) FILTER (WHERE direction = 1) AS first_ts,
  max(ts) FILTER (WHERE direction = 2) AS last_ts
FROM ends GROUP BY upid"""


def _shared_sql(maker: _Maker) -> str:
    """Helpers that read what the maker wrote, or wrote what it reads."""
    return f"""WITH own AS (SELECT DISTINCT u.file_id, u.direction FROM uses u
    JOIN files f ON f.file_id = u.file_id
  WHERE u.direction IN (1, 2) AND u.bytes > 0 AND f.file_id IN (FROM data_files) AND u.utid IN ({maker.own}))
SELECT DISTINCT p.upid FROM uses u JOIN own o ON o.file_id = u.file_id AND o.direction = 3 - u.direction
  JOIN processes p ON p.utid = u.utid WHERE u.bytes > 0 AND u.utid IN ({maker.others})"""


def _one_thread_sql(settings: Settings) -> str:
    """Threads that move most of what their processes move: `upid utid first_ts last_ts cpu_ns`, and what the
    first thread computed, if that is another: `main_ns`."""
    return f"""SELECT t.upid, t.utid, t.first_ts, t.last_ts, t.user_ns AS cpu_ns,
  (SELECT max(m.user_ns) FROM thread_io m WHERE m.upid = t.upid AND m.is_main AND m.utid <> t.utid) AS main_ns
FROM thread_io t JOIN programs g ON g.upid = t.upid
WHERE t.bytes >= {settings.least_bytes} AND t.calls <= {_MOST_CALLS} AND t.user_ns > 0
  AND t.first_ts IS NOT NULL AND g.is_tool IS NOT TRUE
QUALIFY row_number() OVER (PARTITION BY t.upid ORDER BY t.bytes DESC, t.utid) = 1
ORDER BY t.bytes DESC LIMIT {_MOST_MAKERS}"""


def _middle_sql(utid: int) -> str:
    """When the thread has made half of its calls that move data."""
    return f"""SELECT quantile_disc(e.ts, 0.5) AS ts FROM events e JOIN files f ON f.file_id = e.file_id
WHERE e.utid = {utid} AND e.direction IN (1, 2) AND e.bytes > 0 AND f.file_id IN (FROM data_files)"""


def _threads_sql(upid: int, utid: int) -> str:
    return f"""SELECT utid, start_ts, end_ts, coalesce(user_ns, 0) AS cpu_ns FROM thread_io
WHERE upid = {upid} AND utid <> {utid} AND NOT is_main AND start_ts IS NOT NULL AND end_ts IS NOT NULL"""


# Kinds of files that helpers read or write alike are shared out. A few bytes at the edges may be settings,
# which are read long before, or a last line of a log.
def _gaps_sql(maker: _Maker, gaps: list[tuple[int, int]], settings: Settings) -> str:
    values = ", ".join(f"({number}, {begin}, {end})" for number, (begin, end) in enumerate(gaps))
    return f"""WITH gaps(number, begin_ts, end_ts) AS (VALUES {values}),
moved AS (SELECT coalesce(f.pattern, f.name) AS kind, u.file_id, u.direction,
    {costs.maybe_text("f")} AS is_text,
    sum(u.bytes) FILTER (WHERE u.utid IN ({maker.own})) AS mine,
    sum(u.bytes) FILTER (WHERE u.utid IN ({maker.others})) AS theirs
  FROM uses u JOIN files f ON f.file_id = u.file_id
  WHERE u.direction IN (1, 2) AND u.bytes > 0 AND f.file_id IN (FROM data_files) GROUP BY ALL),
kinds AS (SELECT kind, direction FROM moved GROUP BY kind, direction
  HAVING sum(mine) >= {settings.least_alone} * (sum(mine) + coalesce(sum(theirs), 0))),
own AS (SELECT m.file_id, m.direction, m.is_text FROM moved m
    JOIN kinds k ON k.kind = m.kind AND k.direction = m.direction WHERE m.mine > 0),
made AS (SELECT e.ts, e.dur, e.bytes, e.direction, o.is_text FROM events e
    JOIN own o ON o.file_id = e.file_id AND o.direction = e.direction
  WHERE e.utid IN ({maker.own}) AND e.ts IS NOT NULL AND e.dur IS NOT NULL AND e.bytes > 0),
placed AS (SELECT g.number, m.*,
    sum(m.bytes) OVER (PARTITION BY g.number ORDER BY m.ts) / sum(m.bytes) OVER (PARTITION BY g.number)
      AS done,
    m.bytes / sum(m.bytes) OVER (PARTITION BY g.number) AS part
  FROM gaps g JOIN made m ON m.ts >= g.begin_ts AND m.ts < g.end_ts)
SELECT number, count(*) AS calls, CAST(sum(bytes) AS BIGINT) AS bytes,
  CAST(coalesce(sum(bytes) FILTER (WHERE direction = 1), 0) AS BIGINT) AS read,
  CAST(coalesce(sum(bytes) FILTER (WHERE direction = 2), 0) AS BIGINT) AS written,
  CAST(coalesce(sum(bytes) FILTER (WHERE is_text), 0) AS BIGINT) AS text_bytes,
  CAST(sum(dur) AS BIGINT) AS time_ns, min(ts) AS first_ts, max(ts + dur) AS last_ts
FROM placed WHERE done > {settings.most_edge} AND done - part < {1 - settings.most_edge} GROUP BY number"""


def _whole_sql(maker: _Maker) -> str:
    return f"""SELECT CAST(sum(u.bytes) AS BIGINT) AS bytes,
  CAST(sum(u.bytes) FILTER (WHERE u.direction = 1) AS BIGINT) AS read,
  CAST(sum(u.bytes) FILTER (WHERE u.direction = 2) AS BIGINT) AS written
FROM uses u JOIN files f ON f.file_id = u.file_id
WHERE u.direction IN (1, 2) AND u.bytes > 0 AND f.file_id IN (FROM data_files)
  AND (u.utid IN ({maker.own}) OR u.utid IN ({maker.others}))"""
