"""Formats the results of probes as JSON. Times are in ns since the epoch, durations in ns. `null` means that
a value is not known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from iodock.file_system.probe.daily import Daily
from iodock.file_system.probe.episodes import Episode
from iodock.file_system.probe.history import History
from iodock.file_system.probe.judge import MarkEffect, Sight
from iodock.file_system.probe.remarks import remarks
from iodock.shared.language import Language
from iodock.shared.sentences import say

SCHEMA = "iodock-probe-1"


def probe_json(known: History, sights: Sequence[Sight], text: Language) -> str:
    """Formats the JSON document, which ends with a line break."""
    lost = known.losses
    document = {
        "schema": SCHEMA,
        "watches": [_sight(one, text) for one in sights],
        "marks": [{"ts": one.ts, "text": one.text} for one in known.marks],
        "losses": {"damaged": lost.damaged, "unknown": lost.unknown, "orphans": known.orphans},
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"


def _sight(one: Sight, text: Language) -> dict[str, Any]:
    watch, now = one.watch, one.now
    return {
        "host": watch.host,
        "target": watch.target,
        "is_command": watch.is_command,
        "every_s": watch.every_s,
        "limit_s": watch.limit_s,
        "rounds": watch.rounds,
        "first_ts": watch.first_ts,
        "state": now.state.value,
        "ts": now.ts,
        "recent_ns": now.recent_ns,
        "usual_ns": now.usual_ns,
        "found": watch.found,
        "operations": {
            name.value: {field: getattr(usual, field) for field in usual.__slots__}
            for name, usual in one.usual.items()
        },
        "episodes": [_episode(episode) for episode in one.episodes],
        "daily": {name.value: _daily(daily) for name, daily in one.daily.items()},
        "changes": {
            name.value: [{field: getattr(change, field) for field in change.__slots__} for change in several]
            for name, several in one.changes.items()
        },
        "drifts": {
            name.value: {field: getattr(drift, field) for field in drift.__slots__}
            for name, drift in one.drifts.items()
        },
        "marks": {name.value: [_mark(mark) for mark in several] for name, several in one.marks.items()},
        "remarks": [say(remark, text) for remark in remarks(one)],
    }


def _episode(one: Episode) -> dict[str, Any]:
    points = [
        {
            "ts": point.ts,
            "operation": point.operation.value,
            "kind": point.kind.value,
            "ns": point.ns,
            "usual_ns": point.usual_ns,
            "detail": point.detail,
        }
        for point in one.points
    ]
    return {"sort": one.sort.name.lower(), "start_ts": one.start_ts, "end_ts": one.end_ts, "points": points}


def _daily(one: Daily) -> dict[str, Any]:
    return {
        "hours": {str(hour): span for hour, span in one.hours.items()},
        "busy": list(one.busy),
        "busy_ns": one.busy_ns,
        "quiet_ns": one.quiet_ns,
        "chance": one.chance,
    }


def _mark(one: MarkEffect) -> dict[str, Any]:
    return {
        "ts": one.mark.ts,
        "text": one.mark.text,
        "before_ns": one.before_ns,
        "after_ns": one.after_ns,
        "before_count": one.before_count,
        "after_count": one.after_count,
        "chance": one.chance,
        "is_clear": one.is_clear,
    }
