"""Fetches the series for one query from Prometheus, interprets them, and computes the rows of a table."""

from __future__ import annotations

import time
from collections.abc import Iterator

import duckdb
import pyarrow as pa

from iodock.centre.prometheus import answers, growth, selection
from iodock.centre.prometheus.client import SECOND, Client, TooMuch
from iodock.centre.prometheus.series import Kind, Series, kind_of
from iodock.centre.store import counters, nothing
from iodock.shared.bounded.documents import from_json
from iodock.shared.engine.need import Need
from iodock.shared.errors import AnswerError

MOST_SAMPLES = 6_000_000
"""Largest number of samples for one query. More would need gigabytes of memory."""
MOST_SERIES = 200_000
_HOUR = 3600 * SECOND
_SHORTEST = 10 * SECOND
"""If the response for a period of this length is still too long, the query fails."""


class Fetch:
    """Computes the rows of one table for one query. It uses temporary tables in a DuckDB connection of its
    own."""

    def __init__(
        self, client: Client, connection: duckdb.DuckDBPyConnection, begin: int, end: int, step: int
    ) -> None:
        """STEP is the length of a step in ns, or 0 if every scraped reading is needed."""
        self._client, self._connection, self._step = client, connection, step
        # Data from before the period shows which entries are new. A server removes an entry only after it was
        # idle for IDLE, so no earlier data is needed.
        self._begin = begin - growth.IDLE - 2 * step
        self._end = end
        self._series = Series()
        self._samples = 0
        self._latest: tuple[int, ...] = (time.time_ns(),) if step else ()
        connection.execute(answers.TABLES)

    def rows(self, table: str, need: Need) -> pa.Table:
        """Returns the rows of a table. `events` and `job_names` are empty, because Prometheus does not have
        them. Raises AnswerError, RequestError."""
        if table in ("events", "job_names"):
            return self._made(nothing(table))
        if table == "losses":
            return self._losses()
        if need.is_presence:
            return self._presence(table, need)
        if table == "job_io":
            self._take(selection.of_places(need), *selection.of_owners(need))
            return self._made(growth.job_io(self._step, tuple(counters())))
        self._take(selection.of_places(Need(need.sources, is_presence=True)), selection.of_nobody(need))
        return self._made(growth.targets(self._step))

    def _presence(self, table: str, need: Need) -> pa.Table:
        """Returns rows without counts, one for each scraped reading of a source or machine."""
        self._step, self._latest = 0, ()
        if table == "job_io":
            self._take(selection.of_places(need))
            return self._made(f"SELECT * FROM ({nothing(table)}) UNION ALL BY NAME {answers.SEEN}")
        self._take_levels(selection.HOST, self._step)
        return self._made(f"SELECT * FROM ({nothing(table)}) UNION ALL BY NAME {answers.HOSTS}")

    def _losses(self) -> pa.Table:
        """Returns rows of losses, one for each hour. The agent reports a loss again with every reading, so
        Prometheus does not have the time at which the loss occurred."""
        for name, function, selector in selection.LOSSES:
            self._take_levels(selector, _HOUR, function, name)
        return self._made(f"SELECT * FROM ({nothing('losses')}) UNION ALL BY NAME {answers.LOSSES}")

    def _made(self, select: str) -> pa.Table:
        for name, rows in self._series.tables():
            self._connection.register(name, rows)
        return self._connection.sql(select).to_arrow_table()

    def _take(self, *selectors: str) -> None:
        for selector in selectors:
            for answer in self._answers(selector, self._begin, self._end, self._step):
                self._open(answer)
                self._number()
                self._connection.execute(answers.sorted_until(*self._latest))

    def _take_levels(
        self, selector: str, step: int, function: str = "last_over_time", name: str = ""
    ) -> None:
        for answer in self._answers(selector, self._begin, self._end, step, function):
            self._open(answer)
            self._connection.execute(answers.LEVELS, [name, self._end])

    def _answers(
        self, selector: str, begin: int, end: int, step: int, function: str = "last_over_time"
    ) -> Iterator[bytes]:
        """Sends a query and yields the responses. If a response would be too long, the period is halved and
        each half is queried."""
        whole = step or SECOND
        begin, end = begin // whole * whole, -(-end // whole) * whole
        answer = self._asked(selector, begin, end, step, function)
        if answer is not None:
            yield answer
            return
        if end - begin < max(_SHORTEST, 2 * whole):
            raise self._too_many()
        half = begin + (end - begin) // 2 // whole * whole
        yield from self._answers(selector, begin, half, step, function)
        yield from self._answers(selector, half + step, end, step, function)

    def _asked(self, selector: str, begin: int, end: int, step: int, function: str) -> bytes | None:
        """Sends one query and returns the response, or None if it would be too long."""
        try:
            if not step:
                return self._client.readings(selector, begin, end)
            # The function, usually last_over_time, returns the last value within each step. Without it, an
            # entry that ended in the middle of a step would be missing at the step's end.
            return self._client.steps(f"{function}({selector}[{step // SECOND}s])", begin, end, step)
        except TooMuch:
            return None

    def _too_many(self) -> AnswerError:
        return AnswerError(
            f"{self._client.address} has too many series for this query",
            "query a shorter period or one job, or list fewer jobs: iodock-agent run --jobs N",
        )

    def _open(self, answer: bytes) -> None:
        """Loads a response into the table `answer`. Raises AnswerError if it is not a valid response."""
        try:
            self._connection.execute(answers.OPENED, [answer.decode()])
            head = self._connection.execute(answers.HEAD).fetchall()
        except (UnicodeDecodeError, duckdb.Error) as error:
            raise self._nonsense(answer) from error
        status, kind, is_partial, warning = head[0]
        if status != "success" or kind != "matrix":
            raise self._nonsense(answer)
        if is_partial or warning:
            raise AnswerError(
                f"{self._client.address} answers in part only: {(warning or 'isPartial')[:200]}",
                "sums would be too small; try again when all of the storage is available",
            )
        self._connection.execute(answers.SPLIT)
        samples, odd = self._connection.execute(answers.SIZE).fetchall()[0]
        if odd:
            raise self._nonsense(answer)
        self._samples += samples
        if self._samples > MOST_SAMPLES:
            raise self._too_many()

    def _nonsense(self, answer: bytes) -> AnswerError:
        start = "".join(one if one.isprintable() else " " for one in answer[:60].decode(errors="replace"))
        return AnswerError(
            f"{self._client.address} does not answer like a Prometheus: {start!r}", "check the port"
        )

    def _number(self) -> None:
        """Interprets the labels of the series in `answer` and registers the result as the table
        `numbered`."""
        found = self._connection.execute("SELECT number, labels FROM answer").fetchall()
        rows = [row for number, text in found if (row := self._numbered(number, _labels(text)))]
        if len(self._series.counters) > MOST_SERIES:
            raise self._too_many()
        columns = list(zip(*rows, strict=True)) or [()] * len(answers.NUMBERED)
        arrays = [pa.array(column, one.type) for column, one in zip(columns, answers.NUMBERED, strict=True)]
        self._connection.register("numbered", pa.Table.from_arrays(arrays, schema=answers.NUMBERED))

    def _numbered(self, number: int, labels: dict[str, str]) -> tuple[int, int, str] | None:
        kind = kind_of(labels.get("__name__", ""))
        return None if kind is None else (number, self._series.number(labels, kind), _part(kind))


def _labels(text: str) -> dict[str, str]:
    return {name: str(value) for name, value in from_json(text).items()}


def _part(kind: Kind) -> str:
    """Returns what the values of a series mean, as a value of the column `part` in answers.NUMBERED."""
    if kind.quantity == "owners":
        return "others"
    if kind.is_created:
        return "start"
    return "time" if kind.quantity == "time_seconds" else "value"
