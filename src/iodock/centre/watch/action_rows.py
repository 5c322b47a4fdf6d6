"""Reads and writes actions in the ledger."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Literal

from iodock.centre.watch.ledger import Ledger, Row
from iodock.shared.response import ActionKind

Status = Literal[
    "asked", "wanted", "doing", "done", "undo", "undoing", "undone", "failed", "left", "lapsed", "declined"
]
"""The normal order is asked, wanted, doing, done, undo, undoing, undone. `doing` and `undoing` are written
before a command runs. `left`: another party changed the job's state, so iodock does not touch the job any
more."""
UNDER_WAY: tuple[Status, ...] = ("wanted", "doing", "undo", "undoing")
BY_ITSELF = "iodock"
"""Value of `by` for automatic actions."""


@dataclass(frozen=True)
class Action:
    number: int
    episode: int
    job: str
    owner: str | None
    kind: ActionKind
    status: Status
    by: str
    """BY_ITSELF, or the name of the operator who confirmed the action."""
    made_ns: int
    did_ns: int | None
    """Time just before the action's command ran, ns since the epoch."""
    mark: str | None
    """Identifies the state of the job after the command. It is compared before the action is undone."""
    why: str
    """A key of acting.WHY; empty if there was no problem."""
    tries: int
    next_ns: int


def add(connection: sqlite3.Connection, action: Action) -> int:
    """Adds an action and returns its new number."""
    made = connection.execute(
        "INSERT INTO actions (episode, job, owner, kind, status, by, made_ns, did_ns, "
"mark, why, tries, next_ns) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            action.episode, action.job, action.owner, action.kind, action.status, action.by, action.made_ns,
            action.did_ns, action.mark, action.why, action.tries, action.next_ns,
        ),
    )  # fmt: skip
    return int(made.lastrowid or 0)


def change(connection: sqlite3.Connection, number: int, was: Status, **values: object) -> bool:
    """Changes an action if its status is still WAS. Returns False if the status has changed."""
    changes = ", ".join(f"{name} = ?" for name in values)
    done = connection.execute(
        f"UPDATE actions SET {changes} WHERE number = ? AND status = ?", (*values.values(), number, was)
    )
    return done.rowcount == 1


def due(ledger: Ledger, now: int) -> list[Action]:
    """Returns the actions whose next step is due, in the order of their numbers. Raises StoreError."""
    places = ", ".join("?" for _ in UNDER_WAY)
    sql = f"SELECT * FROM actions WHERE status IN ({places}) AND next_ns <= ? ORDER BY number"
    return [_action(row) for row in ledger.read(sql, *UNDER_WAY, now)]


def with_status(ledger: Ledger, *statuses: Status) -> list[Action]:
    """Returns the actions that have one of these statuses. Raises StoreError."""
    places = ", ".join("?" for _ in statuses)
    sql = f"SELECT * FROM actions WHERE status IN ({places}) ORDER BY number"
    return [_action(row) for row in ledger.read(sql, *statuses)]


def of_episode(ledger: Ledger, episode: int, status: Status) -> list[Action]:
    """Returns the actions of an episode that have this status. Raises StoreError."""
    sql = "SELECT * FROM actions WHERE episode = ? AND status = ? ORDER BY number"
    return [_action(row) for row in ledger.read(sql, episode, status)]


def action(ledger: Ledger, number: int) -> Action | None:
    """Returns the action with this number, or None. Raises StoreError."""
    rows = ledger.read("SELECT * FROM actions WHERE number = ?", number)
    return _action(rows[0]) if rows else None


def newest(ledger: Ledger, most: int) -> list[Action]:
    """Returns the latest actions, at most MOST, the newest first. Raises StoreError."""
    return [_action(row) for row in ledger.read("SELECT * FROM actions ORDER BY number DESC LIMIT ?", most)]


def jobs_of(ledger: Ledger, episode: int) -> frozenset[str]:
    """Returns the jobs with an action in an episode. Raises StoreError."""
    return frozenset(row["job"] for row in ledger.read("SELECT job FROM actions WHERE episode = ?", episode))


def unasked_since(ledger: Ledger, since: int) -> int:
    """Returns the number of automatic actions since SINCE (ns since the epoch), without those that were
    dropped before their command ran. Raises StoreError."""
    sql = "SELECT count(*) AS n FROM actions WHERE by = ? AND coalesce(did_ns, made_ns) >= ? AND "
    sql += "(did_ns IS NOT NULL OR status IN ('wanted', 'doing'))"
    return int(ledger.read(sql, BY_ITSELF, since)[0]["n"])


def latest_on(ledger: Ledger, file_system: str) -> int | None:
    """Returns the time (ns since the epoch) of the last action on this file system whose command has run or
    is about to run, or None if there is none. Raises StoreError."""
    sql = "SELECT max(coalesce(did_ns, made_ns)) AS last FROM actions JOIN episodes ON "
    sql += "episodes.number = actions.episode WHERE file_system = ? AND "
    sql += "(did_ns IS NOT NULL OR status = 'wanted')"
    last = ledger.read(sql, file_system)[0]["last"]
    return None if last is None else int(last)


def _action(row: Row) -> Action:
    return Action(**{name: row[name] for name in Action.__dataclass_fields__})
