"""Formats errors about invalid command lines in the same form as other errors, with a hint."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import click

from iodock.shared.errors import RequestError, meant
from iodock.shared.language import N_

WRONG = (
    N_("Missing argument '{name}'"),
    N_("Missing option '{name}'"),
    N_("Invalid value for '{name}': {message}"),
    N_("Invalid value: {message}"),
    N_("Got unexpected extra argument ({arguments})"),
    N_("Got unexpected extra arguments ({arguments})"),
    N_("Option '{name}' requires an argument"),
    N_("Option '{name}' does not take a value"),
    N_("'{value}' is not a valid integer"),
    N_("'{value}' is not a valid float"),
    N_("'{value}' is not a valid integer range"),
    N_("{value} is not in the range {range}"),
    N_("Missing command"),
    N_("No such command '{name}'"),
    N_("no such option: {name}"),
    N_("no such command: {name}"),
    N_("no such analysis: {name}"),
    N_("no such value of {option}: {name}"),
    N_("{command} has it; {help}"),
    N_("did you mean {name}"),
    N_("did you mean {others} or {last}"),
)
"""Messages about errors in a command line, listed for translation."""


def unknown(what: str, name: str, known: Iterable[str], otherwise: str, of_store: str) -> RequestError:
    """Returns the error that there is no command or analysis NAME. If NAME is a store, the hint is to use the
    command OF_STORE on it."""
    hint = meant(name, known, otherwise)
    if (Path(name) / "manifest.json").is_file():
        hint = f"it is a store: {of_store} {name}"
    return RequestError(f"no such {what}: {name}", hint)


def words(error: click.ClickException) -> tuple[str, str]:
    """Returns the message of a click error, without the full stop at its end, and a hint."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    otherwise = f"{context.command_path if context else 'iodock'} --help"
    if isinstance(error, click.NoSuchOption):
        return f"no such option: {error.option_name}", _option(error, otherwise)
    if isinstance(error, click.BadParameter) and isinstance(getattr(error.param, "type", None), click.Choice):
        return _choice(error, otherwise)
    return error.format_message().rstrip("."), otherwise


def _choice(error: click.BadParameter, otherwise: str) -> tuple[str, str]:
    # click's exception contains the given value only inside its message.
    given = re.match(r"'(.*)' is not one of ", error.message, re.DOTALL)
    if error.param is None or given is None:
        return error.format_message().rstrip("."), otherwise
    kind = error.param.type
    known = [str(one) for one in kind.choices] if isinstance(kind, click.Choice) else []
    name = max(error.param.opts, key=len)
    hint = meant(given[1], known, f"choose one of {', '.join(known)}")
    return f"no such value of {name}: {given[1]}", hint


def _option(error: click.NoSuchOption, otherwise: str) -> str:
    """Returns a hint for an unknown option. It suggests an option of the same command with a similar name, or
    else another command of the same group that has this option."""
    context = error.ctx
    if context is None:
        return otherwise
    # Leading dashes are removed before names are compared, because they make all short names similar.
    known = [one.lstrip("-") for one in _options(context.command)]
    near = meant(error.option_name.lstrip("-"), known, "")
    if near:
        name = near.rpartition(" ")[2]
        return near.replace(name, f"--{name}" if len(name) > 1 else f"-{name}")
    beside = context.parent
    # Only the commands of the same group are searched, because they are related. Searching all commands would
    # import all modules.
    if beside is None or beside.parent is None or not isinstance(beside.command, click.Group):
        return otherwise
    group = beside.command
    commands = ((one, group.get_command(beside, one)) for one in group.list_commands(beside))
    having = [one for one, command in commands if command and error.option_name in _options(command)]
    return f"{beside.command_path} {having[0]} has it; {otherwise}" if having else otherwise


def _options(command: click.Command) -> list[str]:
    return [
        name
        for one in command.params
        if isinstance(one, click.Option)
        for name in (*one.opts, *one.secondary_opts)
    ]
