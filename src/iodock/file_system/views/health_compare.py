"""Formats a comparison of two check-ups as text, and as JSON
(docs/reference/health-comparison.schema.json)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from iodock.file_system.health.compare import Change, Comparison, Incomparable, Pair, Verdict
from iodock.file_system.health.measurements import Cell
from iodock.file_system.views.measurements_words import (
    operation_text,
    size_text,
    test_text,
    value_text,
    variant_text,
)
from iodock.shared.language import N_, Language
from iodock.shared.sentences import say

SCHEMA = "iodock-health-comparison-1"
VERDICTS = {
    Verdict.REGRESSION: N_("regression"),
    Verdict.IMPROVEMENT: N_("improvement"),
    Verdict.SAME: N_("same"),
    Verdict.UNSURE: N_("within the spread"),
    Verdict.TOO_FEW: N_("too few repeats to say"),
}
_STYLES = {Verdict.REGRESSION: "bold red", Verdict.IMPROVEMENT: "green"}
_WIDTH = 120


def render(comparison: Comparison, text: Language, width: int | None = None, colour: bool = False) -> str:
    """Formats the whole comparison for the terminal."""
    out = io.StringIO()
    console = Console(
        file=out, width=width or _WIDTH, force_terminal=colour, no_color=not colour, highlight=False
    )
    for warning in comparison.warnings:
        console.print(Text(text.gettext(N_("note: {note}"), note=say(warning, text)), style="yellow"))
    console.print(Text(_headline(comparison, text), style="bold"))
    if comparison.changes:
        console.print(_table(comparison.changes, text))
    for line in (*_cells(comparison, text), *_left_out(comparison.incomparable, text)):
        console.print(Text(line))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _headline(comparison: Comparison, text: Language) -> str:
    if not comparison.changes:
        return text.gettext(N_("Nothing can be compared"))
    if comparison.regressed:
        return text.gettext(N_("Regression: this file system has become slower"))
    if comparison.undecided:
        return text.gettext(
            N_(
                "No regression is certain, but {count} of {all} operations have too few repeats for a verdict"
            ),
            count=len(comparison.undecided),
            all=len(comparison.changes),
        )
    return text.gettext(N_("No regression beyond the spread"))


def _table(changes: Iterable[Change], text: Language) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for heading, right in (
        *((text.gettext(N_("test")), False), (text.gettext(N_("operation")), False)),
        *((text.gettext(N_("how")), False), (text.gettext(N_("cells")), True)),
        *((text.gettext(N_("change")), True), (text.gettext(N_("95 % interval")), True), ("", False)),
    ):
        table.add_column(heading, justify="right" if right else "left", no_wrap=right, overflow="fold")
    for one in changes:
        interval = ""
        if one.low is not None and one.high is not None:
            interval = f"{percent(one.low)} … {percent(one.high)}"
        verdict = Text(text.gettext(VERDICTS[one.verdict]), style=_STYLES.get(one.verdict, ""))
        how = variant_text(dict(one.variant))
        named = (test_text(one.test, text), operation_text(one.operation, text), how, f"{len(one.pairs)}")
        table.add_row(*named, percent(one.change), interval, verdict)
    return table


def percent(change: float) -> str:
    """Formats a relative change, such as `+12 %` or `-3.1 %`."""
    return f"{change * 100:+.0f} %" if abs(change) >= 0.0995 else f"{change * 100:+.1f} %"


def _cells(comparison: Comparison, text: Language) -> list[str]:
    changed = [
        pair
        for change in comparison.changes
        for pair in change.pairs
        if pair.verdict in (Verdict.REGRESSION, Verdict.IMPROVEMENT)
    ]
    if not changed:
        return []
    changed.sort(key=lambda pair: pair.change)
    return [
        "",
        text.gettext(N_("Measurements that changed beyond their spread")),
        *(_cell(one, text) for one in changed),
    ]


def _cell(pair: Pair, text: Language) -> str:
    unit = pair.base.unit
    return text.gettext(
        N_("  {cell}: {base} before, {now} now, {change}"),
        cell=place(pair.base, text),
        base=value_text(pair.base.value, unit),
        now=value_text(pair.now.value, unit),
        change=percent(pair.change),
    )


def place(cell: Cell, text: Language) -> str:
    """Describes a cell in words, such as `metadata access, file creation, 1 MiB, processes 8`."""
    parts = [test_text(cell.test, text), operation_text(cell.operation, text), size_text(cell.size_bytes)]
    if cell.processes is not None:
        parts.append(text.gettext(N_("processes {processes}"), processes=f"{cell.processes:,}"))
    return text.listed(part for part in (*parts, variant_text(cell.variant)) if part)


def _left_out(incomparable: Iterable[Incomparable], text: Language) -> list[str]:
    lines = [
        text.gettext(
            N_("  {test}, {operation}, cells: {count}: {why}"),
            test=test_text(one.cells[0].test, text),
            operation=operation_text(one.cells[0].operation, text),
            count=len(one.cells),
            why=say(one.why, text),
        )
        for one in incomparable
    ]
    return ["", text.gettext(N_("Not compared")), *lines] if lines else []


def to_json(comparison: Comparison, text: Language) -> str:
    """Formats the comparison as JSON, in the form that the schema describes."""
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "regression": comparison.regressed,
        "warnings": [say(one, text) for one in comparison.warnings],
        "changes": [_change(one) for one in comparison.changes],
        "not_compared": [
            {"why": say(one.why, text), "cells": [_where(cell) for cell in one.cells]}
            for one in comparison.incomparable
        ],
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _change(change: Change) -> dict[str, Any]:
    return {
        "test": change.test,
        "operation": change.operation,
        "variant": dict(change.variant),
        "change": change.change,
        "interval": None if change.low is None or change.high is None else [change.low, change.high],
        "verdict": change.verdict.value,
        "cells": [
            {
                **_where(pair.base),
                "unit": pair.base.unit.value,
                "base": pair.base.value,
                "now": pair.now.value,
                "change": pair.change,
                "verdict": pair.verdict.value,
            }
            for pair in change.pairs
        ],
    }


def _where(cell: Cell) -> dict[str, Any]:
    return {
        "test": cell.test,
        "operation": cell.operation,
        "size_bytes": cell.size_bytes,
        "processes": cell.processes,
        "nodes": cell.nodes,
    }
