"""Answers a shell that completes a command line of iodock: verbs, options, analyses, and else files."""

from __future__ import annotations

import os
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

VARIABLE = "_IODOCK_COMPLETE"
"""How the script of a shell asks: `bash_complete`, `zsh_complete`, `fish_complete`."""


class _Files(ShellComplete):
    """Files where an argument has no words of its own: click takes only those for files that say so."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        found = super().get_completions(args, incomplete)
        if found or incomplete.startswith("-"):
            return found
        return [CompletionItem(incomplete, type="file")]


class _Bash(_Files, BashComplete):
    @staticmethod
    def _check_version() -> None:
        # click starts a bash to learn its version; the script is for 4.4 and newer, as the documents say.
        pass


class _Zsh(_Files, ZshComplete): ...


class _Fish(_Files, FishComplete): ...


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def script(shell: str) -> str:
    """What that shell is to read at its start."""
    return _asked(shell).source()


def answer(asked: str) -> int:
    """Prints what fits the words that the shell left in the environment; the exit status."""
    shell, _, what = asked.partition("_")
    if shell not in SHELLS or what != "complete":
        return 1
    try:
        click.echo(_asked(shell).complete())
    except Exception:
        # A command line that is wrong so far has no completions, and a message would stand in the prompt.
        if os.environ.get("IODOCK_TRACEBACK"):
            raise
        return 1
    return 0


def _asked(shell: str) -> ShellComplete:
    from iodock.cli.run import iodock

    return SHELLS[shell](iodock, {}, "iodock", VARIABLE)
