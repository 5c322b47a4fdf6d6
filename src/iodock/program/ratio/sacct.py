"""Reads the output of `sacct -P` or `-p` (Slurm) with its header. A record is a run of a job, including its
steps.

Source: sacct(1). The row of a job (`123`) has the sum of its steps' CPU times. If that is zero or the row is
missing, the rows of the steps (`123.batch`, `123.0`) are summed instead. Job and steps are never added to
each other. A job that was requeued has one record for each run (`sacct -D`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter

from iodock.program.ratio.clocks import clock_seconds, date_seconds, whole_number
from iodock.program.ratio.reader import Reader, Reading, Sample
from iodock.program.ratio.record import Losses, Record
from iodock.program.ratio.sacct_jobs import Job, Row, Run, last_lines
from iodock.program.ratio.source import RatioError

_DELIMITERS = "|\t;,"
_HINT = "sacct -P -o JobID,JobName,User,ElapsedRaw,UserCPU,SystemCPU,AllocCPUS,State"
_NO_HEADER = re.compile(r"\d+(?:[_+]\d+)?(?:\.\w+)?\|.*\|")
_RUNNING = ("PENDING", "RUNNING", "SUSPENDED", "REQUEUED", "RESIZING", "COMPLETING", "CONFIGURING")
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}
_WANTED = (
    *("jobid", "jobname", "user", "nodelist", "start", "end", "elapsedraw", "elapsed"),
    *("totalcpu", "usercpu", "systemcpu", "alloccpus", "ncpus", "maxdiskread", "maxdiskwrite"),
)
_UNKNOWN = (0xFFFF_FFFE, 0xFFFF_FFFF)
"""NO_VAL and INFINITE, Slurm's numbers for unknown values (slurm.h)."""
_TIMES_WANTED = (("ElapsedRaw", "Elapsed", "Start"), ("UserCPU", "TotalCPU"))


def sniff(sample: Sample) -> float:
    """Returns 0.95 if the header is that of `sacct -P` or `-p`, 0.6 if the file seems to be another output of
    sacct, and otherwise 0."""
    first = next((line for line in sample.lines if line.strip()), "")
    if _delimiter(first):
        return 0.95
    if re.match(r"\s*JobID\s", first):
        return 0.6
    return 0.6 if _NO_HEADER.match(first) else 0.0


def read(reading: Reading) -> Iterator[Record]:
    """Yields one record per run of a job, as soon as all its rows were read. Raises RatioError if the header
    or a required column is missing."""
    # The rows of a job are nearly always adjacent, so a job is complete when the next one begins. A first
    # pass finds the jobs for which this does not hold. Only these are kept until the end of the file.
    scattered = last_lines(_jobs(Reading(reading.source, reading.options, Losses(), {})))
    reading.source.seen = 0
    jobs: dict[str, Job] = {}
    last = ""
    for row in _rows(reading):
        job = row.job
        if job != last and last in jobs and last not in scattered:
            yield from _finished(jobs.pop(last), reading)
        last = job
        if job not in jobs:
            jobs[job] = Job()
        if not jobs[job].add(row):
            reading.losses.count("double-row", reading.at(row.line))
        if scattered and scattered.get(job) == row.line:
            yield from _finished(jobs.pop(job), reading)
    for left in jobs.values():
        yield from _finished(left, reading)


def _jobs(reading: Reading) -> Iterator[tuple[int, str]]:
    """Yields the line number and the job of each row. It does not check rows, because it must be fast. A
    damaged row may give a wrong job, which only means that a job is kept longer than necessary."""
    place, delimiter = -1, ""
    for number, line in reading.source.lines():
        if place >= 0:
            fields = line.split(delimiter, place + 1)
            yield number, fields[min(place, len(fields) - 1)].partition(".")[0]
        elif line.strip():
            header, delimiter = _header(line, reading, number)
            place = _columns(header)["jobid"]


def _finished(job: Job, reading: Reading) -> Iterator[Record]:
    for run in job.runs:
        if run.running:
            reading.losses.count("not-ended", reading.at(run.line))
            continue
        record = _folded(run, reading)
        if record is not None:
            if record.real and not (record.user or record.system or record.both):
                # Slurm writes 0 for an unknown time. Without the plugin jobacct_gather it measures no CPU
                # time of any task.
                record = record._replace(user=None, both=None)
            yield record


def _folded(run: Run, reading: Reading) -> Record | None:
    row = _record(run.row, reading) if run.row else None
    counted = row is not None and (row.user or row.system or row.both)
    if counted and not any(step.fields[-1] or step.fields[-2] for step in run.steps.values()):
        return row
    steps: Record | None = None
    for step in run.steps.values():
        record = _record(step, reading)
        steps = steps if record is None else _added(steps, record)
    if row is None or steps is None:
        return row or steps
    volume = row.io_bytes or steps.io_bytes
    if counted:
        return row._replace(io_bytes=volume)
    return row._replace(io_bytes=volume, user=steps.user, system=steps.system, both=steps.both)


def _added(sum_: Record | None, step: Record) -> Record:
    """Adds a step to the sum of a job's steps. CPU times and bytes are summed. Of the elapsed times and cores
    the largest counts, because steps run at the same time on the same cores."""
    if sum_ is None:
        return step
    return sum_._replace(
        real=_largest(sum_.real, step.real),
        cores=_largest(sum_.cores, step.cores),
        user=_sum(sum_.user, step.user),
        system=_sum(sum_.system, step.system),
        both=_sum(sum_.both, step.both),
        io_bytes=_whole(_sum(sum_.io_bytes, step.io_bytes)),
    )


def _sum(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other


def _largest(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else max(one, other)


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _rows(reading: Reading) -> Iterator[Row]:
    """Yields the rows of the file, each of which is a job or a step."""
    header: list[str] = []
    delimiter = "|"
    for number, line in reading.source.lines():
        if not header:
            if line.strip():
                header, delimiter = _header(line, reading, number)
                columns = _columns(header)
                width, named = len(header), columns.get("jobname")
                state = columns.get("state")
                starts = [columns[name] for name in ("start", "submit") if name in columns]
                picked = _picker(columns, width)
            continue
        fields = line.split(delimiter)
        if len(fields) > width and named is not None:
            fields = _mended(fields, named, len(fields) - width, delimiter)
        if len(fields) != width or fields == header or "\0" in line:
            _odd_line(fields, line, header, reading, number)
            continue
        row = picked(fields)
        if row[0][:1].isdigit():
            running = state is not None and fields[state].startswith(_RUNNING)
            yield Row(number, row, " ".join([fields[at] for at in starts]), running)
        else:
            reading.losses.count("damaged-line", reading.at(number))
    if not header:
        raise RatioError(f"{reading.source.path}: is empty", _HINT)


def _mended(fields: list[str], named: int, extra: int, delimiter: str) -> list[str]:
    """Repairs a row with too many fields. Users choose the names of jobs, and sacct does not escape
    delimiters in names, so the surplus fields are parts of the name."""
    name = delimiter.join(fields[named : named + extra + 1])
    return [*fields[:named], name, *fields[named + extra + 1 :]]


def _odd_line(fields: list[str], line: str, header: list[str], reading: Reading, number: int) -> None:
    # A file that was concatenated from the files of several months has a header before each month. Such a
    # header is no damage.
    if line.strip() and fields[: len(header)] != header:
        reading.losses.count("damaged-line", reading.at(number))


def _header(line: str, reading: Reading, number: int) -> tuple[list[str], str]:
    delimiter = _delimiter(line)
    if delimiter is None:
        shape = (
            ("fixed-width columns truncate names and times")
            if "JobID" in line
            else "no header line with JobID"
        )
        raise RatioError(f"{reading.at(number)}: {shape}", f"write it with -P: {_HINT}")
    header = line.split(delimiter)
    columns = _columns(header)
    for wanted in _TIMES_WANTED:
        if not any(name.lower() in columns for name in wanted):
            raise RatioError(f"{reading.at(number)}: no column {' or '.join(wanted)}", _HINT)
    if "usercpu" not in columns and "systemcpu" not in columns:
        reading.note(
            f"{reading.source.path} has TotalCPU only: its utilisation contains system time; "
            "ask sacct for UserCPU and SystemCPU"
        )
    if "alloccpus" not in columns and "ncpus" not in columns:
        reading.note(f"{reading.source.path} has no AllocCPUS: jobs count as one core; add it, or --cores N")
    return header, delimiter


def _delimiter(line: str) -> str | None:
    for delimiter in _DELIMITERS:
        names = {name.strip().lower() for name in line.split(delimiter)}
        if names & {"jobid", "jobidraw"} and delimiter in line:
            return delimiter
    return None


def _columns(header: list[str]) -> Mapping[str, int]:
    columns = {name.strip().lower(): index for index, name in enumerate(header) if name.strip()}
    if "jobid" not in columns and "jobidraw" in columns:
        columns["jobid"] = columns["jobidraw"]
    return columns


def _picker(columns: Mapping[str, int], width: int) -> Callable[[list[str]], tuple[str, ...]]:
    """Returns a function that selects the columns of _WANTED from the fields of a row. Columns that the file
    does not have are empty."""
    pick = itemgetter(*(columns.get(name, width) for name in _WANTED))
    return lambda fields: pick([*fields, ""])


def _record(row: Row, reading: Reading) -> Record | None:
    """Makes a record from a row. Counts a row without an elapsed time as a loss and returns None."""
    number, fields = row.line, row.fields
    job, name, owner, node, start, end, raw, clock, total, user, system, *rest = fields
    allocated, cpus, most_read, most_written = rest
    real = _elapsed(raw, clock, start, end)
    if real is None:
        reading.losses.count("damaged-line", reading.at(number))
        return None
    user_s, system_s, total_s = clock_seconds(user), clock_seconds(system), clock_seconds(total)
    if user_s is None and total_s is not None and system_s is not None:
        user_s = max(0.0, total_s - system_s)
    return Record(
        f"{job} {name}" if name else job,
        real,
        user_s,
        system_s,
        _cores(allocated, cpus),
        1,
        owner,
        node,
        f"{reading.source.path}:{number}",
        total_s if user_s is None else None,
        _volume(most_read, most_written) if most_read or most_written else None,
    )


def _cores(*counts: str) -> int | None:
    """Returns the first number above 0. If there are numbers, but none is known and above 0, returns 0. If
    there are no numbers, returns None."""
    given = [count for text in counts if (count := whole_number(text)) is not None]
    known = [0 if count in _UNKNOWN else count for count in given]
    return next((count for count in known if count), 0 if known else None)


def _elapsed(raw: str, clock: str, start: str, end: str) -> float | None:
    """Returns the elapsed time in seconds, or None if it is not known. It is computed from the dates if the
    row has no elapsed time. If the end is before the start, the result is negative."""
    # Dates in this format sort as text in the same order as in time, so they need not be parsed.
    if end[:1].isdigit() and start[:1].isdigit() and end < start:
        first, last = date_seconds(start), date_seconds(end)
        return None if first is None or last is None else last - first
    if raw and (whole_number(raw) not in _UNKNOWN or not clock):
        return whole_number(raw)
    if clock:
        return clock_seconds(clock)
    first, last = date_seconds(start), date_seconds(end)
    return None if first is None or last is None else last - first


def _volume(*sizes: str) -> int | None:
    found = [re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?)([KMGTP]?)", size) for size in sizes]
    known = [float(one[1]) * _SIZES[one[2]] for one in found if one]
    return int(sum(known)) if known else None


READER = Reader("sacct", "sacct -P of Slurm", sniff, read)
