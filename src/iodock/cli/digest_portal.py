"""Gets the digest of a job from a portal. The scripts of many jobs may call this command at the same time, so
it must start quickly: simple arguments are parsed here, without importing click."""

from __future__ import annotations

import os
import sys

from iodock.centre.portal.visiting import Portal
from iodock.shared.errors import AnswerError, IodockError, RequestError
from iodock.shared.locales import LANGUAGES, chosen

TYPE_CHECKING = False
"""The same value as typing's, whose import takes as long as Python's own start."""

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMS = ("text", "json", "html")
TABLES = ("totals", "operations", "nodes", "targets", "runs", "verdict")
"""Tables of a job's page that are saved as files."""
TOKEN = "~/.config/iodock/portal.token"
WITHIN_S = 10.0
_LOOKED = "only jobs of the last 30 days are searched; the id in a digest finds older ones"
_VALUES = {"--portal": "portal", "--token-file": "token", "--portal-ca": "authority", "--format": "form",
           "--lang": "lang"}  # fmt: skip


def plain(arguments: Sequence[str]) -> dict[str, str] | None:
    """Parses the arguments of `monitor digest` if they are simple: a job, a portal, and options that are
    separated from their values by blanks. Returns None otherwise; click then parses or rejects them."""
    found: dict[str, str] = {}
    at = 0
    while at < len(arguments):
        name = _VALUES.get(arguments[at])
        if name and at + 1 < len(arguments):
            found[name] = arguments[at + 1]
            at += 2
        elif arguments[at] == "--json":
            found["json"] = "json"
            at += 1
        elif arguments[at].startswith("-") or "job" in found:
            return None
        else:
            found["job"] = arguments[at]
            at += 1
    is_known = found.get("form", "text") in FORMS and found.get("lang", "en") in LANGUAGES
    is_one_form = not {"json", "form"} <= found.keys()
    return found if "job" in found and found.get("portal") and is_known and is_one_form else None


def run(asked: dict[str, str]) -> int:
    """Prints a digest and returns the exit status. Raises IodockError."""
    place = PortalPlace(portal_of(asked["portal"], asked.get("token"), asked.get("authority"), WITHIN_S))
    form = asked.get("json") or asked.get("form", "text")
    content = place.digest(asked["job"], form, chosen(asked.get("lang")))
    if sys.stdout.isatty():
        from iodock.cli.pager import paged

        with paged() as out:
            out.write(content)
    else:
        sys.stdout.buffer.write(content)
    return 0


def not_there(job: str) -> str:
    """Returns the hint for the message that JOB is not known."""
    number, _, task = job.partition("_")
    if not (number.isdigit() and task.isdigit()):
        return _LOOKED
    own = f"squeue --array -h -o %A -j {job}, or sacct -n -X -o JobIDRaw -j {job}"
    return f"file servers number the task of an array differently: {own}"


def portal_of(url: str, token: str | None, authority: str | None, within_s: float) -> Portal:
    """Returns a client of the portal at URL. TOKEN is a file with the user's token. Without TOKEN, the
    default file is used if it exists. WITHIN_S is the time limit in seconds."""
    # os.path is used, because importing pathlib takes longer than importing the rest of this module.
    usual = os.path.expanduser(TOKEN)  # noqa: PTH111
    is_there = os.path.exists(usual)  # noqa: PTH110
    return Portal(url.rstrip("/"), token or (usual if is_there else None), authority, within_s)


class PortalPlace:
    """A portal, which decides which jobs the user may see."""

    def __init__(self, portal: Portal) -> None:
        self.portal = portal

    def digest(self, job: str, form: str, code: str) -> bytes:
        """Requests the digest of a job from the portal. Raises RequestError, AnswerError, and IodockError if
        the user has no such job."""
        status, content = self.portal.get("/digests/", {"id": job, "format": form, "lang": code})
        if status == 200:
            return content
        said = f"{self.portal.url}: {_line(content)}"
        if status == 401:
            raise AnswerError(said, f"--token-file FILE, or the token in {TOKEN}")
        if status == 404:
            raise IodockError(said, not_there(job))
        if status == 400:
            raise RequestError(said)
        raise AnswerError(said)

    def tables(self, job: str, code: str) -> dict[str, bytes]:
        """Returns each table of the job's page as CSV, by the name of the table. JOB is an id from a digest.
        Raises the same exceptions as `digest`."""
        import time

        from iodock.centre.watch.digest import looked_back_from, parsed_id

        number, began = parsed_id(job)
        end = None if began is None else looked_back_from(began, time.time_ns())
        values = {"id": number, "lang": code, "format": "csv", **({"end": str(end)} if end else {})}
        found = {}
        for name in TABLES:
            status, content = self.portal.get("/jobs/", {**values, "table": name})
            # The portal returns an error for a table that a job does not have. A job without a name, for
            # example, has no list of runs.
            if status == 200:
                found[name] = content
        return found


def _line(content: bytes) -> str:
    """Reduces the portal's message to one line of printable characters."""
    said = content[:300].decode(errors="replace").strip().removeprefix("iodock: ")
    return "".join(letter if letter.isprintable() else " " for letter in said) or "no answer"
