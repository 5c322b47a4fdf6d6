"""Completes command lines of iodock in a shell: commands, options, names of analyses, and files."""

from __future__ import annotations

import os
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

VARIABLE = "_IODOCK_COMPLETE"
"""A shell's script sets this variable to `bash_complete`, `zsh_complete` or `fish_complete`."""


class _Files(ShellComplete):
    """Completes names of files for arguments without completions of their own. click itself does so only for
    arguments that are declared as paths."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        found = super().get_completions(args, incomplete)
        if found or incomplete.startswith("-"):
            return found
        return [CompletionItem(incomplete, type="file")]


class _Bash(_Files, BashComplete):
    @staticmethod
    def _check_version() -> None:
        # click's check starts a bash to get its version, which would delay each completion. The documentation
        # states that version 4.4 or newer is needed.
        pass


class _Zsh(_Files, ZshComplete): ...


class _Fish(_Files, FishComplete): ...


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def script(shell: str) -> str:
    """Returns the completion script that users add to the start-up file of their shell."""
    return _asked(shell).source()


def answer(asked: str) -> int:
    """Prints the completions for the command line that the shell passed in environment variables. ASKED is
    the value of VARIABLE. Returns the exit status."""
    shell, _, what = asked.partition("_")
    if shell not in SHELLS or what != "complete":
        return 1
    try:
        click.echo(_asked(shell).complete())
    except Exception:
        # An invalid command line has no completions. A message would appear in the middle of the user's
        # prompt, so none is printed.
        if os.environ.get("IODOCK_TRACEBACK"):
            raise
        return 1
    return 0


def _asked(shell: str) -> ShellComplete:
    from iodock.cli.run import iodock

    return SHELLS[shell](iodock, {}, "iodock", VARIABLE)
