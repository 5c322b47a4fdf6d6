"""Builds strace logs for tests, with times that the test knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from iodock.program.capture import import_logs

START = 1_700_000_000.0


@dataclass
class Log:
    """Builds a log of one process as `strace -f -ttt -T` writes it. Calls follow each other without a gap."""

    pid: int = 100
    durations: bool = True
    stamps: bool = True
    lines: list[str] = field(default_factory=list)
    now_s: float = START
    files: dict[str, int] = field(default_factory=dict)

    def call(self, text: str, result: str, seconds: float = 0.0) -> None:
        """Adds one call."""
        stamp = f"{self.now_s:.6f} " if self.stamps else ""
        took = f" <{seconds:.6f}>" if self.durations else ""
        self.lines.append(f"{self.pid} {stamp}{text} = {result}{took}")
        self.now_s += seconds

    def compute(self, seconds: float) -> None:
        """Adds time between calls."""
        self.now_s += seconds

    def open(self, name: str, seconds: float = 0.0, flags: str = "O_RDWR") -> None:
        """Opens a file. NAME is quoted as strace quotes it."""
        self.files[name] = len(self.files) + 3
        self.call(f'openat(AT_FDCWD, "{name}", {flags})', str(self.files[name]), seconds)

    def stat(self, name: str, size: int) -> None:
        """Adds an fstat that shows the size of a file."""
        self.call(f"fstat({self.files[name]}, {{st_mode=S_IFREG|0644, st_size={size}, ...}})", "0")

    def move(self, call: str, name: str, count: int, size: int, seconds: float) -> None:
        """Adds COUNT reads or writes of SIZE bytes, which take SECONDS in total."""
        for _ in range(count):
            text = f'{call}({self.files[name]}, ""..., {size})'
            self.call(text, str(size), seconds / count)

    def seek(self, name: str, to: int = 0) -> None:
        """Adds an lseek to an offset from the file's start."""
        self.call(f"lseek({self.files[name]}, {to}, SEEK_SET)", str(to))

    def store(self, path: Path, folders: Sequence[str] = ()) -> str:
        """Imports the log and returns the store's path."""
        log = path.with_suffix(".log")
        self.call("exit_group(0)", "?")
        log.write_text("".join(f"{line}\n" for line in [*self.lines, f"{self.pid} {self._end()}"]))
        import_logs([str(log)], path, working_directories=folders)
        return str(path)

    def _end(self) -> str:
        return (f"{self.now_s:.6f} " if self.stamps else "") + "+++ exited with 0 +++"
