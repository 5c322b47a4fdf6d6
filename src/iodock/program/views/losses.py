"""Prints the losses of a store below a result. All commands use these lines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from iodock.program.unseen import hides_calls
from iodock.shared.language import N_
from iodock.shared.lines import print_sentence
from iodock.shared.text import visible

if TYPE_CHECKING:
    from rich.console import Console

    from iodock.shared.language import Language

Losses = Iterable[tuple[str, int | str, str]]
"""For each loss: name, count (a number, or text), cure."""


def loss_lines(losses: Losses, text: Language) -> list[str]:
    """Returns lines about losses. Each loss that hides calls has a sentence with its cure. A last line has
    the names and numbers of the others, which `iodock explain` describes. The list is empty if there are
    no losses."""
    lines, others = list[str](), dict[str, str]()
    for name, count, cure in losses:
        shown = count if isinstance(count, str) else f"{count:,}"
        if hides_calls(name, count):
            sentence = N_("not seen: {count} {name}: {cure}")
            lines.append(text.gettext(sentence, count=shown, name=visible(name), cure=text.gettext(cure)))
        else:
            others[visible(name)] = shown
    if others:
        named = text.listed(f"{name} {count}" for name, count in others.items())
        topic = next(iter(others)) if len(others) == 1 else "losses"
        lines.append(
            text.gettext(N_("not seen: {losses} (iodock explain {topic})"), losses=named, topic=topic)
        )
    return lines


def print_losses(losses: Losses, console: Console, text: Language) -> None:
    """Prints the lines on a rich console, with an empty line before them."""
    for at, line in enumerate(loss_lines(losses, text)):
        if at == 0:
            console.print()
        print_sentence(console, line)
