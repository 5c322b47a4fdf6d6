"""Writes a manual page for each command, from the same help as `docs/reference/commands.md`.

    tools/man_pages.py FOLDER [AGENT]       AGENT: the program iodock-agent, whose help becomes iodock-agent.1

The markup is that of man(7): https://man7.org/linux/man-pages/man7/man.7.html
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

import iodock
from iodock.cli import application

SITE = "Manual of iodock"


def escaped(text: str) -> str:
    """Returns TEXT in a form that roff prints unchanged. roff would interpret a line that begins with a dot
    or quote as a command."""
    shown = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", shown, flags=re.MULTILINE)


def title(name: str) -> str:
    return f'.TH "{name.upper()}" "1" "" "iodock {iodock.__version__}" "{SITE}"\n'


def section(heading: str, text: str) -> str:
    return f".SH {heading}\n{text.rstrip()}\n" if text.strip() else ""


def paragraphs(text: str) -> str:
    r"""Converts help as click writes it: an empty line ends a paragraph, and \b begins one with fixed
    lines."""
    parts = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        lines = part.splitlines()
        if lines and lines[0].strip() == "\b":
            parts.append(f".nf\n{escaped(chr(10).join(lines[1:]))}\n.fi")
        else:
            parts.append(escaped(part))
    return "\n.PP\n".join(parts)


def listed(records: Iterable[tuple[str, str]]) -> str:
    """Returns a list of names in bold, each with its description below it."""
    return "".join(f".TP\n\\fB{escaped(name)}\\fR\n{escaped(text)}\n" for name, text in records)


def page(command: click.Command, context: click.Context) -> str:
    """Returns the manual page of one command."""
    name = context.command_path.replace(" ", "-")
    inner = inner_commands(command, context)
    options = [one.get_help_record(context) for one in command.get_params(context)]
    synopsis = (
        f"\\fB{escaped(context.command_path)}\\fR {escaped(' '.join(command.collect_usage_pieces(context)))}"
    )
    also = [f"{name}-{one}" for one, _ in inner]
    above = [context.parent.command_path.replace(" ", "-")] if context.parent else ["iodock-agent"]
    epilog = re.sub(r"\A\s*\x08\nExamples:\n", "\b\n", command.epilog or "")
    return title(name) + "".join(
        (
            section("NAME", f"{escaped(name)} \\- {escaped(summary(command))}"),
            section("SYNOPSIS", synopsis),
            section("DESCRIPTION", paragraphs(command.help or "")),
            section("COMMANDS", listed((one, summary(found)) for one, found in inner)),
            section("OPTIONS", listed(record for record in options if record and record[1])),
            section("EXAMPLES", paragraphs(epilog)),
            section("SEE ALSO", ", ".join(f"\\fB{escaped(one)}\\fR(1)" for one in [*above, *also])),
        )
    )


def summary(command: click.Command) -> str:
    """Returns the first sentence of the command's help, in one line."""
    text = command.short_help or " ".join((command.help or "").split("\n\n")[0].split())
    return re.split(r"(?<=[a-z)])\.(?:\s|$)", text, maxsplit=1)[0].rstrip(".")


def inner_commands(command: click.Command, context: click.Context) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return []
    found = [(name, command.get_command(context, name)) for name in command.list_commands(context)]
    return [(name, one) for name, one in found if one is not None and not one.hidden]


def pages(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yields (file name, text) of this command and all its subcommands."""
    yield f"{context.command_path.replace(' ', '-')}.1", page(command, context)
    for name, one in inner_commands(command, context):
        yield from pages(one, click.Context(one, info_name=name, parent=context))


def agent_page(program: str) -> str:
    """Returns a page with the agent's own help, unchanged. Raises OSError and CalledProcessError."""
    help = subprocess.run([program, "--help"], capture_output=True, text=True, check=True, timeout=30).stdout
    shown = f".nf\n{escaped(help)}\n.fi"
    return (
        title("iodock-agent")
        + section("NAME", "iodock\\-agent \\- read which job does what to the file systems")
        + section("SYNOPSIS", "\\fBiodock\\-agent\\fR once | run [OPTIONS]")
        + section("DESCRIPTION", shown)
        + section("SEE ALSO", "\\fBiodock\\-monitor\\fR(1)")
    )


def main(folder: Path, agent: str | None = None) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    root = application()
    for name, text in pages(root, click.Context(root, info_name="iodock")):
        (folder / name).write_text(text, encoding="utf-8")
    if agent:
        (folder / "iodock-agent.1").write_text(agent_page(agent), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
