"""Reads strace logs independently of iodock, slowly and simply, to check iodock's reader.

It shares nothing with iodock except the rules in `docs` on what is counted. `read_logs` turns logs into calls
with a position in the log for their beginning and their end. `reference_truth.truth_of` turns those into a
truth in the layout of `fixtures/cases`.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

NS = 1_000_000_000
DAY = 86_400 * NS

STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.S)
PREFIX = re.compile(rb"(?:\[pid +(\d+)(?:<(?:[^>\\]|\\.)*>)?\] +|(\d+)(?:<(?:[^>\\]|\\.)*>)? +)")
CLOCK = re.compile(rb"(\d\d):(\d\d):(\d\d)(?:\.(\d+))? ")
EPOCH = re.compile(rb"(\d{9,})(?:\.(\d+))? ")
RELATIVE = re.compile(rb" *(\d+)\.(\d+) ")
SINCE = re.compile(rb"\(\+ *\d+\.\d+\) ")
NUMBER = re.compile(rb"\[ *\d+\] ")
POINTER = re.compile(rb"\[[0-9a-f?]{8,16}\] ")
CALL = re.compile(rb"([a-zA-Z_?][a-zA-Z0-9_?]*)\(")
RESUMED = re.compile(rb"<\.\.\. ([a-zA-Z_?][a-zA-Z0-9_?]*) resumed> ?")
ENDING = re.compile(
    rb"\s*= (\?|-?\d+|0x[0-9a-f]+)(?:<(?:->|[^<>]|<[^<>]*>)*>(?:\(deleted\))?)?"
    rb"(?: (E[A-Z0-9_]+))?(?: \((?:.*)\))?(?: <unavailable>)?(?: <(\d+(?:\.\d+)?)>)?$",
    re.S,
)
SIGNAL = re.compile(rb"--- (SIG[A-Z0-9_+]+) (?:\{|\()")
STOPPED = re.compile(rb"--- (stopped by SIG\S+) ---")
EXITED = re.compile(rb"\+\+\+ exited with (\d+)")
KILLED = re.compile(rb"\+\+\+ killed by (SIG\S+)")
SUPERSEDED = re.compile(rb"\+\+\+ superseded by execve in pid (\d+)")
REMARK = re.compile(
    rb" \| |(?:strace: )?\[?\s?Process (?:PID=)?\d+|strace: | > |% time|-{6} -{11}|\s*\d+\.\d\d +\d"
)


@dataclass(eq=False)
class Call:
    """One call. Positions refer to the whole input; a position is None if the log lacks that end."""

    task: str
    name: str
    arguments: list[bytes]
    begin: tuple[int, int] | None
    end: tuple[int, int] | None = None
    start: int | None = None
    end_stamp: int | None = None
    duration: int | None = None
    result: int | None = None
    errno: str | None = None
    source: int = 0
    text: bytes = b""
    opened: dict[str, object] = field(default_factory=dict)


@dataclass
class Event:
    """Another event of a task: it exited (VALUE is its code), or exec in another task replaced it."""

    task: str
    what: str
    place: tuple[int, int]
    value: str = ""


@dataclass
class Log:
    calls: list[Call] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    signals: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    unparsed: list[tuple[int, bytes]] = field(default_factory=list)
    unfinished: int = 0
    resumed: int = 0
    orphans: int = 0
    stamps: list[int] = field(default_factory=list)


def content(path: Path) -> bytes:
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        return gzip.decompress(data)
    if data.startswith(b"\xfd7zXZ"):
        return lzma.decompress(data)
    if data.startswith(b"BZh"):
        return bz2.decompress(data)
    return data


def fraction(digits: bytes | None) -> int:
    return int((digits or b"0").ljust(9, b"0")[:9])


def closing(text: bytes, at: int) -> tuple[list[bytes], int] | None:
    """Returns the arguments from `at` on, and the position after the closing parenthesis."""
    arguments: list[bytes] = []
    depth, since = 0, at
    while at < len(text):
        byte = text[at : at + 1]
        if byte == b'"':
            string = STRING.match(text, at)
            if not string:
                return None
            at = string.end()
            continue
        if text.startswith(b"/*", at):
            stop = text.find(b"*/", at)
            at = stop + 2 if stop >= 0 else len(text)
            continue
        if byte == b"'" and re.match(rb"'(?:[^'\\]|\\.[^']*)'", text[at:]):
            at += re.match(rb"'(?:[^'\\]|\\.[^']*)'", text[at:]).end()  # type: ignore[union-attr]
            continue
        if (
            byte == b"<"
            and re.search(rb"(?:\d|AT_FDCWD)$", text[max(0, at - 8) : at])
            and text[at + 1 : at + 2] != b"<"
        ):
            stop = annotation(text, at)
            if stop is None:
                return None
            at = stop
            continue
        if byte in b"([{":
            depth += 1
        elif byte in b")]}":
            if depth == 0:
                if byte != b")":
                    return None
                if text[since:at].strip() or arguments:
                    arguments.append(text[since:at].strip())
                return arguments, at + 1
            depth -= 1
        elif byte == b"," and depth == 0:
            arguments.append(text[since:at].strip())
            since = at + 1
        at += 1
    return None


def annotation(text: bytes, at: int) -> int | None:
    """Returns the position after `<...>`, which contains the kernel's name of a descriptor. In paths, strace
    escapes < and >; `->` connects the ends of a socket, always in brackets; devices contain <char 1:3>."""
    brackets = depth = 0
    path = text[at + 1 : at + 2] == b"/"
    while at < len(text):
        byte = text[at : at + 1]
        if byte == b"\\":
            at += 2
            continue
        if not path and byte == b'"':
            string = STRING.match(text, at)
            at = string.end() if string else at + 1
            continue
        if not path and byte in b"[]":
            brackets += 1 if byte == b"[" else -1
        if byte == b"<":
            depth += 1
        elif byte == b">" and not (brackets and text[at - 1 : at] == b"-"):
            depth -= 1
            if depth == 0:
                rest = text[at + 1 :]
                return at + 1 + (9 if rest.startswith(b"(deleted)") else 0)
        at += 1
    return None


class Clock:
    """Converts the time stamps of one log to nanoseconds since the epoch, since midnight, or since the first
    line (-r)."""

    def __init__(self) -> None:
        self.days = 0
        self.last: int | None = None
        self.sum = 0

    def clock(self, match: re.Match[bytes]) -> int:
        hours, minutes, seconds = (int(match[part]) for part in (1, 2, 3))
        time = (hours * 3600 + minutes * 60 + seconds) * NS + fraction(match[4])
        if self.last is not None and self.last - time > DAY // 2:
            self.days += 1
        self.last = time
        return time + self.days * DAY

    def read(self, line: bytes) -> tuple[int | None, bytes]:
        if found := CLOCK.match(line):
            rest = line[found.end() :]
            since = SINCE.match(rest)
            return self.clock(found), rest[since.end() :] if since else rest
        if found := EPOCH.match(line):
            rest = line[found.end() :]
            since = SINCE.match(rest)
            return int(found[1]) * NS + fraction(found[2]), rest[since.end() :] if since else rest
        if found := RELATIVE.match(line):
            self.sum += int(found[1]) * NS + fraction(found[2])
            return self.sum, line[found.end() :]
        return None, line


def leader(line: bytes, clock: Clock) -> tuple[str, int | None, bytes]:
    """Returns task and time stamp at the start of a line, and the rest of the line."""
    task = ""
    found = PREFIX.match(line)
    if found and not (not found[1] and RELATIVE.match(line) and not line[found.end() :].strip()):
        task = (found[1] or found[2]).decode()
        line = line[found.end() :]
    elif line.startswith(b" ") and (bare := re.match(rb" +(\d+)(?:<[^>]*>)? +(?=\d|[a-z<+-])", line)):
        task, line = bare[1].decode(), line[bare.end() :]
    stamp, line = clock.read(line)
    for extra in (NUMBER, POINTER):
        if found := extra.match(line):
            line = line[found.end() :]
    return task, stamp, line


class Reader:
    def __init__(self) -> None:
        self.log = Log()
        self.pending: dict[str, Call] = {}

    def source(self, number: int, data: bytes, task: str) -> None:
        clock = Clock()
        lines = data.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        for at, raw in enumerate(lines):
            self.log.lines += 1
            self.line((number, at), raw.removesuffix(b"\r"), clock, task)
        self.pending_left((number, len(lines)), number)

    def line(self, place: tuple[int, int], line: bytes, clock: Clock, task: str) -> None:
        if not line.strip():
            return
        own, stamp, rest = leader(line, clock)
        task = own or task
        if stamp is not None:
            self.log.stamps.append(stamp)
        if not (self.marker(place, task, rest) or self.call(place, task, stamp, rest)):
            known = REMARK.match(line) or REMARK.match(rest)
            if not known and not self.bare_end(place, line):
                self.log.unparsed.append((place[1] + 1, line[:60]))

    def marker(self, place: tuple[int, int], task: str, rest: bytes) -> bool:
        if found := SIGNAL.match(rest) or STOPPED.match(rest):
            self.log.signals[found[1].decode()] += 1
            return True
        if found := EXITED.match(rest):
            self.leave(place, task, "exit", found[1].decode())
            return True
        if found := KILLED.match(rest):
            self.leave(place, task, "killed", found[1].decode())
            return True
        if found := SUPERSEDED.match(rest):
            other = found[1].decode()
            self.leave(place, task, "superseded", other)
            if other in self.pending:
                self.pending[task] = self.pending.pop(other)
                self.pending[task].task = task
            return True
        return rest.startswith((b"+++ ", b"--- "))

    def leave(self, place: tuple[int, int], task: str, what: str, value: str) -> None:
        if task in self.pending:
            self.finish(self.pending.pop(task), place, None, None, b"")
        self.log.events.append(Event(task, what, place, value))

    def call(self, place: tuple[int, int], task: str, stamp: int | None, rest: bytes) -> bool:
        if found := RESUMED.match(rest):
            return self.resumed(place, task, stamp, found[1].decode(), rest[found.end() :])
        found = CALL.match(rest)
        if not found:
            return False
        parts = closing(rest, found.end())
        ending = ENDING.match(rest, parts[1]) if parts else None
        if not ending and (
            cut := re.search(rb" <(?:unfinished|detached|pid changed to \d+) \.\.\.>(\) += \?)?$", rest)
        ):
            call = Call(
                task, found[1].decode(), [], place, start=stamp, source=place[0], text=rest[: cut.start()]
            )
            if cut[1]:
                self.finish(call, place, None, None, b"")
            else:
                if task in self.pending:
                    self.finish(self.pending.pop(task), place, None, None, b"")
                self.pending[task] = call
                self.log.unfinished += 1
            return True
        if not parts or not ending:
            return False
        call = Call(task, found[1].decode(), parts[0], place, start=stamp, source=place[0], text=rest)
        if task in self.pending:
            self.finish(self.pending.pop(task), place, None, None, b"")
        self.finish(call, place, ending, None, rest)
        return True

    def bare_end(self, place: tuple[int, int], line: bytes) -> bool:
        """Reads the end of an unfinished call that strace -z writes on a line of its own, without task and
        time."""
        begun = next(reversed(self.pending.values()), None)
        if not begun or begun.end is not None or begun.begin != (place[0], place[1] - 1):
            return False
        task = begun.task
        done = self.resumed(place, task, None, begun.name, line)
        self.log.resumed -= done
        return done

    def resumed(self, place: tuple[int, int], task: str, stamp: int | None, name: str, rest: bytes) -> bool:
        begun = self.pending.get(task)
        if begun and begun.name != name:
            begun = None
        text = (begun.text if begun else b"(") + rest
        parts = closing(text, text.index(b"(") + 1)
        ending = ENDING.match(text, parts[1]) if parts else None
        if not ending:
            tail = re.search(rb" <(?:unfinished|detached) \.\.\.>(\) += \?)?$", rest)
            loose = re.search(rb"\) += (?:-?\d|\?|0x)[^\"]*$", rest)
            ending = ENDING.match(rest, loose.start() + 1) if loose else None
            if not ending and not tail:
                return False
        self.log.resumed += 1
        if not begun:
            self.log.orphans += 1
            begun = Call(task, name, [], None, source=place[0], text=b"")
        else:
            self.pending.pop(task)
            begun.arguments = parts[0] if parts else []
        begun.text = text
        self.finish(begun, place, ending, stamp, text)
        return True

    def finish(
        self,
        call: Call,
        place: tuple[int, int],
        ending: re.Match[bytes] | None,
        stamp: int | None,
        text: bytes,
    ) -> None:
        call.end, call.end_stamp = place, stamp
        if not call.arguments and call.begin and not text:
            call.arguments = loose_arguments(call.text)
        if ending:
            value = ending[1]
            call.result = (
                None
                if value == b"?"
                else int(value, 0 if value.startswith(b"0x") else 8 if re.match(rb"0[0-7]", value) else 10)
            )
            call.errno = ending[2].decode() if ending[2] else None
            if ending[3] and not (call.result is None and call.errno is None):
                whole, _, part = ending[3].partition(b".")
                call.duration = int(whole) * NS + fraction(part)
        self.log.calls.append(call)

    def pending_left(self, place: tuple[int, int], number: int) -> None:
        for task, call in list(self.pending.items()):
            if call.source == number:
                self.finish(self.pending.pop(task), place, None, None, b"")


def loose_arguments(text: bytes) -> list[bytes]:
    """Returns the arguments of a call whose end is not in the log."""
    start = text.index(b"(") + 1
    parts = closing(text.rstrip().rstrip(b",") + b")", start)
    return parts[0] if parts else []


def read_logs(paths: list[Path]) -> Log:
    """Reads several logs as one run. If a name ends in a number (`-ff`), it is the task of the log."""
    reader = Reader()
    for number, path in enumerate(paths):
        suffix = path.name.removesuffix(".gz").removesuffix(".xz").rsplit(".", 1)[-1]
        task = suffix if suffix.isdigit() and len(paths) > 1 else ""
        reader.source(number, content(path), task)
    return reader.log
