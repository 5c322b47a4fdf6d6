"""Decides when notices about episodes are sent, which is once at the begin and once at the end. Servers of
one file system that have problems at the same time share a notice, because otherwise a network failure could
cause a thousand mails."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace

from iodock.centre.watch import episode_rows
from iodock.centre.watch.episodes import Episode, merged, worse
from iodock.centre.watch.ledger import Ledger, count
from iodock.centre.watch.notices import outbox
from iodock.centre.watch.notices.message import Occasion
from iodock.centre.watch.notices.recipients import Letter, Letters


class Teller:
    """Creates the notices of one collector. It puts letters into the outbox within the caller's
    transaction."""

    def __init__(self, letters: Letters) -> None:
        self._letters = letters
        self._owners: set[tuple[int, str]] = set()

    def is_due(self, episodes: Iterable[Episode]) -> bool:
        """Returns whether a notice will be sent for at least one of these episodes."""
        least = self._letters.notices.least_samples
        return any(one.told is None and one.samples >= least for one in episodes)

    def begun(self, connection: sqlite3.Connection, episodes: Sequence[Episode], now: int) -> list[Episode]:
        """Creates notices of episodes that have begun. EPISODES are all open episodes. Returns the changed
        episodes, which now have a notice of their own or belong to the notice of an earlier episode."""
        groups: dict[tuple[str, str], int] = {
            (one.file_system, one.kind): one.told for one in episodes if one.told is not None
        }
        fresh: dict[tuple[str, str], list[Episode]] = {}
        for one in episodes:
            if one.told is None and one.samples >= self._letters.notices.least_samples:
                fresh.setdefault((one.file_system, one.kind), []).append(one)
        told: list[Episode] = []
        for place, found in fresh.items():
            group = groups.get(place) or found[0].number
            marked = [episode_rows.save(connection, replace(one, told=group)) for one in found]
            if place not in groups:
                first = marked[0]
                occasion = Occasion("begin", first, tuple(one.server for one in marked), now)
                self._put(connection, self._letters.of_begin(occasion), now)
            told += marked
        return told

    def owners(self, connection: sqlite3.Connection, episodes: Iterable[Episode], now: int) -> None:
        """Notifies owners of jobs that became suspects after the episode's notice was sent."""
        for one in episodes:
            for suspect in one.suspects if one.told is not None else ():
                mark = (one.told or 0, suspect.job)
                letters = (
                    []
                    if mark in self._owners
                    else self._letters.of_owner(Occasion("begin", one, (one.server,), now), suspect)
                )
                if letters:
                    self._owners.add(mark)
                    self._put(connection, letters, now)

    def ended(
        self,
        connection: sqlite3.Connection,
        ledger: Ledger,
        over: Sequence[Episode],
        is_open: set[int],
        now: int,
    ) -> None:
        """Creates notices of ended episodes. Episodes that share a notice form a group, and the group has
        ended when all its episodes have. OVER are the episodes that ended now. IS_OPEN are the numbers of the
        groups with an open episode."""
        for group in sorted({one.told for one in over if one.told is not None} - is_open):
            of_group = episode_rows.of_group(ledger, group)
            occasion = Occasion("end", _together(of_group), tuple(one.server for one in of_group), now)
            self._put(connection, self._letters.of_end(occasion, outbox.told(connection, group)), now)
            self._owners = {one for one in self._owners if one[0] != group}

    def forget(self) -> None:
        """Forgets which owners were notified, because the transaction with their letters failed. Their
        letters will be created again."""
        self._owners.clear()

    def _put(self, connection: sqlite3.Connection, letters: list[Letter], now: int) -> None:
        outbox.put(connection, letters, now, self._letters.notices.most_waiting)
        lost = self._letters.lost
        for why, times in lost.items():
            if times:
                count(connection, f"{outbox.LOST}: mail: {why}", times)
        lost.clear()


def _together(episodes: Sequence[Episode]) -> Episode:
    """Combines the episodes of a group into one that lasts from the earliest begin to the latest end."""
    first = episodes[0]
    for one in episodes[1:]:
        ends = [end for end in (first.end_ns, one.end_ns) if end is not None]
        first = replace(
            first, begin_ns=min(first.begin_ns, one.begin_ns), worst=worse(first.worst, one.worst),
            end_ns=max(ends, default=None), suspects=merged(first.suspects, one.suspects),
        )  # fmt: skip
    return first
