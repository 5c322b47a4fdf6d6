"""Opens connections to the SQL engine in memory, with limits on the memory and threads that a query may
use."""

from __future__ import annotations

import os
import tempfile

from iodock.shared.engine.bare import bare

MEMORY_LIMIT = "600MB"
THREADS = 2


def connected() -> bare.DuckDBPyConnection:
    """Starts a separate engine. Data that exceeds its memory limit goes to the temporary folder."""
    return bare.connect(
        config={
            "memory_limit": MEMORY_LIMIT,
            "threads": THREADS,
            "temp_directory": f"{tempfile.gettempdir()}/iodock-{os.getpid()}",
            # The engine must not fetch anything from the network. Parquet is built in.
            "autoinstall_known_extensions": False,
            # Most queries read the same footers. If a file changed, the engine reads its footer again.
            "parquet_metadata_cache": True,
            "preserve_insertion_order": True,
        }
    )
