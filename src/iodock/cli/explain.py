"""Implements `iodock explain NAME`, which explains rules, columns, keys, calls and losses."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from iodock.cli.options import examples, no_pager, quiet
from iodock.cli.spoken import language
from iodock.shared.errors import RequestError, suggested
from iodock.shared.lines import wrapped

if TYPE_CHECKING:
    from iodock.program.reference import Explanation


@click.command(
    epilog=examples(
        (
            "iodock explain small-requests",
            "iodock explain total_time_ns",
            "iodock explain openat",
            "iodock explain missing-durations",
            "iodock explain losses",
        )
    )
)
@click.argument("name", required=False, shell_complete=lambda context, option, begun: _beginning(begun))
@click.option("--json", "as_json", is_flag=True, help="as JSON; without NAME all names that can be explained")
@no_pager
@quiet
def command(name: str | None, as_json: bool, quiet: bool) -> None:
    """Explain NAME: a rule of `iodock diagnose`, a column or key of an analysis, a column of a stored table,
    a system call, a family or class of calls, or a loss; or all of a group, as in `iodock explain losses`.
    Without a name, list what can be explained."""
    from iodock.cli.pager import paged_prints
    from iodock.program.reference import explanations

    entries = explanations()
    found = entries if name is None else _called(name, entries)
    with paged_prints():
        if as_json:
            from iodock.program.views.listing_json import explanations_json

            click.echo(explanations_json(found), nl=False)
            return
        for line in _listed(entries) if name is None else _explained(found):
            click.echo(line)


def _beginning(begun: str) -> list[str]:
    """Returns the names that begin with BEGUN, for completion in a shell."""
    from iodock.program.reference import explanations

    return sorted({one.name for one in explanations() if one.name.startswith(begun)})


def _called(name: str, entries: list[Explanation]) -> list[Explanation]:
    """Returns the entries whose name, group or heading is NAME. Raises RequestError if there are none."""
    found = [entry for entry in entries if entry.name == name]
    found = found or [entry for entry in entries if entry.group == name]
    found = found or [entry for entry in entries if entry.name in _with_heading(name)]
    if not found:
        raise _unknown(name, [name for entry in entries for name in (entry.name, entry.group)])
    return found


def _explained(entries: list[Explanation]) -> Iterator[str]:
    for entry in entries:
        yield f"{entry.name}  ({language().told(entry.what)})"
        yield from map(_wrapped, entry.text.splitlines())


def _with_heading(heading: str) -> set[str]:
    """Returns the names of columns that tables and reports show under HEADING, in any language."""
    from iodock.shared.headings import GROUPS
    from iodock.shared.labels import HEADINGS
    from iodock.shared.language import LANGUAGES, language_in

    spoken = [language_in(one) for one in LANGUAGES]
    labels = {**HEADINGS, **{word: word for words, _ in GROUPS.values() for word in words}}
    return {name for name, label in labels.items() for one in spoken if one.gettext(label) == heading}


def _listed(entries: list[Explanation]) -> Iterator[str]:
    by_group: dict[str, list[str]] = {}
    for entry in entries:
        by_group.setdefault(entry.group, []).append(entry.name)
    for group, names in by_group.items():
        yield f"{language().told(group)}:"
        yield click.wrap_text("  ".join(sorted(set(names))), _width(), "  ", "  ")


def _wrapped(line: str) -> str:
    """Breaks a line at the width of the terminal. The continuation lines are indented by two more columns."""
    indent = " " * max(2, len(line) - len(line.lstrip()))
    if language().code == "en":
        return click.wrap_text(line.strip(), _width(), indent, indent + "  ")
    first, *more = wrapped(language().told(line.strip()), max(20, _width() - len(indent) - 2))
    return "\n".join((indent + first, *(f"{indent}  {one}" for one in more)))


def _width() -> int:
    from iodock.shared.tables.table import terminal_width

    return min(100, terminal_width() or 100)


def _unknown(name: str, names: list[str]) -> RequestError:
    close = difflib.get_close_matches(name, names, 3)
    hint = suggested(list(dict.fromkeys(close))) if close else "iodock explain lists all names"
    return RequestError(f"no topic is called {name}", hint)
