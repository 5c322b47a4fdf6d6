"""What can go wrong below the command line, with what to do about it."""

from __future__ import annotations


class IodockError(Exception):
    """Something the user can act on. `str()` says what happened; `hint` says what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class StoreError(IodockError):
    """A store that can't be opened, read or written."""


class AnswerError(StoreError):
    """A server that keeps the rows is away, slow, or says what is no answer. Operators may read the
    message."""


class RequestError(IodockError):
    """A question that can't be answered as asked: an unknown key, filter value or option. Usage, so exit
    2."""


class QueryError(IodockError):
    """SQL that the engine refuses."""
