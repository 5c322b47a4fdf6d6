"""What is not in a store, beside a result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from iodock.findings import HIDES_CALLS
from iodock.views.charts.words import visible
from iodock.views.lines import print_sentence

if TYPE_CHECKING:
    from rich.console import Console

    from iodock.language import Language

Losses = Sequence[tuple[str, int, str]]
"""Name, how many, cure."""
_MOST = 3


def print_losses(losses: Losses, console: Console, text: Language) -> None:
    """Those that hide calls, all of them, and then the first others, in a sentence each, after an empty line;
    nothing where there are none. Programs whose start was not seen are the first of the others."""
    if not losses:
        return
    console.print()
    hiding = [loss for loss in losses if loss[0] in HIDES_CALLS]
    others = [loss for loss in losses if loss not in hiding]
    others.sort(key=lambda loss: loss[0] != "before-load")
    shown = hiding + others[: max(0, _MOST - len(hiding))]
    for name, count, cure in shown:
        print_sentence(console, _loss(name, count, cure, text))
    more = len(losses) - len(shown)
    if more > 0:
        print_sentence(
            console,
            text.ngettext("{n} more loss is in the report", "{n} more losses are in the report", more),
        )


def _loss(name: str, count: int, cure: str, text: Language) -> str:
    cure = text.gettext(cure)
    return text.gettext("not seen: {count} {name}: {cure}", count=f"{count:,}", name=visible(name), cure=cure)
