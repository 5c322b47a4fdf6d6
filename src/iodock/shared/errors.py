"""Errors that are raised below the command line, with what to do about each."""

from __future__ import annotations

TYPE_CHECKING = False
"""The same value as typing's, whose import takes as long as Python's own start."""

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class IodockError(Exception):
    """An error that the user can act on. `str()` says what happened; `hint` says what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            # In Python programs only the traceback shows hints, so the hint becomes a note.
            self.add_note(f"hint: {hint}")


class StoreError(IodockError):
    """A store that can't be opened, read or written."""


class AnswerError(StoreError):
    """A server with the rows is unreachable, slow, or sends an invalid reply. Only operators may read the
    message."""


class RequestError(IodockError):
    """A request can't be answered because of an unknown key, filter value or option. It is a usage error, so
    the exit status is 2."""


class QueryError(IodockError):
    """The engine refused the SQL."""


class MissingPackage(IodockError, ImportError):
    """A Python package is missing that only this request needs."""

    def _render_traceback_(self) -> list[str]:
        # IPython shows these lines instead of a traceback through iodock, which would not help.
        return [f"{type(self).__name__}: {self}", *([f"hint: {self.hint}"] if self.hint else [])]


def meant(name: str, known: Iterable[str], otherwise: str) -> str:
    """Returns a hint that suggests the KNOWN name nearest to NAME, or OTHERWISE."""
    # The import is here, because recording imports this module and must start quickly.
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), list(known), 1)
    return suggested(near) if near else otherwise


def suggested(names: Sequence[str]) -> str:
    """A hint that suggests these names."""
    *others, last = names
    return f"did you mean {', '.join(others)} or {last}" if others else f"did you mean {last}"
