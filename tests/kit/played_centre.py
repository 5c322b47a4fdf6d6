"""A simulated centre whose store is watched: after half an hour of ordinary load, a scenario happens."""

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
    """Watched after each reading."""

    def __init__(
        self, folder: Path, scenario: str, step_s: float = 10.0, jobs: int = 12, nodes: int | None = 252,
        jobid_name: str = "%j:%u:%H",
    ) -> None:  # fmt: skip
        """NODES: number of nodes of the responsible job, with the same total load; None: all of its nodes."""
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
        """This long, read in steps, without being watched."""
        write_history(self.centre, self.collector.writer, seconds, step_s or self.step_s, lambda share: None)

    def turn(self, first_s: float = 30.0) -> None:
        self.centre.turn(self.chosen, first_s)

    def sample(self) -> Verdict:
        """The metadata server's verdict after one more reading."""
        self.write(self.step_s)
        return next(one for one in self.watching.look(self.now) if one.server == "mds01")

    def culprit(self) -> str:
        return next(str(job.number) for job in self.centre.jobs if job.application in CULPRITS)
