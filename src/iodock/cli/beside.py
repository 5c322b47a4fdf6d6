"""What stands beside data, on stderr, where it does not disturb them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from iodock.cli.streams import say

if TYPE_CHECKING:
    from iodock.program.views.losses import Losses
    from iodock.shared.answer import Answer


def say_losses(losses: Losses, language: str = "en") -> None:
    """What was not seen, as every verb says it."""
    from iodock.program.views.losses import loss_lines
    from iodock.shared.language import language_in

    for line in loss_lines(losses, language_in(language)):
        say(line)


def say_beside(answer: Answer) -> None:
    """An answer's notes and losses."""
    say_notes(answer.notes)
    say_losses((loss.name, loss.count, loss.cure) for loss in answer.losses)


def say_notes(notes: Iterable[str]) -> None:
    """A line each."""
    for note in notes:
        say(f"note: {note}")
