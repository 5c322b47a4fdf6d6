"""Tests that iodock waits for answers about servers for a limited time, and passes on answers and errors."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from iodock.cli import patience
from iodock.cli.patience import Patient, is_asking
from iodock.shared.errors import IodockError, StoreError
from iodock.shared.meanwhile import Meanwhile, NotJoined, OtherUser, ServerMoment


class Slow:
    """A source of answers that waits until the test lets it answer."""

    store = "here"
    why_not: NotJoined | None = "no-agent"

    def __init__(self, may: threading.Event) -> None:
        self._may = may
        self.asked = 0

    def meanwhile(self) -> Meanwhile | None:
        self.asked += 1
        self._may.wait(30)
        return None

    def at(self, begin_ns: int, end_ns: int) -> Sequence[ServerMoment]:
        return ()

    def others(self, begin_ns: int, end_ns: int) -> Sequence[OtherUser] | None:
        raise StoreError("gone")


def test_answers_and_errors_pass_through() -> None:
    may = threading.Event()
    may.set()
    asked = Patient("here", lambda: Slow(may))
    assert asked.meanwhile() is None
    assert asked.why_not == "no-agent"
    assert asked.at(0, 1) == ()
    with pytest.raises(StoreError, match="gone"):
        asked.others(0, 1)


def test_an_unresponsive_server_is_abandoned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "LONGEST_S", 0.05)
    may = threading.Event()
    slow = Slow(may)
    asked = Patient("here", lambda: slow)
    for question in (asked.meanwhile, lambda: asked.at(0, 1), lambda: asked.others(0, 1)):
        with pytest.raises(IodockError, match=r"here: no answer within 0\.05 s"):
            question()
    assert is_asking()
    assert slow.asked == 1
    may.set()
    for one in patience._asking:
        one.join(30)
    assert not is_asking()


def test_a_store_that_hangs_when_opened_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store hangs like a folder on a dead NFS server."""
    monkeypatch.setattr(patience, "LONGEST_S", 0.05)
    may = threading.Event()

    def opened() -> Slow:
        may.wait(30)
        return Slow(may)

    asked = Patient("here", opened)
    with pytest.raises(IodockError, match="no answer"):
        asked.meanwhile()
    may.set()
