"""Queries servers with a time limit. If the monitor's machine does not respond, the check-up is printed
without the state of the servers."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from iodock.shared.errors import IodockError
from iodock.shared.units import number_text

if TYPE_CHECKING:
    from iodock.shared.meanwhile import Meanwhile, NotJoined, OtherUser, ServerMoment, Servers

LONGEST_S = 0.5
"""Longest time to wait for all answers, s."""
_LAST_S = 1.0
"""At the program's end, a thread in the SQL engine gets this time to finish, s. An engine that is destroyed
earlier reports errors."""
T = TypeVar("T")
_asking: list[threading.Thread] = []


def is_asking() -> bool:
    """Returns whether a thread is still waiting for an answer that is no longer needed."""
    return any(one.is_alive() for one in _asking)


@atexit.register
def _await_those_who_ask() -> None:
    until = time.monotonic() + _LAST_S
    for one in _asking:
        one.join(max(0.0, until - time.monotonic()))


class Patient:
    """Queries the monitor in separate threads, and waits at most LONGEST_S for all answers together. The
    query about the whole run is sent at once, so that its answer may arrive while the rest of the check-up is
    computed."""

    def __init__(self, store: str, opened: Callable[[], Servers]) -> None:
        self.store = store
        self._opened = opened
        self._left_s = self._longest_s = LONGEST_S
        self._inner: Servers | None = None
        self._lock = threading.Lock()
        self._first = self._begun(lambda inner: inner.meanwhile())

    @property
    def why_not(self) -> NotJoined | None:
        """Implements `Servers.why_not`. Raises IodockError if the query fails or no answer arrives in
        time."""
        return self._asked(lambda inner: inner.why_not)

    def meanwhile(self) -> Meanwhile | None:
        """Implements `Servers.meanwhile`. Raises IodockError if the query fails or no answer arrives in
        time."""
        return self._waited(self._first)

    def at(self, begin_ns: int, end_ns: int) -> Sequence[ServerMoment]:
        """Implements `Servers.at`. Raises IodockError if the query fails or no answer arrives in time."""
        return self._asked(lambda inner: inner.at(begin_ns, end_ns))

    def others(self, begin_ns: int, end_ns: int) -> Sequence[OtherUser] | None:
        """Implements `Servers.others`. Raises IodockError if the query fails or no answer arrives in time."""
        return self._asked(lambda inner: inner.others(begin_ns, end_ns))

    def _asked(self, question: Callable[[Servers], T]) -> T:
        if self._left_s <= 0:
            raise self._late()
        return self._waited(self._begun(question))

    def _begun(self, question: Callable[[Servers], T]) -> _Answer[T]:
        answer = _Answer(lambda: self._answer(question))
        _asking[:] = [*(one for one in _asking if one.is_alive()), answer]
        answer.start()
        return answer

    def _answer(self, question: Callable[[Servers], T]) -> T:
        with self._lock:
            if self._inner is None:
                self._inner = self._opened()
            return question(self._inner)

    def _waited(self, answer: _Answer[T]) -> T:
        began = time.monotonic()
        answer.join(max(0.0, self._left_s))
        self._left_s -= time.monotonic() - began
        if answer.is_alive():
            self._left_s = 0.0
            raise self._late()
        return answer.result()

    def _late(self) -> IodockError:
        return IodockError(f"{self.store}: no answer within {number_text(self._longest_s, 6)} s")


class _Answer(threading.Thread, Generic[T]):
    """The thread of one query. It is a daemon thread, so Python does not wait for it at exit."""

    def __init__(self, asked: Callable[[], T]) -> None:
        super().__init__(daemon=True, name="iodock servers")
        self._asked = asked
        self._found: T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._found = self._asked()
        except BaseException as error:
            self._error = error

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return cast("T", self._found)
