"""Defines the types and values that all pages use."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from iodock.centre.monitor.access import Visitor
from iodock.centre.monitor.degraded import Degraded, degraded
from iodock.centre.monitor.event_kinds import TITLES
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.jobs import Seen
from iodock.centre.monitor.questions.spans import DAY, HOUR, SECOND, Span, span
from iodock.centre.portal.charts import Chart
from iodock.centre.portal.forms import RANGES, Asked
from iodock.centre.portal.people import seen_by
from iodock.centre.portal.tables import Table
from iodock.centre.store import MonitorTables
from iodock.centre.watch.episodes import Episode
from iodock.centre.watch.history import together
from iodock.centre.watch.responder import Responder
from iodock.centre.watch.verdict import UNWELL, Verdict
from iodock.centre.watch.watching import Spell, Watching
from iodock.shared.errors import IodockError, StoreError
from iodock.shared.language import Language
from iodock.shared.settings import ServerStates

NOTICES_EVERY_S = 10
HISTORY_DAYS = 30
"""Number of past days that the page `Now` shows."""
LAG_S = 15
"""Delay until data arrives: an agent reads every 10 s, and rows are written every 5 s."""


@dataclass(frozen=True)
class Site:
    """Options of `monitor serve`."""

    ids: JobIds = field(default_factory=JobIds)
    limits: ServerStates = field(default_factory=ServerStates)
    names_jobs: bool = True
    """False: pages do not show the names of jobs."""
    is_synthetic: bool = False
    """True: all data is invented, and every page says so."""
    responder: Responder | None = None
    """Sends notices and takes actions; None: neither is done."""
    watching: Watching | None = None
    """Watches every sample; None: states are computed when a page needs them."""
    episodes: Callable[[int, int], list[Episode] | None] | None = None
    """Returns the episodes between two moments (ns since the epoch) if there is no responder; its result is
    None if episodes are not stored."""


SPAN = ("range", "end")
"""Parameters that `Question.within` uses."""


class NotThere(Exception):
    """Says that the requested object does not exist or that the visitor may not see it. The portal does not
    distinguish the two."""


class Remembered:
    """Caches data that is the same for all visitors and computes it again only at intervals."""

    def __init__(self, watching: Watching) -> None:
        self._lock = threading.Lock()
        self.watching = watching
        self._degraded: tuple[int, list[Degraded]] | None = None

    def verdicts(self, now: int) -> tuple[Verdict, ...]:
        """Returns the verdicts on the servers at NOW (ns since the epoch), the worst first. The result is
        empty if the store can't be read."""
        try:
            return self.watching.look(now)
        except IodockError:
            return ()

    def degraded(self, store: MonitorTables, now: int) -> list[Degraded]:
        """Lists the reasons why file systems are degraded. The result is at most NOTICES_EVERY_S old, and
        empty if the store can't be read."""
        with self._lock:
            if self._degraded is None or now - self._degraded[0] > NOTICES_EVERY_S * SECOND:
                try:
                    found = degraded(store, now)
                except StoreError:
                    found = []
                self._degraded = (now, found)
            return self._degraded[1]


@dataclass(frozen=True)
class Reason:
    """A reason why a file system is degraded, without the machine and the target, which not every visitor may
    see."""

    file_system: str
    title: str
    since: int


@dataclass(frozen=True)
class Question:
    """All that a page needs: the store, the request, the visitor and the language."""

    store: MonitorTables
    site: Site
    asked: Asked
    visitor: Visitor
    text: Language
    state: Remembered

    @cached_property
    def seen(self) -> Seen:
        return seen_by(self.visitor)

    def within(self, otherwise: str) -> Span:
        """Returns the requested span. If the address gives no end, the span ends LAG_S before now. If it
        gives no length, the length is OTHERWISE, a key of RANGES. Raises RequestError, StoreError."""
        end = self.asked.end or self.asked.now - LAG_S * SECOND
        length, _ = RANGES[self.asked.length(otherwise)]
        return span(end - length, end, self.store.catalogue)

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Returns the verdicts on the servers. They are at most one sample old."""
        return self.state.verdicts(self.asked.now)

    @property
    def unwell(self) -> list[Verdict]:
        """Returns the worst verdict of each file system that has problems. A verdict whose evidence contains
        an event, such as a lost path, is left out, because `degraded` reports it."""
        worst: dict[str, Verdict] = {}
        for one in self.verdicts:
            if one.state in UNWELL and not any(part.what in TITLES for part in one.evidence):
                worst.setdefault(one.file_system, one)
        return list(worst.values())

    @property
    def history(self) -> tuple[Spell, ...]:
        """Returns the periods in which servers had problems, the newest first. Periods from before the
        collector started come from stored episodes."""
        spells = self.state.watching.history()
        responder = self.site.responder
        try:
            kept = responder.episodes(self.asked.now - HISTORY_DAYS * DAY) if responder else []
        except StoreError:
            kept = []
        return tuple(together(spells, kept))

    @property
    def degraded(self) -> list[Reason]:
        """Returns the reasons why file systems are degraded, which are at most a few seconds old. A reason
        that applies to several targets of a file system is listed once, with the earliest start."""
        first: dict[tuple[str, str], int] = {}
        for one in self.state.degraded(self.store, self.asked.now):
            key = (one.file_system, self.text.gettext(TITLES[one.kind]))
            first[key] = min(first.get(key, one.since), one.since)
        return [Reason(name, title, since) for (name, title), since in sorted(first.items())]

    @property
    def is_empty(self) -> bool:
        """Returns whether no data has ever been pushed."""
        return self.store.is_empty

    @property
    def own(self) -> Mapping[str, str]:
        """Returns the parameters of the address that every link keeps."""
        language = self.asked.values.get("lang", "")
        return {"lang": language} if language else {}


@dataclass(frozen=True)
class Shown:
    """The content of a page."""

    template: str
    title: str
    begin: int
    end: int
    tables: list[Table]
    charts: list[Chart] = field(default_factory=list)
    more: Mapping[str, object] = field(default_factory=dict)
    """Values that only this page's template uses."""
    refreshes: bool = True


def known_span(rows: list[dict[str, object]], within: Span, now: int) -> tuple[int, int]:
    """Returns the period in which curves are known (ns since the epoch). It begins with the first step of
    ROWS. If the span ended less than an hour ago, it ends LAG_S before now, because later data may not have
    arrived yet."""
    begin = min((int(str(row["bucket"])) for row in rows), default=0) * within.step + within.begin
    return begin, now - LAG_S * SECOND if now - within.end < HOUR else within.end
