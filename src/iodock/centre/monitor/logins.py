"""Login names of user ids, as this machine's name service knows them."""

from __future__ import annotations

import pwd
from functools import lru_cache


@lru_cache(4096)
def login(name: str) -> str:
    """The login name of a user id in digits, or what was given."""
    if not (name.isascii() and name.isdecimal() and len(name) < 10):
        return name
    try:
        return pwd.getpwuid(int(name)).pw_name
    except (KeyError, OverflowError):
        return name
