"""Makes a table from a diagnosis. Each finding has a row, and its sentences are in one language."""

from __future__ import annotations

import pyarrow as pa

from iodock.program.findings import Diagnosis, Finding
from iodock.program.views.diagnosis_text import advice_text
from iodock.program.views.diagnosis_words import gain_text, headline
from iodock.shared.answer import Answer, Column, Loss
from iodock.shared.language import Language
from iodock.shared.sentences import say

COLUMNS = (
    Column("severity", "str", None, "key", "high, medium, low, or note: worth knowing, but needs no change"),
    Column("rule", "str", None, "key", "name of the pattern, as `iodock explain` knows it"),
    Column("title", "str", None, "detail", "the pattern in words"),
    Column("message", "str", None, "detail", "evidence, with its numbers"),
    Column(
        "saves",
        "str",
        None,
        "detail",
        "savings of a correction, as a sentence; for a note the time that it takes",
    ),
    Column("saves_low_seconds", "float", "s", "measure", "minimum saving of a correction; null: unknown"),
    Column("saves_high_seconds", "float", "s", "measure", "maximum saving of a correction; null: unknown"),
    Column("run_seconds", "float", "s", "measure", "elapsed time of the run to which the saving refers"),
    Column("cost_seconds", "float", "s", "measure", "wall time spent in it, as recorded"),
    Column("confidence", "float", None, "measure", "0 to 1: confidence that the pattern is present"),
    Column("files", "list", None, "detail", "the costliest files, at most five"),
    Column("file_count", "int", None, "measure", "number of files that the row is about"),
    Column("call", "str", None, "detail", "the call that the row is about, if it is about one"),
    Column("advice", "list", None, "detail", "changes to make, in each language that applies"),
    Column("fine_when", "str", None, "detail", "when it is fine as it is"),
    Column("query", "str", None, "detail", "SQL for `run.query` that shows the evidence"),
)
_KINDS = {"str": pa.string(), "float": pa.float64(), "int": pa.int64(), "list": pa.list_(pa.string())}
_SCHEMA = pa.schema([(one.name, _KINDS[one.type]) for one in COLUMNS])


def answer_of(diagnosis: Diagnosis, text: Language) -> Answer:
    """Returns the findings in the order of `iodock diagnose`, with notes last."""
    rows = [_row(one, text) for one in diagnosis.findings]
    return Answer(
        analysis="findings",
        title=" ".join(headline(diagnosis.verdict, text)),
        columns=COLUMNS,
        table=pa.Table.from_pylist(rows, schema=_SCHEMA),
        clock="none",
        source={},
        losses=tuple(Loss(name, count, text.gettext(cure)) for name, count, cure in diagnosis.losses),
        notes=tuple(say(remark, text) for remark in diagnosis.remarks),
        keys=("severity", "rule"),
        store_name=diagnosis.store,
    )


def _row(finding: Finding, text: Language) -> dict[str, object]:
    gain = finding.gain
    return {
        "severity": finding.severity.value,
        "rule": finding.rule,
        "title": say(finding.title, text),
        "message": say(finding.message, text),
        "saves": gain_text(finding, text) or None,
        "saves_low_seconds": None if gain is None else gain.low_seconds,
        "saves_high_seconds": None if gain is None else gain.high_seconds,
        "run_seconds": None if gain is None else gain.of_seconds,
        "cost_seconds": finding.cost_seconds,
        "confidence": finding.confidence,
        "files": list(finding.files),
        "file_count": finding.file_count,
        "call": finding.call,
        "advice": [advice_text(one, text).removeprefix("-> ") for one in finding.advice],
        "fine_when": say(finding.fine_when, text),
        "query": finding.query,
    }
