"""Finds the login names of user ids with this machine's name service."""

from __future__ import annotations

import pwd
from functools import lru_cache


@lru_cache(4096)
def login(name: str) -> str:
    """Returns the login name of a numeric user id. Returns NAME itself if it is not numeric or unknown."""
    if not (name.isascii() and name.isdecimal() and len(name) < 10):
        return name
    try:
        return pwd.getpwuid(int(name)).pw_name
    except (KeyError, OverflowError):
        return name


@lru_cache(4096)
def names(user: str) -> tuple[str, ...]:
    """Returns the names under which a user may appear in samples: the argument, which is a login name or a
    numeric id, and the other of the two if it is known."""
    if user.isascii() and user.isdecimal():
        known = login(user)
        return (user,) if known == user else (user, known)
    try:
        return (user, str(pwd.getpwnam(user).pw_uid))
    except (KeyError, ValueError):
        return (user,)
