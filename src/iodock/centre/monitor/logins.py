"""Login names of user ids, from this machine's name service."""

from __future__ import annotations

import pwd
from functools import lru_cache


@lru_cache(4096)
def login(name: str) -> str:
    """The login name of a numeric user id, or the argument itself."""
    if not (name.isascii() and name.isdecimal() and len(name) < 10):
        return name
    try:
        return pwd.getpwuid(int(name)).pw_name
    except (KeyError, OverflowError):
        return name


@lru_cache(4096)
def names(user: str) -> tuple[str, ...]:
    """Returns the names that a user may have in samples: login name and numeric id."""
    if user.isascii() and user.isdecimal():
        known = login(user)
        return (user,) if known == user else (user, known)
    try:
        return (user, str(pwd.getpwnam(user).pw_uid))
    except (KeyError, ValueError):
        return (user,)
