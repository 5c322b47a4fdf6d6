"""Describes which rows of the tables an answer needs. If a store is on another machine, only these rows are
transferred."""

from __future__ import annotations

from dataclasses import dataclass

OTHERS = "(others)"
"""Value of `session` for the sum over owners that are not listed."""


@dataclass(frozen=True)
class Need:
    """The rows that are needed: those that match all fields. An empty field matches all rows. A store may
    return more rows."""

    sources: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    """Columns of `job_io`, metrics of `targets`. They may include `other` and `time_us`."""
    jobs: tuple[str, ...] = ()
    """Regular expressions (RE2) for job ids. Each matches the whole id."""
    session: str = ""
    """Session of owners that are needed in addition to the jobs, if there are jobs."""
    is_presence: bool = False
    """Whether only the times are needed at which hosts, sources and file systems were read, and no values."""


EVERYTHING = Need()


def literally(text: str) -> str:
    """Returns a regular expression that matches only TEXT itself."""
    return "".join(f"\\{letter}" if letter in r"\.+*?()|[]{}^$" else letter for letter in text)
