"""Tests `--open`, which opens the written page in a browser or, without a browser, prints its name."""

from __future__ import annotations

import os
import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest

from iodock.cli.run import run as run_command

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list that will contain the addresses passed to a browser."""
    asked: list[str] = []

    def open_one(url: str) -> bool:
        asked.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_one)
    for name in DISPLAYS:
        monkeypatch.delenv(name, raising=False)
    return asked


@pytest.mark.usefixtures("few_rules")
def test_pages_are_opened_in_a_browser(
    mixed_path: Path, tmp_path: Path, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.chdir(tmp_path)
    store = str(mixed_path)
    assert run_command(["report", store, "--open", "-q"]) == 0
    assert run_command(["show", "sizes", store, "-o", "a b.html", "--open", "-q"]) == 0
    assert run_command(["diff", store, store, "-o", "diff.html", "--open", "-q"]) == 0
    assert run_command(["fs", str(tmp_path), "-o", "card.html", "--open", "-q"]) == 0
    names = ("mixed.html", "a b.html", "diff.html", "card.html")
    assert opened == [(tmp_path / name).resolve().as_uri() for name in names]


def test_without_a_display_the_path_of_the_page_is_printed(
    tmp_path: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "card.html"
    assert run_command(["fs", str(tmp_path), "-o", str(page), "--open", "-q"]) == 0
    assert capsys.readouterr().err == f"note: no browser can be opened here; the page is {page}\n"
    assert not opened and page.is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "STORE", "-o", "-"],
        ["show", "sizes", "STORE"],
        ["show", "sizes", "STORE", "-o", "sizes.png"],
        ["show", "sizes", "STORE", "--format", "html"],
        ["diff", "STORE", "STORE"],
        ["fs", "."],
    ],
)
def test_results_that_are_not_pages_are_not_opened(
    arguments: list[str], mixed_path: Path, opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(mixed_path) if one == "STORE" else one for one in arguments]
    assert run_command([*given, "--open"]) == 2
    assert capsys.readouterr().err == (
        "error: --open is only for a page that is written to a file\nhint: -o FILE.html --open\n"
    )
    assert not opened


def test_the_browser_variable_is_respected(tmp_path: Path) -> None:
    browser, seen, page = tmp_path / "browser", tmp_path / "seen", tmp_path / "card.html"
    browser.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    browser.chmod(0o755)
    command = [sys.executable, "-m", "iodock", "fs", tmp_path, "-o", page, "-q", "--open"]
    done = subprocess.run(
        command, env={**os.environ, "BROWSER": f"{browser} %s"}, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "") and seen.read_text() == f"{page.as_uri()}\n"
