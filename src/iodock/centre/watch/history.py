"""Past trouble of servers, from verdicts since the collector's start and from earlier episodes in the
ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from iodock.centre.watch.episodes import Episode
from iodock.centre.watch.verdict import UNWELL, Verdict
from iodock.centre.watch.watching import Spell


def together(spells: Iterable[Spell], episodes: Iterable[Episode]) -> list[Spell]:
    """Merges both kinds, the newest first. Verdicts since the start are preferred, because they distinguish
    every state. Spells that were derived from the store come last, because they have no suspects."""
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
    """Makes a spell from an episode, with the episode's worst state."""
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
