"""Sends the digest of a job to its owner by mail."""

from __future__ import annotations

from iodock.cli.digest_places import StorePlace
from iodock.cli.digest_portal import PortalPlace
from iodock.cli.streams import say
from iodock.shared.bounded.documents import from_json
from iodock.shared.errors import AnswerError, IodockError

WHEN = ("always", "slower")


def mail(place: PortalPlace | StorePlace, job: str, when: str) -> None:
    """Sends the digest to the owners of JOB. WHEN is `always`, or `slower` to send it only if the job was
    slower than usual. Raises RequestError, AnswerError, and IodockError if the job does not exist or the mail
    server refuses the mail."""
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
    """Returns the digest's id, the owners of the job, and whether the job was slower than usual. Raises
    AnswerError if CONTENT is not a digest."""
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
