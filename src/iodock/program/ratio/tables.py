"""Makes answers from the judged records, so that the same views can show them as other answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from iodock.program.findings import REDUNDANT_FACTOR
from iodock.program.ratio.judge import NOT_ONLY_IO, Judged
from iodock.shared.answer import Answer, Column, Loss, Totals
from iodock.shared.units import number_text

if TYPE_CHECKING:
    from iodock.program.ratio.history import History

COLUMNS = (
    Column("name", "str", None, "key", "command, job, or FILE:LINE where the source names none"),
    Column("node", "str", None, "detail", "node, or file if each file belongs to one node"),
    Column("owner", "str", None, "detail", "user name or id"),
    Column(
        "count", "int", None, "measure", "processes, runs or jobs added up in this row", own_heading="count"
    ),
    Column("real_seconds", "float", "s", "measure", "elapsed time; for several processes the sum"),
    Column("user_seconds", "float", "s", "measure", "user CPU time; null where the source has no such time"),
    Column("system_seconds", "float", "s", "measure", "system CPU time; never part of utilisation"),
    Column(
        "both_seconds", "float", "s", "measure", "user and system time, if the source does not separate them"
    ),
    Column(
        "cores",
        "float",
        None,
        "measure",
        "number of cores by which user time was divided; null if the number of cores is 0",
    ),
    Column(
        "cores_known", "bool", None, "detail", "whether the source or --cores gave the number; else it is 1"
    ),
    Column("utilisation", "float", None, "measure", "(user / cores) / real; null without an elapsed time"),
    Column("basis", "str", None, "detail", "basis of the utilisation: user, or user+system"),
    Column("system_share", "float", None, "measure", "(system / cores) / real"),
    Column("io_bytes", "int", "bytes", "measure", "file I/O as counted by the source, if it counts it"),
    Column("io_factor", "float", None, "measure", "io_bytes over the volume that --expect says"),
    Column("reading", "str", None, "detail", "I/O-heavy, between, compute or unknown"),
    Column("why", "str", None, "detail", "limit that applies, or the missing value"),
    Column("next", "str", None, "detail", "what to do next"),
    Column("at", "str", None, "detail", "FILE:LINE of the source"),
)
_BATCH_ROWS = 1 << 14
_MOST_BYTES = 2**63 - 1
_TYPES: Mapping[str, pa.DataType] = {
    "int": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "bool": pa.bool_(),
}


def table_of_judged(
    judged: Iterable[Judged], cores_given: bool = False, expected: int | None = None
) -> pa.Table:
    """Makes a table with one row per record, in the order of the records. EXPECTED is the number of bytes
    that the user expects each record to move. The rows are converted to Arrow in batches, because the rows of
    a year of jobs as Python objects would fill the memory."""
    rows = (_row(one, cores_given, expected) for one in judged)
    schema = _schema(COLUMNS)
    batches = []
    while some := list(islice(rows, _BATCH_ROWS)):
        batches.append(pa.RecordBatch.from_pylist(some, schema=schema))
    return pa.Table.from_batches(batches, schema=schema)


def answer_of(
    table: pa.Table, losses: Iterable[Loss], notes: Iterable[str], options: Mapping[str, Any]
) -> Answer:
    """Makes an answer from the table that `table_of_judged` returned. OPTIONS are the limits that were
    applied."""
    low = pc.any(pc.equal(table.column("reading"), "I/O-heavy")).as_py()
    beside = [*notes, *([NOT_ONLY_IO] if low else [])]
    if options.get("expected_bytes") is not None:
        beside += _of_volume(table)
    return Answer(
        analysis="ratio",
        title="CPU utilisation",
        columns=COLUMNS,
        table=table,
        clock="none",
        source={},
        losses=tuple(losses),
        notes=tuple(beside),
        keys=("name",),
        options=dict(options),
    )


def _of_volume(table: pa.Table) -> list[str]:
    """Returns notes on I/O volumes that are missing, zero or much larger than expected (SS-ken report,
    2.3.2.1)."""
    moved = table.column("io_bytes")
    notes = []
    if unknown := moved.null_count:
        notes.append(f"rows without an I/O volume: {unknown:,}: their source does not count it")
    if none := pc.sum(pc.equal(moved, 0)).as_py():
        notes.append(f"rows with 0 bytes of I/O: {none:,}: their source did not count it; iodock record does")
    more = pc.sum(pc.greater_equal(table.column("io_factor"), REDUNDANT_FACTOR)).as_py()
    if more:
        notes.append(
            f"rows with {number_text(REDUNDANT_FACTOR)} times the expected volume or more: "
            f"{more:,}: bytes may be transferred more than once; step 3, iodock record, shows which"
        )
    return notes


def _schema(columns: tuple[Column, ...]) -> pa.Schema:
    return pa.schema([pa.field(column.name, _TYPES[column.type]) for column in columns])


def table_of(rows: list[dict[str, Any]], columns: tuple[Column, ...]) -> pa.Table:
    """Converts rows to an Arrow table with the types that the columns declare."""
    return pa.Table.from_pylist(rows, schema=_schema(columns))


def _row(one: Judged, cores_given: bool, expected: int | None) -> dict[str, Any]:
    record = one.record
    moved = record.io_bytes if (record.io_bytes or 0) <= _MOST_BYTES else None
    return {
        "name": _shown(record.name),
        "node": _shown(record.node) or None,
        "owner": _shown(record.owner) or None,
        "count": record.runs,
        "real_seconds": record.real,
        "user_seconds": record.user,
        "system_seconds": record.system,
        "both_seconds": record.both,
        "cores": one.cores,
        "cores_known": cores_given or bool(record.cores),
        "utilisation": one.utilisation,
        "basis": "user" if record.user is not None else "user+system" if record.both is not None else None,
        "system_share": one.system,
        "io_bytes": moved,
        "io_factor": None if moved is None or not expected else moved / expected,
        "reading": one.verdict,
        "why": one.why,
        "next": _shown(one.next),
        "at": _shown(record.at),
    }


def _shown(text: str) -> str:
    """Writes bytes of a file name that are not UTF-8 as `\\xff`, because Arrow accepts only UTF-8."""
    return (
        text
        if text.isascii()
        else text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    )


HISTORY_COLUMNS = (
    Column("lower", "float", None, "key", "utilisation from here"),
    Column(
        "upper",
        "float",
        None,
        "key",
        "upper limit of the bin (exclusive); the last bin also contains values above 1",
    ),
    Column("count", "int", "jobs", "measure", "jobs", own_heading="jobs"),
    Column("core_hours", "float", "h", "measure", "their core-hours"),
)


def history_answer(
    history: History,
    losses: Iterable[Loss],
    notes: Iterable[str],
    options: Mapping[str, Any],
    name: str = "",
) -> Answer:
    """Makes an answer whose rows are the bins of the histogram. `totals.total` contains the numbers over all
    jobs, and the threshold that is proposed."""
    rows = [
        {"lower": one.lower, "upper": one.upper, "count": one.jobs, "core_hours": one.core_hours}
        for one in history.bins
    ]
    total = _summary(history, float(options["io_below"]))
    return Answer(
        analysis="ratio-history",
        title="CPU utilisation of jobs",
        columns=HISTORY_COLUMNS,
        table=table_of(rows, HISTORY_COLUMNS),
        clock="none",
        source={},
        losses=tuple(losses),
        notes=(*notes, *_left_out_notes(history, options)),
        totals=Totals(total, None, len(rows), len(rows), "bins"),
        keys=("lower", "upper"),
        options=dict(options),
        store_name=name,
    )


def _summary(history: History, limit: float) -> dict[str, Any]:
    proposal = history.proposal
    return {
        "count": history.jobs,
        "core_hours": history.core_hours,
        "mean": history.mean,
        "mean_by_core_hours": history.mean_by_hours,
        "median": history.deciles[4],
        "deciles": list(history.deciles),
        "above_one": history.above_one,
        "too_short": history.too_short,
        "without_ratio": history.without_ratio,
        "io_below": limit,
        "below_now": history.share_below(limit),
        "bimodal": proposal.bimodal,
        "modes": proposal.modes,
        "proposed_io_below": proposal.threshold,
        "below_proposed": history.share_below(proposal.threshold),
        "reason": proposal.reason,
        "toml": proposal.toml,
    }


def _left_out_notes(history: History, options: Mapping[str, Any]) -> Iterable[str]:
    if history.too_short:
        shortest = options["min_real"]
        yield (
            f"jobs shorter than {number_text(shortest, 6)} s are left out: {history.too_short:,}; "
            "--min-real 0 includes them"
        )
    if history.without_ratio:
        yield f"jobs without a ratio are left out: {history.without_ratio:,}"
    if history.above_one:
        yield (
            "jobs with more user time than their cores can give are counted at 1: "
            f"{history.above_one:,}; is the number of cores right?"
        )
