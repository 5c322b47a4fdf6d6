"""Implements `iodock completion SHELL`, which prints a shell's script for completing iodock's command
lines."""

from __future__ import annotations

import click

from iodock.cli.completing import SHELLS, script
from iodock.cli.options import examples


@click.command(
    epilog=examples(
        (
            'eval "$(iodock completion bash)"',
            "iodock completion zsh > ~/.zfunc/_iodock",
            "iodock completion fish > ~/.config/fish/completions/iodock.fish",
        )
    )
)
@click.argument("shell", type=click.Choice(tuple(SHELLS)))
def command(shell: str) -> None:
    """Print the completion script of a shell: Tab then completes commands, options, analyses and files."""
    click.echo(script(shell), nl=False)
