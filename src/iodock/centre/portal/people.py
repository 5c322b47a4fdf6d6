"""Finds login names, user ids and groups with this machine's name service."""

from __future__ import annotations

import grp
import pwd
from functools import lru_cache

from iodock.centre.monitor.access import Visitor
from iodock.centre.monitor.logins import login as login
from iodock.centre.monitor.logins import names as names
from iodock.centre.monitor.questions.jobs import Seen


@lru_cache(4096)
def group(name: str) -> str:
    """Returns the name of the primary group of a user, or an empty text if it is not known."""
    try:
        return grp.getgrgid(pwd.getpwnam(login(name)).pw_gid).gr_name
    except (KeyError, ValueError):
        return ""


def seen_by(visitor: Visitor) -> Seen:
    """Returns the condition for the rows that a visitor may see. A user may see rows with the user's login
    name or numeric id. A login name that consists of digits is ignored, because it could be equal to the id
    of another user."""
    if visitor.may_see_all:
        return Seen()
    plain = () if visitor.user.isdecimal() else (visitor.user,)
    try:
        return Seen((*plain, str(pwd.getpwnam(visitor.user).pw_uid)))
    except (KeyError, ValueError):
        return Seen(plain)
