"""Reads and writes episodes in the ledger."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from dataclasses import asdict, replace
from typing import Any

from iodock.centre.watch.episodes import Episode
from iodock.centre.watch.ledger import Ledger, Readable, Row
from iodock.centre.watch.verdict import Evidence, Suspect
from iodock.shared.bounded.documents import from_json

_FIELDS = (
    "file_system", "server", "kind", "begin_ns", "end_ns", "state", "worst", "seen_ns", "confidence",
    "samples", "suspects", "told",
)  # fmt: skip


def save(connection: sqlite3.Connection, episode: Episode) -> Episode:
    """Writes an episode to the ledger and returns it with its number. An episode without a number is added,
    another one is updated."""
    suspects = json.dumps([asdict(suspect) for suspect in episode.suspects])
    values = [suspects if name == "suspects" else getattr(episode, name) for name in _FIELDS]
    if episode.number:
        changes = ", ".join(f"{name} = ?" for name in _FIELDS)
        connection.execute(f"UPDATE episodes SET {changes} WHERE number = ?", (*values, episode.number))
        return episode
    places = ", ".join("?" for _ in _FIELDS)
    made = connection.execute(f"INSERT INTO episodes ({', '.join(_FIELDS)}) VALUES ({places})", values)
    return replace(episode, number=int(made.lastrowid or 0))


def open_episodes(ledger: Ledger) -> list[Episode]:
    """Returns the open episodes. Raises StoreError."""
    return [
        _episode(row) for row in ledger.read("SELECT * FROM episodes WHERE end_ns IS NULL ORDER BY number")
    ]


def recent(ledger: Ledger, since: int, most: int = 200) -> list[Episode]:
    """Returns at most MOST episodes that were not over at SINCE (ns since the epoch), the newest first.
    Raises StoreError."""
    rows = ledger.read(
        "SELECT * FROM episodes WHERE end_ns IS NULL OR end_ns >= ? ORDER BY begin_ns "
"DESC, number DESC LIMIT ?",
        since, most,
    )  # fmt: skip
    return [_episode(row) for row in rows]


def suspected(ledger: Readable, since: int) -> dict[str, int]:
    """Returns, for each job, the number of episodes in which it was a suspect and that were not over at SINCE
    (ns since the epoch). Raises StoreError."""
    rows = ledger.read("SELECT suspects FROM episodes WHERE end_ns IS NULL OR end_ns >= ?", since)
    return dict(
        Counter(job for row in rows for job in {str(one["job"]) for one in from_json(row["suspects"])})
    )


def between(ledger: Readable, begin: int, end: int) -> list[Episode]:
    """Returns the episodes that were open at any time from BEGIN to END (ns since the epoch), the newest
    first. Raises StoreError."""
    rows = ledger.read(
        "SELECT * FROM episodes WHERE begin_ns <= ? AND (end_ns IS NULL OR end_ns >= ?) "
        "ORDER BY begin_ns DESC, number DESC",
        end, begin,
    )  # fmt: skip
    return [_episode(row) for row in rows]


def episode(ledger: Ledger, number: int) -> Episode | None:
    """Returns the episode with this number, or None. Raises StoreError."""
    rows = ledger.read("SELECT * FROM episodes WHERE number = ?", number)
    return _episode(rows[0]) if rows else None


def of_group(ledger: Ledger, group: int) -> list[Episode]:
    """Returns the episodes that share the notice of the group. Raises StoreError."""
    return [
        _episode(row) for row in ledger.read("SELECT * FROM episodes WHERE told = ? ORDER BY number", group)
    ]


def forget(connection: sqlite3.Connection, before: int) -> None:
    """Removes episodes that ended before BEFORE (ns since the epoch), and their actions. An episode with an
    action that is not over is kept."""
    old = "SELECT number FROM episodes WHERE end_ns < ?"
    over = "('failed', 'undone', 'left', 'lapsed', 'declined')"
    connection.execute(f"DELETE FROM actions WHERE status IN {over} AND episode IN ({old})", (before,))
    connection.execute(
        "DELETE FROM episodes WHERE end_ns < ? AND number NOT IN (SELECT episode FROM actions)", (before,)
    )


def forget_suspects(connection: sqlite3.Connection, before: int) -> None:
    """Removes the suspects, and the owners of jobs with actions, from episodes that ended before BEFORE (ns
    since the epoch)."""
    old = "SELECT number FROM episodes WHERE end_ns < ?"
    connection.execute(f"UPDATE actions SET owner = NULL WHERE episode IN ({old})", (before,))
    connection.execute("UPDATE episodes SET suspects = '[]' WHERE end_ns < ?", (before,))


def _episode(row: Row) -> Episode:
    values = {name: row[name] for name in _FIELDS if name != "suspects"}
    suspects = tuple(_suspect(one) for one in from_json(row["suspects"]))
    return Episode(**values, suspects=suspects, number=row["number"])


def _suspect(values: dict[str, Any]) -> Suspect:
    # A later version of iodock may have written the row with more fields of a suspect. Unknown fields are
    # ignored.
    known = {name: value for name, value in values.items() if name in Suspect.__dataclass_fields__}
    evidence = tuple(Evidence(**one) for one in known.pop("evidence"))
    return Suspect(**known, evidence=evidence)
