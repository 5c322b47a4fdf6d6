"""Contains the texts of the report: its sections, facts about the run, and texts of the page's script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from iodock.program.relations.grouping import MEASURES
from iodock.shared.labels import COLUMN_DOCS, HEADINGS, SAMPLES, VALUES
from iodock.shared.language import N_, Language


class SectionWords(NamedTuple):
    """Holds the short and the full name of a section, and its description."""

    short: str
    title: str
    lead: str


SECTIONS = {
    "verdict": SectionWords(N_("Verdict"), N_("Verdict"), ""),
    "findings": SectionWords(N_("What to change"), N_("What to change"), ""),
    "calls": SectionWords(
        N_("Calls"),
        N_("Calls"),
        N_(
            "Which system calls on files cost most; pipes and sockets are in the verdict only. "
            "Open a call to see its files."
        ),
    ),
    "files": SectionWords(
        N_("Files"),
        N_("Files"),
        N_("Open a file to see its calls, access sizes, and where and when it was read and written."),
    ),
    "flame": SectionWords(
        N_("Flame graph"),
        N_("Which lines cost how much"),
        N_(
            "Each box is a program, function, call or file; the calls that it made are below it. Click or "
            "Enter: zoom. Arrows: move to another box. Escape: show all. /: search."
        ),
    ),
    "time": SectionWords(
        N_("Over time"),
        N_("Over time"),
        N_("Reads are above the line, writes below. The bytes of a call are spread over its duration."),
    ),
    "sizes": SectionWords(
        N_("Sizes"),
        N_("Access sizes"),
        N_("Number of reads and writes of each size. Both axes are logarithmic."),
    ),
    "processes": SectionWords(
        N_("Processes"),
        N_("Processes"),
        N_("The programs that were started, by which process, how they ended and the time of their I/O."),
    ),
    "failures": SectionWords(
        N_("Failures"),
        N_("Failed calls"),
        N_(
            "Calls that failed. Many are harmless searches along a path; "
            "the same failure thousands of times is not."
        ),
    ),
    "unseen": SectionWords(
        N_("Not seen"),
        N_("Missing from the recording"),
        N_("Data missing from these numbers, how often, and the remedy."),
    ),
}
"""Names of the sections by id, in the order of the page."""

FACTS = {
    "command": N_("Command"),
    "host": N_("Host"),
    "kernel": N_("Kernel"),
    "started": N_("Started"),
    "wall": N_("Wall time"),
    "clock": N_("Clock"),
    "captured": N_("Captured by"),
    "logs": N_("Logs"),
    "exit": N_("Ended"),
    "processes": N_("Processes"),
    "ranks": N_("Ranks"),
    "hosts": N_("Hosts"),
    "calls": N_("Total number of calls"),
    "files": N_("Files touched"),
    "losses": N_("Not seen"),
    "directory": N_("Directory"),
    "lines": N_("Log lines"),
}
CLOCKS = {
    "epoch": N_("date and time"),
    "day": N_("time of day, without a date"),
    "relative": N_("from the start of the run"),
    "none": N_("none: the times of the calls are unknown"),
}
CAPTURED = {
    "strace": N_("strace log"),
    "truss": N_("truss log"),
    "freebsd-truss": N_("FreeBSD truss log"),
    "perf-trace": N_("perf trace log"),
    "ltrace": N_("ltrace log"),
    "ptrace": N_("live recording (ptrace)"),
    "rewrite": N_("live recording (rewrite)"),
    "bpf": N_("live recording (bpf)"),
}

MINOR = [
    *(column.name for column in MEASURES if column.place),
    *("class", "kind", "fs_type", "access", "size_bytes", "host", "how", "start_ns", "end_ns", "exit"),
    *("file_count", "pid"),
]
"""Columns that a narrow screen omits."""

_CALL = re.compile(r"\b(n?)gettext\(\s*'([^']*)'(?:,\s*'([^']*)')?")


def script_words(script: str, text: Language) -> dict[str, object]:
    """Returns the content of the script's variable `TEXT`: translations of the texts that SCRIPT contains,
    and labels."""
    calls = [match.groups() for match in _CALL.finditer(script)]
    return {
        "sentences": {one: text.gettext(one) for plural, one, _ in calls if not plural},
        "plurals": {
            one: [text.ngettext(one, many, n, n="{n}") for n in (1, 2)]
            for plural, one, many in calls
            if plural
        },
        "columns": _translated(HEADINGS, text),
        "columnDocs": _translated(COLUMN_DOCS, text),
        "minor": MINOR,
        "values": {column: _translated(words, text) for column, words in VALUES.items()},
        "samples": _translated(SAMPLES, text),
    }


def _translated(words: Mapping[str, str], text: Language) -> dict[str, str]:
    return {name: text.gettext(word) for name, word in words.items()}
