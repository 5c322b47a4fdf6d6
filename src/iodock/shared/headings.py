"""Meaning of words in tables that are not column names: in comparisons, in the check-up of a file system, and
in the monitor."""

from __future__ import annotations

COMPARED = {
    "wall time": "how long the run took, from its start to its end",
    "wall time in I/O": "the part of it in which at least one thread was in a call on a file",
    "waiting on pipes and sockets": "the part in which threads only waited for other processes or machines",
    "outside I/O": "the rest of the wall time: computing, or waiting for something else",
    "time inside calls": "summed over all threads, so it may exceed the wall time",
    "I/O calls, without waiting": "all I/O calls but those that wait on pipes and sockets",
    "of which failed": "the calls among them that returned an error",
    "bytes read": "bytes that reads transferred",
    "bytes written": "bytes that writes transferred",
    "files used": "files on a file system that were there and had a call that succeeded",
    "before": "the runs named first: their median where there are several",
    "after": "the runs named second: their median where there are several",
    "change": "after less before, then in percent of before, or how many times as much (x3.5)",
    "certainty": "what can be said of the difference, given how much runs differ anyway",
    "clear": "such a difference occurs by chance in less than 5 % of cases",
    "noise": "too small a difference to be called one: for a file less than 10 % of its time, less than 1 % "
    "of the run (a second in long runs), or no more than the runs differ by anyway",
    "too few runs to tell": "the runs of both sides lie apart, but with fewer than 4 of each chance gives "
    "that too often",
    "same": "no difference in any run",
    "only before": "no run after the change used this file",
    "only after": "no run before the change used this file",
}
PARTS = {
    "reading and writing": "calls that move bytes: read, write, sendfile, ...",
    "metadata": "calls about files rather than their contents: open, close, stat, ...",
    "seeking": "calls that move a position: lseek",
    "sync and flush": "calls that wait until data is on its device: fsync, ...",
    "mapping": "calls that map files: mmap, ...; reads and writes through a map are no calls",
    "other calls": "calls on files that are none of these: fcntl, ioctl, ...",
}
MEASURED = {
    "test": "large transfers, constant volume in other request sizes, metadata access, or a mixed workload",
    "operation": "what was measured: write, read, file creation, ...",
    "value": "the median over the repeats: bytes or operations per second",
    "spread": "half the range of the repeats, in percent of their median",
    "repeats": "number of times that it was measured",
    "best": "the best of the repeats",
    "p50": "half of the operations took no longer than this",
    "p99": "99 of 100 operations took no longer than this",
    "nodes": "on so many machines at the same time",
    "cache": "whether reads came from the page cache",
    "other load": "data that other programs moved on this machine in that time",
}
MONITORED = {
    "read/s": "bytes read per second",
    "written/s": "bytes written per second",
    "metadata/s": "metadata operations per second: open, close, stat, ...",
    "job": "the batch job, as the resource manager numbers it",
    "user": "owner of the job or process",
    "node": "the machine that it ran on",
    "target": "the server's part of the file system (OST, MDT) that it used",
}
GROUPS = {
    "comparison": (COMPARED, "word of iodock diff"),
    "parts of the time": (PARTS, "sort of I/O, in the report and iodock diff"),
    "check-up of a file system": (MEASURED, "heading of iodock health and bench"),
    "monitor": (MONITORED, "heading of iodock monitor top"),
}
"""Group -> words with their meaning, and the kind of each word."""
