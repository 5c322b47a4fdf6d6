"""Implements `iodock monitor digest`, which prints the I/O of a job on the file systems, and whether the job
was slower than usual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from iodock.cli.digest_mail import WHEN, mail
from iodock.cli.digest_places import StorePlace, digest_options, place_of
from iodock.cli.digest_portal import FORMS, PortalPlace
from iodock.cli.options import examples, json_too, language, spoken
from iodock.cli.output import destination, form_of
from iodock.shared.errors import RequestError

if TYPE_CHECKING:
    from iodock.centre.watch.digest import Recorded


@click.command(
    epilog=examples(
        (
            "iodock monitor digest 4711 --portal https://monitor.example:9847 --token-file token",
            "iodock monitor digest 4711 --store /var/lib/iodock/monitor",
            "iodock monitor digest 4711 --store /var/lib/iodock/monitor -o job-4711.html --lang ja",
            "iodock monitor digest 4711 --store /var/lib/iodock/monitor --run run.iodock --json",
            "iodock monitor digest 4711 --portal https://monitor.example:9847 --mail slower",
        )
    )
)
@click.argument("job", metavar="JOBID")
@digest_options
@json_too
@click.option(
    "--format", "form", type=click.Choice(FORMS), help="default: text, or the format of the file's ending"
)
@click.option("-o", "--output", metavar="FILE", help="output file; default: stdout")
@click.option(
    "--mail",
    "mail_when",
    type=click.Choice(WHEN),
    help="send the digest to the job's owner instead: always, or only if the job was slower than usual",
)
@language
def digest(
    job: str,
    recording: str | None,
    form: str | None,
    output: str | None,
    mail_when: str | None,
    lang: str | None,
    **place_options: Any,
) -> None:
    """The I/O of a job on the file systems, whether it was slower than usual, and why. JOBID is the
    scheduler's id, or the id in an earlier digest. A portal answers for your own jobs; users who can read
    a store see all jobs."""
    place = place_of(place_options)
    if mail_when:
        if recording or form or output:
            raise RequestError("--mail can't be combined with --run, --format or -o")
        mail(place, job, mail_when)
        return
    chosen = form or {"table": "text"}.get(form_of(output or ""), form_of(output or ""))
    code = spoken(lang)
    recorded = _recorded(recording, job) if recording else None
    if isinstance(place, StorePlace):
        content = place.digest(job, chosen, code, recorded)
    else:
        content = _of_portal(place, job, chosen, code, recorded)
    with destination(output) as out:
        out.write(content)


def _recorded(recording: str, job: str) -> Recorded:
    from iodock.centre.watch.digest import parsed_id
    from iodock.cli.digest_recording import recorded

    return recorded(recording, parsed_id(job)[0])


def _of_portal(place: PortalPlace, job: str, form: str, code: str, recorded: Recorded | None) -> bytes:
    content = place.digest(job, form, code)
    if recorded is None:
        return content
    if form == "html":
        raise RequestError(
            "--run with --portal is available for text and JSON only", "--format text, or --store DIR"
        )
    from iodock.centre.views.digest_recorded import with_recorded
    from iodock.shared.language import language_in

    return with_recorded(content.decode(), form, recorded, language_in(code)).encode()
