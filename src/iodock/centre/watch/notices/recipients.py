"""Creates letters for the recipients of a notice. The recipients come from the site's settings, and their
addresses are checked."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from iodock.centre.watch.notices.message import Message, Occasion, Phase, Writer
from iodock.centre.watch.verdict import Suspect
from iodock.shared.errors import RequestError
from iodock.shared.language import N_, language_in
from iodock.shared.response import Notices, Recipient

Sufferers = Callable[[str], Iterable[str] | None]
"""Returns the login names of the present users of a file system; None: unknown."""
USER = "{user}"
UNKNOWN = N_("it is not known which users are affected")
TOO_MANY_USERS = N_("more users are affected than most_users allows")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", re.ASCII)
"""Login names that may become part of an address; others get no mail."""
MAIL = re.compile(r"[A-Za-z0-9._%+={}-]{1,64}@[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?", re.ASCII)
_HOST_PORT = re.compile(r"([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\]):([0-9]{1,5})", re.ASCII)


@dataclass(frozen=True)
class Letter:
    """One message to one address through one channel."""

    group: int
    """Number of the episode, or of the first episode if several share a notice."""
    phase: Phase
    channel: str
    recipient: str
    """Name of the recipient in the settings."""
    address: str
    message: Message

    @property
    def key(self) -> str:
        """Returns a text that identifies the letter. It depends only on the occasion, the recipient and the
        address, so that the outbox recognizes a letter that it already has."""
        return key(self.group, self.phase, self.recipient, self.address)

    @property
    def begin_key(self) -> str:
        """Returns the key of the letter to the same address about the begin of the episode."""
        return key(self.group, "begin", self.recipient, self.address)


def address_of(form: str, user: str) -> str:
    """Replaces `{user}` in FORM by a login name. Returns an empty text if the name has characters that are
    not allowed in an address."""
    return form.replace(USER, user) if _USER.fullmatch(user) else ""


def key(group: int, phase: Phase, *more: str) -> str:
    """Returns the key of a letter if MORE has the recipient and the address. Without them, returns the common
    prefix of the keys of all letters about this occasion."""
    whole = json.dumps([group, phase, *more])
    return whole if len(more) == 2 else whole[:-1] + ","


def checked(notices: Notices) -> Notices:
    """Checks the settings and returns them. Raises RequestError if an address or server is invalid."""
    for name, recipient in notices.to.items():
        where = f"[notices.to.{name}]"
        if reason := _wrong(recipient):
            raise RequestError(f"{where} address = {recipient.address!r}: {reason}")
        if recipient.who in ("owner", "digest") and USER not in recipient.address:
            raise RequestError(
                f"{where}: an owner's address has {{user}} in it", 'e.g. address = "{user}@example.org"'
            )
    if not MAIL.fullmatch(notices.sender):
        raise RequestError(f"[notices] sender = {notices.sender!r} is not a mail address")
    if any(one.by == "mail" for one in notices.to.values()):
        host_port(notices.smtp)
    return notices


def _wrong(recipient: Recipient) -> str:
    if recipient.by == "mail":
        plain = recipient.address.replace(USER, "user")
        return "" if MAIL.fullmatch(plain) and "{" not in plain else "is not a mail address"
    if USER in recipient.address:
        return "only mail goes to single users"
    if recipient.by == "webhook":
        parts = urlsplit(recipient.address)
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or re.search(r"[\x00-\x20]", recipient.address)
        ):
            return "is not an http or https address"
        if recipient.token_file and parts.scheme == "http" and parts.hostname not in _LOOPBACK:
            return "the token would be sent unencrypted"
        return ""
    is_place = recipient.address.startswith("/") or _HOST_PORT.fullmatch(recipient.address)
    return "" if is_place else "is neither a socket's path, as /dev/log, nor HOST:PORT"


_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def host_port(text: str) -> tuple[str, int]:
    """Parses HOST:PORT. Raises RequestError if the text has another form."""
    found = _HOST_PORT.fullmatch(text)
    if not found or not 0 < int(found[2]) < 65_536:
        raise RequestError(f"{text!r} is not HOST:PORT", "as 127.0.0.1:25")
    return found[1].strip("[]"), int(found[2])


@dataclass(frozen=True)
class Letters:
    """Creates the letters of an occasion."""

    notices: Notices
    writer: Writer
    sufferers: Sufferers
    lost: Counter[str] = field(default_factory=Counter)
    """Number of users that were left out, by reason. The caller adds these numbers to its counts."""

    def of_begin(self, occasion: Occasion) -> list[Letter]:
        """Returns the letters to operators and users about the begin of an episode. `of_owner` creates those
        to owners of jobs."""
        return [
            self._letter(occasion, name, address, user)
            for name, one in self._about(occasion) if one.who in ("operators", "users")
            for user, address in self._users(occasion, one)
        ]  # fmt: skip

    def of_owner(self, occasion: Occasion, suspect: Suspect) -> list[Letter]:
        """Returns the letters to the owner of a suspected job. There are none if the owner is not known or
        the confidence is below the limit in the settings."""
        owner = suspect.owner or ""
        if not _USER.fullmatch(owner) or suspect.confidence < self.notices.owner_confidence:
            return []
        return [
            self._letter(occasion, name, one.address.replace(USER, owner), owner, suspect)
            for name, one in self._about(occasion) if one.who == "owner"
        ]  # fmt: skip

    def of_end(self, occasion: Occasion, told: Iterable[tuple[str, str]]) -> list[Letter]:
        """Returns the letters about the end of an episode. TOLD has the recipient and address of each letter
        about its begin, and they get these letters, too."""
        found = []
        for name, address in told:
            recipient = self.notices.to.get(name)
            if recipient is None:
                continue
            user = _user_in(recipient.address, address)
            suspects = (one for one in occasion.episode.suspects if one.owner == user)
            found.append(self._letter(occasion, name, address, user, next(suspects, None)))
        return found

    def _about(self, occasion: Occasion) -> list[tuple[str, Recipient]]:
        place = occasion.episode.file_system
        return [
            (name, one)
            for name, one in self.notices.to.items()
            if not one.file_systems or place in one.file_systems
        ]

    def _users(self, occasion: Occasion, recipient: Recipient) -> list[tuple[str, str]]:
        """Returns the login name and address of each user who gets the notice. If the recipient's address has
        no {user}, such as that of a mailing list, the login name is empty."""
        if USER not in recipient.address:
            return [("", recipient.address)]
        found = self.sufferers(occasion.episode.file_system)
        if found is None:
            self.lost[UNKNOWN] += 1
            return []
        users = {user for user in found if _USER.fullmatch(user)}
        self.lost[TOO_MANY_USERS] += max(0, len(users) - self.notices.most_users)
        chosen = sorted(users)[: self.notices.most_users]
        return [(user, recipient.address.replace(USER, user)) for user in chosen]

    def _letter(
        self, occasion: Occasion, name: str, address: str, user: str, suspect: Suspect | None = None
    ) -> Letter:
        recipient = self.notices.to[name]
        text = language_in(self.notices.languages.get(user, recipient.language))
        if recipient.who == "owner" and suspect is not None:
            message = self.writer.for_owner(occasion, suspect, text)
        else:
            is_open = recipient.who == "operators"
            message = (self.writer.for_operators if is_open else self.writer.for_users)(occasion, text)
        return Letter(occasion.group, occasion.phase, recipient.by, name, address, message)


def _user_in(form: str, address: str) -> str:
    """Returns the part of an address that replaces {user} in FORM, which is a login name, or an empty text if
    FORM has no {user}."""
    before, place, after = form.partition(USER)
    return address[len(before) : len(address) - len(after)] if place else ""


def of_nobody(file_system: str) -> Iterable[str]:
    """Returns no users. It is the default when there is no store in which users could be searched."""
    return ()
