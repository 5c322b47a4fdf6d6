"""Writes the past of a simulated centre to a monitor store. It writes the rows that agents would have sent,
so no agent has to run for days."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iodock.centre.monitor.rolling import SECOND, New, Writer
from iodock.centre.store import counters
from iodock.simulation.centre import FILE_SYSTEM, Centre
from iodock.simulation.counters import Tallies
from iodock.simulation.jobs import Job
from iodock.simulation.machine import load_of
from iodock.simulation.server import CORES, Server

ROWS_A_FILE = 200_000
_SOURCES = {"mdt": "mdt_job_stats", "obdfilter": "obdfilter_job_stats"}
_COLUMNS = {"read_bytes_count": "reads", "write_bytes_count": "writes"}
"""Counters whose column has another name."""
_UNITS = {"req_waittime": ("_time", "us"), "req_timeout": ("_time", "us")}
"""For services: name of the sum, and its unit. Others have `_sum` and no unit."""


def write_history(
    centre: Centre, writer: Writer, seconds: float, step_s: float, tell: Callable[[float], None]
) -> int:
    """Runs a centre for a number of simulated seconds, in steps, and writes the changes of each step as rows.
    TELL gets the completed share. Returns the number of rows. Raises OSError, NativeError."""
    past, done = _Past(centre), 0.0
    rows = 0
    while done < seconds:
        step = min(step_s, seconds - done)
        past.step(step)
        done += step
        tell(done / seconds)
        if len(past) >= ROWS_A_FILE or done >= seconds:
            rows += len(past)
            past.write(writer)
    return rows


class _Past:
    """Collects rows that are not written yet, and remembers the last readings of the counters."""

    def __init__(self, centre: Centre) -> None:
        self._centre = centre
        self._counted = counters()
        self._before: dict[tuple[str, str, int], dict[str, int]] = {}
        self._served: dict[tuple[str, str], int] = {}
        self._jobs: list[tuple[Any, ...]] = []
        self._values: list[tuple[Any, ...]] = []
        self._names: list[tuple[Any, ...]] = []
        self._named: set[int] = set()
        # The growth of entries before the beginning must not be written, so their first values are stored.
        for target, entry, found in centre.readings():
            self._before[target.name, entry.job_id, entry.start_ns] = found
        for server in centre.servers:
            server.update(centre.now_ns)
            for source, _, name, value, _ in _counted(server, centre.now_ns):
                self._served[server.name, f"{source} {name}"] = value

    def __len__(self) -> int:
        return len(self._jobs) + len(self._values)

    def step(self, seconds: float) -> None:
        """Advances the centre by SECONDS and adds rows with the growth of its counters."""
        begin = self._centre.now_ns
        self._centre.advance(seconds)
        end = self._centre.now_ns
        for target, entry, found in self._centre.readings(since_ns=begin):
            key = (target.name, entry.job_id, entry.start_ns)
            before = self._before.get(key, {})
            grown = {name: value - before.get(name, 0) for name, value in found.items()}
            self._before[key] = found
            if any(grown.values()):
                self._name(entry.job, end)
                place = (begin, end, self._host(target), _SOURCES[target.kind], FILE_SYSTEM, target.name)
                self._jobs.append((*place, entry.job_id, *self._row(grown)))
        for server in self._centre.servers:
            self._serve(server, begin, end)

    def _name(self, job: Job, at: int) -> None:
        if job.number is not None and job.number not in self._named:
            self._named.add(job.number)
            self._names.append(_name_row(job, at))

    def _host(self, target: object) -> str:
        return next(server.name for server in self._centre.servers if target in server.targets)

    def _row(self, grown: dict[str, int]) -> Iterator[int]:
        known = {_COLUMNS.get(name, name): value for name, value in grown.items()}
        times = sum(value for name, value in grown.items() if name.endswith("_time"))
        # Lustre counts `read` and `write` in addition to `read_bytes` and `write_bytes`, to record their
        # durations. They are left out, because the same operations would count twice.
        double = ("read", "write")
        other = sum(
            value
            for name, value in known.items()
            if name not in self._counted and name not in double and not name.endswith("_time")
        )
        yield from (known.get(name, 0) for name in self._counted[:-2])
        yield other
        yield times

    def _serve(self, server: Server, begin: int, end: int) -> None:
        """Adds rows of the machine, and of the metadata service's requests."""
        server.update(end)
        if not server.is_up:
            return
        for source, target, name, value, unit in _counted(server, end):
            key = (server.name, f"{source} {name}")
            grown = value - self._served.get(key, 0)
            # After a boot, counters begin at zero.
            grown = value if grown < 0 else grown
            self._served[key] = value
            if grown > 0:
                self._values.append(
                    (
                        begin,
                        end,
                        server.name,
                        source,
                        None,
                        target,
                        name,
                        unit,
                        None,
                        False,
                        grown,
                        None,
                        True,
                    )
                )
        for source, target, name, level in _levels(server, end):
            self._values.append(
                (begin, end, server.name, source, None, target, name, None, None, True, level, level, True)
            )

    def write(self, writer: Writer) -> None:
        """Writes all rows to files of the store."""
        new: list[New] = []
        for table, rows, schema in (("job_io", self._jobs, _job_io()), ("targets", self._values, _TARGETS)):
            if rows:
                # The last rows have the latest times.
                begin, end = rows[0][0], rows[-1][1]
                name, path = writer.new_file(table, "fine", end)
                pq.write_table(_table(rows, schema), path, compression="zstd")
                new.append((table, "fine", name, begin, end, len(rows), False))
        new += _names_written(writer, self._names)
        writer.replace([], [], new)
        for rows in (self._jobs, self._values, self._names):
            rows.clear()


class Names:
    """Reports the names of jobs as they begin. This is needed because no agents run on the simulated
    nodes."""

    def __init__(self, centre: Centre, writer: Writer) -> None:
        self._centre, self._writer, self._told = centre, writer, 0

    def tell(self) -> None:
        """Reports the names of the jobs that began since the last call and still run. Raises OSError,
        NativeError."""
        now = self._centre.now_ns
        fresh, self._told = self._centre.jobs[self._told :], len(self._centre.jobs)
        rows = [
            _name_row(job, now)
            for job in fresh
            if job.number is not None and (job.end_ns is None or job.end_ns > now)
        ]
        if new := _names_written(self._writer, rows):
            self._writer.replace([], [], new)


def _name_row(job: Job, at: int) -> tuple[Any, ...]:
    """Makes the row that an agent on the job's first node would report."""
    return at, job.nodes[0], str(job.number), str(job.uid), job.application


def _names_written(writer: Writer, rows: list[tuple[Any, ...]]) -> list[New]:
    """Writes rows of names. ROWS must be sorted by time."""
    if not rows:
        return []
    begin, end = rows[0][0], rows[-1][0]
    name, path = writer.new_file("job_names", "fine", end)
    columns = [list(column) for column in zip(*rows, strict=True)]
    pq.write_table(pa.table(columns, schema=_NAMES), path, compression="zstd")
    return [("job_names", "fine", name, begin, end, len(rows), False)]


def _service(service: Tallies) -> Iterator[tuple[str, int, str]]:
    for name, tally in service.items():
        suffix, unit = _UNITS.get(name, ("_sum", "1"))
        yield name, tally.samples, "1"
        yield name + suffix, tally.sum, unit


def _counted(server: Server, now: int) -> Iterator[tuple[str, str, str, int, str]]:
    """Yields source, target, counter, value and unit, as an agent reads them."""
    for one in _service(server.service) if server.is_metadata_server else ():
        yield ("mds_stats", "mdt", *one)
    yield from _machine(server, now)


def _machine(server: Server, now: int) -> Iterator[tuple[str, str, str, int, str]]:
    """Yields the values that `machine.machine_files` contains."""
    busy_us = server.busy_ns * CORES // 1000
    waited_us = server.io_pressure_ns // 1000
    whole_us = (now - server.booted_ns) * CORES // 1000
    yield "cpu", "cpu", "system_time", busy_us, "us"
    yield "cpu", "cpu", "iowait_time", waited_us, "us"
    yield "cpu", "cpu", "idle_time", max(0, whole_us - busy_us - waited_us), "us"
    yield "pressure", "io", "some_time", waited_us, "us"


def _levels(server: Server, now: int) -> Iterator[tuple[str, str, str, int]]:
    yield "load", "load", "load1_percent", round(load_of(server) * 100)
    yield "cpu", "cpu", "uptime_s", int(server.uptime_s(now))


def _table(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True)
    constant = {"user": None, "session": None, "command": None, "known_by": "server", "exact": True}
    arrays = []
    for field in schema:
        values = (
            [constant[field.name]] * len(rows)
            if field.name in constant and schema is not _TARGETS
            else next(columns)
        )
        arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


_PLACE = [
    pa.field("begin_ts", pa.int64(), nullable=False),
    pa.field("end_ts", pa.int64(), nullable=False),
    pa.field("host", pa.string(), nullable=False),
    pa.field("source", pa.string(), nullable=False),
    pa.field("file_system", pa.string()),
    pa.field("target", pa.string()),
]
_NAMES = pa.schema(
    [
        pa.field("ts", pa.int64(), nullable=False),
        *(pa.field(name, pa.string(), nullable=False) for name in ("host", "job", "user", "name")),
    ]
)
_TARGETS = pa.schema(
    [
        *_PLACE,
        pa.field("metric", pa.string(), nullable=False),
        pa.field("unit", pa.string()),
        pa.field("bucket", pa.int64()),
        pa.field("is_level", pa.bool_(), nullable=False),
        pa.field("value", pa.int64(), nullable=False),
        pa.field("greatest", pa.int64()),
        pa.field("exact", pa.bool_(), nullable=False),
    ]
)


def _job_io() -> pa.Schema:
    texts = [pa.field(name, pa.string()) for name in ("job", "user", "session", "command")]
    numbers = [pa.field(name, pa.int64(), nullable=False) for name in counters()]
    known_by = pa.field("known_by", pa.string(), nullable=False)
    return pa.schema([*_PLACE, *texts, known_by, pa.field("exact", pa.bool_(), nullable=False), *numbers])


STEPS = ((float("inf"), 300.0), (3 * 3600.0, 60.0), (1800.0, 10.0))
"""Age in seconds up to which rows have a given length in seconds. Recent rows are shorter."""


def write_days(centre: Centre, writer: Writer, days: float, tell: Callable[[float], None]) -> int:
    """Writes the last DAYS days. Recent rows cover shorter times than old ones. TELL gets the completed
    share. Returns the number of rows."""
    whole = left = days * 86_400
    rows = 0
    limits = [limit for limit, _ in STEPS[1:]] + [0.0]
    for (_, step), limit in zip(STEPS, limits, strict=True):
        stretch = max(0.0, left - limit)
        rows += write_history(
            centre, writer, stretch, step, _part(tell, (whole - left) / whole, stretch / whole)
        )
        left -= stretch
    return rows


def write_up_to_now(centre: Centre, writer: Writer, clock: Callable[[], int]) -> None:
    """Writes the time that passed while history was written. History then ends a few seconds ago. CLOCK: ns
    since the epoch."""
    for _ in range(_CATCHING_UP):
        behind_s = (clock() - centre.now_ns) / SECOND
        if behind_s < STEPS[-1][1]:
            return
        write_history(centre, writer, behind_s, STEPS[-1][1], lambda share: None)


_CATCHING_UP = 20
"""Largest number of passes. Each is far shorter than the one before."""


def _part(tell: Callable[[float], None], begin: float, length: float) -> Callable[[float], None]:
    """Returns a function that reports a part of the work."""
    return lambda share: tell(begin + share * length)


def begin_before(now_ns: int, days: float) -> int:
    """Returns the time (ns since the epoch) at which a centre must begin so that its history of DAYS ends at
    NOW_NS."""
    return now_ns - int(days * 86_400 * SECOND)
