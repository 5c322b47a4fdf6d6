"""Defines options that several commands share, such as filters, formats, --quiet and --lang."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

import click

from iodock.cli.spoken import ask, code
from iodock.shared.errors import RequestError
from iodock.shared.language import LANGUAGES, language_in

Function = TypeVar("Function", bound=Callable[..., Any])

_FILTERS: tuple[tuple[str, str, str], ...] = (
    ("--exclude-folder", "DIR,...", "leave out files in these folders"),
    ("--exclude-ending", "EXT,...", "leave out names with these endings"),
    ("--call", "NAME,...", "only these calls; globs, family:NAME and class:NAME too"),
    (
        "--kind",
        "KIND,...",
        "only these kinds: file (default: all named by a path), pipe, socket, ..., or all: every call",
    ),
    ("--pid", "PID,...", "only these processes"),
    ("--tid", "TID,...", "only these threads"),
    ("--rank", "N,...", "only these MPI ranks; ranges too: 0,8-15"),
    ("--host", "NAME,...", "only these hosts"),
    ("--job", "ID,...", "only these jobs"),
    ("--since", "TIME", "only calls that start at or after: seconds from the start, or a clock time"),
    ("--until", "TIME", "only calls that start before: seconds from the start, or a clock time"),
    ("--min-time", "TIME", "only calls that took at least: seconds, or 250ms"),
)
_LISTS = {name.removeprefix("--").replace("-", "_") for name, metavar, _ in _FILTERS if "..." in metavar}


def filters(function: Function) -> Function:
    """Adds the filters that all analyses have to a command."""
    for name, metavar, text in reversed(_FILTERS):
        function = click.option(name, metavar=metavar, help=text)(function)
    function = click.option(
        "--direction", type=click.Choice(("read", "write")), help="only reads, or only writes"
    )(function)
    function = click.option("--failed", is_flag=True, help="only calls that failed")(function)
    function = click.option("--succeeded", is_flag=True, help="only calls that succeeded")(function)
    function = click.option(
        "--user-files",
        is_flag=True,
        help="leave out sockets, standard streams, shared libraries, /proc, /sys, /var, /etc",
    )(function)
    return click.option(
        "--file",
        metavar="GLOB",
        multiple=True,
        help="only these files: * within a folder, ** across; a name that exists wins. May be repeated",
    )(function)


def filter_arguments(values: dict[str, Any]) -> dict[str, Any]:
    """Removes the filters from VALUES, the options as click passes them. Returns them in the form that
    `Filters.from_mapping` needs."""
    chosen: dict[str, Any] = {}
    names = [name.removeprefix("--").replace("-", "_") for name, _, _ in _FILTERS]
    for name in (*names, "direction", "failed", "succeeded", "user_files", "file"):
        value = values.pop(name, None)
        if value in (None, False, ()):
            continue
        if name in _LISTS:
            value = [part.strip() for part in value.split(",") if part.strip()]
        chosen[name] = value
    return chosen


JSON_HELP = "the same as --format json"


def json_form(as_json: bool, form: str | None) -> str | None:
    """Returns the format that --json and --format select together. Raises RequestError if they contradict
    each other."""
    if not as_json:
        return form
    if form not in (None, "table", "json"):
        raise RequestError(f"--json can't be combined with --format {form}", "leave one out")
    return "json"


def json_too(function: Function) -> Function:
    """Adds --json to a command that has --format. The argument `form` contains the format that both select
    together."""

    @functools.wraps(function)
    def called(*arguments: Any, as_json: bool, form: str | None, **values: Any) -> Any:
        return function(*arguments, form=json_form(as_json, form), **values)

    return cast(Function, click.option("--json", "as_json", is_flag=True, help=JSON_HELP)(called))


def tables(function: Function) -> Function:
    """Adds --wide and --no-pager to a command that prints tables."""
    function = click.option("--wide", is_flag=True, help="show all columns, even if wider than the terminal")(
        function
    )
    return no_pager(function)


def no_pager(function: Function) -> Function:
    """Adds --no-pager to a command."""
    return click.option(
        "--no-pager",
        is_flag=True,
        expose_value=False,
        callback=without_pager,
        help="print long output directly, not through $IODOCK_PAGER, $PAGER or less",
    )(function)


def without_pager(context: click.Context, option: click.Parameter, value: bool) -> None:
    """Disables the pager if --no-pager was given."""
    if value:
        os.environ["IODOCK_PAGER"] = "cat"


def quiet(function: Function) -> Function:
    """Adds --quiet to a command."""
    return click.option("--quiet", "-q", is_flag=True, help="no progress and no remarks on stderr")(function)


def language(function: Function) -> Function:
    """Adds --lang to a command. `ask` stores its value, which is also used for notes and errors."""
    return click.option(
        "--lang", type=click.Choice(LANGUAGES), callback=_ask,
        help="language of the texts; default: that of the locale",
    )(function)  # fmt: skip


def _ask(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Stores the language, because notes and errors are printed in it as well."""
    if value:
        ask(value)
    return value


def spoken(lang: str | None) -> str:
    """Returns the code of the language in which texts are printed. If the texts of the requested language
    were not compiled, it prints a note and returns `en`."""
    asked = code(lang)
    if (there := language_in(asked).code) != asked:
        print(f"note: the texts in {asked!r} were not compiled (`make setup` does that)", file=sys.stderr)
    return there


def examples(lines: tuple[str, ...]) -> str:
    """Formats examples of command lines for the end of a help text."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)
