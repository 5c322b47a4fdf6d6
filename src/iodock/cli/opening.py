"""`--open`: opens the written page in the browser."""

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
    """Adds --open. Its value is `opens`."""
    return click.option("--open", "opens", is_flag=True, help="open the page in a browser")(function)


def check_opens(opens: bool, form: str, output: str | None) -> None:
    """Raises RequestError if no page will be written to a file."""
    if opens and (form != "html" or output in (None, "-")):
        raise RequestError("--open is only for a page that is written to a file", "-o FILE.html --open")


def open_page(path: str, language: str = "en") -> None:
    """Opens a page in the browser, or prints its path if there is no browser here."""
    page = Path(path).resolve()
    if not open_in_browser(page.as_uri()):
        text = language_in(language)
        say(f"note: {text.gettext(N_('no browser can be opened here; the page is {page}'), page=page)}")


def open_address(url: str) -> None:
    """Opens a served page like `open_page`. Its address was printed already."""
    if not open_in_browser(url):
        say("note: no browser can be opened here")
