"""Explains words that appear in tables but are not names of columns. They appear in comparisons, check-ups of
file systems, and the monitor."""

from __future__ import annotations

COMPARED = {
    "wall time": "elapsed time of the run, from its start to its end",
    "wall time in I/O": "the part of it in which at least one thread was in a call on a file",
    "waiting on pipes and sockets": "the part in which threads only waited for other processes or machines",
    "outside I/O": "the rest of the wall time: computing, or waiting for something else",
    "time inside calls": "summed over all threads, so it may exceed the wall time",
    "I/O calls, excluding waiting": "all I/O calls except those that wait on pipes and sockets",
    "of which failed": "the calls among these that returned an error",
    "bytes read": "bytes that reads transferred",
    "bytes written": "bytes that writes transferred",
    "files used": "files on a file system that existed and on which a call succeeded",
    "before": "the runs named first: their median if there are several",
    "after": "the runs named second: their median if there are several",
    "change": "after minus before, followed by percent of before, or the factor (x3.5)",
    "certainty": "significance of the difference, given the usual difference between runs",
    "clear": "such a difference occurs by chance in less than 5 % of cases",
    "noise": (
        "too small a difference to be reported: for a file less than 10 % of its time, less than 1 "
        "% of the run (one second in long runs), or no more than runs differ anyway"
    ),
    "too few runs to tell": (
        "the runs of both sides do not overlap, but with fewer than 4 of each chance causes that too often"
    ),
    "same": "no difference in any run",
    "only before": "no run after the change used this file",
    "only after": "no run before the change used this file",
}
PARTS = {
    "reading and writing": "calls that transfer bytes: read, write, sendfile, ...",
    "metadata": "calls about files rather than their contents: open, close, stat, ...",
    "seeking": "calls that change a file position: lseek",
    "sync and flush": "calls that wait until data is on its device: fsync, ...",
    "mapping": "calls that map files: mmap, ...; reads and writes through a map are not calls",
    "other calls": "calls on files of none of these classes: fcntl, ioctl, ...",
}
MEASURED = {
    "test": "large transfers, constant volume in other request sizes, metadata access, or a mixed workload",
    "operation": "measured operation: write, read, file creation, ...",
    "value": "the median over the repeats: bytes or operations per second",
    "spread": "half the range of the repeats, in percent of their median",
    "repeats": "number of times that the value was measured",
    "best": "the best of the repeats",
    "p50": "half of the operations took no longer than this",
    "p99": "99 of 100 operations took no longer than this",
    "nodes": "number of machines on which this happened at the same time",
    "cache": "whether reads came from the page cache",
    "other load": "data that other programs transferred on this machine in that time",
}
MONITORED = {
    "read/s": "bytes read per second",
    "written/s": "bytes written per second",
    "metadata/s": "metadata operations per second: open, close, stat, ...",
    "job": "the batch job, as numbered by the resource manager",
    "user": "owner of the job or process",
    "node": "the machine on which it ran",
    "target": "the server's part of the file system (OST, MDT) that it used",
}
GROUPS = {
    "comparison": (COMPARED, "word of iodock diff"),
    "parts of the time": (PARTS, "sort of I/O, in the report and iodock diff"),
    "check-up of a file system": (MEASURED, "heading of iodock health and bench"),
    "monitor": (MONITORED, "heading of iodock monitor top"),
}
"""For each group, its words with their meaning, and the kind of each word."""
