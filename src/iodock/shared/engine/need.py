"""The parts of the tables that an answer needs. A store that fetches its rows remotely fetches only these."""

from __future__ import annotations

from dataclasses import dataclass

OTHERS = "(others)"
"""Value of `session` for the sum over owners that are not listed."""


@dataclass(frozen=True)
class Need:
    """The required rows: at least those that match these fields. An empty field means all."""

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
    """Returns a regular expression that matches only this text."""
    return "".join(f"\\{letter}" if letter in r"\.+*?()|[]{}^$" else letter for letter in text)
