"""Exports metrics about the collector's own work at `/metrics` for Prometheus. They do not include the I/O of
jobs.

The collector updates most numbers while it works, so a scrape only has to read them.
"""

from __future__ import annotations

import threading
from collections import Counter as Counted
from collections.abc import Iterator
from typing import Protocol

from anyio import to_thread
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector as Source
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from iodock.centre.monitor.access import Access
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.questions.spans import HOUR
from iodock.centre.portal.connections import OpenConnections
from iodock.centre.store import MonitorStore, MonitorTables
from iodock.centre.watch.responder import Responder
from iodock.shared.errors import IodockError, StoreError

MOST_AGENTS = 10_000
"""Largest number of agents that have their own series. Those heard last are preferred."""
_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Clock(Protocol):
    def __call__(self) -> int: ...


class Metrics:
    """The metrics of one collector, or of a portal that reads its data from a Prometheus server."""

    def __init__(
        self,
        store: MonitorTables,
        access: Access,
        clock: Clock,
        collector: Collector | None = None,
        places: OpenConnections | None = None,
        responder: Responder | None = None,
    ) -> None:
        """Registers the metrics. CLOCK returns the time in ns since the epoch."""
        self._access = access
        self._registry = CollectorRegistry()
        self._scraping = threading.Lock()
        ProcessCollector(registry=self._registry)
        seconds = Histogram(
            "iodock_store_query_seconds", "How long queries of the store took.", ["resolution"],
            registry=self._registry, buckets=_BUCKETS,
        )  # fmt: skip
        self.pushes = Counter(
            "iodock_collector_pushes", "Requests of agents that push, by the answer's status.", ["status"],
            registry=self._registry,
        )  # fmt: skip
        if isinstance(store, MonitorStore):
            store.on_asked = lambda resolution, took: seconds.labels(resolution).observe(took)
            self._registry.register(_Store(store, clock))
        if collector:
            self._registry.register(_Intake(collector))
        if places is not None:
            self._registry.register(_Connections(places))
        if responder is not None:
            self._registry.register(_Response(responder))

    async def answer(self, request: Request) -> Response:
        """Answers a scrape. The client must be an operator, because the metrics contain the names and
        refusals of agents."""
        address = request.client.host if request.client else ""
        visitor = self._access.visitor(dict(request.headers), address)
        if visitor is None:
            return PlainTextResponse("a token is needed\n", 401, {"WWW-Authenticate": "Bearer"})
        if not visitor.may_see_all:
            return PlainTextResponse("an operator's token is needed\n", 403)
        return Response(await to_thread.run_sync(self._scraped), media_type=_TYPE)

    def _scraped(self) -> bytes:
        # Only one scrape runs at a time, because each one queries the losses in the store.
        with self._scraping:
            return generate_latest(self._registry)


class _Intake(Source):
    """Metrics of the data received from agents by push or pull."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        taken = self._collector.taken()
        for name, text, value in (
            ("batches", "Number of batches that were kept.", taken.batches),
            ("bytes", "Uncompressed bytes of the batches.", taken.size_bytes),
            ("values", "Values in batches.", taken.values),
        ):
            yield CounterMetricFamily(f"iodock_collector_{name}", text, value=value)
        refused = CounterMetricFamily(
            "iodock_collector_refused", "Pushes by agents, and replies of agents to pulls, that were "
                                        "rejected completely or partly.",
            labels=["reason"],
        )  # fmt: skip
        for reason, count in sorted(taken.refused.items()):
            refused.add_metric([reason], count)
        yield refused
        agents = GaugeMetricFamily(
            "iodock_agent_last_batch_timestamp_seconds",
            "Time at which the agent's last batch was stored.", labels=["host"],
        )  # fmt: skip
        latest = sorted(taken.agents.items(), key=lambda one: -one[1])[:MOST_AGENTS]
        for host, at in sorted(latest):
            agents.add_metric([host], at / 1e9)
        yield agents
        yield GaugeMetricFamily(
            "iodock_agents", "Machines whose agent has reported since the collector started.",
            value=len(taken.agents),
        )  # fmt: skip


class _Connections(Source):
    """Metrics of the connections of agents and browsers."""

    def __init__(self, places: OpenConnections) -> None:
        self._places = places

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("iodock_connections", "Open connections.", value=len(self._places))
        yield GaugeMetricFamily(
            "iodock_connections_limit",
            "Number of connections that may be open at the same time.",
            value=self._places.most,
        )
        closed = CounterMetricFamily(
            "iodock_connections_closed", "Connections that were refused or ended, by reason.",
            labels=["reason"],
        )  # fmt: skip
        for reason, count in sorted(self._places.closed.copy().items()):
            closed.add_metric([reason], count)
        yield closed


class _Response(Source):
    """Metrics of the servers' episodes and of the notices about them. They are omitted if they can't be
    read."""

    def __init__(self, responder: Responder) -> None:
        self._responder = responder

    def collect(self) -> Iterator[Metric]:
        try:
            waiting, counts = self._responder.waiting(), self._responder.counts()
        except StoreError:
            return
        is_open = GaugeMetricFamily(
            "iodock_episodes", "Servers with problems now, by state.", labels=["file_system", "state"]
        )
        states = Counted((one.file_system, one.state) for one in self._responder.open_episodes())
        for (place, state), count in sorted(states.items()):
            is_open.add_metric([place, state], count)
        yield is_open
        yield GaugeMetricFamily("iodock_notices_waiting", "Notices waiting to be sent.", value=waiting)
        results = CounterMetricFamily(
            "iodock_notices", "Notices sent and lost since the response folder was created.",
            labels=["channel", "result"],
        )  # fmt: skip
        sums = Counted[tuple[str, str]]()
        for name, count in counts.items():
            result, channel = name.split(": ")[:2]
            sums[channel, result] += count
        for labels, count in sorted(sums.items()):
            results.add_metric(labels, count)
        yield results


class _Store(Source):
    """Metrics of the store's content. If the store can't be read, only `iodock_store_readable` is exported,
    with the value 0."""

    def __init__(self, store: MonitorStore, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def collect(self) -> Iterator[Metric]:
        kinds = ("files", "rows")
        found = [
            GaugeMetricFamily(
                f"iodock_store_{kind}", f"{kind.capitalize()} that count.", labels=["table", "resolution"]
            )
            for kind in kinds
        ]
        readable = GaugeMetricFamily("iodock_store_readable", "1: the store can be read.", value=0)
        lost = GaugeMetricFamily(
            "iodock_losses_last_hour", "Losses of the last hour, by name: dropped-batches, ...",
            labels=["name"],
        )  # fmt: skip
        try:
            catalogue = self._store.catalogue
            for (table, resolution), files in sorted(catalogue.files.items()):
                for family, value in zip(found, (len(files), sum(file.rows for file in files)), strict=True):
                    family.add_metric([table, resolution], value)
            for row in self._losses():
                lost.add_metric([str(row["name"])], int(str(row["count"])))
        except IodockError:
            yield readable
            return
        yield GaugeMetricFamily("iodock_store_readable", "1: the store can be read.", value=1)
        yield from found
        yield lost
        yield GaugeMetricFamily(
            "iodock_store_bytes", "Bytes of all files in the store's folder.", value=self._size()
        )

    def _losses(self) -> list[dict[str, object]]:
        now = self._clock()
        sql = "SELECT name, sum(count)::BIGINT AS count FROM losses GROUP BY name ORDER BY name"
        rows: list[dict[str, object]] = self._store.table(
            sql, begin=now - HOUR, end=now, resolution="fine"
        ).to_pylist()
        return rows

    def _size(self) -> int:
        size = 0
        for path in self._store.folder.rglob("*"):
            try:
                size += path.stat().st_size if path.is_file() else 0
            except OSError:
                # The collector has removed the file since the folder was listed.
                continue
        return size
