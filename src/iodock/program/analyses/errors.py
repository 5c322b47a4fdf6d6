"""Lists calls that failed, with their errors and files."""

from __future__ import annotations

import dataclasses

from iodock.program.analyses import summary
from iodock.program.analyses.base import Analysis, Option, Request
from iodock.program.relations.grouping import MEASURES
from iodock.program.relations.keys import KEYS
from iodock.program.store import Store
from iodock.shared.answer import Answer
from iodock.shared.errors import RequestError

_MEASURES = ("count", "total_time_ns", "mean_time_ns", "max_time_ns", "sys_cpu_time_ns")
_COLUMNS = tuple(column for column in MEASURES if column.name in _MEASURES)


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with one row per call, error and file, the most frequent first."""
    if asked.filters.outcome == "succeeded":
        raise RequestError("errors are failed calls: --succeeded leaves none")
    failed = dataclasses.replace(asked, filters=dataclasses.replace(asked.filters, outcome="failed"))
    found = summary.grouped(store, failed, order=("count DESC",))
    columns = tuple(
        column
        for column in found.columns
        if column.role == "key" or column.name in (*_MEASURES, "file_count")
    )
    return dataclasses.replace(
        found,
        analysis="errors",
        title="Failed calls",
        columns=columns,
        table=found.table.select([column.name for column in columns]),
    )


ANALYSIS = Analysis(
    name="errors",
    title="Failed calls",
    doc="""Failed calls by call, error and file, the most frequent first. Many failures are ordinary (a
    program searches several folders for a library); the same failures again and again on a shared file system
    are not.""",
    columns=(KEYS["call"].column, KEYS["errno"].column, KEYS["file"].column, *_COLUMNS),
    run=run,
    orders=True,
    options=(
        Option("by", "keys", ("call", "errno", "file"), f"group by these keys: {', '.join(KEYS)}"),
        Option("top", "int", None, "only the N most frequent rows, the rest as one row 'other'"),
    ),
    examples=("iodock show errors run.iodock", "iodock show errors run.iodock --by errno,folder --top 10"),
)
