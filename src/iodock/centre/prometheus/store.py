"""Provides the tables of a monitor store from data of a Prometheus server."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import duckdb
import pyarrow as pa

from iodock.centre.prometheus.client import SECOND, Client
from iodock.centre.prometheus.fetch import Fetch
from iodock.centre.store import Catalogue, between, tables_in
from iodock.shared.engine.connection import connected
from iodock.shared.engine.need import EVERYTHING, Need
from iodock.shared.errors import QueryError
from iodock.shared.language import N_

STEPS = {"fine": 0, "minute": 60 * SECOND, "ten_minutes": 600 * SECOND}
"""Maps a resolution to its step, ns; 0: readings as they were scraped."""


class PrometheusStore:
    """Runs the same queries as a `MonitorStore`. Each query fetches the data that it needs from Prometheus,
    and nothing is cached."""

    catalogue: Catalogue | None = None
    """There is no catalogue, because the store does not know what data exists."""
    is_empty = False
    limits: tuple[str, ...] = (
        N_(
            "Read from Prometheus: for each target and node only the heaviest jobs are listed "
            "separately. (others) is the sum of all other jobs, a lower bound."
        ),
        N_(
            "The time between readings is the scrape interval of Prometheus. Long time ranges are read "
            "in steps of one or ten minutes: a job that began within a step may have done more (≥)."
        ),
        N_("Prometheus has no events and no names of jobs."),
    )

    def __init__(self, client: Client) -> None:
        self.client = client

    def table(
        self,
        sql: str,
        parameters: Sequence[object] = (),
        *,
        begin: int,
        end: int,
        resolution: str,
        need: Need = EVERYTHING,
    ) -> pa.Table:
        """Runs a query as `MonitorStore.table` does. Raises AnswerError, RequestError, QueryError."""
        try:
            with self._connection.cursor() as cursor:
                for name in tables_in(sql):
                    self._provide(cursor, name, begin, end, STEPS[resolution], need)
                return cursor.sql(sql, params=list(parameters)).to_arrow_table()
        except duckdb.Error as error:
            raise QueryError(str(error)) from error

    def _provide(
        self, cursor: duckdb.DuckDBPyConnection, name: str, begin: int, end: int, step: int, need: Need
    ) -> None:
        with self._connection.cursor() as own:
            rows = Fetch(self.client, own, begin, end, step).rows(name, need)
        cursor.register(f"fetched_{name}", rows)
        within = between(name, begin, end)
        cursor.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM fetched_{name} WHERE {within}")

    @cached_property
    def _connection(self) -> duckdb.DuckDBPyConnection:
        return connected()
