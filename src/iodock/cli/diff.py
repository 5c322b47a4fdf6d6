"""Implements `iodock diff BEFORE AFTER`, which compares runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from iodock.cli.beside import say_losses
from iodock.cli.opening import check_opens, open_page, opening
from iodock.cli.options import examples, json_too, language, no_pager, quiet, spoken
from iodock.cli.output import check_folder, destination
from iodock.shared.errors import RequestError

if TYPE_CHECKING:
    from iodock.program.comparison import Comparison
    from iodock.shared.language import Language

_EXAMPLES = (
    "iodock diff before.iodock after.iodock",
    "iodock diff before.iodock after.iodock -o diff.html --open",
    "iodock diff slow-*.iodock -- fast-*.iodock",
    "iodock diff before.iodock after.iodock --per records=320000,200000",
    "iodock diff before.iodock after.iodock --by file --top 50",
)
_FORMATS = ("table", "json", "csv", "html")
_BETWEEN = "\0--"
"""Stands for `--` among the stores, because click would remove it."""


class _TwoSides(click.Command):
    """A command in whose arguments `--` separates the stores before a change from those after it. In other
    commands, `--` ends the options."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(context, [_BETWEEN if one == "--" else one for one in args])


@click.command(cls=_TwoSides, epilog=examples(_EXAMPLES), options_metavar="[OPTIONS]")
@click.argument("stores", nargs=-1, required=True, metavar="BEFORE... [--] AFTER...")
@click.option(
    "--per",
    metavar="UNIT",
    help=(
        "divide all numbers by the amount of work: NAME=N,M (N units before, M after; or one number "
        "per run), files, or bytes; run states that the work was equal"
    ),
)
@click.option(
    "--top", type=click.IntRange(1), default=10, help="files to show, faster and slower; default: 10"
)
@json_too
@click.option(
    "--by",
    type=click.Choice(("pattern", "file")),
    help="one row per name pattern, with the number of files, or one row per file; default: pattern, for "
    "a CSV file: file",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(_FORMATS),
    help="format of the answer; default: table, or the format of FILE's ending",
)
@click.option("-o", "--output", metavar="FILE", default="-", help="output file; default: stdout")
@opening
@language
@click.option("--settings", metavar="FILE", help="the site's settings; default: $IODOCK_SETTINGS")
@no_pager
@quiet
def command(
    stores: tuple[str, ...],
    per: str | None,
    top: int,
    by: str | None,
    form: str | None,
    output: str,
    opens: bool,
    lang: str | None,
    settings: str | None,
    quiet: bool,
) -> None:
    """Report what changed between two runs: time, calls, bytes, access sizes, by file and by call, and
    which findings are gone and which are new. Each file, or pattern of the names of many files, is judged
    separately, because one that got faster may hide one that got slower. Changes smaller than the noise
    count as neither. For several runs of each side, put -- between those before and those after: medians
    are compared, and differences that occur between runs anyway are called noise. For two stores of
    counters (Darshan's logs) it reports the changes of each interface and file."""
    from iodock.program.comparison import compare
    from iodock.program.comparison.counters import are_counters
    from iodock.shared.language import language_in
    from iodock.shared.settings import load

    before, after = _sides(stores)
    check_folder(output)
    wanted = form or _by_ending(output)
    check_opens(opens, wanted, output)
    if are_counters((*before, *after)):
        if per or wanted == "html":
            raise RequestError(
                "--per divides by the amount of work, which counters do not show"
                if per
                else "a page that compares two runs shows calls, and counters contain none",
                "leave it out, or --format table, json or csv",
            )
        _counters(before, after, by or "pattern", top, wanted, output, quiet)
        return
    comparison = compare(
        before,
        after,
        per=per,
        settings=load(settings),
        most_files=top,
        every_file=wanted == "csv",
        by_pattern=(by or ("file" if wanted == "csv" else "pattern")) == "pattern",
    )
    code = spoken(lang)
    written = _written(comparison, wanted, language_in(code), output == "-")
    with destination(output) as out:
        # A store's name may contain bytes that are not UTF-8. They are written as escapes.
        out.write(written.encode("utf-8", "backslashreplace"))
    # In JSON the losses are a part of the document, so they are not printed on stderr as well.
    if not quiet and wanted != "json":
        say_losses(_lost(comparison), code)
    if opens:
        open_page(output, code)


def _counters(
    before: list[str], after: list[str], by: str, top: int, form: str, output: str | None, quiet: bool
) -> None:
    """Compares two stores of counters, and writes the changes as a table or in a data format."""
    from iodock.cli.beside import say_beside
    from iodock.cli.output import write_table
    from iodock.program.comparison.counters import compare_counters
    from iodock.shared.tables import write_data

    answer = compare_counters(before, after, by, None if form == "csv" else top)
    if form == "table":
        write_table(answer, None if output == "-" else output, False)
    else:
        with destination(output) as out:
            write_data(answer, form, out)
    if not quiet and form != "json":
        say_beside(answer)


def _lost(comparison: Comparison) -> Iterator[tuple[str, str, str]]:
    """Yields each loss of the runs with its number and advice. The number of a side is the largest of its
    runs."""
    cures: dict[str, str] = {}
    counts: dict[str, list[int]] = {}
    for side, runs in enumerate((comparison.before, comparison.after)):
        for loss in (loss for run in runs for loss in run.losses):
            cures.setdefault(loss.name, loss.cure)
            most = counts.setdefault(loss.name, [0, 0])
            most[side] = max(most[side], loss.count)
    for name, (before, after) in counts.items():
        counts_text = f"{before:,}" if before == after else f"({before:,} before, {after:,} after)"
        yield name, counts_text, cures[name]


def _sides(stores: tuple[str, ...]) -> tuple[list[str], list[str]]:
    if _BETWEEN in stores:
        at = stores.index(_BETWEEN)
        before, after = list(stores[:at]), list(stores[at + 1 :])
    elif len(stores) == 2:
        before, after = [stores[0]], [stores[1]]
    else:
        raise RequestError(
            "there is only one store: name another to compare it with"
            if len(stores) == 1
            else f"{len(stores)} stores: which are before and which after?",
            "iodock diff BEFORE AFTER, or separate the runs before and after by --: "
            "iodock diff A1 A2 A3 -- B1 B2 B3",
        )
    if not before or not after or _BETWEEN in after:
        raise RequestError("there must be stores before and after one --", "iodock diff A1 A2 A3 -- B1 B2 B3")
    return before, after


def _by_ending(output: str) -> str:
    ending = output.rpartition(".")[2].lower()
    return ending if ending in _FORMATS else "table"


def _written(comparison: Comparison, form: str, text: Language, is_stdout: bool) -> str:
    if form == "json":
        from iodock.program.views.diff_json import diff_json

        return diff_json(comparison, text)
    if form == "csv":
        from iodock.program.views.diff_csv import diff_csv

        return "".join(diff_csv(comparison))
    if form == "html":
        from iodock.program.views.diff_html import diff_html

        return diff_html(comparison, text)
    from iodock.program.views.diff_text import diff_text

    return diff_text(comparison, text, is_stdout)
