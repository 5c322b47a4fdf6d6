"""Computes facts about a run before any query. They replace the placeholders `{name}` in the SQL of views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from iodock.program.relations.filters import KINDS, PATH_KINDS
from iodock.program.store import Store
from iodock.shared.engine.sql import quoted

if TYPE_CHECKING:
    from iodock.shared.settings import FileSystemKind, Settings

MOMENTS = 240
"""Number of intervals into which `moments` divides a run."""
LEAST_FILES = 4
"""If fewer files than this share a pattern, they are shown separately."""
DATABASE_NAMES = (
    r"\.(db|db3|sqlite3?|mdb|ldb|sst|ibd|frm|gdbm|lmdb|rdb)$|-(journal|wal|shm)$"
    r"|/\.git/|/ibdata[0-9]|/(pg_wal|pgdata)/"
)
"""Regular expression for the names of databases and of their accompanying files."""
SYSTEM_NAMES = (
    r"^/(usr|lib|lib32|lib64|bin|sbin|etc|opt|nix|snap)/|\.(so|pyc|pyo|py|pm)(\.[0-9.]+)?$|/\.local/lib/"
)
"""Regular expression for files of the system and of programs."""
UNCOUNTED_NAMES = "^<|^/(proc|sys|dev)/"
"""Regular expression for files in Darshan's counters that do not belong to the job. Darshan itself leaves out
the system's files."""
TERMINAL_NAMES = "^/dev/(tty|pts/|console$|ptmx$)"
"""Regular expression for terminals."""
UNFILED_KINDS = ", ".join(quoted(one) for one in (*sorted(set(KINDS) - {*PATH_KINDS, "unknown"}), "fifo"))
"""SQL list of the kinds of objects that are not files, although a descriptor may refer to them."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """Holds facts about one run, whose names are placeholders in the SQL of views."""

    first_ts: int = 0
    """Start time of the run."""
    moment_ns: int = 1
    """Length of one of the run's `moments`."""
    mount_kinds: Mapping[str, FileSystemKind] = field(default_factory=dict)
    """Kind of file system (local, network or parallel) by mount point, for the mounts with files of the
    run."""
    moments: int = MOMENTS
    least_files: int = LEAST_FILES
    database_names: str = DATABASE_NAMES
    system_names: str = SYSTEM_NAMES
    uncounted_names: str = UNCOUNTED_NAMES
    terminal_names: str = TERMINAL_NAMES
    unfiled_kinds: str = UNFILED_KINDS
    files: str = "files"
    """Table with the files. A comparison has one table for all its runs."""
    side: str = ""
    """Name of the column that distinguishes runs in this table, followed by a comma."""

    @property
    def remote_mounts(self) -> str:
        """Returns an SQL list of the mount points of network and parallel file systems."""
        mounts = [mount for mount, kind in self.mount_kinds.items() if kind != "local"]
        return ", ".join(map(quoted, mounts)) or "NULL"


def run_facts_of(store: Store, settings: Settings | None) -> RunFacts:
    """Computes the facts about the run of a store."""
    rows = store.rows("SELECT DISTINCT mount_point, fs_type FROM files WHERE mount_point IS NOT NULL")
    return RunFacts(
        first_ts=store.manifest.first_ts or 0,
        moment_ns=max(1, (store.manifest.wall_ns or 0) // MOMENTS),
        uncounted_names=f"{UNCOUNTED_NAMES}|{SYSTEM_NAMES}" if store.manifest.is_light else UNCOUNTED_NAMES,
        mount_kinds={row["mount_point"]: _kind(row["mount_point"], row["fs_type"], settings) for row in rows},
    )


def _kind(mount_point: str, fs_type: str | None, settings: Settings | None) -> FileSystemKind:
    # The settings module is imported only here, because it is slow to import and lists of files do not need
    # it.
    from iodock.shared.settings import kind_of

    known = None if settings is None else settings.file_system(mount_point)
    return kind_of(fs_type) if known is None or known.kind is None else known.kind
