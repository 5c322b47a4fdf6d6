"""Completes command lines of iodock for a shell: verbs, options, names of analyses, and files."""

from __future__ import annotations

import os
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

VARIABLE = "_IODOCK_COMPLETE"
"""A shell's script sets this variable to `bash_complete`, `zsh_complete` or `fish_complete`."""


class _Files(ShellComplete):
    """Completes files for arguments that have no words of their own. click itself does this only for declared
    paths."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        found = super().get_completions(args, incomplete)
        if found or incomplete.startswith("-"):
            return found
        return [CompletionItem(incomplete, type="file")]


class _Bash(_Files, BashComplete):
    @staticmethod
    def _check_version() -> None:
        # The check is skipped, because click would start a bash to get its version. The script needs 4.4 or
        # newer, as documented.
        pass


class _Zsh(_Files, ZshComplete): ...


class _Fish(_Files, FishComplete): ...


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def script(shell: str) -> str:
    """Returns the script for the start-up file of a shell."""
    return _asked(shell).source()


def answer(asked: str) -> int:
    """Prints the completions of the words that the shell passed in the environment; returns the exit
    status."""
    shell, _, what = asked.partition("_")
    if shell not in SHELLS or what != "complete":
        return 1
    try:
        click.echo(_asked(shell).complete())
    except Exception:
        # An invalid command line has no completions. A message would appear in the prompt, so none is
        # printed.
        if os.environ.get("IODOCK_TRACEBACK"):
            raise
        return 1
    return 0


def _asked(shell: str) -> ShellComplete:
    from iodock.cli.run import iodock

    return SHELLS[shell](iodock, {}, "iodock", VARIABLE)
