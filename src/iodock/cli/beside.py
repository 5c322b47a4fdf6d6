"""Prints notes and losses on stderr, so that stdout contains only data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from iodock.cli.streams import say

if TYPE_CHECKING:
    from iodock.program.views.losses import Losses
    from iodock.shared.answer import Answer


def say_losses(losses: Losses, language: str = "en") -> None:
    """Prints one line for each loss. All commands use this function, so that losses look the same
    everywhere."""
    from iodock.program.views.losses import loss_lines
    from iodock.shared.language import language_in

    for line in loss_lines(losses, language_in(language)):
        say(line)


def say_beside(answer: Answer) -> None:
    """Prints the notes and losses of an answer."""
    say_notes(answer.notes)
    say_losses((loss.name, loss.count, loss.cure) for loss in answer.losses)


def say_notes(notes: Iterable[str]) -> None:
    """Prints notes, one per line."""
    for note in notes:
        say(f"note: {note}")
