"""A connection to the SQL engine in memory, with limits on the memory and threads that a query may use."""

from __future__ import annotations

import os
import tempfile

from iodock.shared.engine.bare import bare

MEMORY_LIMIT = "600MB"
THREADS = 2


def connected() -> bare.DuckDBPyConnection:
    """A separate engine; data that exceed its memory limit go to the temporary folder."""
    return bare.connect(
        config={
            "memory_limit": MEMORY_LIMIT,
            "threads": THREADS,
            "temp_directory": f"{tempfile.gettempdir()}/iodock-{os.getpid()}",
            # Parquet is built in; the engine may fetch nothing from the network.
            "autoinstall_known_extensions": False,
            # Most queries read the same footers; the engine reads a changed file again.
            "parquet_metadata_cache": True,
            "preserve_insertion_order": True,
        }
    )
