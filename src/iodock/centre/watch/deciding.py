"""Proposes, decides and cancels actions on jobs. It does so once in each interval of the collector."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from iodock.centre.watch import action_rows as rows
from iodock.centre.watch import episode_rows
from iodock.centre.watch.acting import HOUR, SECOND, Past, choice, refused
from iodock.centre.watch.action_rows import BY_ITSELF, Action, Status
from iodock.centre.watch.audit import Audit
from iodock.centre.watch.episodes import Episode, Key, key_of
from iodock.centre.watch.ledger import Ledger
from iodock.centre.watch.schedulers.base import Scheduler
from iodock.centre.watch.verdict import UNWELL, Suspect, Verdict
from iodock.shared.errors import RequestError
from iodock.shared.response import Intervention

_NOT_OVER: tuple[Status, ...] = ("asked", "wanted", "doing", "done", "undo", "undoing")
_ORDINARY = ("few-samples", "missing-samples", "settling", "acted-before", "state", "nobody")
"""Reasons that recur in every interval, and are therefore not logged."""
_MOST_SAID = 10_000


class Decider:
    """Makes the decisions of one collector. Only one thread may call its methods at a time."""

    def __init__(
        self, ledger: Ledger, audit: Audit, rules: Intervention, scheduler: Scheduler | None, started_ns: int
    ) -> None:
        self._ledger, self._audit, self._rules = ledger, audit, rules
        self._scheduler, self._started_ns = scheduler, started_ns
        self._said: set[tuple[str, str, str]] = set()

    def weigh(self, verdicts: Iterable[Verdict], episodes: Mapping[Key, Episode], now: int) -> None:
        """Proposes or decides actions, if the site's settings allow it. Raises StoreError."""
        if self._rules.mode == "suggest":
            return
        pasts = dict[str, Past]()
        for verdict in verdicts:
            episode = episodes.get(key_of(verdict))
            if verdict.state not in UNWELL or episode is None or episode.seen_ns != verdict.at_ns:
                continue
            place = verdict.file_system
            if place not in pasts:
                pasts[place] = self._past(place, now)
            if reason := refused(verdict, self._rules, self._scheduler, pasts[place], now):
                self._say(episode, {"": reason}, now)
            elif self._weighed(verdict, episode, pasts[place], now):
                pasts.clear()

    def _weighed(self, verdict: Verdict, episode: Episode, past: Past, now: int) -> bool:
        """Decides whether to act because of one verdict. Returns whether an action was proposed or
        decided."""
        if self._rules.mode == "ask":
            self._keep_asking(verdict, episode, past, now)
        made = choice(verdict, self._rules, self._scheduler, past, now)
        if made.suspect is not None:
            # The jobs that already had an action in this episode are read from the ledger only if a job was
            # chosen. Reading them for every verdict would be slow, because thousands of servers may have
            # problems.
            full = replace(past, jobs=past.jobs | rows.jobs_of(self._ledger, episode.number))
            made = choice(verdict, self._rules, self._scheduler, full, now)
        self._say(episode, made.why, now)
        if made.suspect is not None:
            self._want(episode, made.suspect, now)
        return made.suspect is not None

    def _keep_asking(self, verdict: Verdict, episode: Episode, past: Past, now: int) -> None:
        """Renews the proposals that the present verdict still supports. Otherwise a proposal would expire
        while an overload of hours continues."""
        for action in rows.of_episode(self._ledger, episode.number, "asked"):
            about = tuple(one for one in verdict.suspects if one.job == action.job)
            alone, before = replace(verdict, suspects=about), replace(past, jobs=frozenset())
            if choice(alone, self._rules, self._scheduler, before, now).suspect is not None:
                with self._ledger.writing() as connection:
                    rows.change(connection, action.number, "asked", made_ns=now)

    def _past(self, file_system: str, now: int) -> Past:
        """Returns information about earlier actions: the jobs whose actions are not over, the number of
        automatic actions in the last hour, and the time of the last action on this file system."""
        under_way = frozenset(action.job for action in rows.with_status(self._ledger, *_NOT_OVER))
        unasked = rows.unasked_since(self._ledger, now - HOUR)
        return Past(self._started_ns, under_way, unasked, rows.latest_on(self._ledger, file_system))

    def _want(self, episode: Episode, suspect: Suspect, now: int) -> None:
        asks = self._rules.mode == "ask"
        self._audit.write(
            now, "asked" if asks else "decided", episode=episode.number, file_system=episode.file_system,
            server=episode.server, state=episode.state, job=suspect.job, owner=suspect.owner,
            kind=self._rules.action, share=suspect.share, confidence=suspect.confidence,
            samples=episode.samples,
        )  # fmt: skip
        action = Action(
            0, episode.number, suspect.job, suspect.owner, self._rules.action, "asked" if asks else "wanted",
            "" if asks else BY_ITSELF, now, None, None, "", 0, now,
        )  # fmt: skip
        with self._ledger.writing() as connection:
            rows.add(connection, action)

    def _say(self, episode: Episode, why: Mapping[str, str], now: int) -> None:
        """Writes the reasons why no action was taken to the audit log. While the file system has problems,
        each reason is written once for each job."""
        for job, reason in why.items():
            mark = (episode.file_system, job, reason)
            if reason in _ORDINARY or mark in self._said or len(self._said) >= _MOST_SAID:
                continue
            self._said.add(mark)
            self._audit.write(now, "refused", episode=episode.number, job=job[:200], why=reason)

    def recall(self, episodes: Collection[Episode], now: int) -> None:
        """Cancels or undoes actions that are no longer needed. EPISODES are all open episodes. Raises
        StoreError."""
        places = {one.file_system for one in episodes}
        self._said = {one for one in self._said if one[0] in places}
        found = rows.with_status(self._ledger, "asked", "wanted", "done")
        if not found:
            return
        is_open = {one.number for one in episodes}
        unwell = {one.file_system for one in episodes if one.state in self._rules.states}
        for action in found:
            if action.status == "done":
                self._recall_done(action, is_open, unwell, now)
            elif action.episode not in is_open:
                self._turn(action, "lapsed", "episode-over", now)
            elif action.status == "asked" and now - action.made_ns > self._rules.confirm_within_s * SECOND:
                self._turn(action, "lapsed", "not-confirmed", now)

    def _recall_done(self, action: Action, is_open: set[int], unwell: set[str], now: int) -> None:
        episode = episode_rows.episode(self._ledger, action.episode)
        place = episode.file_system if episode else ""
        if action.episode not in is_open and place not in unwell:
            self._turn(action, "undo", "", now, reason="recovered")
        elif now - (action.did_ns or now) > self._rules.longest_s * SECOND:
            self._turn(action, "undo", "", now, reason="longest")

    def confirm(self, number: int, by: str, episodes: Iterable[Episode], now: int) -> None:
        """Processes an operator's confirmation of a proposed action. EPISODES are all open episodes. Raises
        RequestError if the confirmation is too late or recent samples of the server are missing;
        StoreError."""
        action = self._asked(number)
        episode = next((one for one in episodes if one.number == action.episode), None)
        if episode is None:
            raise RequestError("the server has recovered", "no action was taken")
        fresh = now - episode.seen_ns <= self._rules.fresh_s * SECOND and episode.seen_ns > self._started_ns
        if not fresh:
            raise RequestError("samples of this server are missing", "reload the page if there are new ones")
        if now - action.made_ns > self._rules.confirm_within_s * SECOND:
            raise RequestError("the request has expired", "no action was taken")
        self._turn(action, "wanted", "", now, by=by, made_ns=now)

    def decline(self, number: int, by: str, now: int) -> None:
        """Processes an operator's refusal of a proposed action. Raises RequestError, StoreError."""
        self._turn(self._asked(number), "declined", "declined", now, by=by)

    def undo(self, number: int, by: str, now: int) -> None:
        """Undoes an action at an operator's request, before the server has recovered. Raises RequestError,
        StoreError."""
        action = rows.action(self._ledger, number)
        if action is None or action.status != "done":
            raise RequestError("there is nothing to undo", "see the list of actions")
        self._turn(action, "undo", "", now, reason="operator", by=by)

    def _asked(self, number: int) -> Action:
        action = rows.action(self._ledger, number)
        if action is None or action.status != "asked":
            raise RequestError(
                "this proposed action is already answered, or expired", "see the list of actions"
            )
        return action

    def _turn(
        self, action: Action, status: Status, why: str, now: int, reason: str = "", **changed: object
    ) -> None:
        told = {"by": changed.get("by"), "why": why or reason}
        self._audit.write(
            now, "confirmed" if status == "wanted" else status, action=action.number, episode=action.episode,
            job=action.job, kind=action.kind, **{name: one for name, one in told.items() if one},
        )  # fmt: skip
        if status == "undo":
            # `by` names the person or program that decided on the action, and not the operator who undoes it,
            # so it keeps its value.
            changed.pop("by", None)
        with self._ledger.writing() as connection:
            is_done = rows.change(
                connection, action.number, action.status, status=status, why=why, next_ns=now, **changed
            )
        if not is_done and changed:
            raise RequestError(
                "this proposed action is already answered, or expired", "see the list of actions"
            )
