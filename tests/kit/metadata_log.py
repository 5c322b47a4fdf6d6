"""Builds strace logs of several processes, each with its own clock, with times that the test knows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from diagnosing import diagnosed, of_rule
from iodock.program.capture import import_logs
from iodock.program.findings import Diagnosis, Finding

START_US = 1_700_000_000_000_000
FIRST = 100


@dataclass
class Trace:
    """Builds a log as `strace -f -ttt -T` writes it. Times are in microseconds from the start."""

    lines: list[tuple[int, int, str]] = field(default_factory=list)
    clocks: dict[int, int] = field(default_factory=lambda: {FIRST: 0})
    stamp: str = "epoch"

    def call(self, text: str, result: str = "0", took_us: int = 0, pid: int = FIRST) -> None:
        """Adds one call of a process at the time of the process's clock."""
        self._line(pid, self.clocks[pid], f"{text} = {result} <{took_us / 1e6:.6f}>")
        self.clocks[pid] += took_us

    def pause(self, us: int, pid: int = FIRST) -> None:
        """Advances the clock of a process without a call."""
        self.clocks[pid] += us

    def start(self, pid: int, program: str | None = None, parent: int = FIRST) -> None:
        """Adds a clone of a process PID, at the time of its parent's clock."""
        self.call("clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD)", str(pid), 0, parent)
        self.clocks[pid] = self.clocks[parent]
        if program:
            self.call(f'execve("{program}", ["{program}"], 0x7f /* 9 vars */)', "0", 0, pid)

    def end(self, pid: int = FIRST) -> None:
        """Adds the exit of a process at the time of its clock."""
        self.call("exit_group(0)", "?", 0, pid)
        self._line(pid, self.clocks[pid], "+++ exited with 0 +++")

    def open(self, name: str, fd: int = 3, took_us: int = 0, flags: str = "O_RDWR", pid: int = FIRST) -> None:
        """Opens a file."""
        self.call(f'openat(AT_FDCWD, "{name}", {flags})', str(fd), took_us, pid)

    def open_missing(self, name: str, took_us: int, pid: int = FIRST) -> None:
        """Tries to open a file that does not exist."""
        self.call(
            f'openat(AT_FDCWD, "{name}", O_RDONLY)', "-1 ENOENT (No such file or directory)", took_us, pid
        )

    def write(self, size: int, took_us: int, fd: int = 3, pid: int = FIRST) -> None:
        """Writes SIZE bytes."""
        self.call(f'write({fd}, ""..., {size})', str(size), took_us, pid)

    def read(self, size: int, took_us: int, fd: int = 3, pid: int = FIRST) -> None:
        """Reads SIZE bytes."""
        self.call(f'read({fd}, ""..., {size})', str(size), took_us, pid)

    def close(self, took_us: int = 0, fd: int = 3, pid: int = FIRST) -> None:
        """Closes a descriptor."""
        self.call(f"close({fd})", "0", took_us, pid)

    def imported(
        self, folder: Path, wall_us: int = 1_000_000, durations: bool = True, ranks: int = 0
    ) -> Path:
        """Imports the log. The first process ends after WALL_US at the earliest. RANKS: number of MPI ranks,
        with one log for each."""
        self.clocks[FIRST] = max(wall_us, *self.clocks.values())
        self.end()
        logs = []
        for number in range(ranks or 1):
            chosen = [
                line
                for line in sorted(self.lines, key=lambda line: line[0])
                if not ranks or line[1] == FIRST + number
            ]
            text = "".join(f"{one}\n" for *_, one in chosen)
            logs.append(folder / f"log.{number}")
            logs[-1].write_text(text if durations else re.sub(r" <[0-9.]+>$", "", text, flags=re.M))
        path = folder / "run.iodock"
        names = [str(log) for log in logs]
        import_logs(names, path, rank_from="name") if ranks else import_logs(names, path)
        return path

    def _line(self, pid: int, at: int, text: str) -> None:
        self.lines.append((at, pid, f"{pid} {self._stamp(at)} {text}"))

    def _stamp(self, at: int) -> str:
        if self.stamp == "epoch":
            return f"{(START_US + at) // 1_000_000}.{at % 1_000_000:06d}"
        seconds = 12 * 3600 + 8 * 60 + 20 + at // 1_000_000
        return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{at % 1_000_000:06d}"


def of_log(folder: Path, write: Callable[[Trace], None], wall_us: int = 1) -> Diagnosis:
    """Returns the diagnosis of the log that WRITE makes."""
    log = Trace()
    write(log)
    return diagnosed(log.imported(folder, wall_us))


def finding_of(write: Callable[[Trace], None], rule: str, folder: Path) -> tuple[Finding, Path]:
    """Returns the only finding of RULE in the log that WRITE makes, and the path of the store."""
    log = Trace()
    write(log)
    path = log.imported(folder)
    (found,) = of_rule(diagnosed(path), rule)
    return found, path
