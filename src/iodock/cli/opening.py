"""Implements the option `--open`, which opens the page that a command wrote in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from iodock.cli.streams import say
from iodock.shared.browser import open_in_browser
from iodock.shared.errors import RequestError
from iodock.shared.language import N_, language_in

Function = TypeVar("Function", bound=Callable[..., Any])


def opening(function: Function) -> Function:
    """Adds the option --open to a command. The argument is named `opens`."""
    return click.option("--open", "opens", is_flag=True, help="open the page in a browser")(function)


def check_opens(opens: bool, form: str, output: str | None) -> None:
    """Raises RequestError if --open was given, but the command does not write a page to a file."""
    if opens and (form != "html" or output in (None, "-")):
        raise RequestError("--open is only for a page that is written to a file", "-o FILE.html --open")


def open_page(path: str, language: str = "en") -> None:
    """Opens a page in the browser. If that is not possible on this machine, it prints the path of the
    page."""
    page = Path(path).resolve()
    if not open_in_browser(page.as_uri()):
        text = language_in(language)
        say(f"note: {text.gettext(N_('no browser can be opened here; the page is {page}'), page=page)}")


def open_address(url: str) -> None:
    """Opens an address in the browser. If that is not possible, it prints a note without the address, because
    the command has already printed it."""
    if not open_in_browser(url):
        say("note: no browser can be opened here")
