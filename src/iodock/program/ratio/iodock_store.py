"""Reads an iodock store. The record has the CPU times of the tasks in a live recording, and the wall time of
the run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from iodock.program.ratio.reader import Reader, Reading, Sample
from iodock.program.ratio.record import Record
from iodock.program.ratio.source import RatioError

NS_PER_S = 1e9
_SQL = """SELECT count(*) AS tasks, count(cpu_user_ns) AS known, CAST(sum(cpu_user_ns) AS BIGINT) AS user,
CAST(sum(cpu_system_ns) AS BIGINT) AS system FROM processes"""


def sniff(sample: Sample) -> float:
    """Returns 1.0 if the path is a folder with a manifest, and otherwise 0."""
    return 1.0 if sample.is_folder and (Path(sample.path) / "manifest.json").exists() else 0.0


def read(reading: Reading) -> Iterator[Record]:
    """Yields one record for the run. Raises RatioError if the store has no CPU times, and StoreError."""
    from iodock.program.store import Store

    path = reading.source.path
    with Store.open(path) as store:
        raw, wall = store.manifest.raw, store.manifest.wall_ns
        row = store.rows(_SQL)[0]
        losses = store.manifest.losses
    if not row["known"] or wall is None:
        raise RatioError(
            f"{path}: has no CPU times: it was imported from a log",
            "record live (iodock record -- CMD), or measure with /usr/bin/time -v CMD",
        )
    if row["known"] < row["tasks"]:
        reading.note(f"{path}: CPU time is known of {row['known']} of {row['tasks']} tasks only")
    for loss in losses:
        reading.note(f"{path}: {loss.name} ({loss.count:,}): {loss.cure}")
    command = (raw.get("captured") or {}).get("command") or []
    yield Record(
        name=shlex.join(map(str, command)) or json.dumps(path),
        real=wall / NS_PER_S,
        user=row["user"] / NS_PER_S,
        system=None if row["system"] is None else row["system"] / NS_PER_S,
        cores=float(raw["ranks"]) if raw.get("ranks") else None,
        at=path,
        io_share=_io_share(raw.get("io"), wall),
    )


def _io_share(io: Mapping[str, int] | None, wall_ns: int) -> float | None:
    """Returns the share of the elapsed time that `iodock diagnose` reports as I/O. Returns None if the calls
    have no durations."""
    spent = io.get("file_ns") if io else None
    return None if spent is None or not wall_ns else spent / wall_ns


READER = Reader("store", "an iodock store, recorded live", sniff, read)
