"""Prepares the analysis `overview` for the verdict in the terminal and in the report."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

from iodock.program.analyses import find
from iodock.program.analyses.base import request
from iodock.program.store import Store
from iodock.program.unseen import unseen_of
from iodock.program.views.verdict import Cost, Overview, Part
from iodock.shared.answer import Answer

_STOPPING = {"strace", "ptrace"}
"""Ways of capturing that stop the program at each call."""


def overview_of(store: Store) -> Overview:
    """Queries a store for the numbers that its verdict needs."""
    analysis = find("overview")
    found = overview_from(analysis.run(store, request(analysis, {})), store.manifest.durations)
    how = (store.manifest.raw.get("captured") or {}).get("how") or ""
    stopped = not _STOPPING.isdisjoint(str(how).split("+"))
    return replace(found, stopped=stopped, unseen=unseen_of(store))


def overview_from(answer: Answer, durations: bool) -> Overview:
    """Returns the numbers that the verdict needs from an answer of the analysis `overview`."""
    facts = answer.totals.total if answer.totals else {}
    return Overview(
        wall_ns=facts.get("wall_time_ns"),
        io_ns=facts.get("io_time_ns") if durations else None,
        waiting_ns=facts.get("waiting_time_ns"),
        calls=int(facts.get("calls") or 0),
        failed=int(facts.get("failed") or 0),
        read_bytes=int(facts.get("read_bytes") or 0),
        written_bytes=int(facts.get("written_bytes") or 0),
        durations=durations,
        parts=[_part(row) for row in answer.table.select(["part", "total_time_ns", "count"]).to_pylist()],
        costs=[_cost(row) for row in facts.get("largest") or ()],
        cure=next((loss.cure for loss in answer.losses if loss.name == "missing-durations"), None),
    )


def command_line(store: Store) -> str:
    """Returns the recorded command as a user would type it. It is empty if the command is not known."""
    captured = store.manifest.raw.get("captured") or {}
    return shlex.join(map(str, captured.get("command") or ()))


def _part(row: dict[str, Any]) -> Part:
    return Part(row["part"], row["total_time_ns"], row["count"])


def _cost(row: dict[str, Any]) -> Cost:
    return Cost(
        row["call"],
        row["file"],
        row["total_time_ns"],
        row["max_time_ns"],
        row["count"],
        row["failed"],
        row["bytes"],
        row["file_count"],
    )
