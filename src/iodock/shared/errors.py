"""What can go wrong below the command line, with what to do about it."""

from __future__ import annotations

TYPE_CHECKING = False
"""As typing's, whose import takes as long as Python's own start."""

if TYPE_CHECKING:
    from collections.abc import Iterable


class IodockError(Exception):
    """Something the user can act on. `str()` says what happened; `hint` says what to do."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            # In Python nobody prints hints but the traceback.
            self.add_note(f"hint: {hint}")


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


class MissingPackage(IodockError, ImportError):
    """A Python package that iodock does not need itself, and the caller's wish does."""

    def _render_traceback_(self) -> list[str]:
        # What IPython shows in place of the way through iodock, which mends nothing.
        return [f"{type(self).__name__}: {self}", *([f"hint: {self.hint}"] if self.hint else [])]


def meant(name: str, known: Iterable[str], otherwise: str) -> str:
    """A hint at what was meant by NAME: the nearest of the KNOWN names, or OTHERWISE."""
    # Recording imports this module, and its start shall cost little.
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), list(known), 1)
    return f"did you mean {near[0]}" if near else otherwise
