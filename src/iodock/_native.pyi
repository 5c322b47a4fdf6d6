"""Types of the native module (crates/iodock-python). A test compares the names with what is really there."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

__version__: str
__commit__: str | None

class NativeError(Exception):
    """What went wrong below Python."""

    hint: str | None
    usage: bool
    exit_status: int

class ImportSummary(TypedDict):
    store: str
    formats: list[str]
    lines: int
    calls: int
    files: int
    processes: int
    profiles: int | None
    cut: bool
    meanwhile: int
    losses: list[tuple[str, int, str]]

class MergeSummary(TypedDict):
    store: str
    formats: list[str]
    lines: int
    calls: int
    files: int
    processes: int
    profiles: int | None
    cut: bool
    meanwhile: int
    losses: list[tuple[str, int, str]]
    ranks: tuple[int, int | None]
    clocks: list[tuple[str, int | None, int | None, int]]

class SymbolizeSummary(TypedDict):
    sites: int
    functions: tuple[int, int]
    lines: tuple[int, int]
    unknown: list[tuple[str, str | None, str, int, bool]]

class JobRow(TypedDict):
    job: str | None
    user_id: int | None
    command: str | None
    processes: int | None
    start_ns: int | None
    run_time_ns: int | None
    read_bytes: int | None
    written_bytes: int | None
    io_time_ns: int | None
    files: int | None
    losses: list[tuple[str, int, str]]

class RecordSummary(TypedDict):
    store: str
    kept: str | None
    elsewhere: str | None
    made_folder: str | None
    backend: str
    reason: str
    exit_code: int | None
    exit_signal: int | None
    must_finish: bool
    warnings: list[str]
    failure: str | None
    written_bytes: int
    killed: int
    hold: StoreHold

class SoFar(TypedDict):
    since_ns: int | None
    until_ns: int | None
    calls: int
    metadata_calls: int
    read_bytes: int
    written_bytes: int
    files: list[tuple[str, int, int, int, int]]
    by_call: list[tuple[str, int, int, int, int]]

class RecordingFollowed:
    def __init__(self, store: str | os.PathLike[str]) -> None: ...
    def look(self, most: int) -> SoFar: ...

def launched_rank() -> int | None: ...

class StoreHold:
    def release(self) -> None: ...

class CleanSummary(TypedDict):
    removed: list[str]
    kept: list[tuple[str, str]]
    foreign: list[str]

def import_logs(
    logs: list[str],
    store: str | os.PathLike[str],
    *,
    format: str | None = None,
    working_directories: list[bytes] = ...,
    rank_from: str | None = None,
    lines: tuple[int, int | None] | None = None,
    force: bool = False,
    coverage_bytes: int | None = None,
    progress: Callable[[int, int | None, int], None] | None = None,
) -> ImportSummary: ...
def symbolize(store: str | os.PathLike[str], folders: list[Path]) -> SymbolizeSummary: ...
def darshan_job(path: str) -> JobRow: ...
def is_darshan(log: str | os.PathLike[str]) -> bool: ...
def finish_recording(
    store: str | os.PathLike[str], *, progress: Callable[[int, int | None, int], None] | None = None
) -> ImportSummary: ...
def merge_stores(
    parts: list[Path],
    into: str | os.PathLike[str],
    *,
    force: bool = False,
    progress: Callable[[int, int | None, int], None] | None = None,
) -> MergeSummary: ...
def read_in_progress(
    store: str | os.PathLike[str],
    into: str | os.PathLike[str],
    *,
    progress: Callable[[int, int | None, int], None] | None = None,
) -> ImportSummary | None: ...
def is_in_progress(store: str | os.PathLike[str]) -> bool: ...
def file_checksum(path: str | os.PathLike[str]) -> str: ...
def table_shape(path: str | os.PathLike[str]) -> tuple[int, list[str]] | None: ...
def sealed_document(document: str) -> str: ...
def is_whole_document(document: bytes) -> bool | None: ...
def foreign_in_store(store: str | os.PathLike[str]) -> list[Path]: ...
def backends() -> list[tuple[str, str | None]]: ...
def record(
    command: list[str],
    store: str | os.PathLike[str],
    *,
    backend: str = "auto",
    force: bool = False,
    page_faults: str = "auto",
    complete: bool = False,
    light: tuple[int, int] | None = None,
    ranks: tuple[str, bool] | None = None,
    interfaces: str = "auto",
    stacks: str = "off",
) -> RecordSummary: ...
def begin_counting(
    store: str | os.PathLike[str], memory: int, first: int
) -> tuple[Path, list[tuple[str, str]]]: ...
def attach(
    pids: list[int],
    store: str | os.PathLike[str],
    *,
    backend: str = "auto",
    force: bool = False,
    group: str | os.PathLike[str] | None = None,
    page_faults: str = "auto",
) -> RecordSummary: ...
def load_engine(plan: str) -> None: ...
def load_need(plan: str) -> tuple[int, int]: ...
def load_under(directory: str | os.PathLike[str]) -> tuple[str, str | None]: ...
def load_free(directory: str | os.PathLike[str]) -> list[int | None]: ...
def load_clean(directory: str | os.PathLike[str], *, force: bool = False) -> CleanSummary: ...
def load_merge(several: list[str]) -> str: ...
def load_quantiles(latencies: str, quantiles: list[float]) -> list[float | None]: ...
def monitor_counters() -> list[str]: ...
def monitor_frame(
    spool: bytes,
    sequence: int,
    host: str,
    time: int,
    counters: list[tuple[str, str, list[tuple[str, str, int]]]],
) -> bytes: ...
def monitor_counted() -> tuple[list[tuple[str, list[tuple[str, str]]]], list[str]]: ...

class EventFolding:
    def __init__(self, paths: list[Path], fold: str, places: tuple[bytes, bytes] | None = None) -> None: ...
    @property
    def rows(self) -> int: ...
    def next_table(self) -> tuple[int, list[tuple[str, str, bytes, bytes | None]]] | None: ...
    def cancel(self) -> None: ...

class PerfettoCalls:
    def __init__(self, files: list[tuple[int, str]]) -> None: ...
    def packets(self, columns: list[bytes]) -> bytes: ...

class MonitorTaken:
    kept: int
    full: bool
    spool: str
    host: str
    work: tuple[int, int, int]
    refused: str | None
    is_name_refused: bool

class MonitorIntake:
    def __init__(self, folder: str | os.PathLike[str]) -> None: ...
    def take(
        self,
        frames: bytes,
        host: str | None = None,
        most: tuple[int, int, int] | None = None,
        sent: int | None = None,
    ) -> MonitorTaken: ...
    def lose(self, host: str, name: str, target: str, count: int, detail: str) -> None: ...
    def sync(self) -> None: ...
    def flush(self) -> tuple[int, int]: ...
    def new_file(self, table: str, resolution: str, time: int) -> tuple[str, Path]: ...
    def replace(
        self,
        replaced: list[str],
        rolled: list[str],
        new: list[tuple[str, str, str, int, int, int, bool]],
    ) -> None: ...
    def replayed(self) -> tuple[int, int]: ...

def known_calls() -> list[tuple[str, str, str]]: ...
def known_losses() -> list[tuple[str, str]]: ...
def known_formats() -> list[str]: ...
def recorded_calls() -> list[str]: ...
