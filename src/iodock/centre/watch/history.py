"""Combines the history of servers' problems from verdicts since the collector's start and from earlier
episodes in the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iodock.centre.watch.episodes import Episode
from iodock.centre.watch.verdict import UNWELL, Verdict
from iodock.centre.watch.watching import Spell


def together(spells: Iterable[Spell], episodes: Iterable[Episode]) -> list[Spell]:
    """Merges periods and episodes, the newest first. If several overlap, periods watched since the start are
    preferred, because they distinguish all states, then episodes. Periods that were derived from the store at
    the start are used last, because they have no suspects."""
    every = list(spells)
    watched = [one for one in every if not one.is_learnt]
    unwell = [one for one in watched if one.verdict.state in UNWELL]
    kept = [told for told in map(_spell, episodes) if not _overlaps(told, unwell)]
    learnt = [
        one
        for one in every
        if one.is_learnt and not (one.verdict.state in UNWELL and _overlaps(one, [*kept, *unwell]))
    ]
    return sorted([*watched, *kept, *learnt], key=lambda one: -one.verdict.since_ns)


def _spell(episode: Episode) -> Spell:
    """Converts an episode to a period with the episode's worst state."""
    verdict = Verdict(
        episode.file_system, episode.server, episode.kind, episode.worst, episode.begin_ns, episode.seen_ns,
        episode.confidence, episode.samples, (), episode.suspects,
    )  # fmt: skip
    return Spell(verdict, episode.end_ns)


def _overlaps(one: Spell, others: Sequence[Spell]) -> bool:
    return any(
        (other.verdict.server, other.verdict.file_system, other.verdict.kind)
        == (one.verdict.server, one.verdict.file_system, one.verdict.kind)
        and one.verdict.since_ns < _end(other)
        and other.verdict.since_ns < _end(one)
        for other in others
    )


def _end(spell: Spell) -> float:
    return float("inf") if spell.end_ns is None else spell.end_ns
