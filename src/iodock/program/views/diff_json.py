"""Formats a comparison as JSON, as docs/how-to/compare-two-runs.md describes."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from iodock.program.comparison.data import Change, Comparison, FindingChange, Listing, Row, RunLabel
from iodock.program.findings import Finding
from iodock.shared.language import Language
from iodock.shared.sentences import say

SCHEMA = "iodock-diff-1"


def diff_json(comparison: Comparison, text: Language) -> str:
    """Formats the comparison as a JSON document that ends with a line break. Sentences are in the language
    of TEXT."""
    work = comparison.work
    document = {
        "schema": SCHEMA,
        "before": [_run(run) for run in comparison.before],
        "after": [_run(run) for run in comparison.after],
        "headline": say(comparison.headline, text),
        "sentences": [say(one, text) for one in comparison.sentences],
        "remarks": [{"kind": one.kind, "text": say(one.message, text)} for one in comparison.remarks],
        "time": comparison.time,
        "work": None
        if work is None
        else {"unit": work.name, "before": _numbers(work.before), "after": _numbers(work.after)},
        "totals": _changes(comparison.totals),
        "parts": [{"part": row.name} | _changes(row.changes) for row in comparison.parts],
        "calls": _listing(comparison.calls, "call"),
        "faster": _listing(comparison.faster, "file"),
        "slower": _listing(comparison.slower, "file"),
        "same_files": comparison.same_files,
        "noise": {
            "files": comparison.noise.files,
            "least_ns": whole(comparison.noise.least_ns),
            "share": comparison.noise.share,
            "change": _change(comparison.noise.change),
        },
        "lines": [
            {
                "file": one.file,
                "function": one.function,
                "line_before": one.lines[0],
                "line_after": one.lines[1],
            }
            | _changes(one.changes)
            for one in comparison.lines
        ],
        "sizes": [
            {"direction": one.direction, "upper_bytes": one.upper_bytes}
            | _changes({"count": one.count, "total_time_ns": one.total_time_ns})
            for one in comparison.sizes
        ],
        "findings": [_finding(one, text) for one in comparison.findings],
    }
    return json.dumps(document, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _run(run: RunLabel) -> dict[str, Any]:
    return {
        "store": run.store,
        "command": run.command,
        "captured": run.captured,
        "losses": [dataclasses.asdict(loss) for loss in run.losses],
    }


def _changes(changes: Mapping[str, Change]) -> dict[str, Any]:
    return {name: _change(one) for name, one in changes.items()}


def _change(one: Change) -> dict[str, Any]:
    return {
        "before": whole(one.before),
        "after": whole(one.after),
        "difference": whole(one.difference),
        "ratio": one.ratio,
        "runs_before": _numbers(one.before_runs),
        "runs_after": _numbers(one.after_runs),
        "sureness": one.sureness.value,
        "p_value": one.p_value,
    }


def _numbers(values: tuple[float | None, ...]) -> list[float | int | None]:
    return [whole(value) for value in values]


def whole(value: float | None) -> float | int | None:
    """Converts a number without decimals to an integer. Counts and bytes of whole runs are such numbers."""
    return int(value) if value is not None and float(value).is_integer() else value


def _listing(listing: Listing, key: str) -> dict[str, Any]:
    return {
        "of": listing.of,
        **({"files": listing.files} if key == "file" else {}),
        "rows": [_row(row, key) for row in listing.rows],
        "other": None if listing.other is None else _changes(listing.other.changes),
        "total": _changes(listing.total.changes),
    }


def _row(row: Row, key: str) -> dict[str, Any]:
    written: dict[str, Any] = {key: row.name or None}
    if key == "file":
        before, after = row.files
        written |= {"matched": row.matched or None, "files_before": before, "files_after": after}
    written |= _changes(row.changes)
    if key == "file":
        written["calls"] = [_row(one, "call") for one in row.calls]
    return written


def _finding(one: FindingChange, text: Language) -> dict[str, Any]:
    return {
        "state": one.state,
        "rule": one.finding.rule,
        "title": say(one.finding.title, text),
        "files": list(one.finding.files),
        "cost_seconds": _change(one.cost_seconds),
        "seen_before": one.seen[0],
        "seen_after": one.seen[1],
        "before": _side(one.before, text),
        "after": _side(one.after, text),
    }


def _side(finding: Finding | None, text: Language) -> dict[str, Any] | None:
    if finding is None:
        return None
    return {
        "severity": finding.severity.value,
        "cost_seconds": finding.cost_seconds,
        "cost_share": finding.cost_share,
        "message": say(finding.message, text),
        "files": list(finding.files),
    }
