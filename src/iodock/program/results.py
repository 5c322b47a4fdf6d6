"""Defines the results that Python users get from a store: tables, charts and pages. A notebook displays
them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iodock.program.findings import Diagnosis
from iodock.program.views import notebook
from iodock.program.views.charts import ChartOptions, UnknownChart, charts_for, render_chart
from iodock.shared.answer import Answer, Column, Loss, Totals
from iodock.shared.bounded.whole import whole_file
from iodock.shared.browser import open_in_browser
from iodock.shared.charts import CHART_FORMATS
from iodock.shared.errors import IodockError, RequestError
from iodock.shared.language import Language
from iodock.shared.tables import frames

if TYPE_CHECKING:
    import pandas
    import polars

_CHART_OPTIONS = tuple(field.name for field in fields(ChartOptions))
_WIDTH_WITHOUT_TERMINAL = 100


class Table:
    """Rows with the meaning of their columns. They can be converted to Arrow, pandas or polars."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    @property
    def columns(self) -> tuple[Column, ...]:
        """Name, type, unit, role and meaning of each column."""
        return self.answer.columns

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Data that could not be read or is unknown, with what to do about it."""
        return self.answer.losses

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes that are needed to interpret the numbers."""
        return self.answer.notes

    def to_arrow(self, durations: bool = False) -> pa.Table:
        """Returns the rows as an Arrow table. Times are numbers in the unit of their column. DURATIONS: times
        are `duration` and `timestamp` of ns, which Arrow can't convert to Python's own types without
        pandas."""
        return frames.with_times(self.answer) if durations else self.answer.table

    def to_pandas(self, durations: bool = True) -> pandas.DataFrame:
        """Returns the rows as a pandas data frame. Times are Timedelta and Timestamp (UTC); in a run without
        a date, moments are Timedelta since its start. DURATIONS=False: times are numbers in the unit of their
        column. Raises MissingPackage without pandas."""
        return frames.to_pandas(self.to_arrow(durations))

    def to_polars(self, durations: bool = True) -> polars.DataFrame:
        """Returns the rows as a polars data frame. Times are Duration and Datetime; everything else is as in
        `to_pandas`."""
        return frames.to_polars(self.to_arrow(durations))

    def __len__(self) -> int:
        return int(self.answer.table.num_rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.answer.table.__arrow_c_stream__(requested_schema)


class Result(Table):
    """Result of `show`. A notebook displays its chart above its first rows."""

    @property
    def totals(self) -> Totals | None:
        """The rows that a top list leaves out, and the totals of all rows."""
        return self.answer.totals

    @property
    def charts(self) -> tuple[str, ...]:
        """Names that `chart` accepts. The first one is the default."""
        return tuple(charts_for(self.answer.analysis))

    def chart(self, name: str | None = None, **options: Any) -> Chart:
        """Returns the analysis's first chart, or the chart of this name. OPTIONS: `title`, `width`, `height`,
        `theme`, `only`, as on the command line. Raises RequestError."""
        unknown = [one for one in options if one not in _CHART_OPTIONS]
        if unknown:
            raise RequestError(
                f"no such option of a chart: {unknown[0]}", f"options: {', '.join(_CHART_OPTIONS)}"
            )
        if isinstance(options.get("only"), str):
            options["only"] = (options["only"],)
        try:
            chart = Chart(self.answer, name, ChartOptions(**options))
            # The chart is drawn here and not on first use, so that a wrong name raises its error in this
            # call.
            chart.altair  # noqa: B018
        except (UnknownChart, ValueError) as error:
            raise RequestError(str(error)) from None
        return chart

    def __repr__(self) -> str:
        from iodock.shared.tables.table import first_lines, terminal_width

        head = f"<iodock {self.answer.analysis}: {len(self):,} rows, {len(self.columns)} columns>"
        lines = first_lines(self.answer, notebook.FIRST_ROWS, terminal_width() or _WIDTH_WITHOUT_TERMINAL)
        return "\n".join([head, *lines, *notebook.below(self.answer)])

    def _repr_html_(self) -> str:
        try:
            return notebook.answer_html(self.answer, self.chart().svg)
        except IodockError as error:
            return notebook.answer_html(self.answer, no_picture=error)


class Chart:
    """A chart as the command line draws it. A notebook shows it without network or script."""

    def __init__(self, answer: Answer, name: str | None, options: ChartOptions) -> None:
        self._answer, self._name, self._options = answer, name, options

    @cached_property
    def altair(self) -> Any:
        """The chart as an altair chart, which can be changed. In a notebook altair loads its scripts
        itself."""
        return render_chart(self._answer, self._name, self._options)

    @cached_property
    def svg(self) -> bytes:
        """The picture as SVG, UTF-8."""
        return self._drawn("svg")

    def save(self, path: str | Path) -> Path:
        """Writes the picture in the format of the file's ending: .svg, .png, .pdf, or .html (interactive).
        Raises RequestError for another ending, IodockError if nothing can be written there."""
        target = Path(path)
        form = target.suffix.lower().removeprefix(".")
        if form not in CHART_FORMATS:
            raise RequestError(f"{target}: not an image format", f"endings: .{', .'.join(CHART_FORMATS)}")
        picture = self._drawn(form)
        with whole_file(target) as out:
            out.write(picture)
        return target

    def to_dict(self) -> dict[str, Any]:
        """The Vega-Lite specification, with its data."""
        specification: dict[str, Any] = self.altair.to_dict()
        return specification

    def _drawn(self, form: str) -> bytes:
        from iodock.program.views.charts.export import draw

        return draw(form, self._answer, self._name, self._options)

    def __repr__(self) -> str:
        name = self._name or charts_for(self._answer.analysis)[0]
        return f"<iodock chart {name} of {self._answer.analysis}>"

    def _repr_svg_(self) -> str:
        return self.svg.decode()


class Findings(Table):
    """Findings as a table with complete sentences. Iterating gives a dictionary for each finding, by the
    names of the columns."""

    def __init__(self, diagnosis: Diagnosis, text: Language) -> None:
        from iodock.program.views.finding_rows import answer_of

        super().__init__(answer_of(diagnosis, text))
        self.diagnosis = diagnosis
        self._text = text

    @property
    def headline(self) -> str:
        """The headline above all findings."""
        return self.answer.title

    def __iter__(self) -> Any:
        return iter(self.answer.table.to_pylist())

    def __getitem__(self, at: int) -> Mapping[str, Any]:
        rows: Sequence[Mapping[str, Any]] = self.answer.table.to_pylist()
        return rows[at]

    def __repr__(self) -> str:
        from iodock.program.views.diagnosis_text import diagnosis_text

        return diagnosis_text(self.diagnosis, self._text, on_terminal=False).rstrip("\n")

    def _repr_html_(self) -> str:
        return notebook.diagnosis_html(self.diagnosis, self._text)


class Page:
    """A page that was written. It is a path, and shows the page in a notebook."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self) -> bool:
        """Opens the page in the browser. Returns False without a browser or a display."""
        return open_in_browser(self.path.resolve().as_uri())

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"<iodock report {self.path}>"

    def _repr_html_(self) -> str:
        return notebook.page_html(self.path)
