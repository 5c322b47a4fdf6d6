"""Sends a job's digest to its owner."""

from __future__ import annotations

from iodock.cli.digest_places import StorePlace
from iodock.cli.digest_portal import PortalPlace
from iodock.cli.streams import say
from iodock.shared.bounded.documents import from_json
from iodock.shared.errors import AnswerError, IodockError

WHEN = ("always", "slower")


def mail(place: PortalPlace | StorePlace, job: str, when: str) -> None:
    """Sends the mail. WHEN: a value of the constant WHEN. Raises RequestError, AnswerError, IodockError if
    the job does not exist or the mail server refuses the mail."""
    from iodock.centre.watch.notices.digests import letters
    from iodock.centre.watch.notices.mail import Mail
    from iodock.centre.watch.notices.outbox import Refused, TryAgain
    from iodock.centre.watch.notices.recipients import checked
    from iodock.shared.settings import load

    notices = checked(load().notices)
    digest_id, owners, is_slower = _known(place.digest(job, "json", "en"))
    if when == "slower" and not is_slower:
        say(f"note: {job}: not slower than usual, so no mail is sent")
        return
    send = Mail(notices)
    for letter in letters(notices, digest_id, owners, lambda code: place.digest(job, "text", code).decode()):
        try:
            send(letter)
        except Refused as error:
            raise IodockError(f"{letter.address}: {error}") from error
        except TryAgain as error:
            raise IodockError(
                f"{letter.address}: not sent: {error}", "the same command tries again"
            ) from error
        say(f"note: sent to {letter.address}")


def _known(content: bytes) -> tuple[str, list[str], bool]:
    """Returns the digest's id, the job's owners, and whether the job was slower than usual. Raises
    AnswerError."""
    try:
        document = from_json(content)
        compared = document["compared"] or {}
        return (
            str(document["id"]),
            [str(one) for one in document["users"]],
            compared.get("verdict") == "slower",
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise AnswerError("the portal's answer is not a digest") from error
