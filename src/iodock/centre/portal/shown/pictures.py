"""Makes the charts of a metadata server: operations, opens and closes over a day and an hour, waiting and
handled requests, and the use of the processors. The curves have a gap where samples are missing."""

from __future__ import annotations

from dataclasses import dataclass, replace

from iodock.centre.monitor.questions import server_curves
from iodock.centre.monitor.questions.server_curves import Step
from iodock.centre.monitor.questions.spans import DAY, HOUR, SECOND, Span, span
from iodock.centre.portal.charts import Chart, Curve, Mark
from iodock.centre.portal.shown.page import LAG_S, Question
from iodock.centre.portal.tables import Column, Table

Steps = list[Step | None]
_MINUTE_S = 60


@dataclass(frozen=True)
class Pictures:
    charts: list[Chart]
    tables: list[Table]
    """Tables with the values of the charts, for download."""


def pictures(question: Question, host: str, within: Span, marks: tuple[Mark, ...]) -> Pictures | None:
    """Makes the charts and their tables. Returns None if the host was not a metadata server in this time.
    Raises StoreError."""
    spans = {
        "pictures": within, "opens_day": _last(question, within, DAY),
        "opens_hour": _last(question, within, HOUR),
    }  # fmt: skip
    known: dict[Span, Steps] = {}
    for one in (spans["opens_day"], within):
        known[one] = known.get(one) or _steps(question, host, one)
    if not any(
        step and (step.handled, step.opens) != (None, None) for steps in known.values() for step in steps
    ):
        return None
    known |= {one: _steps(question, host, one) for one in set(spans.values()) - known.keys()}
    found = {name: known[one] for name, one in spans.items()}
    charts = _charts(question, spans, found)
    tables = [_numbers(question, name, spans[name], steps) for name, steps in found.items()]
    return Pictures([replace(chart, marks=marks) for chart in charts], tables)


def _last(question: Question, within: Span, length: int) -> Span:
    """Returns the span of LENGTH ns that ends when the page's span ends."""
    end = question.asked.end or question.asked.now - LAG_S * SECOND
    return (
        within if within.end - within.begin == length else span(end - length, end, question.store.catalogue)
    )


def _steps(question: Question, host: str, within: Span) -> Steps:
    # Steps whose data may not have arrived yet are cut off.
    until = min(within.end, question.asked.now - LAG_S * SECOND)
    sample = int(question.site.limits.sample_s * SECOND)
    return server_curves.over_time(question.store, host, within, until, sample)


def _charts(question: Question, spans: dict[str, Span], found: dict[str, Steps]) -> list[Chart]:
    text, within, steps = question.text, spans["pictures"], found["pictures"]
    a_second = SECOND / within.step
    waiting = [
        Curve(text.gettext("waiting"), _curve(steps, "waiting"), "c1"),
        Curve(text.gettext("handled a second"), _curve(steps, "handled", a_second), "c0"),
    ]

    def opens(title: str, name: str) -> Chart:
        a_minute = _MINUTE_S * SECOND / spans[name].step
        curves = [
            Curve(text.gettext("opens"), _curve(found[name], "opens", a_minute), "c0"),
            Curve(text.gettext("closes"), _curve(found[name], "closes", a_minute), "c1"),
        ]
        return Chart(title, "number", spans[name], _known(curves))

    operations = [Curve(text.gettext("operations"), _curve(steps, "operations", a_second), "metadata")]
    cpu = [Curve(text.gettext("CPU"), _curve(steps, "cpu"), "c2")]
    return [
        Chart(text.gettext("Metadata operations per second"), "rate", within, _known(operations)),
        opens(text.gettext("Opens and closes per minute, over one day"), "opens_day"),
        opens(text.gettext("Opens and closes per minute, over one hour"), "opens_hour"),
        Chart(
            text.gettext("Waiting requests, and requests handled per second (logarithmic)"), "number", within,
            _known(waiting), is_logarithmic=True,
        ),
        Chart(text.gettext("CPU use of the server"), "share", within, _known(cpu), full=1.0),
    ]  # fmt: skip


def _known(curves: list[Curve]) -> list[Curve]:
    """Selects the curves that have at least one known value."""
    return [curve for curve in curves if any(value is not None for value in curve.values)]


def _curve(steps: Steps, name: str, factor: float = 1.0) -> list[float | None]:
    values = [None if step is None else getattr(step, name) for step in steps]
    return [None if value is None else value * factor for value in values]


def _numbers(question: Question, name: str, within: Span, steps: Steps) -> Table:
    text = question.text
    titles = {
        "pictures": text.gettext("The server over time"),
        "opens_day": text.gettext("Opens and closes per minute, over one day"),
        "opens_hour": text.gettext("Opens and closes per minute, over one hour"),
    }
    # The table is only available for download, so the titles of its columns are not translated.
    columns = (
        Column("begin_ts", text.gettext("step begins"), "time"),
        Column("seconds", text.gettext("lasted"), "seconds"),
        *(Column(one, one, "plain") for one in server_curves.NAMES),
    )
    rows = [
        {
            "begin_ts": within.begin + place * within.step, "seconds": within.step / SECOND,
            **{one: getattr(step, one) if step else None for one in server_curves.NAMES},
        }
        for place, step in enumerate(steps)
    ]  # fmt: skip
    return Table(name, titles[name], columns, list(rows), "", has_bounds=False)
