"""Reads job statistics of Fujitsu's job operation software (PJM): `KEY : VALUE` lines about a job and its
nodes.

The reader is based on the format in the SS-ken report (2015), 2.3.1, figures 2.8 and 2.9. It was not tested
on a machine with PJM. The elapsed time is JOB END DATE - JOB START DATE. The number of cores is CPU NUM (USE)
minus the assistant cores of the node. A job is the sum of its nodes. The part about the whole job also has
FILE I/O SIZE (figure 2.20), which is used if the part about a node is cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from iodock.program.ratio.clocks import clock_seconds, date_seconds, whole_number
from iodock.program.ratio.reader import LONGEST_LINE, Reader, Reading, Sample
from iodock.program.ratio.record import Record

_FIELD = re.compile(r"\s*([A-Z][A-Z0-9 /()#_-]*?)\s*:\s*(.*?)\s*$")
_MILLISECONDS = re.compile(r"(\d+)\s*ms")
_BYTES = re.compile(r"\((\d+)\)")
_ROUNDED = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kKMGTPE]?)(i?)[bB]")
_WHOLE_SHARE = 0.999
"""If the nodes together have less than this share of their job's volume, a node is missing. Rounding only
makes smaller differences."""
_KNOWN = ("JOB START DATE", "JOB END DATE", "USER CPU TIME", "CPU NUM (USE)", "Job Information")
_ASSISTANT_CORES = {34: 2}
"""Maps the CPU NUM (ALLOC) of a node to the number of assistant cores in it (FX100: 32 + 2)."""


@dataclass(slots=True)
class _Job:
    line: int
    fields: dict[str, str] = field(default_factory=dict)
    nodes: list[tuple[int, dict[str, str]]] = field(default_factory=list)


def sniff(sample: Sample) -> float:
    """Returns 0.95 if the file has at least three of PJM's keys, one of which is USER CPU TIME. Otherwise
    returns 0.1 for each key."""
    found = sum(name in sample.text for name in _KNOWN)
    return 0.95 if found >= 3 and "USER CPU TIME" in sample.text else found * 0.1


def read(reading: Reading) -> Iterator[Record]:
    """Yields one record per job. If the option `nodes_apart` is true, yields one record per node of each
    job."""
    for job in _jobs(reading):
        yield from _records(job, reading)


def _jobs(reading: Reading) -> Iterator[_Job]:
    """Splits the text into jobs. A job begins with its heading, or with another key JOB ID."""
    job: _Job | None = None
    for number, line in reading.source.lines():
        if len(line) > LONGEST_LINE:
            reading.losses.count("damaged-line", reading.at(number))
            continue
        heading = line.strip()
        found = _FIELD.match(line)
        another = found is not None and found[1] == "JOB ID" and job is not None and "JOB ID" in job.fields
        if heading.startswith("Job Information") or another:
            if job is not None and job.fields:
                yield job
            job = _Job(number)
        if found is not None and job is None:
            job = _Job(number)
        if job is None:
            continue
        if heading.startswith("Node Information"):
            job.nodes.append((number, {}))
        elif found:
            _keep(job, found[1], found[2], number)
    if job is not None and job.fields:
        yield job


def _keep(job: _Job, key: str, value: str, number: int) -> None:
    if key == "NODE ID" and (not job.nodes or "NODE ID" in job.nodes[-1][1]):
        # Some statistics have one heading above all nodes, and no heading for each node. A second NODE ID
        # then begins a new node.
        job.nodes.append((number, {}))
    where = job.nodes[-1][1] if job.nodes else job.fields
    where.setdefault(key, value)


def _records(job: _Job, reading: Reading) -> Iterator[Record]:
    real = _elapsed(job.fields)
    nodes = [(line, node) for line, node in job.nodes if _is_whole(node)]
    name = " ".join(filter(None, (job.fields.get("JOB ID"), job.fields.get("JOB NAME"))))
    named = name or f"{reading.source.name}:{job.line}"
    if real is None and not _ended(job.fields):
        reading.losses.count("not-ended", reading.at(job.line))
        return
    cut = [line for line, node in job.nodes if not _is_whole(node)]
    apart = reading.options.nodes_apart
    # A file may contain only the part about the job as a whole. In this case no node is missing, and the
    # record is made from that part.
    shown = job.nodes if apart else nodes or [(job.line, job.fields)]
    records = [_node(named, real, job, line, node, reading) for line, node in shown]
    if apart and records:
        yield from records
        return
    record = merged(records) if records else _node(named, real, job, job.line, job.fields, reading)
    known = _of_nodes(job)
    whole = _bytes(job.fields.get("FILE I/O SIZE", ""))
    is_less = whole is not None and known is not None and job.nodes and known < _WHOLE_SHARE * whole
    for line in cut if nodes else ():
        reading.losses.count("cut-node", reading.at(line))
    if is_less and not (cut and nodes):
        reading.losses.count("cut-node", reading.at(job.line))
    sizes = [size for size in (whole, known) if size is not None]
    yield record._replace(io_bytes=None if known is None and whole is None else max(sizes))


def _is_whole(node: Mapping[str, str]) -> bool:
    return _milliseconds(node, "USER CPU TIME") is not None


def _of_nodes(job: _Job) -> int | None:
    """Returns the number of bytes that all nodes moved, or None if it is not known for one of them."""
    return _volume([_bytes(node.get("FILE I/O SIZE", "")) for _, node in job.nodes]) if job.nodes else None


def merged(nodes: list[Record]) -> Record:
    """Makes the record of a job from the records of its nodes. The nodes run at the same time, so their CPU
    times and cores are summed, but not their elapsed times."""
    if len(nodes) == 1:
        return nodes[0]
    first = nodes[0]
    return first._replace(
        user=_total([one.user for one in nodes]),
        system=_total([one.system for one in nodes]),
        cores=0.0 if any(one.cores == 0 for one in nodes) else _total([one.cores for one in nodes]),
        io_bytes=_volume([one.io_bytes for one in nodes]),
        node=f"{len(nodes)} nodes",
    )


def _total(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _volume(values: list[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def _node(
    name: str, real: float | None, job: _Job, line: int, node: Mapping[str, str], reading: Reading
) -> Record:
    return Record(
        name=name,
        real=real,
        user=_milliseconds(node, "USER CPU TIME"),
        system=_milliseconds(node, "SYSTEM CPU TIME"),
        cores=_cores(node, reading, line),
        owner=job.fields.get("USER", ""),
        node=node.get("NODE ID", ""),
        at=reading.at(line),
        io_bytes=_bytes(node.get("FILE I/O SIZE", "")),
    )


def _cores(node: Mapping[str, str], reading: Reading, line: int) -> float | None:
    used, there = (whole_number(node.get(f"CPU NUM ({kind})", "")) for kind in ("USE", "ALLOC"))
    if used is None:
        return None
    assistants = reading.options.assistant_cores
    if assistants is None:
        assistants = _ASSISTANT_CORES.get(there or 0, 0)
        if assistants:
            reading.note(
                f"the nodes have {there} cores: {assistants} assistant cores were subtracted; "
                "change this with --assistant-cores"
            )
    if used <= assistants:
        if used:
            reading.note(f"{reading.at(line)}: CPU NUM (USE) {used} is not more than the assistant cores")
        return 0.0
    return float(used - assistants)


def _elapsed(fields: Mapping[str, str]) -> float | None:
    start, end = (date_seconds(fields.get(f"JOB {which} DATE", "")) for which in ("START", "END"))
    if start is not None and end is not None:
        return end - start
    return clock_seconds(fields.get("ELAPSE TIME (USE)", "").split(" ")[0])


def _ended(fields: Mapping[str, str]) -> bool:
    return "JOB END DATE" in fields and fields["JOB END DATE"] not in ("", "-")


def _milliseconds(fields: Mapping[str, str], key: str) -> float | None:
    found = _MILLISECONDS.match(fields.get(f"{key} (USE)", fields.get(key, "")))
    milliseconds = whole_number(found[1]) if found else None
    return None if milliseconds is None else milliseconds / 1000


def _bytes(text: str) -> int | None:
    """Parses a size such as `549757.1 MB (549757061905)`. If the exact number in parentheses is missing,
    returns the rounded size, where 1 MB is 1000000 bytes and 1 MiB is 1048576 bytes."""
    if found := _BYTES.search(text):
        return whole_number(found[1])
    rounded = _ROUNDED.fullmatch(text)
    if rounded is None:
        return None
    factor = float(1024 if rounded[3] else 1000) ** " KMGTPE".index(rounded[2].upper() or " ")
    return round(float(rounded[1]) * factor)


READER = Reader("pjm", "job statistics of PJM", sniff, read)
