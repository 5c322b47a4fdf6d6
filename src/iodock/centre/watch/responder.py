"""Responds to verdicts with episodes, notices and actions. The collector calls `respond` once in each
interval with the verdicts on all servers. Commands and messages are sent in separate threads."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from iodock.centre.watch import action_rows, episode_rows
from iodock.centre.watch.action_rows import Action
from iodock.centre.watch.actions import Actions
from iodock.centre.watch.audit import Audit
from iodock.centre.watch.deciding import Decider
from iodock.centre.watch.episodes import Episode, Key, advanced, key_of
from iodock.centre.watch.ledger import Ledger, counts
from iodock.centre.watch.notices.message import Writer
from iodock.centre.watch.notices.outbox import Outbox, Sender
from iodock.centre.watch.notices.recipients import Letters, Sufferers, checked, of_nobody
from iodock.centre.watch.notices.sending import Channels
from iodock.centre.watch.schedulers import SCHEDULERS
from iodock.centre.watch.schedulers.desk import Run, SchedulerDesk
from iodock.centre.watch.telling import Teller
from iodock.centre.watch.verdict import Verdict
from iodock.shared.bounded.commands import answer_of
from iodock.shared.errors import IodockError, RequestError
from iodock.shared.response import CHANNELS, Channel, Intervention
from iodock.shared.settings import Settings

Tell = Callable[[str], None]
DAY = 86_400 * 1_000_000_000
SAVE_EVERY_NS = 60 * 1_000_000_000
WORK_EVERY_S = 1.0
FORGET_EVERY_S = 3600.0
ENDS_WITHIN_S = 20.0


class Responder:
    """Responds to the verdicts of one collector. Its methods may be called from any thread."""

    def __init__(
        self, folder: Path, settings: Settings, started: int, sufferers: Sufferers = of_nobody,
        run: Run = answer_of, send: Sender | None = None,
    ) -> None:  # fmt: skip
        """Opens the ledger in FOLDER. STARTED is the collector's start in ns since the epoch. RUN runs
        commands of the scheduler, and SEND sends letters. Raises RequestError if settings are invalid;
        StoreError."""
        self.rules, self._privacy = settings.response, settings.privacy
        notices = checked(settings.notices)
        self.desk = _desk(self.rules, run)
        sender = send or Channels(notices)
        self._ledger = Ledger(folder)
        self._audit = Audit(folder)
        self.writer = Writer(self.rules, self._privacy, self.desk, notices.portal)
        self._teller = Teller(Letters(notices, self.writer, sufferers))
        self._outbox = Outbox(self._ledger, notices, sender)
        scheduler = self.desk.scheduler if self.desk else None
        self._decider = Decider(self._ledger, self._audit, self.rules, scheduler, started)
        self._actions = Actions(self._ledger, self._audit, self.desk, self.rules) if self.desk else None
        self._deciding, self._end, self._trouble = threading.RLock(), threading.Event(), dict[str, str]()
        self._open: dict[Key, Episode] = {one.key: one for one in episode_rows.open_episodes(self._ledger)}
        self._saved = dict(self._open)
        self._audit.write(started, "started", mode=self.rules.mode)
        self._outbox.recover()
        if self._actions:
            self._actions.recover(started)

    def respond(self, verdicts: Sequence[Verdict], now: int) -> None:
        """Processes the verdicts of one interval. VERDICTS has at most one for each server, and NOW is their
        time in ns since the epoch. Raises StoreError; the next call then writes the missing changes."""
        with self._deciding:
            self._tell(verdicts, now)
            self._decider.weigh(verdicts, self._open, now)
            self._decider.recall(self._open.values(), now)

    def _tell(self, verdicts: Sequence[Verdict], now: int) -> None:
        found = dict(self._open)
        for verdict in verdicts:
            before = found.get(key_of(verdict))
            after = advanced(_not_ahead(before, now), _in_time(verdict, now))
            if after is not None and after is not before:
                found[after.key] = after
        stale = [key for key, one in found.items() if _is_to_be_saved(one, self._saved.get(key))]
        if not stale and not self._teller.is_due(found.values()):
            self._open = found
            return
        try:
            self._open = self._told(found, stale, now)
        except BaseException:
            self._teller.forget()
            raise

    def _told(self, found: dict[Key, Episode], stale: list[Key], now: int) -> dict[Key, Episode]:
        """Writes all changes of an interval in one transaction, and returns the open episodes. STALE has the
        keys of episodes whose changes are not in the ledger yet."""
        with self._ledger.writing() as connection:
            found |= {key: episode_rows.save(connection, found[key]) for key in stale}
            over = [one for one in found.values() if one.is_over]
            still = {key: one for key, one in found.items() if not one.is_over}
            told = {one.key: one for one in self._teller.begun(connection, list(still.values()), now)}
            still |= told
            self._teller.owners(connection, still.values(), now)
            groups = {one.told for one in still.values() if one.told is not None}
            self._teller.ended(connection, self._ledger, over, groups, now)
        fresh = {key: still[key] for key in (*stale, *told) if key in still}
        self._saved = {key: one for key, one in self._saved.items() if key in still} | fresh
        return still

    def perform(self, now: int) -> None:
        """Runs the commands of actions that are due. Raises StoreError."""
        if self._actions:
            self._actions.perform(now, self._end.is_set)

    def send(self, now: int, channel: Channel | None = None) -> int:
        """Tries to send the letters that are due and returns their number. If CHANNEL is given, only letters
        of this channel are sent. Raises StoreError."""
        return self._outbox.send_due(now, self._end.is_set, channel=channel)

    def forget(self, now: int) -> None:
        """Removes data that is older than the site's retention times. Raises StoreError."""
        kept = self._privacy
        with self._ledger.writing() as connection:
            episode_rows.forget(connection, now - round(kept.episodes_days * DAY))
            episode_rows.forget_suspects(connection, now - round(kept.suspects_days * DAY))
        self._outbox.forget(now - round(min(kept.suspects_days, kept.episodes_days) * DAY))
        self._audit.forget(now - round(kept.audit_days * DAY))

    def confirm(self, number: int, by: str, now: int) -> None:
        """Processes the confirmation of an action by the operator BY. Raises RequestError, StoreError."""
        with self._deciding:
            self._decider.confirm(number, f"operator {by}".strip(), self._open.values(), now)

    def decline(self, number: int, by: str, now: int) -> None:
        """Processes the refusal of an action by the operator BY. Raises RequestError, StoreError."""
        with self._deciding:
            self._decider.decline(number, f"operator {by}".strip(), now)

    def undo(self, number: int, by: str, now: int) -> None:
        """Makes `perform` undo an action because the operator BY requested it. Raises RequestError,
        StoreError."""
        with self._deciding:
            self._decider.undo(number, f"operator {by}".strip(), now)

    def actions(self, most: int = 100) -> list[Action]:
        """Returns the latest actions, the newest first. Raises StoreError."""
        return action_rows.newest(self._ledger, most)

    def asked(self) -> list[tuple[Action, Episode]]:
        """Returns the actions that wait for an operator's decision, with their episodes. Raises
        StoreError."""
        pairs = [
            (one, episode_rows.episode(self._ledger, one.episode))
            for one in action_rows.with_status(self._ledger, "asked")
        ]
        return [(action, episode) for action, episode in pairs if episode is not None]

    def episodes(self, since: int, most: int = 200) -> list[Episode]:
        """Returns the episodes that were not over at SINCE (ns since the epoch), the newest first. Raises
        StoreError."""
        return episode_rows.recent(self._ledger, since, most)

    def suspected(self, since: int) -> dict[str, int]:
        """Returns, for each job, the number of episodes in which it was a suspect and that were not over at
        SINCE (ns since the epoch). Raises StoreError."""
        return episode_rows.suspected(self._ledger, since)

    def episodes_between(self, begin: int, end: int) -> list[Episode]:
        """Returns the episodes that were open at any time from BEGIN to END (ns since the epoch). Raises
        StoreError."""
        open_ones = {one.number: one for one in self.open_episodes()}
        # Open episodes are saved to the ledger only at intervals, so the newer ones in memory are returned.
        return [open_ones.get(one.number, one) for one in episode_rows.between(self._ledger, begin, end)]

    def waiting(self) -> int:
        """Returns the number of letters that wait to be sent. Raises StoreError."""
        return self._outbox.waiting()

    def open_episodes(self) -> list[Episode]:
        """Returns the open episodes after the last interval."""
        return list(self._open.values())

    def counts(self) -> dict[str, int]:
        """Returns the numbers of letters sent and lost, by channel and reason. Raises StoreError."""
        return counts(self._ledger)

    @contextlib.contextmanager
    def running(self, tell: Tell) -> Iterator[None]:
        """Runs commands and sends letters in background threads while the context is open. TELL is called
        with a line for each new failure."""
        tasks: tuple[tuple[str, Callable[[int], object], float], ...] = (
            ("actions", self.perform, WORK_EVERY_S), ("forgetting", self.forget, FORGET_EVERY_S),
            # Each channel has its own thread, so that a mail server that hangs delays only mails.
            *((f"notices by {one}", partial(self.send, channel=one), WORK_EVERY_S) for one in CHANNELS),
        )  # fmt: skip
        threads = [threading.Thread(target=self._again, args=(*task, tell), daemon=True) for task in tasks]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._end.set()
            for thread in threads:
                # The wait is limited, because a mail server that does not respond must not prevent the
                # collector from ending.
                thread.join(ENDS_WITHIN_S)

    def _again(self, name: str, task: Callable[[int], object], every: float, tell: Tell) -> None:
        while not self._end.wait(every):
            trouble = ""
            try:
                task(time.time_ns())
            except IodockError as error:
                trouble = str(error)
            # Other exceptions are bugs. They are caught, because otherwise the thread would end and no more
            # notices would be sent or actions undone.
            except Exception as error:
                trouble = f"{name}: {type(error).__name__}: {error}"
            # Only new errors are printed, because a lasting error, such as a full disk, would fill the log.
            if not self._end.is_set() and trouble != self._trouble.get(name, ""):
                tell(f"error: {trouble}" if trouble else f"over: {self._trouble[name]}")
            self._trouble[name] = trouble

    def close(self) -> None:
        """Releases the folder for other processes."""
        self._ledger.close()


def _is_to_be_saved(episode: Episode, saved: Episode | None) -> bool:
    """Returns whether an episode must be saved now. Thousands of servers may be unwell for hours, so values
    that change with every verdict are saved only at intervals."""
    if saved is None or episode.is_over or episode.seen_ns - saved.seen_ns >= SAVE_EVERY_NS:
        return True
    jobs = [[suspect.job for suspect in one.suspects] for one in (episode, saved)]
    return (episode.state, episode.worst) != (saved.state, saved.worst) or jobs[0] != jobs[1]


def _in_time(verdict: Verdict, now: int) -> Verdict:
    """Limits a verdict's time to NOW. With a time in the future, all following verdicts would appear older
    than this one and be ignored."""
    return verdict if verdict.at_ns <= now else replace(verdict, at_ns=now)


def _not_ahead(episode: Episode | None, now: int) -> Episode | None:
    """Limits the time of an episode's last verdict to before NOW. It may be in the future if this machine's
    clock was set back."""
    return replace(episode, seen_ns=now - 1) if episode is not None and episode.seen_ns > now else episode


def _desk(rules: Intervention, run: Run) -> SchedulerDesk | None:
    """Returns the interface to the scheduler in the settings, or None if there is none. Raises RequestError
    if actions are enabled and there is no scheduler or it does not support the action."""
    if rules.scheduler is None:
        if rules.mode != "suggest":
            raise RequestError(f'[response] mode = "{rules.mode}" needs a scheduler', 'scheduler = "slurm"')
        return None
    desk = SchedulerDesk(SCHEDULERS[rules.scheduler], rules.prefix, rules.command_s, run)
    if rules.mode != "suggest":
        desk.way(rules.action)
    return desk
