"""Interprets a CPU utilisation and names the next step for the user. This is part of step 1 of the method."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

from iodock.program.findings import IO_FINE, IO_HEAVY
from iodock.program.ratio.record import Record, core_count, system_share, utilisation
from iodock.shared.language import N_
from iodock.shared.settings import Ratio
from iodock.shared.units import number_text

Verdict = Literal["I/O-heavy", "between", "compute", "unknown"]
_ABOVE_ONE = 1.05
"""Clocks of different resolution may give slightly more than 1. A ratio above this means that there are more
cores than was stated."""
_SYSTEM_HIGH = 0.2
STEP_2 = N_("step 2: iodock volume -- CMD")
NOT_ONLY_IO = N_(
    "low CPU use does not prove I/O: a program that sleeps, waits for the network, a licence, a lock or a "
    "person, or shares its cores with others, has the same low use; step 2 shows the difference"
)


@dataclass(frozen=True, slots=True)
class Judged:
    """Holds a record, its ratio, and the conclusions from the ratio."""

    record: Record
    cores: float | None
    """Number of cores by which the time was divided; None if it is not known."""
    utilisation: float | None
    system: float | None
    """Share of system time. It is computed like the utilisation, which uses user time."""
    verdict: Verdict
    why: str
    next: str


def judge(record: Record, limits: Ratio, cores: float | None = None) -> Judged:
    """Interprets a record's ratio with a site's limits. If the record has no number of cores, CORES is used.
    If CORES is also None, one core is assumed."""
    share, system = utilisation(record, cores), system_share(record, cores)
    known = bool(record.cores) or cores is not None
    verdict, why, following = _verdict_and_reason(record, share, system, limits, known)
    return Judged(record, core_count(record, cores), share, system, verdict, why, following)


def _verdict_and_reason(
    record: Record, share: float | None, system: float | None, limits: Ratio, known: bool
) -> tuple[Verdict, str, str]:
    if share is None:
        return "unknown", *_why_unknown(record)
    if share > _ABOVE_ONE:
        why = f"user time is {number_text(share)} times the elapsed time: it ran on several cores"
        missing = "give the number of cores: --cores N" if not known else "check the number of cores"
        return "unknown", why, missing
    if record.io_share is not None:
        return _recorded_verdict_and_reason(record, share, record.io_share, limits)
    if share < limits.io_below:
        return "I/O-heavy", _why_low(system, limits), f"{STEP_2}, and compare bytes moved with file sizes"
    if share >= limits.compute_above:
        return (
            "compute",
            f"at least {number_text(limits.compute_above, 6)}: the CPU works",
            "I/O is not the problem here",
        )
    return (
        "between",
        f"from {number_text(limits.io_below, 6)} to {number_text(limits.compute_above, 6)}",
        f"{STEP_2}, if the run matters",
    )


def _recorded_verdict_and_reason(
    record: Record, share: float, io: float, limits: Ratio
) -> tuple[Verdict, str, str]:
    """Interprets a record that contains the share of time in I/O. This share is better evidence of I/O than
    an idle CPU."""
    why = f"recorded: {io:.1%} of the elapsed time was in calls on files"
    following = f"iodock diagnose {shlex.quote(record.at)}"
    if io >= IO_HEAVY:
        return "I/O-heavy", why, following
    if share >= limits.compute_above:
        return "compute", why, "I/O is not the problem here"
    if io < IO_FINE:
        return "between", f"{why}, the rest in other work", "I/O is not the problem here"
    return "between", why, following


def _why_unknown(record: Record) -> tuple[str, str]:
    again = "measure it: /usr/bin/time -v CMD"
    if record.real is None:
        return "no elapsed time", again
    if record.real < 0:
        return "the end lies before the start", again
    if record.real == 0:
        return "elapsed time is zero", "none: too short to matter, or it never ran"
    if record.user is None and record.both is None:
        return "no CPU time was counted", again
    return "the source has 0 cores, or an impossible number", "give the number of cores: --cores N"


def _why_low(system: float | None, limits: Ratio) -> str:
    low = f"below {number_text(limits.io_below, 6)}"
    if system is not None and system >= _SYSTEM_HIGH:
        return f"{low}; the kernel used {system:.0%} of the time for cache copies, page faults or calls"
    return low
