"""Chooses the resolution that a query over a span of time reads, and the steps of its result."""

from __future__ import annotations

from dataclasses import dataclass

from iodock.centre.store import RESOLUTIONS, Catalogue

SECOND = 1_000_000_000
HOUR = 3600 * SECOND
DAY = 24 * HOUR
POINTS = 300
"""Largest number of steps on an axis."""
_STEPS_S = (10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
_FOREVER = 1 << 63
_MANY_ROWS = 5_000_000
"""Two cores read this number of rows in about a second."""


@dataclass(frozen=True)
class Span:
    """The time from `begin` to `end` (ns since the epoch), in `steps` steps of `step` ns each."""

    begin: int
    end: int
    step: int
    resolution: str
    """Resolution for curves."""
    sums: str
    """Resolution for sums over the whole span."""

    @property
    def steps(self) -> int:
        return (self.end - self.begin) // self.step

    @property
    def seconds(self) -> float:
        return (self.end - self.begin) / SECOND


def span(begin: int, end: int, catalogue: Catalogue | None = None) -> Span:
    """Returns the span from BEGIN to END, rounded outwards to whole steps, of which there are at most POINTS
    + 1. Curves use fine rows for up to two hours, minutes for up to two days, and else ten minutes. If these
    rows are no longer kept, a coarser resolution is used."""
    length = max(end - begin, 10 * SECOND)
    kept = _kept_from(begin, catalogue) if catalogue else 0
    curves = RESOLUTIONS[max(kept, (length > 2 * HOUR) + (length > 2 * DAY))]
    short = length <= HOUR // 2 and not (catalogue and _is_much(catalogue, begin, end))
    sums = RESOLUTIONS[max(kept, (not short) + (length > HOUR))]
    step = _step(length, {"fine": 10, "minute": 60, "ten_minutes": 600}[curves])
    first, last = (end - length) // step * step, -(-end // step) * step
    return Span(first, last, step, curves, sums)


def _is_much(catalogue: Catalogue, begin: int, end: int) -> bool:
    """Returns whether the period has so many of the finest rows that sums over them would be slow."""
    return sum(file.rows for file in catalogue.chosen("job_io", RESOLUTIONS[0], begin, end)) > _MANY_ROWS


def _kept_from(begin: int, catalogue: Catalogue) -> int:
    """Returns the index of the finest resolution that is kept from BEGIN on. If no data is that old, returns
    the finest one that reaches back to the oldest data."""
    return max(_kept_of(table, begin, catalogue) for table in ("job_io", "targets"))


def _kept_of(table: str, begin: int, catalogue: Catalogue) -> int:
    # The earliest begin of a row does not show how far back a resolution is kept: if an agent was not running
    # for a month, its first row afterwards begins a month ago. Therefore ends of files are compared.
    first = [
        min((file.end for file in catalogue.chosen(table, name, 0, _FOREVER)), default=_FOREVER)
        for name in RESOLUTIONS
    ]
    wanted = max(begin, min(first))
    return next(level for level, moment in enumerate(first) if moment <= wanted)


def _step(length: int, least_s: int) -> int:
    for seconds in _STEPS_S:
        if seconds >= least_s and length <= POINTS * seconds * SECOND:
            return seconds * SECOND
    return -(-length // (POINTS * DAY)) * DAY


def spread(rows: str, keys: str, values: dict[str, str], within: Span) -> str:
    """Returns a SELECT of `bucket` (number of the step, from 0), the columns KEYS, `exact`, and sums of
    VALUES, which maps names to SQL expressions. The values of a row are distributed over the steps in
    proportion to the time that the row's interval has in each step. ROWS is a FROM clause whose rows have
    `begin_ts` and `end_ts`."""
    sums = ", ".join(f'sum({expression})::DOUBLE AS "{name}"' for name, expression in values.items())
    shares = ", ".join(f'sum("{name}" * share)::DOUBLE AS "{name}"' for name in values)
    begin, step = within.begin, within.step
    return f"""
        WITH brief AS (
            SELECT least(begin_ts, end_ts - 1) AS b, end_ts AS e, {keys}, bool_and(exact) AS exact, {sums}
            FROM {rows} GROUP BY ALL
        ), parts AS (
            SELECT *, unnest(range(
                greatest(b - {begin}, 0) // {step}, (least(e, {within.end}) - 1 - {begin}) // {step} + 1
            )) AS bucket FROM brief
        ), shared AS (
            SELECT *, (least(e, {begin} + (bucket + 1) * {step}) - greatest(b, {begin} + bucket * {step}))
                / (e - b) AS share FROM parts
        )
        SELECT bucket, {keys}, bool_and(exact) AS exact, {shares} FROM shared GROUP BY ALL ORDER BY ALL
    """


def overlap(within: Span) -> str:
    """Returns SQL for the share of a row's interval that lies in the span, from 0 to 1."""
    return (
        f"CASE WHEN begin_ts >= {within.begin} AND end_ts <= {within.end} THEN 1 ELSE "
        f"(least(end_ts, {within.end}) - greatest(begin_ts, {within.begin})) "
        "/ greatest(end_ts - begin_ts, 1) "
        "END"
    )
