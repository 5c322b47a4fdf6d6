"""Builds HTML in Python and escapes everything by default."""

from __future__ import annotations

import html

from iodock.shared.text import shorten, visible, visible_lines


class Markup(str):
    """Text that is HTML already. Only this module creates it; any other string is escaped when it is
    inserted."""

    __slots__ = ()


def tag(name: str, /, *children: str | None, **attributes: str | None) -> Markup:
    """Makes an element. `class_` writes `class`, `data_open` writes `data-open`; an attribute that is None is
    left out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(visible_lines(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def frame(page: str, title: str, style: str) -> Markup:
    """Puts a whole page into a frame. Its scripts run inside the frame and can't access anything outside."""
    # The page is not escaped as text, because scripts and styles contain characters that text may not.
    return Markup(
        f'<iframe sandbox="allow-scripts" title="{html.escape(visible(title))}" style="{html.escape(style)}"'
        f' srcdoc="{html.escape(page)}"></iframe>'
    )


def join(*children: str | None) -> Markup:
    """Joins pieces, escaped unless they are markup. Direction marks and invisible characters in names are
    made visible."""
    return Markup("".join(_escaped(child) for child in children if child is not None))


def file_name(name: str, limit: int = 90) -> Markup:
    """Formats a file's name: it is isolated from the text direction around it, and unusual characters are
    made visible."""
    return tag("bdi", shorten(name, limit), class_="name", title=visible(name), translate="no")


def _escaped(child: str) -> str:
    return child if isinstance(child, Markup) else html.escape(visible_lines(child))
