"""Creates the views that rules use, for one store. Events are aggregated once, so that no rule needs to read
all of them.

Each view is computed on first use. Some tables would have a row for each event, file or process of a large
run. They have a row for each *place* instead: the costliest files are places of their own, and all other
files are grouped by the pattern of their names.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from iodock.program.relations.derived import DERIVED, names
from iodock.program.relations.run_facts import RunFacts, run_facts_of
from iodock.program.store import Store
from iodock.program.store.folds import EventFold

if TYPE_CHECKING:
    from iodock.shared.settings import Settings

STORED: Mapping[str, str] = {
    "durations": "stored_durations",
    "opens": "stored_openings",
    "long_calls": "stored_slow_calls",
}
"""Maps a view to the table with the same rows that an import creates. Short runs and older stores have no
such table."""
# Rust aggregates events faster than SQL. It can do so if they are stored in iodock's own format.
FOLDS: Mapping[str, EventFold] = {
    "uses": EventFold(
        "uses",
        """SELECT file_id, utid, call_id, CAST(errno_id AS USMALLINT) AS errno_id, direction, side,
  CAST(sum(count) AS BIGINT) AS count, CAST(sum(time_ns) AS BIGINT) AS time_ns,
  max(longest_ns) AS longest_ns, CAST(sum(bytes) AS BIGINT) AS bytes, min(first_ts) AS first_ts,
  max(last_ts) AS last_ts
FROM folding.groups GROUP BY ALL""",
    ),
    "transfers": EventFold(
        "transfers",
        """SELECT CAST(place AS BIGINT) AS place, call_id, direction, pattern, size_bin,
  CAST(sum(count) AS BIGINT) AS count,
  CAST(sum(time_ns) AS BIGINT) AS time_ns,
  CAST(sum(count) * exp(sum(logarithms) / nullif(sum(timed), 0)) AS BIGINT) AS typical_ns,
  CAST(sum(bytes) AS BIGINT) AS bytes,
  CAST(least(sum(requested_bytes), 9223372036854775807) AS BIGINT) AS requested_bytes,
  CAST(sum(own_read_bytes) AS BIGINT) AS own_read_bytes,
  CAST(sum(any_read_bytes) AS BIGINT) AS any_read_bytes,
  CAST(sum(own_written_bytes) AS BIGINT) AS own_written_bytes,
  CAST(sum(any_written_bytes) AS BIGINT) AS any_written_bytes,
  CAST(sum(unaligned) AS BIGINT) AS unaligned, CAST(sum(known) AS BIGINT) AS known,
  CAST(sum(overlapping) AS BIGINT) AS overlapping, CAST(sum(back) AS BIGINT) AS back
FROM folding.groups GROUP BY ALL""",
        places="SELECT CAST(file_id AS UINTEGER) AS file_id, CAST(place AS UINTEGER) AS place FROM places "
        "WHERE file_id IS NOT NULL",
    ),
}
_SOURCE = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)")


@dataclass
class Profile:
    """Creates the views of one store. Each view is computed on first use, by whichever thread needs it
    first."""

    store: Store
    settings: Settings | None = None
    """The site's settings with typical values; None: no such values are known."""
    _made: set[str] = field(default_factory=set)
    _making: threading.RLock = field(default_factory=threading.RLock, repr=False)

    @cached_property
    def facts(self) -> RunFacts:
        """Returns the values that replace the placeholders `{name}` in the SQL of views."""
        return run_facts_of(self.store, self.settings)

    def need(self, names: Iterable[str]) -> None:
        """Computes the views of these names that do not exist yet. Raises KeyError for an unknown name."""
        for name in names:
            if name not in self._made:
                with self._making:
                    self._make(name)

    def need_for(self, sql: str) -> None:
        """Computes the views whose names occur as sources in the SELECT."""
        self.need(name for name in _SOURCE.findall(sql) if name in DERIVED)

    def _make(self, name: str) -> None:
        if name in self._made:
            return
        view = DERIVED[name]
        self.need(view.reads)
        fold = FOLDS.get(name)
        if fold is None or not self.store.fold(name, fold):
            is_stored = name in STORED and self.store.has_fold(STORED[name])
            self.store.keep(name, f"SELECT * FROM {STORED[name]}" if is_stored else view.sql(self.facts))
        self._made.add(name)


def tables_in(sql: str) -> tuple[str, ...]:
    """Returns the views that a query may use, which are those whose names occur in it as words."""
    words = set(re.findall(r"\w+", sql.lower()))
    return tuple(name for name in names() if name in words)
