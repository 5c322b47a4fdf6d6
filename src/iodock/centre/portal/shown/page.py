"""What all pages have in common."""

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
"""Of the page Now."""
LAG_S = 15
"""What happened since may not be here yet: an agent reads every 10 s, and rows are written every 5."""


@dataclass(frozen=True)
class Site:
    """What is told to `monitor serve`."""

    ids: JobIds = field(default_factory=JobIds)
    limits: ServerStates = field(default_factory=ServerStates)
    names_jobs: bool = True
    """False: pages do not tell what jobs are called."""
    is_synthetic: bool = False
    """All of it is made up, and every page says so."""
    responder: Responder | None = None
    """None: nobody is told, and nothing is done."""
    watching: Watching | None = None
    """Who looks at every sample; None: looked at as pages are asked for."""
    episodes: Callable[[int, int], list[Episode] | None] | None = None
    """Those between two moments, ns since the epoch, where there is no responder; None: nobody keeps any."""


SPAN = ("range", "end")
"""Words of an address that `Question.within` uses."""


class NotThere(Exception):
    """Nothing that this visitor may see."""


class Remembered:
    """What all visitors are told alike, and is asked for once in a while."""

    def __init__(self, watching: Watching) -> None:
        self._lock = threading.Lock()
        self.watching = watching
        self._degraded: tuple[int, list[Degraded]] | None = None

    def verdicts(self, now: int) -> tuple[Verdict, ...]:
        """Of servers, the worst first; none where the store can't be asked."""
        try:
            return self.watching.look(now)
        except IodockError:
            return ()

    def degraded(self, store: MonitorTables, now: int) -> list[Degraded]:
        """File systems that are degraded."""
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
    """Why a file system is degraded, as it is told to everybody."""

    file_system: str
    title: str
    since: int


@dataclass(frozen=True)
class Question:
    """Who asks what, of which store."""

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
        """The span that is asked for; else the last of a key of RANGES. Raises RequestError, StoreError."""
        end = self.asked.end or self.asked.now - LAG_S * SECOND
        length, _ = RANGES[self.asked.length(otherwise)]
        return span(end - length, end, self.store.catalogue)

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """As of now, or at most a sample ago."""
        return self.state.verdicts(self.asked.now)

    @property
    def unwell(self) -> list[Verdict]:
        """Of each file system the worst; what an event of an array or a path says has a notice of its own."""
        worst: dict[str, Verdict] = {}
        for one in self.verdicts:
            if one.state in UNWELL and not any(part.what in TITLES for part in one.evidence):
                worst.setdefault(one.file_system, one)
        return list(worst.values())

    @property
    def history(self) -> tuple[Spell, ...]:
        """Spells of trouble, the newest first; those of before the collector started as episodes are kept."""
        spells = self.state.watching.history()
        responder = self.site.responder
        try:
            kept = responder.episodes(self.asked.now - HISTORY_DAYS * DAY) if responder else []
        except StoreError:
            kept = []
        return tuple(together(spells, kept))

    @property
    def degraded(self) -> list[Reason]:
        """As of now, or a few seconds ago: of each file system each reason once, since when it is so."""
        first: dict[tuple[str, str], int] = {}
        for one in self.state.degraded(self.store, self.asked.now):
            key = (one.file_system, self.text.gettext(TITLES[one.kind]))
            first[key] = min(first.get(key, one.since), one.since)
        return [Reason(name, title, since) for (name, title), since in sorted(first.items())]

    @property
    def is_empty(self) -> bool:
        """Has nobody pushed anything yet?"""
        return self.store.is_empty

    @property
    def own(self) -> Mapping[str, str]:
        """What goes along with every link."""
        language = self.asked.values.get("lang", "")
        return {"lang": language} if language else {}


@dataclass(frozen=True)
class Shown:
    """A page's content."""

    template: str
    title: str
    begin: int
    end: int
    tables: list[Table]
    charts: list[Chart] = field(default_factory=list)
    more: Mapping[str, object] = field(default_factory=dict)
    """What only this page's template knows."""
    refreshes: bool = True


def known_span(rows: list[dict[str, object]], within: Span, now: int) -> tuple[int, int]:
    """Since when and until when curves are known, ns since the epoch. The step that is under way is not."""
    begin = min((int(str(row["bucket"])) for row in rows), default=0) * within.step + within.begin
    return begin, now - LAG_S * SECOND if now - within.end < HOUR else within.end
