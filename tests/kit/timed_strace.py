"""Builds strace logs call by call with chosen times, and imports them into stores."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from iodock.program import capture
from made_store import without_checksums

START_US = 1_700_000_000_000_000


class StraceLog:
    """A run whose times are whole microseconds, as strace -ttt -T prints them."""

    def __init__(self, program: str = "/opt/site/bin/prog") -> None:
        self.now = START_US
        self.pid = 100
        self._program = program
        self.lines: list[str] = []
        self.execute(program)

    def call(self, text: str, microseconds: int = 10, pause: int = 2) -> None:
        """Writes one call of the current process. The next call begins after the pause."""
        self.lines.append(f"{self.pid} {_seconds(self.now)} {text} <{_seconds(microseconds)}>")
        self.now += microseconds + pause

    def execute(self, program: str) -> None:
        """The current process executes PROGRAM."""
        self.call(f'execve("{program}", ["{program}"], 0x7ffe /* 20 vars */) = 0', 1)

    def open(self, name: str, flags: str = "O_RDONLY", fd: int = 3) -> None:
        """Opens NAME as descriptor FD."""
        mode = ", 0644" if "O_CREAT" in flags else ""
        self.call(f'openat(AT_FDCWD, "{name}", {flags}{mode}) = {fd}', 1)

    def close(self, fd: int = 3) -> None:
        """Closes FD."""
        self.call(f"close({fd}) = 0", 1)

    def read(self, size: int, microseconds: int = 10, fd: int = 3, asked: int | None = None) -> None:
        """Reads at the descriptor's position."""
        self.call(f'read({fd}, ""..., {asked or size}) = {size}', microseconds)

    def write(self, size: int, microseconds: int = 10, fd: int = 3) -> None:
        """Writes at the descriptor's position."""
        self.call(f'write({fd}, ""..., {size}) = {size}', microseconds)

    def pread(self, size: int, offset: int, microseconds: int = 10, fd: int = 3) -> None:
        """Reads at OFFSET."""
        self.call(f'pread64({fd}, ""..., {size}, {offset}) = {size}', microseconds)

    def pwrite(self, size: int, offset: int, microseconds: int = 10, fd: int = 3) -> None:
        """Writes at OFFSET."""
        self.call(f'pwrite64({fd}, ""..., {size}, {offset}) = {size}', microseconds)

    def seek(self, offset: int, microseconds: int = 10, fd: int = 3) -> None:
        """Seeks to OFFSET."""
        self.call(f"lseek({fd}, {offset}, SEEK_SET) = {offset}", microseconds)

    def tell(self, offset: int, microseconds: int = 10, fd: int = 3) -> None:
        """Adds an lseek that returns the position, which is OFFSET."""
        self.call(f"lseek({fd}, 0, SEEK_CUR) = {offset}", microseconds)

    def child(self, pid: int, program: str) -> None:
        """Starts PID, which becomes the current process and runs PROGRAM."""
        self.call(f"clone(child_stack=NULL, flags=SIGCHLD) = {pid}", 1)
        self.pid = pid
        self.execute(program)

    def ends(self) -> None:
        """The current process ends, and the first one continues."""
        self.call("exit_group(0) = ?", 1)
        self.lines[-1] = self.lines[-1].rsplit(" <", 1)[0]
        self.lines.append(f"{self.pid} {_seconds(self.now)} +++ exited with 0 +++")
        self.now += 1
        self.pid = 100

    def imported(self, folder: Path, seconds: float = 1.0, durations: bool = True) -> Path:
        """Imports the run, which ends SECONDS after its start. Without DURATIONS the log is as strace writes
        it without -T."""
        self.now = max(self.now, START_US + round(seconds * 1e6))
        self.pid = 100
        self.ends()
        lines = self.lines if durations else [line.rsplit(" <", 1)[0] for line in self.lines]
        log = folder / "run.log"
        log.write_text("\n".join(lines) + "\n")
        capture.import_logs([str(log)], folder / "run.iodock", force=True)
        return folder / "run.iodock"


def _seconds(microseconds: int) -> str:
    return f"{microseconds // 1_000_000}.{microseconds % 1_000_000:06d}"


def mounted(store: Path, mount_point: str, fs_type: str) -> Path:
    """Changes the store as if its run had been recorded live, with all files on one file system."""
    path = store / "files.parquet"
    files = pq.read_table(path)
    for name, value in (("mount_point", mount_point), ("fs_type", fs_type)):
        column = pa.array([value] * files.num_rows, pa.string())
        files = files.set_column(files.column_names.index(name), name, column)
    pq.write_table(files, path)
    return without_checksums(store)
