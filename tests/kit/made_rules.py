"""Creates made-up rules and candidates, and the diagnosis that results from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from iodock.program import diagnosis, rules
from iodock.program.findings import Advice, Finding
from iodock.program.rules.base import Candidate, Facts, Rule
from iodock.program.store import Store
from iodock.shared.message import Message
from iodock.shared.settings import Settings
from synthetic import event_row, file_row, process_row, write_store

SECOND = 1_000_000_000


@dataclass(frozen=True)
class NoSettings:
    pass


def made_store(folder: Path, seconds_in_io: float = 5.0, durations: bool = True) -> Path:
    """Writes a store of a run of 10 s with one file and 100 reads that take SECONDS_IN_IO together."""
    dur = int(seconds_in_io * SECOND / 100)
    step, dur = SECOND // 10, int(seconds_in_io * SECOND / 100)
    shared = {"dur": dur if durations else None, "file_id": 0, "bytes": 100, "direction": 1, "result": 100}
    events = [event_row("read", ts=1_000 * SECOND + at * step, **shared) for at in range(100)]
    wall = {"captured": {"how": "strace", "command": ["prog"], "wall_ns": 10 * SECOND}}
    return write_store(folder / "made.iodock", events, [file_row(0, "/data/a")], [process_row(0, 7)], **wall)


def candidate(**changes: Any) -> Candidate:
    base = Candidate(
        message=Message("seen {count} times", {"count": 3}),
        count=3,
        time_ns=3 * SECOND,
        evidence={"count": 3},
        query="SELECT 1",
        files=("/data/a",),
    )
    return replace(base, **changes)


def rule(name: str, *found: Candidate, **changes: Any) -> Rule:
    def find(facts: Facts, settings: Any) -> Iterator[Candidate]:
        yield from found

    base = Rule(
        name=name,
        title=name.title(),
        looks_for="it",
        why="it hurts",
        advice=(
            Advice("any", Message("change it")),
            Advice("C", Message("in C")),
            Advice("Python", Message("in Python")),
        ),
        fine_when="never",
        settings=NoSettings,
        find=find,
    )
    return replace(base, **changes)


def findings(
    store: Path, monkeypatch: pytest.MonkeyPatch, *known: Rule, settings: Settings | None = None
) -> diagnosis.Diagnosis:
    monkeypatch.setattr(rules, "every", lambda: known)
    with Store.open(store) as opened:
        return diagnosis.diagnose(opened, settings or Settings())


def only(found: diagnosis.Diagnosis) -> Finding:
    (finding,) = found.findings
    return finding
