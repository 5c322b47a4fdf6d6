"""Adds processor times to the processes of a store."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from made_store import without_checksums

THREAD = "clone(child_stack=0x7f, flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD)"


def with_processor_times(store: Path, user_ns: list[int]) -> Path:
    """Adds each thread's processor time to the store, as in a live recording. Imported logs lack these."""
    path = store / "processes.parquet"
    table = pq.read_table(path)
    for name, values in (("cpu_user_ns", user_ns), ("cpu_system_ns", [0] * len(user_ns))):
        column = table.schema.get_field_index(name)
        table = table.set_column(
            column, table.schema.field(name), pa.array(values, table.schema.types[column])
        )
    pq.write_table(table, path)
    without_checksums(path.parent)
    return store
