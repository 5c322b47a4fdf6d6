"""Finds the present users of a file system, who are notified when the file system has problems."""

from __future__ import annotations

import time

from iodock.centre.monitor.logins import login
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.jobs import Wanted, jobs
from iodock.centre.monitor.questions.spans import HOUR, span
from iodock.centre.store import MonitorTables
from iodock.centre.watch.notices.recipients import Sufferers
from iodock.shared.errors import StoreError

_MOST_JOBS = 20_000


def sufferers(store: MonitorTables, ids: JobIds) -> Sufferers:
    """Returns a function that finds the users with a job on a file system in the last 15 minutes. The
    function returns None if the store can't be read."""

    def found(file_system: str) -> set[str] | None:
        now = time.time_ns()
        wanted = Wanted(file_system=file_system, most=_MOST_JOBS)
        try:
            rows = jobs(store, span(now - HOUR // 4, now, store.catalogue), ids, wanted).to_pylist()
        except StoreError:
            return None
        return {login(str(row["user"])) for row in rows if row["user"]}

    return found
