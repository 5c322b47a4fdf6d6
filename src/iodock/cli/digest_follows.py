"""Finds out whether the digest of a job will follow at the end of its output, so that the check-up after
`record` does not repeat it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iodock.program.store import Store

SETTINGS = "/etc/iodock/digest.conf"
"""Settings of integrations/digest/iodock-job-digest, which the scheduler's epilog runs."""


def digest_follows(store: Store, is_terminal: bool) -> bool:
    """Whether a digest will follow. This is so for a recording in a job on a node that prints digests of all
    jobs. If the output goes to a terminal it is not a job's output, and with ONLY= most jobs get no
    digest."""
    job = store.manifest.raw.get("job")
    if is_terminal or not isinstance(job, dict) or not job.get("id"):
        return False
    said = _settings()
    return bool(said.get("PORTAL")) and not said.get("ONLY")


def _settings() -> dict[str, str]:
    """Reads the settings as the script does; empty if there are none."""
    from iodock.shared.bounded import files
    from iodock.shared.bounded.limits import SETTINGS as LIMIT
    from iodock.shared.errors import IodockError

    path = Path(os.environ.get("IODOCK_DIGEST_CONF") or SETTINGS)
    try:
        lines = files.text(path, LIMIT).splitlines()
    except (OSError, ValueError, IodockError):
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {name.strip(): value.partition(" #")[0].strip() for name, _, value in pairs}
