"""Tests that every result shows the losses of its store once, in a line. Losses that hide calls get a
sentence."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from iodock.program.unseen import MANY_PROGRAMS
from iodock.program.views.losses import loss_lines, print_losses
from iodock.shared.language import LANGUAGES, language_in
from recorded import IODOCK, run

SMALL = [("before-load", 39, "a cure"), ("mapped-contents", 1300, "a cure")]
ONE_LINE = "not seen: before-load 39, mapped-contents 1,300 (iodock explain losses)"


def test_losses_are_named_and_counted_in_one_line() -> None:
    assert loss_lines(SMALL, language_in("en")) == [ONE_LINE]
    assert loss_lines([], language_in("en")) == []


def test_losses_of_calls_are_shown_first_with_their_cure() -> None:
    hiding = [("own-system-calls", 3, "record it by bpf"), ("foreign-calls", 1, "a cure")]
    lines = loss_lines([SMALL[0], *hiding, SMALL[1]], language_in("en"))
    assert lines == [
        "not seen: 3 own-system-calls: record it by bpf",
        "not seen: 1 foreign-calls: a cure",
        ONE_LINE,
    ]


def test_starts_of_many_programs_hide_calls() -> None:
    lines = loss_lines([("before-load", MANY_PROGRAMS, "record with --complete")], language_in("en"))
    assert lines == ["not seen: 50 before-load: record with --complete"]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [40, 80])
def test_the_line_on_losses_fits_the_terminal(width: int, language: str) -> None:
    console = Console(file=io.StringIO(), width=width)
    print_losses([(f"loss-{number}", number, "") for number in range(20)], console, language_in(language))
    assert isinstance(console.file, io.StringIO)
    assert max(map(len, console.file.getvalue().splitlines())) <= width


LOG = """1 1700000000.100000 openat(AT_FDCWD, "/data/a", O_RDONLY) = 3 <0.000100>
what is this
nor this
1 1700000000.200000 read(3, "x", 1) = 1 <0.000100>
"""
LOST = "not seen: unreadable-lines 2 (iodock explain unreadable-lines)"


@pytest.mark.usefixtures("few_rules")
def test_every_command_reports_losses_once(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(LOG)
    verbs = (
        ("import", "run.log", "-o", "run.iodock"),
        ("show", "summary", "run.iodock"),
        ("show", "accesses", "run.iodock", "--format", "csv"),
        ("query", "run.iodock", "SELECT count(*) FROM calls_seen"),
        ("diagnose", "run.iodock"),
        ("diff", "run.iodock", "run.iodock"),
    )
    for verb in verbs:
        done = run([*IODOCK, *verb], tmp_path)
        assert done.returncode == 0, done.stderr
        said = [line for line in (done.stdout + done.stderr).splitlines() if "unreadable-lines" in line]
        assert said == [LOST], verb
    explained = run([*IODOCK, "explain", "losses"], tmp_path).stdout
    assert "unreadable-lines  (loss)" in explained and "before-load  (loss)" in explained


def test_a_loss_is_explained_by_its_name() -> None:
    assert loss_lines([SMALL[0]], language_in("en")) == [
        "not seen: before-load 39 (iodock explain before-load)"
    ]
