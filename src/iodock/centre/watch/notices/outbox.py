"""The queue of letters. It is stored in the ledger, so that a restart neither loses a letter nor sends it
twice: a letter is marked before it is sent, and a letter that was being sent when the collector ended is not
sent again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Protocol

from iodock.centre.watch.ledger import Ledger, Row, count
from iodock.centre.watch.notices.message import Message
from iodock.centre.watch.notices.recipients import Letter, key
from iodock.shared.bounded.documents import from_json
from iodock.shared.language import N_
from iodock.shared.response import Channel, Notices

SECOND = 1_000_000_000
SENT, LOST = "sent", "lost"
ENDED = N_("the collector ended while it was being sent")
TOO_MANY = N_("too many notices are waiting")
_LONGEST_WAIT_S = 600


class Sender(Protocol):
    """Sends one letter. Raises TryAgain for a temporary failure, Refused if the letter will never be
    accepted."""

    def __call__(self, letter: Letter) -> None: ...


class TryAgain(Exception):
    """The letter could not be sent now."""


class Refused(Exception):
    """The letter will never be accepted."""


def put(connection: sqlite3.Connection, letters: Iterable[Letter], now: int, most: int) -> None:
    """Adds letters that are not yet in the queue. Letters beyond MOST waiting ones are dropped and
    counted."""
    waiting = connection.execute("SELECT count(*) FROM outbox WHERE status = 'waiting'").fetchone()[0]
    for letter in letters:
        if waiting >= most:
            count(connection, f"{LOST}: {letter.channel}: {TOO_MANY}")
            continue
        body = json.dumps(asdict(letter))
        done = connection.execute(
            "INSERT OR IGNORE INTO outbox (key, channel, recipient, message, status, tries, "
            "made_ns, next_ns) "
            "VALUES (?, ?, ?, ?, 'waiting', 0, ?, ?)",
            (letter.key, letter.channel, letter.recipient, body, now, now),
        )
        waiting += done.rowcount


class Outbox:
    """Sends letters that are due. Each channel has one thread at a time."""

    def __init__(self, ledger: Ledger, rules: Notices, send: Sender) -> None:
        self._ledger, self._rules, self._send = ledger, rules, send

    def recover(self) -> None:
        """Is called at the start. Letters that were being sent may have arrived, so they are not sent again.
        Raises StoreError."""
        with self._ledger.writing() as connection:
            for row in connection.execute(
                "SELECT number, channel FROM outbox WHERE status = 'sending'"
            ).fetchall():
                self._finish(connection, row, LOST, ENDED)

    def send_due(
        self, now: int, is_over: Callable[[], bool] = lambda: False, most: int = 100,
        channel: Channel | None = None,
    ) -> int:  # fmt: skip
        """Sends letters that are due, and returns the number of those that were tried. NOW: ns since the
        epoch. IS_OVER: whether to stop before the next letter. CHANNEL: the only one to send; None: all.
        Raises StoreError."""
        rows = self._ledger.read(
            "SELECT * FROM outbox WHERE status = 'waiting' AND next_ns <= ? "
            "AND channel = coalesce(?, channel) ORDER BY next_ns, number LIMIT ?",
            now, channel, most,
        )  # fmt: skip
        tried, stuck = 0, set[str]()
        for row in rows:
            if is_over():
                break
            # If a mail server hangs, its other letters are not tried now, because each would wait for the
            # time limit.
            if row["channel"] not in stuck:
                tried += 1
                if not self._try(row, now):
                    stuck.add(row["channel"])
        return tried

    def waiting(self) -> int:
        """Number of letters that wait. Raises StoreError."""
        return int(self._ledger.read("SELECT count(*) AS n FROM outbox WHERE status = 'waiting'")[0]["n"])

    def forget(self, before: int) -> None:
        """Removes letters that were sent or lost, and created before this time. Raises StoreError."""
        with self._ledger.writing() as connection:
            connection.execute(
                "DELETE FROM outbox WHERE status IN (?, ?) AND made_ns < ?", (SENT, LOST, before)
            )

    def _try(self, row: Row, now: int) -> bool:
        """Sends one letter. Returns False if it must be tried again."""
        with self._ledger.writing() as connection:
            connection.execute("UPDATE outbox SET status = 'sending' WHERE number = ?", (row["number"],))
        try:
            self._send(_letter(row))
        except Refused as error:
            with self._ledger.writing() as connection:
                self._finish(connection, row, LOST, str(error))
        except TryAgain as error:
            self._later(row, now, str(error))
            return False
        except Exception as error:
            # Without this, the letter would stay marked as being sent, and be lost silently.
            self._later(row, now, type(error).__name__)
            return False
        else:
            with self._ledger.writing() as connection:
                self._finish(connection, row, SENT, "")
        return True

    def _later(self, row: Row, now: int, why: str) -> None:
        wait = min(self._rules.retry_s * 2 ** min(row["tries"], 16), _LONGEST_WAIT_S)
        with self._ledger.writing() as connection:
            if now + wait * SECOND - row["made_ns"] > self._rules.give_up_s * SECOND:
                self._finish(connection, row, LOST, why)
                return
            connection.execute(
                "UPDATE outbox SET status = 'waiting', tries = tries + 1, next_ns = ? WHERE number = ?",
                (now + round(wait * SECOND), row["number"]),
            )

    def _finish(self, connection: sqlite3.Connection, row: Row, status: str, why: str) -> None:
        """Ends a letter with a status. Its text is deleted, because it must not be kept longer than
        needed."""
        connection.execute(
            "UPDATE outbox SET status = ?, message = '' WHERE number = ?", (status, row["number"])
        )
        count(connection, f"{status}: {row['channel']}" + (f": {why[:120]}" if why else ""))


def told(connection: sqlite3.Connection, group: int) -> list[tuple[str, str]]:
    """Returns recipient and address of all letters about the begin of an episode."""
    start = key(group, "begin")
    rows = connection.execute(
        "SELECT key FROM outbox WHERE substr(key, 1, ?) = ? ORDER BY number", (len(start), start)
    )
    found = [from_json(row["key"]) for row in rows.fetchall()]
    return [(str(name), str(address)) for _, _, name, address in found]


def _letter(row: Row) -> Letter:
    found = from_json(row["message"])
    return Letter(**{**found, "message": Message(**found["message"])})
