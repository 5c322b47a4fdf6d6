"""Simulates a centre with a monitor that evaluates the store. After half an hour of ordinary load, a scenario
begins."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from iodock.centre.monitor.collector import Collector
from iodock.centre.watch.verdict import Verdict
from iodock.centre.watch.watching import Watching
from iodock.shared.settings import ServerStates
from iodock.simulation.centre import Centre
from iodock.simulation.history import write_history
from iodock.simulation.scenarios import named

SECOND = 1_000_000_000
LIMITS = ServerStates(scheduler="none", usual_hours=1.0)
CULPRITS = ("shared-dir", "wide-stripes")


class Played:
    """A simulated centre whose store the monitor evaluates after each reading."""

    def __init__(
        self, folder: Path, scenario: str, step_s: float = 10.0, jobs: int = 12, nodes: int | None = 252,
        jobid_name: str = "%j:%u:%H",
    ) -> None:  # fmt: skip
        """NODES: number of nodes of the job that causes the scenario, with the same total load; None: all of
        its nodes."""
        chosen = named(scenario)
        specials = tuple(
            replace(one, application=one.application.on_fewer_nodes(nodes) if nodes else one.application)
            for one in chosen.specials
        )
        self.chosen = replace(chosen, jobid_name=jobid_name, specials=specials)
        ordinary = replace(
            named("healthy"), servers=chosen.servers, targets_per_server=chosen.targets_per_server,
            jobid_name=jobid_name,
        )  # fmt: skip
        self.collector, self.step_s = Collector(folder), step_s
        self.centre = Centre(ordinary, seed=3, jobs=jobs)
        self.write(1800)
        self.watching = Watching(self.collector.store, limits=replace(LIMITS, sample_s=step_s))
        self.late_ns = int(step_s * SECOND) // 5
        """Time at which the last reading of a round has certainly arrived."""
        self.watching.look(self.now)

    @property
    def now(self) -> int:
        return self.centre.now_ns + self.late_ns

    def write(self, seconds: float, step_s: float | None = None) -> None:
        """Writes SECONDS of readings without evaluating them."""
        write_history(self.centre, self.collector.writer, seconds, step_s or self.step_s, lambda share: None)

    def turn(self, first_s: float = 30.0) -> None:
        self.centre.turn(self.chosen, first_s)

    def sample(self) -> Verdict:
        """Writes one more reading and returns the monitor's verdict about the metadata server."""
        self.write(self.step_s)
        return next(one for one in self.watching.look(self.now) if one.server == "mds01")

    def culprit(self) -> str:
        return next(str(job.number) for job in self.centre.jobs if job.application in CULPRITS)
