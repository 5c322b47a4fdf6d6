"""Tests messages on stderr: hostile names, unwritable outputs, and quiet mode."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from iodock.cli.progress import ProgressBar
from iodock.cli.run import run

HOSTILE = "no\x1b[31m\u202egone\nhint: all is well"
SHOWN = r"no\x1b[31m\u202egone\nhint: all is well"


@pytest.mark.parametrize(
    "words",
    ["diagnose {}", "show files {}", "report {}", "bundle {}", "diff {} {}", "import {}", "explain {}",
     "record {}", "diagnose {store} -o {}/x", "show {} x", "query {} FROM"],
)  # fmt: skip
def test_hostile_names_cannot_control_the_terminal(
    mixed_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    parts = [word.replace("{store}", str(mixed_path)).replace("{}", HOSTILE) for word in words.split(" ")]
    assert run(parts) != 0
    said = capsys.readouterr().err
    assert SHOWN in said
    assert all(line.isprintable() for line in said.splitlines())
    assert said.count("\nhint: ") <= 1


@pytest.mark.parametrize(
    ("verb", "place"),
    [(verb, place) for verb in ("diagnose", "report", "bundle", "diff") for place in ("folder", "name")]
    + [("show files", "name")],
)
def test_an_output_that_cannot_be_written_is_named(
    mixed_path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: str,
    place: str,
) -> None:
    # Root may write into every folder, so one case simulates the error and the other uses a name that is too
    # long.
    target = tmp_path / ("x" * 250 + ".html" if place == "name" else "out.html")
    if place == "folder":
        monkeypatch.setattr(os, "access", lambda *_: False)
    stores = [str(mixed_path)] * (2 if verb == "diff" else 1)
    assert run([*verb.split(), *stores, "-o", str(target)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {target}: ") and "hint: name a file in another folder with -o" in said
    assert ".part" not in said and not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", ["cases -q", "cases show -q shell-loop", "explain -q openat"])
def test_every_command_can_be_quiet(capsys: pytest.CaptureFixture[str], words: str) -> None:
    assert run(words.split()) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("rated", [True, False])
def test_huge_numbers_of_missing_ranks_are_summarised(monkeypatch: pytest.MonkeyPatch, rated: bool) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    said: list[str] = []
    with ProgressBar("packing", False, "parts", rated) as progress:
        monkeypatch.setattr(progress, "_start", lambda: setattr(progress, "_bar", Shown(said)), raising=True)
        monkeypatch.setattr(time, "monotonic", lambda: float("1e18"))
        progress(6, 17, 6)
    assert said == ["6 parts, 0.00 M/s" if rated else "6 parts"]


class Shown:
    """A progress bar that only notes its messages."""

    def __init__(self, said: list[str]) -> None:
        self.said = said

    def update(self, task: object, rate: str, **_: object) -> None:
        self.said.append(rate)

    def stop(self) -> None:
        """Does nothing, because this bar has no display."""


def test_a_damaged_case_is_reported_even_with_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/case.toml").write_text("title =")
    monkeypatch.setenv("IODOCK_CASES", str(tmp_path))
    assert run(["cases"]) == 0 and "note: " in capsys.readouterr().err
    assert run(["cases", "--quiet"]) == 0 and not capsys.readouterr().err
