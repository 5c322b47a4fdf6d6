"""Defines the places from which a job's digest can be obtained: a portal, or a monitor store that is read
directly."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from iodock.cli.digest_portal import TABLES, TOKEN, WITHIN_S, PortalPlace, not_there, portal_of
from iodock.cli.monitor_store import StoreOptions, store_options
from iodock.shared.errors import IodockError, RequestError

if TYPE_CHECKING:
    from iodock.centre.portal.shown.page import Question
    from iodock.centre.watch.digest import Digest, Recorded
    from iodock.centre.watch.episodes import Episode

Function = TypeVar("Function", bound=Callable[..., Any])
_FILE = click.Path(dir_okay=False)
_OF_STORE = ("store", "store_token", "store_user", "store_password", "store_ca")
_NOT_THERE = "no such job is known"


def digest_options(function: Function) -> Function:
    """Adds the options that select a portal or a store to a command."""
    options = (
        click.option("--portal", default="", metavar="URL",
                     help="query this portal; default: [notices] portal in the settings"),
        click.option("--token-file", type=_FILE, metavar="FILE",
                     help=f"your token for the portal; default: {TOKEN}, if it is there"),
        click.option("--portal-ca", type=_FILE, metavar="FILE",
                     help="trust certificates of this authority (PEM)"),
        click.option("--within", type=click.FloatRange(0, min_open=True), default=WITHIN_S, show_default=True,
                     metavar="S", help="seconds that the portal may take for its answer"),
        store_options("read the collector's store instead; or prometheus://HOST:PORT", required=False),
        click.option("--response", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
                     help="folder in which the collector keeps episodes; default: the store's name and "
                          ".response"),
        click.option("--jobid-name", metavar="FORM",
                     help="the servers' jobid_name, as %j:%u:%H; default: guessed"),
        click.option("--run", "recording", metavar="STORE", help="a recording of the job's program"),
    )  # fmt: skip
    for option in reversed(options):
        function = option(function)
    return function


def place_of(options: Mapping[str, Any]) -> StorePlace | PortalPlace:
    """Returns the place from which the digest is obtained. OPTIONS contains the values of `digest_options`,
    except --run. Raises RequestError if neither a portal nor a store is given, or both."""
    kept = StoreOptions(*(options[name] for name in _OF_STORE))
    portal = options["portal"]
    if kept.store and portal:
        raise RequestError("use either --store or --portal, not both", "give one")
    if kept.store:
        return StorePlace(kept, options["response"], options["jobid_name"])
    if not portal:
        from iodock.shared.settings import load

        portal = load().notices.portal
    if not portal:
        hint = "--portal URL, --store DIR, or portal = URL in [notices] of the settings"
        raise RequestError("no monitor was given", hint)
    return PortalPlace(portal_of(portal, options["token_file"], options["portal_ca"], options["within"]))


@dataclass(frozen=True)
class StorePlace:
    """A monitor store that is read directly. Users who can read its files see the data of all jobs."""

    kept: StoreOptions
    response: Path | None
    jobid_name: str | None

    def digest(self, job: str, form: str, code: str, recorded: Recorded | None = None) -> bytes:
        """Returns the digest of a job. FORM is its format, CODE the language. Raises RequestError,
        StoreError, and IodockError if the job does not exist."""
        from iodock.centre.views.digests import FORMS
        from iodock.shared.language import language_in

        return FORMS[form](self.found(job, recorded), language_in(code)).encode()

    def found(self, job: str, recorded: Recorded | None = None) -> Digest:
        """Returns the digest of a job as data. Raises the same exceptions as `digest`."""
        from iodock.shared.settings import load

        return replace(self.of(self.asked_with("en"), job), rules=load().response, recorded=recorded)

    @staticmethod
    def of(question: Question, job: str) -> Digest:
        """Returns the digest of a job. QUESTION can be used for several jobs, so that the store is opened
        only once. Raises the same exceptions as `digest`."""
        from iodock.centre.portal.shown.digest import digest
        from iodock.centre.portal.shown.page import NotThere

        try:
            return digest(question, job)
        except NotThere:
            raise IodockError(f"{job}: {_NOT_THERE}", not_there(job)) from None

    def tables(self, job: str, code: str) -> dict[str, bytes]:
        """Returns each table of the job's page as CSV, by the name of the table. JOB is an id from a digest.
        Raises the same exceptions as `digest`."""
        from iodock.centre.portal.shown.digest import looking_back
        from iodock.centre.portal.shown.job import shown
        from iodock.centre.portal.tables import as_csv
        from iodock.centre.watch.digest import parsed_id

        number, began = parsed_id(job)
        page = shown(looking_back(self.asked_with(code), began), number)
        return {table.name: as_csv(table).encode() for table in page.tables if table.name in TABLES}

    def asked_with(self, code: str) -> Question:
        """Returns the question with the rights of an operator, who may see all jobs. CODE is the language.
        Raises RequestError."""
        from iodock.centre.monitor.access import Role, Visitor
        from iodock.centre.monitor.questions.ids import job_ids
        from iodock.centre.portal.forms import Asked
        from iodock.centre.portal.shown.page import Question, Remembered, Site
        from iodock.centre.watch.watching import Watching
        from iodock.shared.language import language_in

        store, ids = self.kept.opened(), job_ids(self.jobid_name)
        site = Site(ids, episodes=self._episodes)
        asked = Asked("/", {}, time.time_ns())
        state = Remembered(Watching(store, ids))
        return Question(store, site, asked, Visitor(Role.OPERATOR), language_in(code), state)

    def _episodes(self, begin: int, end: int) -> list[Episode] | None:
        """Returns the episodes between two times. Returns None if no episodes are stored, or if this user may
        not read them."""
        from iodock.centre.watch import episode_rows
        from iodock.centre.watch.ledger import LedgerBeside

        if self.response is None and self.kept.is_prometheus:
            return None
        store = Path(self.kept.store).absolute()
        ledger = LedgerBeside(self.response or store.with_name(f"{store.name}.response"))
        if not ledger.is_there:
            if self.response:
                raise RequestError(f"--response {self.response}: contains no episodes that you may read")
            return None
        return episode_rows.between(ledger, begin, end)
