"""Compares a run with a site's typical values for its file systems: rates of small calls, and the number
of processes that a metadata server can serve at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from iodock.program.findings import IO_FINE
from iodock.program.rules.facts import Facts
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar
from iodock.shared.settings import FileSystem

Work = Literal["metadata", "small reads", "small writes"]

SMALL_BIN = 12
"""Largest size bin of small requests, which have up to 4 KiB."""
LEAST_CALLS = 200
"""Fewer calls than this do not characterise a file system."""
SLOW_SHARE = 0.5
"""If the rate is below this share of the typical rate, the file system was slower than usual."""
FAST_FACTOR = 3.0
"""If the rate is above this multiple of the typical rate, the answers did not come from the file system."""
SMALL_SHARE = 0.25
"""If the rate is at most this share of the rate of one stream, small requests limit the program."""
KNEE_SHARE = 0.75
"""If the rate is at most this share of the rate of one stream, requests below the knee were slowed by their
size and not served by a cache."""
SURER, LESS_SURE = 0.1, -0.2
"""Changes of the confidence in a cost. It becomes higher if the rate was as usual, and lower if the server
was slow. A rate far above the usual one shows nothing."""
OF_RULES: dict[str, tuple[Work, ...]] = {
    "stat-storm": ("metadata",),
    "metadata-heavy": ("metadata",),
    "tiny-file-flood": ("metadata",),
    "open-close-loop": ("metadata",),
    "directory-scan-storm": ("metadata",),
    "file-per-process": ("metadata",),
    "small-requests": ("small reads", "small writes"),
}
"""Kinds of rates on which each rule's cost depends."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Describes the rate of one kind of call on one file system, and its typical rate, in calls per second
    of one process."""

    mount_point: str
    work: Work
    calls: int
    measured: float
    typical: float

    @property
    def is_slow(self) -> bool:
        """Returns whether the rate was far below the typical one."""
        return self.measured < SLOW_SHARE * self.typical

    @property
    def is_fast(self) -> bool:
        """Returns whether the rate was far above what the file system can reach. A cache or a wrong
        typical value explains such a rate."""
        return self.measured > FAST_FACTOR * self.typical


@dataclass(frozen=True, slots=True)
class Crowd:
    """States that more processes used the metadata server at the same time than it can serve without
    slowing down."""

    mount_point: str
    processes: int
    knee: int


@dataclass(frozen=True, slots=True)
class Stream:
    """Describes the rate of small requests, compared with the rate of one stream of large requests."""

    mount_point: str
    work: Work
    mean_bytes: float
    bytes_per_s: float
    stream_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class BelowKnee:
    """Describes requests that are smaller than the size below which this file system becomes slower."""

    mount_point: str
    is_read: bool
    mean_bytes: float
    bytes_per_s: float
    knee_bytes: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Holds the results of the comparison. They are empty if the settings have no typical values."""

    paces: tuple[Pace, ...] = ()
    crowds: tuple[Crowd, ...] = ()
    streams: tuple[Stream, ...] = ()
    below_knee: tuple[BelowKnee, ...] = ()

    def change_of_confidence(self, rule: str, files: Sequence[str]) -> float:
        """Returns the number to add to the confidence in the finding that RULE made on FILES. It follows
        from the rates, and is 0 if they are unknown."""
        mounts = sorted({one.mount_point for one in self.paces}, key=len, reverse=True)
        of_files = {next((mount for mount in mounts if _below(name, mount)), None) for name in files}
        chosen = [
            one for one in self.paces if one.work in OF_RULES.get(rule, ()) and one.mount_point in of_files
        ]
        if not chosen:
            return 0.0
        if any(one.is_slow for one in chosen):
            return LESS_SURE
        return 0.0 if any(one.is_fast for one in chosen) else SURER

    def remarks(self) -> Iterator[Message]:
        """Yields one sentence for each result of the comparison."""
        for pace in self.paces:
            yield Message(
                (_SLOW if pace.is_slow else _FAST if pace.is_fast else _USUAL)[pace.work],
                {"mount": pace.mount_point, "measured": round(pace.measured), "typical": round(pace.typical)},
            )
        for stream in self.streams:
            yield Message(
                _STREAM[stream.work],
                {
                    "mount": stream.mount_point,
                    "mean_bytes": round(stream.mean_bytes),
                    "rate_bytes_per_s": stream.bytes_per_s,
                    "stream_share": stream.bytes_per_s / stream.stream_bytes_per_s,
                    "stream_bytes_per_s": stream.stream_bytes_per_s,
                },
            )
        for below in self.below_knee:
            yield Message(
                _BELOW_KNEE[below.is_read],
                {
                    "mount": below.mount_point,
                    "mean_bytes": round(below.mean_bytes),
                    "rate_bytes_per_s": below.bytes_per_s,
                    "knee_bytes": below.knee_bytes,
                },
            )
        for crowd in self.crowds:
            values: dict[str, Scalar] = {
                "mount": crowd.mount_point,
                "processes": crowd.processes,
                "knee": crowd.knee,
            }
            yield Message(_CROWD, values)


def compare(facts: Facts) -> Comparison:
    """Compares the run with the typical values in the settings. If there are none, it makes no query."""
    known = {mount: one for mount, one in facts.settings.file_systems.items() if _has_values(one)}
    if not known:
        return Comparison()
    rates = _rates(facts)
    return Comparison(
        tuple(_paces(facts, known, rates)),
        tuple(_crowds(facts, known)),
        tuple(_streams(facts, known, rates)),
        tuple(_below_knees(facts, known)),
    )


def _has_values(one: FileSystem) -> bool:
    values = (one.metadata_per_s, one.small_read_per_s, one.small_write_per_s, one.stat_knee_processes)
    streams = (one.read_bytes_per_s, one.write_bytes_per_s, one.read_knee_bytes, one.write_knee_bytes)
    return any(value is not None for value in (*values, *streams))


def _rates(facts: Facts) -> list[dict[str, Any]]:
    """Returns the number of calls, their time and their bytes for each kind of work on each mount; empty
    if calls have no durations."""
    return _rows(facts, _RATES_SQL, ("file_work", "transfers", "place_names")) if facts.durations else []


def _streams(facts: Facts, known: dict[str, FileSystem], rates: list[dict[str, Any]]) -> Iterator[Stream]:
    """Yields mounts on which small requests cost time and reach only a small part of the rate of a stream
    of large requests."""
    for row in rates:
        one, work = known.get(str(row["mount_point"])), row["work"]
        calls, moved = int(row["calls"] or 0), int(row["bytes"] or 0)
        if one is None or work == "metadata" or calls < LEAST_CALLS:
            continue
        stream = one.read_bytes_per_s if work == "small reads" else one.write_bytes_per_s
        spent = int(row["time_ns"] or 0) - calls * facts.tracing_ns
        if not stream or spent <= 0 or spent / 1e9 < IO_FINE * (facts.wall_seconds or 0.0):
            continue
        if moved * 1e9 / spent <= SMALL_SHARE * stream:
            yield Stream(str(row["mount_point"]), work, moved / calls, moved * 1e9 / spent, stream)


def _paces(facts: Facts, known: dict[str, FileSystem], rates: list[dict[str, Any]]) -> Iterator[Pace]:
    for row in rates:
        one = known.get(str(row["mount_point"]))
        calls, work = int(row["calls"] or 0), row["work"]
        if one is None or calls < LEAST_CALLS:
            continue
        typical = {
            "metadata": one.metadata_per_s,
            "small reads": one.small_read_per_s,
            "small writes": one.small_write_per_s,
        }[work]
        # In a live recording, durations include the tracer's stops, so these are subtracted.
        spent = int(row["time_ns"] or 0) - calls * facts.tracing_ns
        if typical and spent > 0:
            yield Pace(str(row["mount_point"]), work, calls, calls * 1e9 / spent, typical)


def _below_knees(facts: Facts, known: dict[str, FileSystem]) -> Iterator[BelowKnee]:
    """Yields mounts on which requests below the knee size cost time. If the rate of a stream is known,
    they must also be slower than that."""
    if not facts.durations or not any(one.read_knee_bytes or one.write_knee_bytes for one in known.values()):
        return
    rows = _rows(facts, _SIZES_SQL, ("transfers", "place_names"))
    for mount, one in known.items():
        for is_read, knee, stream in (
            (True, one.read_knee_bytes, one.read_bytes_per_s),
            (False, one.write_knee_bytes, one.write_bytes_per_s),
        ):
            # A bin ends at a power of two, so only bins that lie completely below the knee size are used.
            chosen = [
                row
                for row in rows
                if knee and (row["mount_point"], row["is_read"]) == (mount, is_read) and row["top"] < knee
            ]
            calls, time_ns, moved = (
                sum(int(row[name] or 0) for row in chosen) for name in ("calls", "time_ns", "bytes")
            )
            spent = time_ns - calls * facts.tracing_ns
            if knee is None or calls < LEAST_CALLS or spent <= 0:
                continue
            rate, is_dear = moved * 1e9 / spent, spent / 1e9 >= IO_FINE * (facts.wall_seconds or 0.0)
            if is_dear and (stream is None or rate <= KNEE_SHARE * stream):
                yield BelowKnee(mount, is_read, moved / calls, rate, knee)


def _crowds(facts: Facts, known: dict[str, FileSystem]) -> Iterator[Crowd]:
    if not any(one.stat_knee_processes for one in known.values()):
        return
    for row in _rows(facts, _CROWDS_SQL, ("file_work",)):
        one = known.get(str(row["mount_point"]))
        knee = one.stat_knee_processes if one else None
        if knee is not None and int(row["processes"]) > knee:
            yield Crowd(str(row["mount_point"]), int(row["processes"]), knee)


def _rows(facts: Facts, sql: str, tables: Sequence[str]) -> list[dict[str, Any]]:
    facts.profile.need(tables)
    return facts.rows(sql)


def _below(name: str, mount: str) -> bool:
    return name == mount or name.startswith(mount.rstrip("/") + "/")


_RATES_SQL = f"""SELECT f.mount_point, 'metadata' AS work, CAST(sum(w.metadata) AS BIGINT) AS calls,
  CAST(sum(w.metadata_ns) AS BIGINT) AS time_ns, NULL AS bytes
FROM file_work w JOIN files f ON f.file_id = w.file_id WHERE f.mount_point IS NOT NULL GROUP BY 1
UNION ALL SELECT p.mount_point, CASE t.direction WHEN 1 THEN 'small reads' ELSE 'small writes' END,
  CAST(sum(t.count) AS BIGINT), CAST(sum(t.time_ns) AS BIGINT), CAST(sum(t.bytes) AS BIGINT)
FROM transfers t JOIN place_names p ON p.place = t.place
WHERE p.mount_point IS NOT NULL AND t.size_bin BETWEEN 0 AND {SMALL_BIN} GROUP BY 1, 2
ORDER BY 1, 2"""
_SIZES_SQL = """SELECT p.mount_point, t.direction = 1 AS is_read,
  CAST(power(2, t.size_bin) AS BIGINT) AS top, CAST(sum(t.count) AS BIGINT) AS calls,
  CAST(sum(t.time_ns) AS BIGINT) AS time_ns, CAST(sum(t.bytes) AS BIGINT) AS bytes
FROM transfers t JOIN place_names p ON p.place = t.place
WHERE p.mount_point IS NOT NULL AND t.size_bin >= 0 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
# A process counts from its first to its last call on files of the mount point.
_CROWDS_SQL = """WITH spans AS (SELECT f.mount_point, w.upid, min(w.first_ts) AS first_ts,
    max(w.last_ts) AS last_ts
  FROM file_work w JOIN files f ON f.file_id = w.file_id
  WHERE w.metadata > 0 AND f.mount_point IS NOT NULL GROUP BY 1, 2),
steps AS (SELECT mount_point, first_ts AS ts, 1 AS step FROM spans
  UNION ALL SELECT mount_point, last_ts, -1 FROM spans),
there AS (SELECT mount_point,
    sum(step) OVER (PARTITION BY mount_point ORDER BY ts, step DESC) AS processes FROM steps)
SELECT mount_point, CAST(max(processes) AS BIGINT) AS processes FROM there GROUP BY 1 ORDER BY 1"""
_SLOW: dict[Work, str] = {
    "metadata": N_(
        "{mount}: {measured} metadata calls per second by one process, compared with the typical "
        "{typical}: the file system was slower than usual, so the costs above are not the "
        "program's alone. iodock bundle collects the data that an administrator needs."
    ),
    "small reads": N_(
        "{mount}: {measured} small reads per second by one process, compared with the typical "
        "{typical}: the file system was slower than usual, so the costs above are not the "
        "program's alone. iodock bundle collects the data that an administrator needs."
    ),
    "small writes": N_(
        "{mount}: {measured} small writes per second by one process, compared with the typical "
        "{typical}: the file system was slower than usual, so the costs above are not the "
        "program's alone. iodock bundle collects the data that an administrator needs."
    ),
}
_FAST: dict[Work, str] = {
    "metadata": N_(
        "{mount}: {measured} metadata calls per second by one process, far more than the typical "
        "{typical}: a cache answered, or the typical value in the settings is too low."
    ),
    "small reads": N_(
        "{mount}: {measured} small reads per second by one process, far more than the typical "
        "{typical}: a cache answered, or the typical value in the settings is too low."
    ),
    "small writes": N_(
        "{mount}: {measured} small writes per second by one process, far more than the typical "
        "{typical}: a cache took them, or the typical value in the settings is too low."
    ),
}
_USUAL: dict[Work, str] = {
    "metadata": N_(
        "{mount}: {measured} metadata calls a second by one process, as usual there ({typical}): only fewer "
        "calls take less time."
    ),
    "small reads": N_(
        "{mount}: {measured} small reads per second by one process, as usual there ({typical}): "
        "only fewer and larger ones take less time."
    ),
    "small writes": N_(
        "{mount}: {measured} small writes per second by one process, as usual there ({typical}): "
        "only fewer and larger ones take less time."
    ),
}
_STREAM: dict[Work, str] = {
    "small reads": N_(
        "{mount}: small reads, {mean_bytes} on average, ran at {rate_bytes_per_s}: {stream_share} of what "
        "one stream of large reads reaches there ({stream_bytes_per_s})."
    ),
    "small writes": N_(
        "{mount}: small writes, {mean_bytes} on average, ran at {rate_bytes_per_s}: {stream_share} of what "
        "one stream of large writes reaches there ({stream_bytes_per_s})."
    ),
}
_BELOW_KNEE = {
    True: N_(
        "{mount}: reads smaller than {knee_bytes}, {mean_bytes} on average, ran at {rate_bytes_per_s}; at "
        "this site one process reads faster in requests of {knee_bytes} or more."
    ),
    False: N_(
        "{mount}: writes smaller than {knee_bytes}, {mean_bytes} on average, ran at {rate_bytes_per_s}; at "
        "this site one process writes faster in requests of {knee_bytes} or more."
    ),
}
_CROWD = N_(
    "{mount}: {processes} processes used metadata calls at the same time; at this site they become slower "
    "beyond {knee}."
)
