"""Prints the help of commands in the user's language, and adds the option --lang to every command."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import click

from iodock.cli import spoken
from iodock.shared.language import N_
from iodock.shared.lines import wrapped
from iodock.shared.locales import LANGUAGES
from iodock.shared.text import cells

WORDS = (
    N_("Usage"),
    N_("Options"),
    N_("Commands"),
    N_("Examples:"),
    N_("Show this message and exit."),
    N_("Show the version and exit."),
    N_("required"),
    N_("default: {value}"),
    N_("error"),
    N_("hint"),
    N_("note"),
    N_("warning"),
)
"""Texts that click prints, and prefixes of messages. They are listed for translation."""
Command = TypeVar("Command", bound=click.Command)
_LANG = "language of the texts; default: that of the locale"


class Formatter(click.HelpFormatter):
    """click's formatter for help texts. It translates them, and breaks lines between Japanese words as
    well."""

    commands: Mapping[str, str] = {}
    """Help of each command in a group's list. click itself keeps only its beginning."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Writes the line `Usage: ...`."""
        if spoken.code() == "en":
            super().write_usage(prog, args, prefix)
            return
        self.write(f"{spoken.language().gettext('Usage')}: {prog} {args}\n")

    def write_heading(self, heading: str) -> None:
        """Writes a heading, such as `Options:`."""
        super().write_heading(spoken.language().told(heading))

    def write_text(self, text: str) -> None:
        """Writes paragraphs. The lines of a paragraph that begins with \\b are kept as they are."""
        if spoken.code() == "en":
            super().write_text(text)
            return
        indent = " " * self.current_indent
        width = max(self.width - self.current_indent, 11)
        for at, paragraph in enumerate(inspect.cleandoc(text).split("\n\n")):
            lines = (
                [spoken.language().told(line) for line in paragraph.splitlines()[1:]]
                if paragraph.startswith("\b")
                else wrapped(spoken.language().told(" ".join(paragraph.split())), width)
            )
            self.write(("\n" if at else "") + "".join(f"{indent}{line}".rstrip() + "\n" for line in lines))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Writes a list of names with their help texts."""
        if spoken.code() == "en":
            super().write_dl(rows, col_max, col_spacing)
            return
        text, rows = spoken.language(), list(rows)
        first = min(max((cells(name) for name, _ in rows), default=0), col_max) + col_spacing
        indent, width = " " * self.current_indent, max(self.width - self.current_indent - first, 10)
        for name, help in rows:
            said, mark, more = help.partition("  [")
            shown = _summary(self.commands[name]) if name in self.commands else text.told(said)
            lines = wrapped(shown + (f"  [{_extra(more)}" if mark else ""), width)
            if cells(name) > first - col_spacing:
                self.write(f"{indent}{name}\n")
            else:
                self.write(f"{indent}{name}{' ' * (first - cells(name))}{lines.pop(0)}".rstrip() + "\n")
            self.write("".join(f"{indent}{' ' * first}{line}\n" for line in lines))


def _summary(help: str) -> str:
    """Returns the first sentence of the translated help of a command."""
    first = inspect.cleandoc(help).split("\n\n")[0]
    return spoken.language().told(" ".join(first.split())).split("。")[0]


def _extra(written: str) -> str:
    """Translates the text that click appends to a help text, such as `default: 60.0]`."""
    text = spoken.language()
    return "; ".join(text.told(one) for one in written.removesuffix("]").split("; ")) + "]"


class Context(click.Context):
    """A click context that shows help texts in the user's language."""

    formatter_class = Formatter

    def make_formatter(self) -> click.HelpFormatter:
        """Returns a formatter. In other languages than English, the formatter gets the whole help of each
        subcommand, because click would pass only its shortened English form."""
        formatter = super().make_formatter()
        if isinstance(formatter, Formatter) and spoken.code() != "en":
            formatter.commands = dict(self._helps())
        return formatter

    def _helps(self) -> Iterator[tuple[str, str]]:
        group = self.command
        # A group that overrides format_commands, such as the main command, has its own short help texts.
        # Asking it for its commands here would import all of them.
        if isinstance(group, click.Group) and type(group).format_commands is click.Group.format_commands:
            for name in group.list_commands(self):
                one = group.get_command(self, name)
                if one is not None and one.help and not one.short_help:
                    yield name, one.help


def equipped(command: Command) -> Command:
    """Makes COMMAND and its loaded subcommands show translated help texts, and adds the option --lang to
    them. Returns COMMAND."""
    command.context_class = Context
    if not any("--lang" in one.opts for one in command.params):
        command.params.append(
            click.Option(
                ["--lang"], type=click.Choice(LANGUAGES), expose_value=False, help=_LANG, callback=_ask
            )
        )
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            equipped(inner)
    return command


def _ask(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value:
        spoken.ask(value)
