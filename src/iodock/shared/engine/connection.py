"""A connection to the SQL engine in memory, of as much of the machine as a question may take."""

from __future__ import annotations

import os
import tempfile

from iodock.shared.engine.bare import bare

MEMORY_LIMIT = "600MB"
THREADS = 2


def connected() -> bare.DuckDBPyConnection:
    """An engine of its own; what does not fit into its memory goes to the temporary folder."""
    return bare.connect(
        config={
            "memory_limit": MEMORY_LIMIT,
            "threads": THREADS,
            "temp_directory": f"{tempfile.gettempdir()}/iodock-{os.getpid()}",
            # Parquet is built in; nothing may be fetched from the network.
            "autoinstall_known_extensions": False,
            # Most questions read the same footers; a file that is changed is read again.
            "parquet_metadata_cache": True,
            "preserve_insertion_order": True,
        }
    )
