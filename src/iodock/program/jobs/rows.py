"""Makes a row of the list of jobs from a Darshan log or a store. If it can't be read, the row contains the
error."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from iodock import _native
from iodock.program.analyses import find
from iodock.program.analyses.base import request
from iodock.program.store import Store
from iodock.shared.errors import IodockError
from iodock.shared.language import N_

Row = dict[str, Any]
_UNFINISHED = N_("is still being recorded, or was left unfinished: iodock show overview completes it")


def of_log(path: Path) -> Row:
    """Makes a row from a Darshan log. Reads only the job and its counters."""
    try:
        told = _native.darshan_job(str(path))
    except (_native.NativeError, OSError, UnicodeError) as error:
        return of_problem(str(error))
    command = (told["command"] or "").split(" ")[0]
    return {
        "job": told["job"],
        "user_id": told["user_id"],
        "executable": command or None,
        "processes": told["processes"],
        "start_ts": told["start_ns"],
        "run_time_ns": told["run_time_ns"],
        "read_bytes": told["read_bytes"],
        "written_bytes": told["written_bytes"],
        "io_share": _share(told["io_time_ns"], told["processes"], told["run_time_ns"]),
        "files": told["files"],
        "losses": _losses((name, count) for name, count, _ in told["losses"]),
    }


def of_store(path: Path) -> Row:
    """Makes a row from a store. A store of counters gives the same columns as a log. A store of calls gives
    the share of time in I/O."""
    try:
        if Store.is_unfinished(path):
            # The store is not opened, because opening an unfinished store would finish it, and the recording
            # may still be in progress.
            return of_problem(_UNFINISHED)
        with Store.open(path) as store:
            return _of_opened(store)
    except (IodockError, OSError) as error:
        return of_problem(str(error))


def of_problem(reason: str) -> Row:
    """Makes a row that contains only the reason why the job could not be read."""
    return {"problem": reason}


def _of_opened(store: Store) -> Row:
    manifest = store.manifest
    captured = manifest.raw.get("captured") or {}
    row: Row = {
        "job": manifest.source.get("job") or (manifest.raw.get("job") or {}).get("id"),
        "executable": next(iter(captured.get("command") or ()), None),
        "processes": manifest.raw.get("ranks"),
        "start_ts": manifest.first_ts if manifest.clock == "epoch" else None,
        "run_time_ns": manifest.wall_ns,
        "losses": _losses((loss.name, loss.count) for loss in manifest.losses),
    }
    if manifest.counts_only:
        return row
    overview = find("overview")
    answer = overview.run(store, request(overview, {}))
    facts = answer.totals.total if answer.totals else {}
    share = facts.get("mean_rank_share") if manifest.profiles_only else facts.get("io_share")
    return row | {
        "read_bytes": facts.get("read_bytes"),
        "written_bytes": facts.get("written_bytes"),
        "files": facts.get("files"),
        "io_share": share,
    }


def _share(io_ns: int | None, processes: int | None, run_ns: int | None) -> float | None:
    if io_ns is None or not processes or processes < 0 or not run_ns:
        return None
    return io_ns / processes / run_ns


def _losses(losses: Iterable[tuple[str, int]]) -> str | None:
    return ", ".join(f"{name} {count:,}" for name, count in losses) or None
