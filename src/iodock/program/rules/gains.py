"""Estimates the gain of correcting a fault, in seconds of the run without a tracer, and derives the
finding's severity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from iodock.program.findings import Gain, Severity
from iodock.program.rules import tracing, work
from iodock.program.rules.base import Candidate, Pieces
from iodock.program.rules.facts import Facts
from iodock.shared.settings import SeverityLimits

MOST_SPREAD = 3.0
"""The upper value of a gain is limited to this multiple of the lower one."""
_LEAST_WORK = 0.5
"""At least this share of the work inside a piece is saved."""
_FLUSHING = 0.5
"""At most this share of the work between separate calls is saved, because the rest prepares the next call."""


def gain_of(candidate: Candidate, cost: float | None, facts: Facts) -> tuple[Gain | None, float]:
    """Returns the gain of the change, and how many seconds of it can be outside of calls. The gain is None
    if no change is needed, or if times are unknown."""
    going = _going(candidate, cost, facts)
    if candidate.gain is None or going is None:
        return None, 0.0
    calls, all_calls = going
    around = work.around(candidate, facts)
    could_go = around.inside + _between(candidate, calls, around)
    least, most = candidate.gain
    low = least * calls + _LEAST_WORK * around.inside
    high = min(1.0, most) * all_calls + could_go
    outside = could_go + (
        facts.wall_of(candidate.work_ns) or 0.0 if candidate.wall_seconds is None else all_calls
    )
    # If a tracer added an unknown amount, the gain is used for ranking, but without the run's length no share
    # is shown.
    of = None if facts.is_tracer_unknown else facts.alone_seconds
    return _narrowed(Gain(low, high, of)), outside


def _between(candidate: Candidate, calls: float, around: work.Work) -> float:
    """Returns the largest possible saving of time between pieces, in seconds. For opened files and listed
    folders, the library's work between two pieces is assumed to take at most as long as the calls and the
    library's work within a piece. Any further time between pieces is the program's own work."""
    if candidate.pieces is Pieces.CALLS:
        return _FLUSHING * around.between
    return min(around.between, calls + around.inside)


def _going(candidate: Candidate, cost: float | None, facts: Facts) -> tuple[float, float] | None:
    """Returns two times in seconds without a tracer: the calls at fault, and all calls that the change
    could save."""
    if candidate.wall_seconds is None:
        if candidate.time_ns is None:
            return None
        alone = facts.wall_of(_untraced_ns(candidate, facts))
        return None if alone is None else (alone, alone)
    share = 1.0
    if facts.wall_seconds and facts.alone_seconds is not None:
        share = facts.alone_seconds / facts.wall_seconds
    spent = share * (candidate.wall_seconds if cost is None else cost)
    most = spent if candidate.goes_seconds is None else share * candidate.goes_seconds
    return min(spent, most), most


def _untraced_ns(candidate: Candidate, facts: Facts) -> int:
    """Returns the time in ns of the calls at fault without a tracer. If they take hardly longer than a
    tracer's stop, their own time can't be measured and is estimated from their number."""
    time_ns, added = candidate.time_ns or 0, candidate.count * facts.within_ns
    if time_ns < 2 * added:
        return min(time_ns, candidate.count * tracing.UNTRACED_NS)
    return time_ns - added


def _narrowed(gain: Gain) -> Gain:
    """Returns a gain with the same middle value. Its upper limit is at most MOST_SPREAD times the lower
    one."""
    low, high = gain.low_seconds, gain.high_seconds
    if low <= 0 or high <= MOST_SPREAD * low:
        return gain
    middle = (low + high) / 2
    least = 2 * middle / (1 + MOST_SPREAD)
    return replace(gain, low_seconds=least, high_seconds=MOST_SPREAD * least)


def within(gains: Sequence[Gain | None], limit: float | None) -> list[Gain | None]:
    """Scales the gains so that the sum of their upper values does not exceed LIMIT. The uncertain parts,
    from lower to upper value, are reduced first. If even the sum of the lower values exceeds the limit,
    all gains are scaled by the same factor."""
    known = [one for one in gains if one is not None]
    low, high = (sum(max(0.0, end) for end in ends) for ends in _ends(known))
    if limit is None or high <= limit or not high:
        return list(gains)
    if low >= limit:
        return [one and _shrunk(one, 0.0, limit / low) for one in gains]
    return [one and _shrunk(one, (limit - low) / (high - low), 1.0) for one in gains]


def _ends(gains: Sequence[Gain]) -> tuple[list[float], list[float]]:
    return [one.low_seconds for one in gains], [one.high_seconds for one in gains]


def total(gains: Sequence[Gain | None]) -> Gain | None:
    """Returns the sum of the gains; None if no gain is known."""
    known = [one for one in gains if one is not None]
    low, high = (sum(ends) for ends in _ends(known))
    return Gain(low, high, known[0].of_seconds) if known else None


def _shrunk(gain: Gain, part: float, share: float) -> Gain:
    """Multiplies the distance from the lower to the upper value by PART, and then both values by SHARE."""
    low = max(0.0, gain.low_seconds)
    high = low + part * (gain.high_seconds - low)
    return replace(gain, low_seconds=min(gain.low_seconds, low) * share, high_seconds=high * share)


def severity_of(candidate: Candidate, gain: Gain | None, cost: float | None, facts: Facts) -> Severity:
    """Determines the severity from the share of the run that the change saves. If times are unknown, it
    uses the share of the calls that are at fault."""
    limits, alone = facts.settings.severity, facts.alone_seconds
    if cost is None or not alone:
        found = _by_calls(candidate, facts)
    else:
        saved = cost if gain is None else gain.middle_seconds
        found = _by_share(saved / alone, limits)
        if found is Severity.LOW and cost < limits.least_seconds:
            found = Severity.NOTE
    return found if candidate.at_most.at_least(found) else candidate.at_most


def severity_at_most(seconds: float | None, at_most: Severity, facts: Facts) -> Severity:
    """Returns AT_MOST, or the severity that a wall time of SECONDS would have if that is lower."""
    if seconds is None or not facts.alone_seconds:
        return at_most
    found = _by_share(seconds / facts.alone_seconds, facts.settings.severity)
    return found if at_most.at_least(found) else at_most


def _by_share(share: float, limits: SeverityLimits) -> Severity:
    if share >= limits.high:
        return Severity.HIGH
    if share >= limits.medium:
        return Severity.MEDIUM
    return Severity.LOW if share >= limits.low else Severity.NOTE


def _by_calls(candidate: Candidate, facts: Facts) -> Severity:
    """Determines the severity from the share of the calls that are at fault, because there are no
    durations. It is never high."""
    share = candidate.count / facts.calls if facts.calls else 0.0
    if share >= 0.3:
        return Severity.MEDIUM
    return Severity.LOW if share >= 0.05 else Severity.NOTE
