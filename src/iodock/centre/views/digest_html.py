"""Formats a digest as one HTML page that loads no other files."""

from __future__ import annotations

from importlib import metadata, resources

from iodock.centre.views.amounts import amount
from iodock.centre.views.digest_words import headline, lines, title
from iodock.centre.watch.digest import Digest, Sums
from iodock.shared.language import Language
from iodock.shared.pages.markup import Markup, join, tag
from iodock.shared.pages.sheet import Page, document, joined
from iodock.shared.text import visible


def digest_html(digest: Digest, text: Language) -> str:
    """Returns the HTML document of a digest."""
    style = joined("css") + (resources.files(__package__) / "digest_page.css").read_text(encoding="utf-8")
    said = headline(digest, text)
    header = [tag("h1", tag("bdi", visible(title(digest, text)), translate="no"))]
    header += [tag("p", tag("strong", visible(said)))] if said else []
    header += [tag("p", text.gettext("All of this is synthetic."))] if digest.is_synthetic else []
    found = tag("dl", *(_pair(label, what) for label, what in lines(digest, text)), class_="digest")
    sections = [("digest", text.gettext("I/O of the job"), found)]
    kinds = [table for one in digest.sums if (table := _operations(one, text))]
    if kinds:
        sections.append(("operations", text.gettext("Metadata operations"), join(*kinds)))
    page = Page(
        title=join(visible(title(digest, text))),
        header=join(*header),
        navigation=_links(sections),
        body=join(*(_section(*one) for one in sections)),
        footer=tag("p", text.gettext("Created by {writer}", writer=f"iodock {metadata.version('iodock')}")),
        style=style,
    )
    return document(page, text)


def _links(sections: list[tuple[str, str, Markup]]) -> Markup:
    """Returns the list of links to the sections. If there is only one section, the list is empty and the
    style sheet hides it."""
    several = sections if len(sections) > 1 else []
    return join(*(tag("li", tag("a", head, href=f"#{name}")) for name, head, _ in several))


def _section(name: str, heading: str, content: Markup) -> Markup:
    return tag(
        "section", tag("h2", heading, id=f"{name}-title"), content, id=name, aria_labelledby=f"{name}-title"
    )


def _pair(label: str, sentence: str) -> Markup:
    said = visible(sentence)
    kind = "code" if said.startswith("iodock bundle ") else "bdi"
    return join(tag("dt", label), tag("dd", tag(kind, said)))


def _operations(sums: Sums, text: Language) -> Markup | None:
    if not sums.operations:
        return None
    head = tag(
        "tr", tag("th", text.gettext("operation"), scope="col"),
        tag("th", text.gettext("count"), scope="col", class_="number"),
    )  # fmt: skip
    bound = "" if sums.is_exact else "≥ "
    rows = (
        tag("tr", tag("td", name), tag("td", f"{bound}{amount(count, 'integer')}", class_="number"))
        for name, count in sums.operations
    )
    return tag("table", tag("thead", head), tag("tbody", *rows))
