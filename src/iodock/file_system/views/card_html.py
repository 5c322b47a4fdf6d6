"""Formats a file system's card as one self-contained HTML page, for the web site of a computing centre."""

from __future__ import annotations

from importlib import metadata, resources

from iodock.file_system.health.card import Card
from iodock.file_system.probe.remarks import moment
from iodock.file_system.views.card_text import SECTIONS, facts, sections
from iodock.shared.language import N_, Language
from iodock.shared.pages.markup import Markup, join, tag
from iodock.shared.pages.sheet import Page, document, joined
from iodock.shared.sentences import say
from iodock.shared.text import visible


def card_html(card: Card, text: Language) -> str:
    """Renders the HTML page of a card."""
    style = joined("css") + (resources.files(__package__) / "card_page.css").read_text(encoding="utf-8")
    made = text.gettext(
        N_("Created by {writer} on {host}, {when}."),
        writer=f"iodock {metadata.version('iodock')}", host=visible(card.host), when=moment(card.ts),
    )  # fmt: skip
    parts = [("system", list(facts(card, text))), *sections(card, text)]
    body = [_section(name, _pairs(pairs), text) for name, pairs in parts]
    if card.remarks:
        said = tag("ul", *(tag("li", say(one, text)) for one in card.remarks))
        body.insert(1, _section("remarks", said, text))
    names = [name for name, _ in parts]
    page = Page(
        title=join(visible(card.mount.point)),
        header=tag("h1", tag("bdi", visible(card.mount.point), translate="no")),
        navigation=join(*(tag("li", tag("a", text.gettext(SECTIONS[one]), href=f"#{one}")) for one in names)),
        body=join(*body),
        footer=tag("p", made),
        style=style,
    )
    return document(page, text)


def _section(name: str, content: Markup, text: Language) -> Markup:
    heading = tag("h2", text.gettext(SECTIONS[name]), id=f"{name}-title")
    return tag("section", heading, content, id=name, aria_labelledby=f"{name}-title")


def _pairs(pairs: list[tuple[str, str]]) -> Markup:
    rows = (join(tag("dt", name, translate="no"), tag("dd", words)) for name, words in pairs)
    return tag("dl", *rows, class_="card")
