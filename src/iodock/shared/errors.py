"""Defines the errors that commands report to users, each with a hint about what to do."""

from __future__ import annotations

TYPE_CHECKING = False
"""The same value as typing's, whose import takes as long as Python's own start."""

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class IodockError(Exception):
    """An error that the user can do something about. `str()` returns the message, and `hint` contains
    advice."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            # Python prints only the message and its notes in a traceback. The hint is added as a note, so
            # that users of the Python API see it.
            self.add_note(f"hint: {hint}")


class StoreError(IodockError):
    """The error that is raised if a store can't be opened, read or written."""


class AnswerError(StoreError):
    """The error that is raised if the server that has the rows can't be reached, is too slow, or sends an
    invalid reply. The message may contain internal details, so it is shown only to operators."""


class RequestError(IodockError):
    """The error that is raised for an unknown key, filter value or option. It is the user's mistake, so the
    exit status is 2."""


class QueryError(IodockError):
    """The error that is raised if the SQL engine rejects a query."""


class MissingPackage(IodockError, ImportError):
    """The error that is raised if an optional Python package is missing that the request needs."""

    def _render_traceback_(self) -> list[str]:
        # IPython calls this method and prints the lines instead of a traceback. A traceback through iodock's
        # code would not help the user.
        return [f"{type(self).__name__}: {self}", *([f"hint: {self.hint}"] if self.hint else [])]


def meant(name: str, known: Iterable[str], otherwise: str) -> str:
    """Returns a hint that suggests the name in KNOWN that is most similar to NAME. Returns OTHERWISE if none
    is similar."""
    # Recording imports this module and must start quickly, so difflib is imported only when it is needed.
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), list(known), 1)
    return suggested(near) if near else otherwise


def suggested(names: Sequence[str]) -> str:
    """Returns a hint that suggests these names."""
    *others, last = names
    return f"did you mean {', '.join(others)} or {last}" if others else f"did you mean {last}"
