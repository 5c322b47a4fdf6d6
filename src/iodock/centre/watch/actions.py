"""Performs and undoes actions on jobs. Before each command runs, it is recorded in the audit log and the
ledger. Whether a command took effect is determined by querying the scheduler, also if the collector crashed
in between."""

from __future__ import annotations

from collections.abc import Callable

from iodock.centre.watch import action_rows as rows
from iodock.centre.watch.acting import SECOND, is_protected_job
from iodock.centre.watch.action_rows import Action, Status
from iodock.centre.watch.audit import Audit
from iodock.centre.watch.ledger import Ledger
from iodock.centre.watch.schedulers.base import JobFacts, JobIdRefused, SchedulerError
from iodock.centre.watch.schedulers.desk import SchedulerDesk
from iodock.shared.response import Intervention

MOST_TRIES = 3
"""Number of queries to a scheduler that does not respond before an action is dropped."""
WANTED_FOR_S = 300
"""An action that has not begun after this time is dropped, s."""
RETRY_S, SLOWLY_S = 5, 60
NO_EFFECT_S, SETTLES_S = 30, 180
"""Times until a command must have had an effect, s: until the job's state changes at all, and until it has
the new state. A requeued job must end first."""
_CLOCK_S = 2
"""Tolerance for times of schedulers: they are in whole seconds, and clocks differ slightly."""


class Actions:
    """Performs the actions of one collector. Only one thread may call its methods at a time."""

    def __init__(self, ledger: Ledger, audit: Audit, desk: SchedulerDesk, rules: Intervention) -> None:
        self._ledger, self._audit, self._desk, self._rules = ledger, audit, desk, rules

    def recover(self, now: int) -> None:
        """Restores a consistent state when the collector starts. Drops actions that were decided but not
        begun. Makes `perform` continue actions that were begun. Raises StoreError."""
        for action in rows.with_status(self._ledger, "wanted"):
            self._end(action, "lapsed", "restart", now)
        with self._ledger.writing() as connection:
            connection.execute("UPDATE actions SET next_ns = 0 WHERE status IN ('doing', 'undo', 'undoing')")

    def perform(self, now: int, is_over: Callable[[], bool] = lambda: False) -> None:
        """Performs the next step of each action that is due, until IS_OVER returns true. Raises StoreError;
        the steps that were completed before are then recorded."""
        steps = {
            "wanted": self._begin,
            "doing": self._settle,
            "undo": self._begin_undo,
            "undoing": self._settle_undo,
        }
        for action in rows.due(self._ledger, now):
            if is_over():
                return
            try:
                steps[action.status](action, now)
            except JobIdRefused:
                # Job ids were checked before they were written to the ledger, so somebody must have changed
                # this one in the file.
                self._end(action, "left", "job-id", now)
            except SchedulerError as error:
                self._failed_to_ask(action, now, str(error))

    def _begin(self, action: Action, now: int) -> None:
        if now - action.made_ns > WANTED_FOR_S * SECOND:
            return self._end(action, "lapsed", "no-answer", now)
        facts = self._desk.facts(action.job)
        if reason := self._refused(action, facts):
            return self._end(action, "failed", reason, now)
        assert facts
        self._note(action, "about-to-act", now, owner=facts.owner)
        with self._ledger.writing() as connection:
            if not rows.change(
                connection, action.number, "wanted", status="doing", did_ns=now, owner=facts.owner, tries=0,
                next_ns=now + RETRY_S * SECOND,
            ):  # fmt: skip
                return None
        said = self._commanded(action, undo=False)
        if said:
            self._note(action, "command-failed", now, said=said)
        return self._settle_now(action.number, now)

    def _refused(self, action: Action, facts: JobFacts | None) -> str:
        """Returns the reason why the action is not allowed, or an empty text. The check uses only information
        from the scheduler, such as the job's owner, because that of servers may be forged."""
        if facts is None or facts.state == "ended":
            return "job-over"
        tests = (
            ("owner-unknown", not facts.owner),
            ("protected-user", facts.owner in self._rules.protected_users),
            ("protected-job", is_protected_job(action.job, self._rules)),
            ("job-state", facts.state != self._desk.way(action.kind).before),
            ("no-mark", facts.mark is None),
        )
        return next((name for name, is_so in tests if is_so), "")

    def _settle_now(self, number: int, now: int) -> None:
        action = rows.action(self._ledger, number)
        if action and action.status == "doing":
            self._settle(action, now)

    def _settle(self, action: Action, now: int) -> None:
        """Checks whether the action took effect, after its command ran or after the collector ended at about
        the time of the command."""
        way, facts = self._desk.way(action.kind), self._desk.facts(action.job)
        did, since = action.did_ns or now, (now - (action.did_ns or now)) / SECOND
        if facts is None or facts.state == "ended":
            return self._end(action, "left", "job-over", now)
        if facts.state == way.after and facts.mark is not None:
            if facts.changed_s is not None and facts.changed_s < did / SECOND - _CLOCK_S:
                return self._end(action, "left", "changed-since", now)
            return self._end(action, "done", "", now, mark=facts.mark)
        if facts.state == way.before and since > NO_EFFECT_S:
            return self._end(action, "failed", "no-effect", now)
        if since > SETTLES_S:
            return self._end(action, "left", "changed-since", now)
        return self._again(action, now, RETRY_S)

    def _begin_undo(self, action: Action, now: int) -> None:
        """Begins to undo an action if the job still is in the state in which the action left it. If anybody
        else has changed the job, it is left as it is."""
        way, facts = self._desk.way(action.kind), self._desk.facts(action.job)
        if facts is None or facts.state == "ended":
            return self._end(action, "left", "job-over", now)
        if facts.state != way.after or action.mark is None or facts.mark != action.mark:
            return self._end(action, "left", "changed-since", now)
        self._note(action, "about-to-undo", now)
        with self._ledger.writing() as connection:
            if not rows.change(connection, action.number, "undo", status="undoing", next_ns=now):
                return None
        said = self._commanded(action, undo=True)
        if said:
            self._note(action, "command-failed", now, said=said)
        after = rows.action(self._ledger, action.number)
        return self._settle_undo(after, now) if after else None

    def _settle_undo(self, action: Action, now: int) -> None:
        facts = self._desk.facts(action.job)
        is_ours = facts is not None and facts.state == self._desk.way(action.kind).after
        if facts is not None and is_ours and facts.mark == action.mark:
            wait = SLOWLY_S if action.tries else RETRY_S
            with self._ledger.writing() as connection:
                rows.change(
                    connection, action.number, "undoing", status="undo", tries=action.tries + 1,
                    next_ns=now + wait * SECOND,
                )  # fmt: skip
            return
        self._end(action, "undone", "", now)

    def _commanded(self, action: Action, undo: bool) -> str:
        """Runs the command of an action, or the one that undoes it. Returns the scheduler's error message,
        which is empty if there is none."""
        try:
            (self._desk.undo if undo else self._desk.do)(action.kind, action.job)
        except SchedulerError as error:
            return str(error)
        return ""

    def _failed_to_ask(self, action: Action, now: int, said: str) -> None:
        if action.tries == 0:
            self._note(action, "scheduler-failed", now, said=said)
        if action.status == "wanted" and action.tries + 1 >= MOST_TRIES:
            return self._end(action, "failed", "no-answer", now)
        # Once the command of an action may have run, the scheduler is queried until it responds, because the
        # job may be suspended and must be resumed later.
        return self._again(action, now, RETRY_S if action.tries < MOST_TRIES else SLOWLY_S)

    def _again(self, action: Action, now: int, wait_s: int) -> None:
        # Only these two columns are written, because another thread may have changed the action's status
        # since it was read.
        with self._ledger.writing() as connection:
            connection.execute(
                "UPDATE actions SET tries = tries + 1, next_ns = ? WHERE number = ?",
                (now + wait_s * SECOND, action.number),
            )

    def _end(self, action: Action, status: Status, why: str, now: int, mark: str | None = None) -> None:
        """Records the end of an action's current step with a new status, and resets the number of tries."""
        self._note(action, status, now, why=why)
        with self._ledger.writing() as connection:
            rows.change(
                connection, action.number, action.status, status=status, why=why, tries=0, next_ns=now,
                mark=mark or action.mark,
            )  # fmt: skip

    def _note(self, action: Action, what: str, now: int, **facts: object) -> None:
        told = {name: one for name, one in {"owner": action.owner, **facts}.items() if one}
        self._audit.write(
            now, what, action=action.number, episode=action.episode, job=action.job, kind=action.kind,
            by=action.by, scheduler=self._desk.scheduler.name, **told,
        )  # fmt: skip
