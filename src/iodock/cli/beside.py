"""Prints notes and losses on stderr, separate from the data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from iodock.cli.streams import say

if TYPE_CHECKING:
    from iodock.program.views.losses import Losses
    from iodock.shared.answer import Answer


def say_losses(losses: Losses, language: str = "en") -> None:
    """Prints losses, in the same form for every verb."""
    from iodock.program.views.losses import loss_lines
    from iodock.shared.language import language_in

    for line in loss_lines(losses, language_in(language)):
        say(line)


def say_beside(answer: Answer) -> None:
    """Prints an answer's notes and losses."""
    say_notes(answer.notes)
    say_losses((loss.name, loss.count, loss.cure) for loss in answer.losses)


def say_notes(notes: Iterable[str]) -> None:
    """Prints notes, one line each."""
    for note in notes:
        say(f"note: {note}")
