"""Finds chunks of HDF5 data sets whose size or shape does not fit the program's accesses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from iodock.program.rules import costs
from iodock.program.rules.base import Candidate, Facts, Rule, advise
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar


@dataclass(frozen=True, slots=True)
class Settings:
    """Holds the thresholds of the rule `chunks-against-access`."""

    least_factor: float = 4.0
    """Bytes of chunks divided by the bytes requested: a somewhat higher value is normal at the edges of a
    selection, and where types in memory are shorter than in the file."""
    least_calls: int = 16
    "Number of calls on a data set: a few calls may have to read or write more than they need."
    least_requests: int = 64
    """Minimum number of requests for each call. Fewer requests hardly cost more than one, because they take
    microseconds."""
    below_bytes: int = 8192
    "Mean size of these requests from which the transfer takes longer than finding the chunk."


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Yields up to two candidates for reads and two for writes: one for whole chunks that are moved
    although a call needs a small part of them, one for calls that cause many small requests."""
    for row in facts.rows(_sql(settings)):
        wall = int(row["slowest_ns"]) / 1e9
        if facts.wall_seconds and wall < costs.LEAST_SHARE * facts.wall_seconds:
            continue
        yield _candidate(row, wall)


def _candidate(row: Mapping[str, Any], wall: float) -> Candidate:
    calls, worst = int(row["calls"]), row["worst"]
    values: dict[str, Scalar] = {
        "calls": calls,
        "call": "H5Dread" if row["direction"] == 1 else "H5Dwrite",
        "requested_bytes": row["requested"],
        "handled_bytes": row["handled"],
        "factor": round(row["handled"] / row["requested"], 1),
        "requests": row["requests"],
        "mean_bytes": row["moved"] / row["requests"],
        "each_bytes": row["handled"] / calls,
        "dataset": worst["name"] or "?",
        "chunk": worst["chunk"],
        "chunk_bytes": worst["chunk_bytes"],
        "datasets": row["datasets"],
    }
    text = _SMALL if row["is_small"] else _FILTERED if worst["has_filters"] else _WHOLE
    return Candidate(
        message=Message(text, values),
        count=int(row["requests"]),
        time_ns=int(row["lost_ns"]),
        evidence={"count": row["requests"], "time_ns": row["lost_ns"], **values},
        query=_QUERY,
        files=tuple(dict.fromkeys(row["files"])),
        confidence=0.85,
        wall_seconds=wall,
        gain=(0.5, 1.0) if row["is_small"] else (0.6, 1.0),
    )


def _sql(settings: Settings) -> str:
    return f"""WITH sets AS (SELECT file_id, name, direction, chunk, chunk_bytes, has_filters,
    sum(calls) AS calls, sum(requested_bytes) AS requested, sum(time_ns) AS time_ns,
    sum(requests) AS requests, sum(moved_bytes) AS moved, sum(handled_bytes) AS handled,
    handled < {settings.least_factor} * requested AS is_small
  FROM chunk_io GROUP BY ALL HAVING CASE WHEN is_small THEN requests >= {settings.least_requests} * calls
    AND moved < {settings.below_bytes} * requests ELSE calls >= {settings.least_calls} END),
lost AS (SELECT *, 1 - CASE WHEN is_small THEN moved / (requests * {costs.PIECE_BYTES})
  ELSE requested / handled END AS share FROM sets),
spent AS (SELECT c.upid, l.direction, l.is_small, sum(l.share * c.time_ns) AS ns
  FROM lost l JOIN chunk_io c USING (file_id, name, direction, chunk, has_filters) GROUP BY ALL),
slowest AS (SELECT direction, is_small, CAST(max(ns) AS BIGINT) AS ns FROM spent GROUP BY ALL)
SELECT l.direction, l.is_small, any_value(s.ns) AS slowest_ns,
  CAST(sum(share * time_ns) AS BIGINT) AS lost_ns, count(*) AS datasets,
  CAST(sum(calls) AS BIGINT) AS calls, CAST(sum(requested) AS BIGINT) AS requested,
  CAST(sum(requests) AS BIGINT) AS requests, CAST(sum(moved) AS BIGINT) AS moved,
  CAST(sum(handled) AS BIGINT) AS handled, arg_max(l, share * time_ns) AS worst,
  list(f.name ORDER BY share * time_ns DESC) AS files
FROM lost l JOIN files f ON f.file_id = l.file_id JOIN slowest s USING (direction, is_small)
GROUP BY l.direction, l.is_small ORDER BY slowest_ns DESC"""


_QUERY = """SELECT f.name AS file, d.name AS dataset, d.chunk, d.filters, k.call,
  count(DISTINCT k.id) AS calls, count(e.call_id) AS requests, sum(e.bytes) AS moved_bytes
FROM interface_calls k JOIN datasets d ON d.handle_id = k.handle_id JOIN files f ON f.file_id = d.file_id
LEFT JOIN events e ON e.interface_call_id = k.id AND e.direction = k.direction
WHERE k.direction > 0 GROUP BY ALL ORDER BY moved_bytes DESC"""
_WHOLE = N_(
    "{calls} calls of {call} requested {requested_bytes}, but {handled_bytes} of chunks were transferred "
    "for them: {factor} times as much, {each_bytes} for each call. Data set {dataset} has chunks of "
    "{chunk} elements, {chunk_bytes}; data sets: {datasets}"
)
_FILTERED = N_(
    "{calls} calls of {call} requested {requested_bytes}, but {handled_bytes} of chunks passed their "
    "filters for them: {factor} times as much, {each_bytes} for each call. Data set {dataset} has chunks "
    "of {chunk} elements, {chunk_bytes}; data sets: {datasets}"
)
_SMALL = N_(
    "{calls} calls of {call} made {requests} requests of {mean_bytes} on average. Data set {dataset} has "
    "chunks of {chunk} elements, {chunk_bytes}; data sets: {datasets}"
)

RULE = Rule(
    name="chunks-against-access",
    title=N_("Chunks do not fit the access"),
    looks_for=N_(
        "HDF5 data sets whose calls need only a small part of each chunk, so that chunks are read or "
        "written and decompressed repeatedly, or that cause many small requests."
    ),
    why=N_(
        "HDF5 transfers and compresses whole chunks, each with its own request. Chunks that do not fit "
        "into the chunk cache (1 MiB for each data set before HDF5 2.0) are read again for the next call."
    ),
    advice=advise(
        any=N_(
            "Choose chunks of 64 KiB to a few MiB whose shape matches the access pattern, or read and write "
            "whole chunks at a time. h5repack -l CHUNK=... changes the chunks of an existing file. Otherwise "
            "enlarge the chunk cache, so that all chunks of a call fit."
        ),
        python=N_(
            "h5py: create_dataset(..., chunks=(...)), File(..., rdcc_nbytes=...) for the cache, and slices "
            "of whole chunks (x[i:i + x.chunks[0]]). Keep x = f['name'] over the loop, since it holds the "
            "cache."
        ),
        hdf5=N_(
            "Call H5Pset_chunk when the data set is made, and H5Pset_chunk_cache (rdcc_nbytes) when it is "
            "opened. Keep the data set open over the loop, since its chunk cache is lost with H5Dclose."
        ),
    ),
    fine_when=N_("Other programs, which matter more, access the file along its chunks."),
    settings=Settings,
    find=find,
    views=("chunk_io",),
)
