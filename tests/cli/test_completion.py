"""Tests the completion of iodock's command lines, by the generated scripts and in real shells if
available."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from in_process import asked, printed
from iodock.cli.registry import VERBS

SHELLS = ("bash", "zsh", "fish")


def completed(*words: str, cwd: Path | None = None) -> list[str]:
    """Returns iodock's answer to bash for these words, the last of which the user is typing, as lines
    `TYPE,VALUE`."""
    asks = {
        "_IODOCK_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("iodock", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "iodock"],
        env=os.environ | asks,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("dia",), ["plain,diagnose"]),
        (("show", "summ"), ["plain,summary"]),
        (("show", "summary", "run.iodock", "--exclude-f"), ["plain,--exclude-folder"]),
        (("record", "--backend", "re"), ["plain,rewrite"]),
        (("explain", "small-req"), ["plain,small-requests"]),
        # A store is a folder, and the shell itself completes folder names.
        (("diagnose", "run"), ["file,run"]),
        (("nonsense", "x"), []),
    ],
)
def test_the_expected_words_are_completed(words: tuple[str, ...], wanted: list[str]) -> None:
    assert completed(*words) == wanted


def test_all_commands_are_completed() -> None:
    assert completed("") == [f"plain,{name}" for name in VERBS]


def test_an_unknown_shell_is_refused() -> None:
    status, out, said = asked("completion", "tcsh")
    assert (status, out) == (2, "") and "bash, zsh, fish" in said


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Creates a folder with an `iodock` command that runs the code under test."""
    folder = tmp_path / "bin"
    folder.mkdir()
    path = folder / "iodock"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -m iodock "$@"\n')
    path.chmod(0o755)
    return folder


ASKED = {
    # Readline needs a terminal, so the script calls the completion function with Readline's arguments.
    "bash": """source ./script
COMP_WORDS=(iodock diag) COMP_CWORD=1 COMP_LINE='iodock diag'
compopt() { :; }
_iodock_completion iodock diag iodock
printf '%s\\n' "${COMPREPLY[@]}" """,
    # The script prints the words that the completion function would add.
    "zsh": """compdef() { :; }
source ./script
_describe() { local -a all; all=("${(@P)3}"); print -l -- $all }
compadd() { :; }
words=(iodock diag) CURRENT=2 commands[iodock]=iodock
_iodock_completion""",
    "fish": "source ./script\ncomplete -C 'iodock diag'",
}


@pytest.mark.parametrize("shell", SHELLS)
def test_the_completion_works_in_a_real_shell(shell: str, program: Path, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(printed("completion", shell))
    path = f"{program}:{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [shell, "-c", ASKED[shell]]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout.split()[0].partition(":")[0] == "diagnose"
