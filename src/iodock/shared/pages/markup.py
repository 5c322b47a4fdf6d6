"""Builds HTML in Python. All text is escaped unless it is of the class Markup."""

from __future__ import annotations

import html

from iodock.shared.text import shorten, visible, visible_lines


class Markup(str):
    """Text that is already HTML. Only this module creates objects of this class. All other strings are
    escaped when they are inserted."""

    __slots__ = ()


def tag(name: str, /, *children: str | None, **attributes: str | None) -> Markup:
    """Makes an HTML element. An attribute `class_` becomes `class`, and `data_open` becomes `data-open`.
    Attributes that are None are left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(visible_lines(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def frame(page: str, title: str, style: str) -> Markup:
    """Embeds a whole HTML page as a frame. Scripts in the page run inside the frame and can't access anything
    outside of it."""
    # `visible` is not applied to the page, because scripts and styles may contain control characters, which
    # it would replace.
    return Markup(
        f'<iframe sandbox="allow-scripts" title="{html.escape(visible(title))}" style="{html.escape(style)}"'
        f' srcdoc="{html.escape(page)}"></iframe>'
    )


def join(*children: str | None) -> Markup:
    """Joins pieces of HTML. Pieces that are not Markup are escaped, and invisible characters and direction
    marks in them are made visible."""
    return Markup("".join(_escaped(child) for child in children if child is not None))


def file_name(name: str, limit: int = 90) -> Markup:
    """Formats the name of a file. The name may be in a script that is written from right to left; `<bdi>`
    prevents it from changing the order of the text around it."""
    return tag("bdi", shorten(name, limit), class_="name", title=visible(name), translate="no")


def _escaped(child: str) -> str:
    return child if isinstance(child, Markup) else html.escape(visible_lines(child))
