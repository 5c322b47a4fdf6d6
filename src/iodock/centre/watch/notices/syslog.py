"""Sends notices to syslog, each as one line."""

from __future__ import annotations

import logging
from logging.handlers import SysLogHandler

from iodock.centre.watch.notices.outbox import TryAgain
from iodock.centre.watch.notices.recipients import Letter, host_port
from iodock.shared.text import shorten, visible

_LONGEST = 900
"""Relays may cut messages that are longer than 1024 bytes (RFC 3164)."""


class _Raising(SysLogHandler):
    """A logging handler that raises exceptions. The handler of the standard library would print them and
    continue, so a lost notice would count as sent."""

    def handleError(self, record: logging.LogRecord) -> None:
        raise


class Syslog:
    """Sends letters to syslog through a local socket or by UDP. UDP does not confirm delivery."""

    def __call__(self, letter: Letter) -> None:
        """Sends a letter. Raises TryAgain."""
        record = logging.LogRecord("iodock", _level(letter), "", 0, self.line(letter), None, None)
        try:
            handler = _Raising(_place(letter.address), SysLogHandler.LOG_DAEMON)
            try:
                handler.emit(record)
            finally:
                handler.close()
        except OSError as error:
            raise TryAgain(type(error).__name__) from error

    def line(self, letter: Letter) -> str:
        """Formats a letter as one line. A line break would begin a new entry in the log."""
        first = letter.message.text.split("\n")[0]
        suspects = letter.message.facts.get("suspects")
        jobs = [str(one.get("job")) for one in suspects[:3]] if isinstance(suspects, list) else []
        number = letter.message.facts.get("episode")
        said = f"iodock: {first} jobs={','.join(map(visible, jobs)) or '-'} episode={number}"
        while len(said.encode()) > _LONGEST:
            said = shorten(said, len(said) - 50)
        return visible(said)


def _place(address: str) -> str | tuple[str, int]:
    return address if address.startswith("/") else host_port(address)


def _level(letter: Letter) -> int:
    return logging.WARNING if letter.message.facts.get("event") == "begin" else logging.INFO
