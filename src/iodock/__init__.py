"""The I/O check-up for HPC: record or import a program's file I/O, and see where time and bytes go.

>>> import iodock
>>> run = iodock.open("run.iodock")
>>> run.show("summary", by=["file", "call"], top=10).to_arrow()
"""

from __future__ import annotations

from iodock.shared.errors import IodockError, MissingPackage, QueryError, RequestError, StoreError

# The same value as typing's, whose import takes as long as Python's own start and would slow down recording.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from iodock.program.results import Chart, Findings, Page, Result
    from iodock.program.run import Run, open
    from iodock.shared.settings import load as load_settings

__all__ = [
    "Chart",
    "Findings",
    "IodockError",
    "MissingPackage",
    "Page",
    "QueryError",
    "RequestError",
    "Result",
    "Run",
    "StoreError",
    "load_settings",
    "open",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # The engine takes a while to load, and `iodock --help` does not need it.
    if name in ("Run", "open"):
        from iodock.cli.servers import servers_in_time
        from iodock.program import run

        run.servers_of = servers_in_time
        return getattr(run, name)
    if name in ("Chart", "Findings", "Page", "Result"):
        from iodock.program import results

        return getattr(results, name)
    if name == "load_settings":
        from iodock.shared.settings import load

        return load
    raise AttributeError(f"module 'iodock' has no attribute {name!r}")
