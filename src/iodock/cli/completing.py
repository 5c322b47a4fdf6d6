"""Completes command lines of iodock for a shell: verbs, options, analyses, and otherwise files."""

from __future__ import annotations

import os
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

VARIABLE = "_IODOCK_COMPLETE"
"""Instructions that a shell's script sends: `bash_complete`, `zsh_complete`, `fish_complete`."""


class _Files(ShellComplete):
    """Completes files for arguments without their own words: click does so only for declared paths."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        found = super().get_completions(args, incomplete)
        if found or incomplete.startswith("-"):
            return found
        return [CompletionItem(incomplete, type="file")]


class _Bash(_Files, BashComplete):
    @staticmethod
    def _check_version() -> None:
        # click starts a bash to get its version; the script is for 4.4 and newer, as documented.
        pass


class _Zsh(_Files, ZshComplete): ...


class _Fish(_Files, FishComplete): ...


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def script(shell: str) -> str:
    """The script for that shell's start-up file."""
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
        # An invalid command line has no completions, and a message would appear in the prompt.
        if os.environ.get("IODOCK_TRACEBACK"):
            raise
        return 1
    return 0


def _asked(shell: str) -> ShellComplete:
    from iodock.cli.run import iodock

    return SHELLS[shell](iodock, {}, "iodock", VARIABLE)
