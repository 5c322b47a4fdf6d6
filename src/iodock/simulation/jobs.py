"""Defines jobs and kinds of programs. A kind of program is declared as phases, which have rates of operations
per node."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from iodock.simulation.counters import Rate

LATENCY_US = {
    "open": 310, "close": 90, "mknod": 420, "unlink": 380, "mkdir": 450, "rmdir": 400, "getattr": 60,
    "setattr": 130, "statfs": 40, "rename": 500, "samedir_rename": 480, "crossdir_rename": 620,
    "getxattr": 45, "setxattr": 150, "sync": 2500, "link": 350, "create": 70, "destroy": 80, "punch": 200,
    "read": 1400, "write": 900,
}  # fmt: skip
"""Duration of each operation on a healthy server, microseconds."""
KIB, MIB = 1024, 1024 * 1024
Span = tuple[float, float]
"""Smallest and largest value."""


@dataclass(frozen=True)
class Phase:
    """Activity of each node of a job during one phase."""

    name: str
    seconds: Span
    metadata: dict[str, float] = field(default_factory=dict)
    """Rate of each operation on the metadata server, per second."""
    objects: dict[str, float] = field(default_factory=dict)
    """Rate of each operation without bytes on the object servers, per second."""
    read: tuple[float, int] | None = None
    """Number of reads per second, and bytes of each."""
    write: tuple[float, int] | None = None
    is_exact: bool = False
    """Whether the rates are exactly these, without variation."""

    def times(self, factor: float) -> Phase:
        """Returns the phase with all rates multiplied by a factor."""
        read, write = ((one[0] * factor, one[1]) if one else None for one in (self.read, self.write))
        metadata, objects = (
            {name: per_s * factor for name, per_s in rates.items()} for rates in (self.metadata, self.objects)
        )
        return replace(self, metadata=metadata, objects=objects, read=read, write=write)


@dataclass(frozen=True)
class Application:
    name: str
    once: tuple[Phase, ...]
    """Phases that are executed first."""
    cycle: tuple[Phase, ...]
    """Phases that are repeated until the job ends."""
    nodes: tuple[int, int] = (1, 8)
    stripes: tuple[int, int] = (1, 4)
    """Number of object targets that the program uses."""
    seconds: Span = (300, 14_400)

    def on_fewer_nodes(self, most: int) -> Application:
        """Returns a program that does the same work on at most this number of nodes, with more work for each
        node."""
        if self.nodes[1] <= most:
            return self
        times = self.nodes[1] / most
        once, cycle = (tuple(phase.times(times) for phase in phases) for phases in (self.once, self.cycle))
        return replace(self, once=once, cycle=cycle, nodes=(min(self.nodes[0], most), most))


@dataclass(frozen=True)
class Job:
    """A job. Without a number, it is activity outside of jobs. Times are in ns since the epoch."""

    number: int | None
    user: str
    uid: int
    name: str
    application: str
    nodes: tuple[str, ...]
    start_ns: int
    end_ns: int | None
    """End of the job; None: it runs as long as the centre."""

    def ids(self, jobid_name: str) -> tuple[str, ...]:
        """Returns its ids on servers, by Lustre's `jobid_name`: %j job, %u user, %H host's short name, %e
        program. Without a job, a bare %j becomes program and user, as with procname_uid."""
        if self.number is None and jobid_name == "%j":
            jobid_name = "%e.%u"
        text = jobid_name.replace("%j", "" if self.number is None else str(self.number))
        text = text.replace("%u", str(self.uid)).replace("%e", self.name)
        if "%H" not in text:
            return (text,)
        return tuple(text.replace("%H", node) for node in self.nodes)


def metadata_rates(phase: Phase, nodes: float, factor: float) -> list[Rate]:
    """Returns the rates of one id that does the work of a number of nodes."""
    return [
        Rate.per_second(operation, per_s * nodes * factor, _latency(operation, factor))
        for operation, per_s in phase.metadata.items()
    ]


def object_rates(phase: Phase, nodes: float, factor: float) -> list[Rate]:
    """Returns the rates of one id on one target, for the work of a number of nodes there. Bytes have a second
    counter for time, as since Lustre 2.12.8."""
    rates = [
        Rate.per_second(operation, per_s * nodes * factor, _latency(operation, factor))
        for operation, per_s in phase.objects.items()
    ]
    for operation, transfer in (("read", phase.read), ("write", phase.write)):
        if transfer is not None:
            per_s, size_bytes = transfer
            counted = Rate.per_second(f"{operation}_bytes", per_s * nodes * factor, size_bytes)
            time_us = _latency(operation, factor) * max(64 * KIB, size_bytes) // MIB + 20
            rates += [counted, Rate(operation, counted.period_ns, time_us)]
    return rates


def _latency(operation: str, factor: float) -> int:
    return max(1, int(LATENCY_US[operation] * (0.8 + 0.2 * factor)))
