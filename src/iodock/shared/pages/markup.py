"""HTML from Python, with everything escaped by default."""

from __future__ import annotations

import html

from iodock.shared.text import shorten, visible, visible_lines


class Markup(str):
    """Text that is HTML already. Only this module makes it; any other string is escaped when it is put in."""

    __slots__ = ()


def tag(name: str, /, *children: str | None, **attributes: str | None) -> Markup:
    """An element. `class_` writes `class`, `data_open` writes `data-open`; None leaves something out."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(visible_lines(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def frame(page: str, title: str, style: str) -> Markup:
    """A whole page in a frame. Its scripts run there, and reach nothing outside."""
    # As it is: scripts and styles hold characters that are no text of ours.
    return Markup(
        f'<iframe sandbox="allow-scripts" title="{html.escape(visible(title))}" style="{html.escape(style)}"'
        f' srcdoc="{html.escape(page)}"></iframe>'
    )


def join(*children: str | None) -> Markup:
    """Pieces one after the other, escaped unless they are markup. No name in them turns the direction of its
    neighbours, or is unseen."""
    return Markup("".join(_escaped(child) for child in children if child is not None))


def file_name(name: str, limit: int = 90) -> Markup:
    """A file's name: isolated from the direction of the text around it, odd characters made visible."""
    return tag("bdi", shorten(name, limit), class_="name", title=visible(name), translate="no")


def _escaped(child: str) -> str:
    return child if isinstance(child, Markup) else html.escape(visible_lines(child))
