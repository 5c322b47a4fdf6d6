"""Adds the results of a recording of the job's program to the digest of the job."""

from __future__ import annotations

from iodock.centre.watch.digest import Recorded
from iodock.shared.errors import RequestError


def recorded(path: str, job: str) -> Recorded:
    """Reads the results from the store at PATH. Raises RequestError if it is a recording of another job, and
    also StoreError and QueryError."""
    from iodock.program.diagnosis import diagnose
    from iodock.program.store import Store
    from iodock.shared.settings import load

    with Store.open(path) as opened:
        said = opened.manifest.raw.get("job")
        own = str(said.get("id") or "") if isinstance(said, dict) else ""
        # PBS appends the name of its server to a job id, after a dot. Some of its commands omit it, so only
        # the part before the dot is compared.
        if own and own.partition(".")[0] != job.partition(".")[0]:
            raise RequestError(f"{path}: is a recording of job {own}, not of {job}", "give that job's id")
        found = diagnose(opened, load())
    worth = found.worth_changing
    first = worth[0] if worth else None
    verdict = found.verdict
    return Recorded(
        found.store, verdict.wall_seconds, verdict.io_share, verdict.unseen_calls == 0,
        (first.title, first.message) if first else None,
        first.advice[0].message if first and first.advice else None,
    )  # fmt: skip
