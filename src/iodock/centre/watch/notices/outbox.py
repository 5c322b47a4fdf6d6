"""Implements the queue of letters. It is stored in the ledger, so waiting letters survive a restart. A letter
is marked before it is sent. If the collector ends while it sends a letter, the letter counts as lost and is
not sent again, because it may have arrived."""

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
    """The interface that sends one letter. It raises TryAgain for a temporary failure, and Refused if the
    letter will never be accepted."""

    def __call__(self, letter: Letter) -> None: ...


class TryAgain(Exception):
    """Says that the letter could not be sent now."""


class Refused(Exception):
    """Says that the letter will never be accepted."""


def put(connection: sqlite3.Connection, letters: Iterable[Letter], now: int, most: int) -> None:
    """Adds letters that are not in the queue yet. If MOST letters are waiting, further ones are dropped and
    counted as lost."""
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
    """Sends letters that are due. Only one thread at a time may send the letters of a channel."""

    def __init__(self, ledger: Ledger, rules: Notices, send: Sender) -> None:
        self._ledger, self._rules, self._send = ledger, rules, send

    def recover(self) -> None:
        """Handles letters that were being sent when the collector last ended. They may have arrived, so they
        are counted as lost and not sent again. Raises StoreError."""
        with self._ledger.writing() as connection:
            for row in connection.execute(
                "SELECT number, channel FROM outbox WHERE status = 'sending'"
            ).fetchall():
                self._finish(connection, row, LOST, ENDED)

    def send_due(
        self, now: int, is_over: Callable[[], bool] = lambda: False, most: int = 100,
        channel: Channel | None = None,
    ) -> int:  # fmt: skip
        """Tries to send at most MOST letters that are due, and returns their number. NOW is in ns since the
        epoch. It stops before the next letter if IS_OVER returns true. If CHANNEL is given, only letters of
        this channel are sent. Raises StoreError."""
        rows = self._ledger.read(
            "SELECT * FROM outbox WHERE status = 'waiting' AND next_ns <= ? "
            "AND channel = coalesce(?, channel) ORDER BY next_ns, number LIMIT ?",
            now, channel, most,
        )  # fmt: skip
        tried, stuck = 0, set[str]()
        for row in rows:
            if is_over():
                break
            # If sending fails temporarily, the other letters of the channel are not tried now, because each
            # might wait until the time limit.
            if row["channel"] not in stuck:
                tried += 1
                if not self._try(row, now):
                    stuck.add(row["channel"])
        return tried

    def waiting(self) -> int:
        """Returns the number of letters that wait to be sent. Raises StoreError."""
        return int(self._ledger.read("SELECT count(*) AS n FROM outbox WHERE status = 'waiting'")[0]["n"])

    def forget(self, before: int) -> None:
        """Removes letters that were sent or lost and that were created before BEFORE (ns since the epoch).
        Raises StoreError."""
        with self._ledger.writing() as connection:
            connection.execute(
                "DELETE FROM outbox WHERE status IN (?, ?) AND made_ns < ?", (SENT, LOST, before)
            )

    def _try(self, row: Row, now: int) -> bool:
        """Tries to send one letter. Returns False if it must be tried again later."""
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
            # After another exception, which is a bug, the letter is tried again. Otherwise it would stay
            # marked as being sent and never be sent or counted as lost.
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
        """Sets the final status of a letter and counts it. The text is deleted, because personal data must
        not be kept longer than needed."""
        connection.execute(
            "UPDATE outbox SET status = ?, message = '' WHERE number = ?", (status, row["number"])
        )
        count(connection, f"{status}: {row['channel']}" + (f": {why[:120]}" if why else ""))


def told(connection: sqlite3.Connection, group: int) -> list[tuple[str, str]]:
    """Returns the recipient and address of each letter about the begin of a group's episodes."""
    start = key(group, "begin")
    rows = connection.execute(
        "SELECT key FROM outbox WHERE substr(key, 1, ?) = ? ORDER BY number", (len(start), start)
    )
    found = [from_json(row["key"]) for row in rows.fetchall()]
    return [(str(name), str(address)) for _, _, name, address in found]


def _letter(row: Row) -> Letter:
    found = from_json(row["message"])
    return Letter(**{**found, "message": Message(**found["message"])})
