"""A store as a Python caller meets it: questions in, Arrow out, and a chart in a notebook."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from iodock import analyses
from iodock.analyses.base import request
from iodock.answer import Answer, Column, Loss, Totals
from iodock.diagnosis import diagnose
from iodock.findings import Diagnosis
from iodock.relations.profile import Profile, tables_in
from iodock.settings import Settings
from iodock.store import Store

if TYPE_CHECKING:
    import pandas
    import polars


class Result:
    """What `show` gives: the answer's table with its meaning. Turns itself into Arrow, pandas or polars, and
    in a notebook into a chart above the first rows."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    @property
    def columns(self) -> tuple[Column, ...]:
        """Name, type, unit, role and meaning of each column."""
        return self.answer.columns

    @property
    def totals(self) -> Totals | None:
        """What a top list left out, and what it adds up to."""
        return self.answer.totals

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What could not be read or known, with its cure."""
        return self.answer.losses

    @property
    def notes(self) -> tuple[str, ...]:
        """What must be said beside the numbers."""
        return self.answer.notes

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        return self.answer.table

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a pandas data frame; pandas must be installed."""
        return self.answer.table.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The rows as a polars data frame; polars must be installed."""
        import polars

        frame = polars.from_arrow(self.answer.table)
        assert isinstance(frame, polars.DataFrame)
        return frame

    def chart(self, name: str | None = None) -> Any:
        """An altair chart: the analysis's first, or the one of that name."""
        from iodock.views.charts import render_chart

        return render_chart(self.answer, name)

    def __len__(self) -> int:
        return int(self.answer.table.num_rows)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.answer.table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<iodock {self.answer.analysis}: {len(self):,} rows, {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        from iodock.views.notebook import html

        return html(self.answer)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Mapping[str, Any]:
        from iodock.views.notebook import mimebundle

        return mimebundle(self.answer)


class Run:
    """An opened store. Use it as a context manager, or leave it to the garbage collector."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def show(self, analysis: str = "summary", **arguments: Any) -> Result:
        """Answers an analysis. ARGUMENTS are its options and the filters, named as on the command line with
        underscores: `by=["file", "call"]`, `top=10`, `file="/scratch/**"`, `kind="all"`, `failed=True`,
        `since=1.5`. Raises RequestError for what it does not know, StoreError and QueryError."""
        found = analyses.find(analysis)
        return Result(found.run(self.store, request(found, arguments)))

    def diagnose(self, settings: Settings | None = None) -> Diagnosis:
        """What is wrong, what it costs and what to change, as data. SETTINGS: the site's, from
        `iodock.settings.load`. Raises RequestError, StoreError and QueryError."""
        return diagnose(self.store, settings)

    def query(self, sql: str, unsafe: bool = False) -> pa.Table:
        """The answer to SQL over the store's tables (docs/explanation/store.md), its views
        (docs/reference/views.md) and the derived tables (docs/reference/derived.md). It may read the store
        and nothing else; UNSAFE: it may do all that this process may. What the store lacks is in `losses`,
        and in the table's metadata under `iodock`. Raises QueryError."""
        store = self.store.unsafe if unsafe else self.store
        Profile(store).need(tables_in(sql))
        table = store.engine.user_query(sql)
        lost = [dataclasses.asdict(loss) for loss in self.losses]
        said = json.dumps({"losses": lost}, ensure_ascii=False)
        return table.replace_schema_metadata({**(table.schema.metadata or {}), "iodock": said})

    @property
    def losses(self) -> tuple[Loss, ...]:
        """What could not be recorded, read or known, with its cure."""
        return self.store.manifest.losses

    def analyses(self) -> tuple[str, ...]:
        """Names for `show`."""
        return analyses.listed()

    @property
    def manifest(self) -> Mapping[str, Any]:
        """What the store says of itself: manifest.json."""
        return self.store.manifest.raw

    def close(self) -> None:
        """Frees the engine's memory."""
        self.store.close()

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<iodock run {self.store.path}>"


def open(path: str | os.PathLike[str]) -> Run:
    """Opens a store (NAME.iodock). One that a crashed recorder left is finished first. Raises StoreError."""
    return Run(Store.open(path))
