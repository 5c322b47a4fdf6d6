"""What an answer needs of the tables: a store whose rows have to be fetched fetches no more."""

from __future__ import annotations

from dataclasses import dataclass

OTHERS = "(others)"
"""`session` of the sum over owners that are not told apart."""


@dataclass(frozen=True)
class Need:
    """Rows of these at least. What is empty: all of them."""

    sources: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    """Columns of `job_io`, metrics of `targets`; `other` and `time_us` are columns too."""
    jobs: tuple[str, ...] = ()
    """Whole ids, as regular expressions (RE2)."""
    session: str = ""
    """Or owners of this session, where there are jobs."""
    is_presence: bool = False
    """Only which hosts, sources and file systems were read when; no value."""


EVERYTHING = Need()


def literally(text: str) -> str:
    """As a regular expression that only this text fits."""
    return "".join(f"\\{letter}" if letter in r"\.+*?()|[]{}^$" else letter for letter in text)
