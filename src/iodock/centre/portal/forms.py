"""Reads the parameters in the address of a request. Every value is checked. An invalid value raises
RequestError, which the portal shows as an error page."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from iodock.centre.monitor.questions.counted import PLACES
from iodock.centre.monitor.questions.jobs import SORTS
from iodock.centre.monitor.questions.spans import DAY, HOUR, SECOND
from iodock.shared.errors import RequestError
from iodock.shared.language import LANGUAGES, N_

RANGES = {
    "15m": (HOUR // 4, N_("15 minutes")), "1h": (HOUR, N_("1 hour")), "6h": (6 * HOUR, N_("6 hours")),
    "1d": (DAY, N_("1 day")), "7d": (7 * DAY, N_("7 days")), "30d": (30 * DAY, N_("30 days")),
}  # fmt: skip
"""Maps the name in addresses to the length in ns, and to its title."""
FORMATS = ("html", "csv", "json")
LONGEST_TEXT = 20_000
MOST_ROWS = 10_000
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-5][0-9])?")
_PLAIN_ID = re.compile(r"[A-Za-z0-9_@,+=\[\]~-][A-Za-z0-9_.:@,+=\[\]~-]{0,200}")


@dataclass(frozen=True)
class Asked:
    """The address and parameters of one request."""

    path: str
    values: Mapping[str, str]
    now: int
    """Time of the request, ns since the epoch."""

    def choice(self, name: str, known: Mapping[str, object] | tuple[str, ...], otherwise: str) -> str:
        """Returns the parameter NAME, or OTHERWISE if it is not given. Raises RequestError if its value is
        not in KNOWN."""
        value = self.values.get(name) or otherwise
        if value not in known and value != otherwise:
            raise RequestError(f"{name}: {shortened(value)}", "one of " + ", ".join(known))
        return value

    def text(self, name: str) -> str:
        """Returns a parameter with free text. Raises RequestError if it is too long."""
        value = self.values.get(name, "").strip()
        if len(value) > LONGEST_TEXT:
            raise RequestError(f"{name}: longer than {LONGEST_TEXT} characters")
        return value

    def number(self, name: str, otherwise: int, most: int) -> int:
        """Returns the parameter NAME, or OTHERWISE if it is not given. Raises RequestError if its value is
        not an integer from 1 to MOST."""
        value = self.values.get(name) or str(otherwise)
        if not (value.isascii() and value.isdecimal() and 1 <= len(value) <= 18 and 1 <= int(value) <= most):
            raise RequestError(f"{name}: {shortened(value)}", f"a whole number from 1 to {most}")
        return int(value)

    @property
    def format(self) -> str:
        return self.choice("format", FORMATS, "html")

    @property
    def sort(self) -> str:
        return self.choice("sort", SORTS, "write_rate")

    @property
    def is_descending(self) -> bool:
        return self.choice("order", ("down", "up"), "down") == "down"

    @property
    def place(self) -> str:
        """Returns the place whose counts are requested. It is empty if the address does not give one, and the
        page then chooses a place."""
        return self.choice("at", PLACES, "")

    @property
    def language(self) -> str:
        return self.choice("lang", LANGUAGES, "")

    def length(self, otherwise: str) -> str:
        """Returns the requested length of the span as a key of RANGES, or OTHERWISE if it is not given.
        Raises RequestError."""
        return self.choice("range", RANGES, otherwise)

    @property
    def end(self) -> int | None:
        """Returns the requested end of the span in ns since the epoch, or None if the span ends now. Raises
        RequestError."""
        value = self.values.get("end", "")
        return None if not value else min(_moment(value), self.now)

    def month(self) -> tuple[str, int, int]:
        """Returns the requested month as `2026-11`, and its begin and end in the collector's time zone in ns
        since the epoch. Raises RequestError."""
        value = self.values.get("month") or time.strftime("%Y-%m", time.localtime(self.now / SECOND))
        found = re.fullmatch(r"(20\d\d)-(0[1-9]|1[0-2])", value, re.ASCII)
        if not found:
            raise RequestError(f"month: {shortened(value)}", "as 2026-11")
        year, month = int(found[1]), int(found[2])
        after = (year + month // 12, month % 12 + 1)
        begin, end = (int(time.mktime((*one, 1, 0, 0, 0, 0, 0, -1))) for one in ((year, month), after))
        return value, begin * SECOND, end * SECOND

    def address(self, **changed: str) -> str:
        """Returns the address of this page with some parameters changed. Parameters with empty values are
        removed."""
        kept = {name: self.values[name] for name in _KEPT if name in self.values}
        return with_values(self.path, {**kept, **changed})


_KEPT = (
    "id", "range", "end", "at", "user", "host", "kind", "severity", "fs", "q", "sort", "order", "top",
    "month", "lang",
)  # fmt: skip


def check_names(names: Iterable[str], words: tuple[str, ...]) -> None:
    """Checks the names of the parameters in an address. WORDS are the parameters that the page uses. Raises
    RequestError for a parameter that the page would ignore, and for one that is given twice."""
    known = (*words, "lang", "format", "table")
    seen: set[str] = set()
    for name in names:
        if name not in known:
            raise RequestError(
                f"{shortened(name)}: this page has no such parameter", "one of " + ", ".join(known)
            )
        if name in seen:
            raise RequestError(f"{name}: is given twice", "give one value")
        seen.add(name)
    if "table" in seen and "format" not in seen:
        raise RequestError("table: a page contains all its tables", "add format=csv or format=json")


def with_values(path: str, values: Mapping[str, str]) -> str:
    """Returns an address with all parameters whose values are not empty."""
    rest = urlencode({name: value for name, value in values.items() if value})
    return f"{path}?{rest}" if rest else path


def job_address(job: str, values: Mapping[str, str]) -> str:
    """Returns the address of a job's page. An id that could be mistaken for a part of a path, such as `..`,
    is put in the query."""
    if _PLAIN_ID.fullmatch(job):
        return with_values("/jobs/" + quote(job, safe=""), values)
    return with_values("/jobs/", {"id": job, **values})


def machine_address(host: object, values: Mapping[str, str]) -> str:
    """Returns the address of a machine's page for the same span and language as in VALUES. The machine's name
    is in the query and not in the path, so it may contain any characters."""
    kept = {name: values[name] for name in ("range", "end", "lang") if name in values}
    return with_values("/machines", {"host": str(host), **kept})


def shortened(value: str, most: int = 60) -> str:
    """Shortens a value to MOST characters for a message."""
    return value if len(value) <= most else value[: most - 1] + "…"


def _moment(value: str) -> int:
    """Parses a time such as `2026-11-22T05:00` in the collector's time zone, or a number of seconds since the
    epoch. Returns ns since the epoch. Raises RequestError."""
    if value.isascii() and value.isdecimal() and len(value) <= 11:
        return int(value) * SECOND
    try:
        if not _MOMENT.fullmatch(value):
            raise ValueError
        found = time.strptime(value, "%Y-%m-%dT%H:%M:%S" if len(value) > 16 else "%Y-%m-%dT%H:%M")
        if found.tm_year < 2000 or found.tm_year > 2200:
            raise ValueError
    except ValueError:
        raise RequestError(f"end: {shortened(value)}", "as 2026-11-22T05:00") from None
    return int(time.mktime(found)) * SECOND
