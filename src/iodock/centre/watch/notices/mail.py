"""Sends notices by mail."""

from __future__ import annotations

import contextlib
import hashlib
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate

from iodock.centre.watch.notices.outbox import Refused, TryAgain
from iodock.centre.watch.notices.recipients import MAIL, Letter, host_port
from iodock.centre.watch.notices.secrets import secret
from iodock.shared.errors import RequestError
from iodock.shared.language import N_
from iodock.shared.response import Notices
from iodock.shared.text import visible

_PERMANENT = 500
"""Reply codes from this one on mean that the mail server will never accept the message."""


class Mail:
    """Sends letters through one mail server."""

    def __init__(self, rules: Notices) -> None:
        """Reads the settings and the password. Raises RequestError if the server's address is invalid, or if
        the password file is unreadable."""
        self._rules = rules
        self._server = host_port(rules.smtp)
        self._password = secret(rules.smtp_password_file) if rules.smtp_password_file else ""
        if (
            self._password
            and rules.security == "none"
            and self._server[0] not in ("127.0.0.1", "localhost", "::1")
        ):
            raise RequestError("[notices] the password would be sent unencrypted", 'security = "starttls"')

    def __call__(self, letter: Letter) -> None:
        """Sends a letter. Raises TryAgain, Refused."""
        if not MAIL.fullmatch(letter.address) or "{" in letter.address:
            raise Refused(N_("is not a mail address"))
        mail = self.written(letter)
        try:
            server = self._connected()
            try:
                server.send_message(mail, self._rules.sender, [letter.address])
                # The server has accepted the message. An error while the connection is closed is ignored,
                # because it would cause a second mail.
                with contextlib.suppress(OSError, smtplib.SMTPException):
                    server.quit()
            finally:
                server.close()
        except smtplib.SMTPRecipientsRefused as error:
            status = next(iter(error.recipients.values()))[0]
            raise (Refused if status >= _PERMANENT else TryAgain)(f"the server answers {status}") from error
        except smtplib.SMTPResponseException as error:
            permanent = error.smtp_code >= _PERMANENT and not isinstance(
                error, smtplib.SMTPAuthenticationError
            )
            raise (Refused if permanent else TryAgain)(f"the server answers {error.smtp_code}") from error
        except (OSError, smtplib.SMTPException) as error:
            raise TryAgain(type(error).__name__) from error

    def written(self, letter: Letter) -> EmailMessage:
        """Returns the mail for a letter. The mail about the end of an episode refers to the one about its
        begin, so that mail programs show them as one thread. A header suppresses automatic replies."""
        mail = EmailMessage()
        # The subject may contain a job's name with a line break, which is not allowed in a header.
        mail["Subject"] = f"[iodock] {visible(letter.message.subject)}"
        mail["From"], mail["To"] = self._rules.sender, letter.address
        mail["Date"] = formatdate(localtime=True)
        mail["Message-ID"] = self._id(letter.key)
        if letter.phase == "end":
            mail["In-Reply-To"] = mail["References"] = self._id(letter.begin_key)
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(letter.message.text, cte="base64")
        return mail

    def _id(self, key: str) -> str:
        domain = self._rules.sender.rpartition("@")[2]
        return f"<iodock.{hashlib.sha256(key.encode()).hexdigest()[:32]}@{domain}>"

    def _connected(self) -> smtplib.SMTP:
        host, port = self._server
        limit, trusted = self._rules.timeout_s, ssl.create_default_context()
        if self._rules.security == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=limit, context=trusted)
        else:
            server = smtplib.SMTP(host, port, timeout=limit)
        try:
            if self._rules.security == "starttls":
                server.starttls(context=trusted)
            if self._rules.smtp_user:
                server.login(self._rules.smtp_user, self._password)
        except BaseException:
            server.close()
            raise
        return server
