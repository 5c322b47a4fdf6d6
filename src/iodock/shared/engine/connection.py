"""Opens connections to the SQL engine, with limits on memory and threads."""

from __future__ import annotations

import os
import tempfile

from iodock.shared.engine.bare import bare

MEMORY_LIMIT = "600MB"
THREADS = 2


def connected() -> bare.DuckDBPyConnection:
    """Starts an engine of its own for this connection. If a query needs more memory than the limit, the
    engine writes data to temporary files."""
    return bare.connect(
        config={
            "memory_limit": MEMORY_LIMIT,
            "threads": THREADS,
            "temp_directory": f"{tempfile.gettempdir()}/iodock-{os.getpid()}",
            # The engine must not download extensions. The one for Parquet is built in.
            "autoinstall_known_extensions": False,
            # Most queries read the metadata (footers) of the same files, so the engine caches it. It reads
            # the metadata again if a file has changed.
            "parquet_metadata_cache": True,
            "preserve_insertion_order": True,
        }
    )
