"""Implements `iodock cases`, which lists, shows, runs and adds cases of the casebook."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.options import examples, language, quiet, spoken
from iodock.cli.streams import say
from iodock.shared.errors import RequestError

if TYPE_CHECKING:
    from iodock.program.casebook import Case
    from iodock.program.casebook.run import CaseRun, Tell
    from iodock.shared.language import Language
    from iodock.shared.settings import Settings

_EXAMPLES = (
    "iodock cases",
    "iodock cases show ifstream-tellg",
    "iodock cases run ifstream-tellg",
    "iodock cases add our-solver --before old.iodock --after new.iodock --title 'Restart files'",
)


@click.group(invoke_without_command=True, epilog=examples(_EXAMPLES))
@click.option("--json", "as_json", is_flag=True, help="the list as JSON, with all texts")
@language
@quiet
@click.pass_context
def command(context: click.Context, as_json: bool, lang: str | None, quiet: bool) -> None:
    """The casebook: patterns that were found at real centres, as small programs before and after the change.
    Without a subcommand, list the cases."""
    if context.invoked_subcommand is None:
        from iodock.program.casebook import damaged, every
        from iodock.program.views.case_text import case_list
        from iodock.program.views.listing_json import cases_json

        write = cases_json if as_json else case_list
        click.echo(write(every(), _text(lang)), nl=False)
        for error in () if quiet else damaged():
            say(f"note: {error}; {error.hint}")


def _text(lang: str | None) -> Language:
    from iodock.shared.language import language_in

    return language_in(spoken(lang))


@command.command(epilog=examples(("iodock cases show shell-loop", "iodock cases show shell-loop --lang ja")))
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="as JSON, in the format of `iodock cases --json`")
@language
@quiet
def show(name: str, as_json: bool, lang: str | None, quiet: bool) -> None:
    "Print the page of a case: what you see, why, the change, and when it does not help."
    from iodock.program.casebook import find
    from iodock.program.views.case_text import case_text

    if as_json:
        from iodock.program.views.listing_json import cases_json

        click.echo(cases_json([find(name)], _text(lang)), nl=False)
        return
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    click.echo(case_text(find(name), _text(lang), width), nl=False)


@command.command(
    epilog=examples(("iodock cases run shell-loop", "iodock cases run sync --times 3 --keep sync"))
)
@click.argument("name")
@click.option(
    "--times", type=click.IntRange(1), default=1, help="how often to record each version, alternating"
)
@click.option("--keep", metavar="DIR", help="keep programs and stores in this new folder")
@click.option("--settings", metavar="FILE", help="the site's settings; default: $IODOCK_SETTINGS")
@language
@quiet
def run(name: str, times: int, keep: str | None, settings: str | None, lang: str | None, quiet: bool) -> None:
    """Record a case's program before and after the change, diagnose both and compare them."""
    from iodock.program.casebook import find

    case = find(name)
    text = _text(lang)
    if keep is not None:
        if Path(keep).exists():
            raise RequestError(f"{keep}: exists", "--keep names a new folder")
        Path(keep).mkdir(parents=True)
        _run(case, Path(keep).resolve(), times, settings, text, quiet)
        return
    with tempfile.TemporaryDirectory(prefix="iodock-case-") as folder:
        _run(case, Path(folder), times, settings, text, quiet)


def _run(case: Case, folder: Path, times: int, settings: str | None, text: Language, quiet: bool) -> None:
    from iodock.program.casebook.run import effect, run_case
    from iodock.program.views.case_text import case_text, effect_text
    from iodock.shared.settings import load

    known = load(settings)
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    click.echo(case_text(case, text, width))
    recorded = _stores_of(case) or run_case(case, folder, times, _teller(text, quiet))
    _print_sides(recorded, known, text)
    if recorded.outputs[0] != recorded.outputs[1]:
        click.echo(text.gettext("The two versions printed different output: check whether that is intended."))
    click.echo(effect_text(effect(recorded, known), text))


def _stores_of(case: Case) -> CaseRun | None:
    """Returns the two stores of a case that a site added. Returns None for a case that consists of programs,
    which must be recorded first."""
    from iodock.program.casebook.run import CaseRun

    if case.before is not None:
        return None
    return CaseRun(case, (case.folder / "before.iodock",), (case.folder / "after.iodock",), ("", ""))


def _teller(text: Language, quiet: bool) -> Tell:
    doing = {
        "input": text.gettext("creating the input"),
        "compile": text.gettext("compiling"),
        "before": text.gettext("recording the version before"),
        "after": text.gettext("recording the version after"),
    }

    def tell(what: str, number: int, of: int) -> None:
        if not quiet:
            print(doing[what] + (f" ({number}/{of})" if of > 1 else ""), file=sys.stderr)

    return tell


def _print_sides(recorded: CaseRun, settings: Settings, text: Language) -> None:
    from iodock.program.comparison import compare
    from iodock.program.diagnosis import diagnose
    from iodock.program.store import Store
    from iodock.program.views.diagnosis_text import diagnosis_text
    from iodock.program.views.diff_text import diff_text

    for title, stores in ((text.gettext("Before"), recorded.before), (text.gettext("After"), recorded.after)):
        with Store.open(stores[0]) as opened:
            click.echo(f"== {title}")
            click.echo(diagnosis_text(diagnose(opened, settings), text, True))
    click.echo(f"== {text.gettext('What changed')}")
    sides = [[str(store) for store in stores] for stores in (recorded.before, recorded.after)]
    click.echo(diff_text(compare(*sides, settings=settings), text, True))


@command.command(
    epilog=examples(
        ("iodock cases add our-solver --before old.iodock --after new.iodock --title 'Restart files, once'",)
    )
)
@click.argument("name")
@click.option("--before", required=True, metavar="STORE", help="the run before the change")
@click.option("--after", required=True, metavar="STORE", help="the run after it")
@click.option("--title", required=True, help="one line")
@click.option("--see", default="", help="what you see in the results")
@click.option("--why", default="", help="why it is slow")
@click.option("--change", default="", help="description of the change")
@click.option("--beyond", default="", help="when it does not help")
@click.option("--force", is_flag=True, help="replace a case of that name")
@quiet
def add(name: str, before: str, after: str, force: bool, quiet: bool, **texts: str) -> None:
    """Add a case of your own from two stores. Names of files, hosts and programs are made up first; it lies
    in $IODOCK_CASES or ~/.local/share/iodock/cases."""
    from iodock.program.casebook.site import add_case
    from iodock.shared.settings import load

    click.echo(str(add_case(name, Path(before), Path(after), texts, load(), force)))
