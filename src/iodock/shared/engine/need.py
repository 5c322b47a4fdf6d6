"""The parts of the tables that an answer needs: a store that fetches its rows remotely fetches no more."""

from __future__ import annotations

from dataclasses import dataclass

OTHERS = "(others)"
"""`session` of the sum over owners that are not distinguished."""


@dataclass(frozen=True)
class Need:
    """At least the rows that match these. An empty field means all."""

    sources: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    """Columns of `job_io`, metrics of `targets`; this includes `other` and `time_us`."""
    jobs: tuple[str, ...] = ()
    """Regular expressions (RE2) that match whole ids."""
    session: str = ""
    """Or owners with this session, if there are jobs."""
    is_presence: bool = False
    """Only when hosts, sources and file systems were read; no values."""


EVERYTHING = Need()


def literally(text: str) -> str:
    """A regular expression that matches only this text."""
    return "".join(f"\\{letter}" if letter in r"\.+*?()|[]{}^$" else letter for letter in text)
