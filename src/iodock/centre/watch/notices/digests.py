"""Mails a job's digest to the job's owner."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from iodock.centre.watch.notices.message import Message
from iodock.centre.watch.notices.recipients import Letter, address_of
from iodock.shared.errors import RequestError
from iodock.shared.response import Notices


def letters(
    notices: Notices, digest_id: str, owners: Sequence[str], told: Callable[[str], str]
) -> list[Letter]:
    """Makes one letter for each recipient in the settings with `who = "digest"`. TOLD is a function that
    takes the code of a language and returns the digest as text. Raises RequestError if there is no such
    recipient, or if the owner of the job is not known."""
    every = {name: one for name, one in notices.to.items() if one.who == "digest"}
    if not every:
        raise RequestError(
            "the settings have no address for digests by mail",
            'add [notices.to.digests] with who = "digest" and address = "{user}@example.org"',
        )
    if len(owners) != 1:
        raise RequestError(f"{digest_id}: no mail, because the job has {len(owners) or 'no known'} owners")
    found = []
    for name, one in every.items():
        address = address_of(one.address, owners[0])
        if not address:
            raise RequestError(f"{digest_id}: no mail, because {owners[0]!r} is not a login name")
        text = told(notices.languages.get(owners[0], one.language))
        subject = text.partition("\n")[0].removeprefix("iodock: ")
        found.append(Letter(_number(digest_id), "begin", one.by, name, address, Message(subject, text, {})))
    return found


def _number(digest_id: str) -> int:
    """Returns a number for the message id of a mail. The same digest always gives the same number, so that
    mail programs recognize a second copy."""
    return int.from_bytes(hashlib.sha256(digest_id.encode()).digest()[:6], "big")
