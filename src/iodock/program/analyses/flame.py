"""Shows the calls as a tree: programs call functions, functions make calls, and calls access files. It is a
flame graph as a table."""

from __future__ import annotations

import pyarrow as pa

from iodock.program.analyses.base import Analysis, Option, Request, answered
from iodock.program.relations.boxes import Box, tree_of, walked
from iodock.program.relations.paths import WEIGHTS, paths_of
from iodock.program.store import Store
from iodock.shared.answer import Answer, Column

LEAST_SHARE = 1 / 5000
COLUMNS = (
    Column(
        "frame",
        "str",
        None,
        "key",
        "name of the program, function, call, file or pattern of files; of a function with its line",
    ),
    Column(
        "kind",
        "str",
        None,
        "detail",
        "program, function, call, file, or unknown: calls whose stack is not known",
    ),
    Column(
        "depth",
        "int",
        None,
        "detail",
        "number of frames above this one: the following deeper rows are inside of it",
    ),
    Column(
        "share",
        "float",
        None,
        "measure",
        "share of all chosen calls, 0 to 1, of the quantity chosen with `--weigh`",
        importance="first",
    ),
    Column("count", "int", "calls", "measure", "calls through this frame", importance="first"),
    Column("total_time_ns", "int", "ns", "measure", "time inside the calls", importance="first"),
    Column("bytes", "int", "bytes", "measure", "bytes that the calls transferred", importance="first"),
)
_SCHEMA = pa.schema(
    {"frame": pa.string(), "kind": pa.string(), "depth": pa.int64(), "share": pa.float64(),
     "count": pa.int64(), "total_time_ns": pa.int64(), "bytes": pa.int64()}
)  # fmt: skip


def run(store: Store, asked: Request) -> Answer:
    """Returns an answer with a row for each frame. A frame comes before the frames inside it, and the largest
    of these come first."""
    paths = paths_of(store, asked.filters, asked.options["weigh"])
    weight = paths.weights[0]
    whole = tree_of(paths)
    total = whole.weight(weight) or 1
    known = set(paths.weights)
    rows = [
        {
            "frame": box.frame.title,
            "kind": box.frame.kind,
            "depth": depth - 1,
            "share": box.weight(weight) / total,
            "count": box.calls,
            # If a value is missing for some calls, the sum of all is unknown and the column is empty.
            "total_time_ns": box.time_ns if "time" in known else None,
            "bytes": box.bytes if "bytes" in known else None,
        }
        for depth, box in walked(
            whole,
            lambda one: _is_shown(one, weight, total),
            lambda one: (-one.weight(weight), one.frame.title),
        )
        if depth
    ]
    notes = [*paths.notes]
    if not store.rows_of("sites"):
        notes.append(
            f"{store.name} does not contain the places from which its calls were made: record "
            "with --stacks all"
        )
    return answered(
        "flame",
        "Flame graph",
        store,
        asked,
        pa.Table.from_pylist(rows, _SCHEMA),
        COLUMNS,
        notes,
        keys=("frame",),
    )


def _is_shown(box: Box, weight: str, total: int) -> bool:
    return box.weight(weight) >= total * LEAST_SHARE and box.weight(weight) > 0


ANALYSIS = Analysis(
    name="flame",
    title="Flame graph",
    doc="""A flame graph in numbers: from the program that ran over its functions, outermost first, to the
call and the file. In a terminal a tree with bars, of frames that take 1 % or more; as CSV or JSON a row for
each frame of 1/5000 or more, each before those inside it. Many files of similar names are one frame, their
pattern. To look at it in a browser: `iodock export run.iodock -o run.svg`, or the report.""",
    columns=COLUMNS,
    run=run,
    options=(
        Option(
            "weigh", "choice", None, "quantity whose share a frame shows; default: time, if known", WEIGHTS
        ),
    ),
    examples=("iodock show flame run.iodock", "iodock show flame run.iodock --weigh calls --call write"),
)
