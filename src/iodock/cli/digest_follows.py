"""Determines whether the scheduler will append a digest to the job's output. The check-up after a recording
then leaves out what the digest will contain."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iodock.program.store import Store

SETTINGS = "/etc/iodock/digest.conf"
"""Settings of integrations/digest/iodock-job-digest, which the scheduler's epilog runs."""


def digest_follows(store: Store, is_terminal: bool) -> bool:
    """Returns whether a digest will follow. It follows if the program was recorded in a job, and if this node
    is configured to print digests of all jobs. It does not follow if the output goes to a terminal, because
    that is not the output of a job, or if ONLY= restricts digests to certain jobs."""
    job = store.manifest.raw.get("job")
    if is_terminal or not isinstance(job, dict) or not job.get("id"):
        return False
    said = _settings()
    return bool(said.get("PORTAL")) and not said.get("ONLY")


def _settings() -> dict[str, str]:
    """Reads the settings in the same way as the script of the epilog. Returns an empty mapping if the file
    can't be read."""
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
