"""Counts the calls and bytes in a log of `strace -f -o`, and separates the calls of the dynamic linker."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

_MOVING = """
    read readv pread64 preadv preadv2 write writev pwrite64 pwritev pwritev2 recvfrom recvmsg sendto sendmsg
    sendfile copy_file_range splice tee vmsplice"""
MOVING = frozenset(_MOVING.split())
"""Calls whose result is a number of bytes."""


@dataclass
class Counted:
    """Counts of the calls in a log of strace."""

    calls: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)
    """Bytes moved, from the result."""
    before_load: Counter[str] = field(default_factory=Counter)
    """Calls of the dynamic linker, up to the first library's own."""
    bytes_before_load: Counter[str] = field(default_factory=Counter)
    restarted: Counter[str] = field(default_factory=Counter)
    """Calls that a signal interrupted. The kernel may have restarted them."""
    loaded_programs: int = 0


_LINE = re.compile(r"(\d+) +(.*)")
_CALL = re.compile(r"(\w+|\?\?\?)\(")
# If a thread other than the first calls exec, strace logs the return of exec under the first thread, which
# did not call it.
_EXEC = re.compile(r"execve(at)?(\(| resumed)")
# Recordings contain only the mmap calls that have a descriptor.
_WITHOUT_FILE = re.compile(r"mmap\(.*, -1, \w+(\)| <unfinished)")
_RESULT = re.compile(r" = (\d+)$")
_MAPPED = re.compile(r"mmap\(NULL, \d+, PROT_READ, MAP_PRIVATE, (\d+), 0\) += (0x[0-9a-f]+)")


@dataclass
class _Task:
    """State of a process while its log is read."""

    unfinished: str = ""
    loading: Counter[str] | None = None
    """Calls since its exec; None: its libraries are loaded."""
    loading_bytes: Counter[str] = field(default_factory=Counter)
    cache: str = ""
    """The address at which /etc/ld.so.cache is mapped, or before that its descriptor."""


def counted(log: Path, recorded: frozenset[str]) -> Counted:
    """Counts the calls of the kinds in RECORDED in a log of `strace -f -o`."""
    found, tasks = Counted(), {}
    for line in log.read_text(errors="replace").splitlines():
        parts = _LINE.match(line)
        if not parts or parts[2].startswith(("+++", "---", "strace:", "[")):
            continue
        task = tasks.setdefault(parts[1], _Task())
        _take(parts[2], task, found, recorded)
    return found


def _take(text: str, task: _Task, found: Counted, recorded: frozenset[str]) -> None:
    if text.startswith("<... "):
        begin, task.unfinished = task.unfinished, ""
        whole = begin.removesuffix(" <unfinished ...>") + text.partition(" resumed>")[2]
        _returned(whole if begin else text.removeprefix("<... "), task, found)
        return
    call = _CALL.match(text)
    if not call:
        return
    name = call[1]
    if name in recorded and not _WITHOUT_FILE.match(text):
        found.calls[name] += 1
        if task.loading is not None:
            task.loading[name] += 1
    if text.endswith(" <unfinished ...>"):
        task.unfinished = text
    else:
        _returned(text, task, found)


def _returned(text: str, task: _Task, found: Counted) -> None:
    result = _RESULT.search(text)
    name = text.partition("(")[0]
    found.restarted[name] += "= ? ERESTART" in text
    if result and name in MOVING:
        found.bytes[name] += int(result[1])
        if task.loading is not None:
            task.loading_bytes[name] += int(result[1])
    _load(text, task, found)


def _load(text: str, task: _Task, found: Counted) -> None:
    """Follows a task from its exec until the dynamic linker has loaded its libraries."""
    if _EXEC.match(text) and text.endswith("= 0"):
        task.loading, task.loading_bytes, task.cache = Counter(), Counter(), ""
    elif task.loading is None:
        return
    elif '"/etc/ld.so.cache"' in text:
        task.cache = text.rpartition("= ")[2]
    elif (mapped := _MAPPED.match(text)) and mapped[1] == task.cache:
        task.cache = mapped[2]
    elif task.cache and text.startswith(f"munmap({task.cache},"):
        found.before_load += task.loading
        found.bytes_before_load += task.loading_bytes
        found.loaded_programs += 1
        task.loading = None
