"""Creates verdicts by hand, and a responder that receives one in each interval."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fake_schedulers import FakeJob, FakeScheduler
from iodock.centre.watch.notices.outbox import Sender
from iodock.centre.watch.notices.recipients import Letter, Sufferers, of_nobody
from iodock.centre.watch.responder import Responder
from iodock.centre.watch.schedulers.desk import Run
from iodock.centre.watch.verdict import Evidence, State, Suspect, Verdict
from iodock.shared.response import Intervention, Notices, Privacy, Recipient
from iodock.shared.settings import Settings

SECOND = 1_000_000_000
START = 1_800_000_000 * SECOND
EVERY_S = 10
JOB = "4711"
ACTS = Intervention(mode="act", scheduler="slurm")
ASKS = Intervention(mode="ask", scheduler="slurm")
TOLD = Notices(
    portal="https://monitor.example:9847",
    to={
        "operators": Recipient("operators", "mail", "ops@example.org"),
        "list": Recipient("users", "mail", "users@example.org", "ja"),
        "owners": Recipient("owner", "mail", "{user}@example.org"),
    },
)


def suspect(job: str = JOB, **more: Any) -> Suspect:
    evidence = (Evidence("opens", 12e3, None, "1/s"), Evidence("creates", 9e3, None, "1/s"))
    return Suspect(job, **{"share": 0.9, "confidence": 0.95, "evidence": evidence, "owner": "alice", **more})


def verdict(at: int, state: State = "overload", samples: int = 6, **more: Any) -> Verdict:
    values: dict[str, Any] = {
        "file_system": "lfs", "server": "mds01", "kind": "metadata", "state": state,
        "since_ns": at - (samples - 1) * EVERY_S * SECOND, "at_ns": at, "confidence": 0.95,
        "samples": samples,
        "suspects": (suspect(),) if state in ("overload", "stall") else (), **more,
    }  # fmt: skip
    return Verdict(**values)


@dataclass
class Site:
    """A responder, its simulated scheduler, and the messages that it sent."""

    folder: Path
    rules: Intervention = ACTS
    notices: Notices = TOLD
    privacy: Privacy = field(default_factory=Privacy)
    scheduler: FakeScheduler = field(default_factory=lambda: FakeScheduler("slurm", {JOB: FakeJob()}))
    now: int = START
    run: Run | None = None
    """Used instead of the simulated scheduler."""
    send: Sender | None = None
    sufferers: Sufferers = of_nobody
    sent: list[Letter] = field(default_factory=list)
    samples: int = 0
    last: str = ""

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        settings = replace(Settings(), response=self.rules, notices=self.notices, privacy=self.privacy)
        self.responder = Responder(
            self.folder,
            settings,
            self.now,
            self.sufferers,
            self.run or self.scheduler.run,
            self.send or self.sent.append,
        )

    def restart(self) -> None:
        """Replaces the responder by a new one, as after a crash of the collector."""
        self.responder.close()
        self.start()

    def wait(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)
        self.scheduler.clock_s = self.now / SECOND

    def interval(self, state: State = "overload", works: bool = True, **more: Any) -> None:
        """Passes one more verdict to the responder. Counts successive samples with the same state."""
        self.wait(EVERY_S)
        self.samples = self.samples + 1 if state == self.last else 1
        self.last = state
        self.hear(verdict(self.now, state, **{"samples": self.samples, **more}), works=works)

    def hear(self, *verdicts: Verdict, works: bool = True) -> None:
        self.responder.respond(verdicts, self.now)
        if works:
            self.work()

    def work(self) -> None:
        self.responder.perform(self.now)
        self.responder.send(self.now)

    def intervals(self, count: int, state: State = "overload", **more: Any) -> None:
        for _ in range(count):
            self.interval(state, **more)

    def quiet(self) -> None:
        """Waits until the period after the collector's start, in which the responder does not act, is
        over."""
        self.wait(self.rules.quiet_after_start_s)

    @property
    def statuses(self) -> list[str]:
        """Returns the statuses of the actions, the newest first."""
        return [action.status for action in self.responder.actions()]

    @property
    def why(self) -> str:
        return self.responder.actions()[0].why

    @property
    def job(self) -> FakeJob:
        return self.scheduler.jobs[JOB]

    def log(self) -> list[dict[str, object]]:
        from iodock.centre.watch.audit import Audit

        return list(Audit(self.folder).lines())

    def logged(self, what: str) -> list[dict[str, object]]:
        return [one for one in self.log() if one["what"] == what]
