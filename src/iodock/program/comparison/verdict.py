"""Describes a comparison in a few sentences. They are data, which the views turn into text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from iodock.program.comparison.data import Change, Listing, Sureness, Work
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar

EQUAL_SHARE = 0.02
"""Two single runs count as equally fast if their wall times differ by less than this share."""

MOST_OF_IT = 0.6
"""If at least this share of the difference lies outside of I/O, the verdict mentions it."""


def headline(totals: Mapping[str, Change], work: Work | None) -> Message:
    """Returns the sentence that says whether the run became faster or slower."""
    wall = totals["wall_time_ns"]
    before, after, difference = wall.before, wall.after, wall.difference
    if before is None or after is None or difference is None:
        return Message(N_("Whether the run got faster is not known: how long it took is not known."))
    values: dict[str, Scalar] = {"before_ns": before, "after_ns": after, "unit": work.name if work else None}
    share = abs(difference) / before if before else None
    if wall.sureness is Sureness.SAME:
        return Message(N_("As fast as before: {after_ns}."), values)
    if wall.sureness is Sureness.NOISE:
        text = N_("No clear difference: {before_ns} -> {after_ns}, within the spread of the runs.")
        return Message(text, values)
    if share is not None and share < EQUAL_SHARE and wall.sureness is not Sureness.CLEAR:
        return Message(N_("About as fast as before: {before_ns} -> {after_ns}."), values)
    values["change_share"] = share
    return Message(_text(difference < 0, work is not None), values)


def _text(faster: bool, is_per: bool) -> str:
    if faster:
        return (
            N_("Faster per unit of work: {before_ns} -> {after_ns}, {change_share} less.")
            if is_per
            else N_("Faster: {before_ns} -> {after_ns}, {change_share} less.")
        )
    return (
        N_("Slower per unit of work: {before_ns} -> {after_ns}, {change_share} more.")
        if is_per
        else N_("Slower: {before_ns} -> {after_ns}, {change_share} more.")
    )


def sentences(
    totals: Mapping[str, Change], faster: Listing, slower: Listing, time: str | None
) -> Iterator[Message]:
    """Yields sentences on the contribution of I/O to the change, and on the files and calls that became
    faster or slower by the most."""
    io = totals["io_time_ns"]
    if io.before is not None and io.after is not None:
        values: dict[str, Scalar] = {"before_ns": io.before, "after_ns": io.after}
        yield Message(N_("Wall time in I/O: {before_ns} -> {after_ns}."), values)
    yield from _elsewhere(totals)
    gained, lost = (_moved(one, "total_time_ns" if time else "count") for one in (faster, slower))
    if gained is None or lost is None or not (faster.of or slower.of):
        return
    if time:
        text = _credit_and_blame(faster, slower)
        values = {"gained_ns": gained, "lost_ns": lost}
    else:
        text = N_(
            "Fewer calls on some files: {gained} (files: {faster_files}); more on others: {lost} (files: "
            "{slower_files})."
        )
        values = {"gained": round(gained), "lost": round(lost)}
    yield Message(text, values | {"faster_files": faster.files, "slower_files": slower.files})


def _credit_and_blame(faster: Listing, slower: Listing) -> str:
    if not slower.of:
        return N_(
            "Inside calls, files that got faster gained {gained_ns} (files: {faster_files}); none got slower."
        )
    if not faster.of:
        return N_(
            "Inside calls, files that got slower lost {lost_ns} (files: {slower_files}); none got faster."
        )
    return N_(
        "Inside calls, files that got faster gained {gained_ns} (files: {faster_files}); files that got "
        "slower lost {lost_ns} (files: {slower_files})."
    )


def _elsewhere(totals: Mapping[str, Change]) -> Iterator[Message]:
    """Yields a sentence if most of the difference was outside of I/O."""
    wall, rest = totals["wall_time_ns"], totals["rest_time_ns"]
    if not wall.difference or not rest.difference or wall.before is None:
        return
    moved = abs(wall.difference) >= EQUAL_SHARE * wall.before and wall.sureness is not Sureness.NOISE
    if moved and rest.difference / wall.difference > MOST_OF_IT:
        values: dict[str, Scalar] = {"before_ns": rest.before, "after_ns": rest.after}
        text = N_(
            "Most of the difference is outside of I/O, in computing or waiting: {before_ns} -> {after_ns}."
        )
        yield Message(text, values)


def _moved(listing: Listing, measure: str) -> float | None:
    difference = listing.total.changes[measure].difference
    return None if difference is None else abs(difference)
