"""Combines the channels through which notices are sent."""

from __future__ import annotations

from iodock.centre.watch.notices.mail import Mail
from iodock.centre.watch.notices.outbox import Refused, Sender
from iodock.centre.watch.notices.recipients import Letter
from iodock.centre.watch.notices.secrets import secret
from iodock.centre.watch.notices.syslog import Syslog
from iodock.centre.watch.notices.webhook import Webhook
from iodock.shared.language import N_
from iodock.shared.response import Notices


class Channels:
    """Sends letters through the channels that a site uses."""

    def __init__(self, rules: Notices) -> None:
        """Reads the secrets of the channels. Raises RequestError if a file with a secret is unreadable, or if
        an address is invalid."""
        used = {one.by for one in rules.to.values()}
        tokens = {name: secret(one.token_file) for name, one in rules.to.items() if one.token_file}
        self._senders: dict[str, Sender] = {"webhook": Webhook(rules, tokens), "syslog": Syslog()}
        if "mail" in used:
            self._senders["mail"] = Mail(rules)

    def __call__(self, letter: Letter) -> None:
        """Sends a letter through its channel. Raises TryAgain, Refused."""
        sender = self._senders.get(letter.channel)
        if sender is None:
            raise Refused(N_("this channel is no longer configured"))
        sender(letter)
