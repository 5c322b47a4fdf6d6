"""Finds jobs that may have caused an overload or a stall. It compares a job's requests just before and during
the episode with its requests in the 15 minutes before. The method follows sections 2 and 3 of the report K
2017, which docs/explanation/server-states.md cites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from iodock.centre.watch.observation import SECOND, Asked, Jobs
from iodock.centre.watch.verdict import Evidence, Suspect, Verdict

_BEFORE_S = 180.0
_REFERENCE = (60, 900.0)
_DURING = (30, 300.0)
"""Length of the examined period in samples and in seconds, at most."""
_SAMPLES = 3
"""Number of samples that are needed: one of them may be partial, and two whole ones are before and during the
trouble."""
_LEAST_SHARE = 0.1
"""A suspect's requests must be at least this share of all requests."""
_LEAST_GROWTH = 0.2
"""A suspect's growth must be at least this share of the total growth."""
_LEAST_MORE = 0.5
"""A suspect's growth must be at least this share of the earlier requests of all jobs, because a smaller one
may be chance."""
_MOST = 5
_LONG_BEFORE_S = (1800.0, 3600.0, 10_800.0, 21_600.0)
"""If the quarter of an hour before shows no suspect, requests are compared with these earlier times: a job
that increases slowly grows little in every short period."""
_LEAST_OF_ALL = 0.5
_LATELY_S, _LEAST_LATELY = 10.0, 0.1
"""A suspect must still send requests this long before the trouble, at no less than this share of its rate."""
_UNSURE, _HARDLY_SURE = 0.6, 0.3
"""Largest confidence for a job that grew slowly, or if nothing earlier is known; and if only nodes report,
which count all file systems."""

Measure = Callable[[Asked], float]


def _objects(one: Asked) -> float:
    return one.object_creates or 0.0


def _made_or_opened(one: Asked) -> float:
    return one.opens + one.creates


def _on_nodes(one: Asked) -> float:
    return one.node_bytes


_MEASURES: Mapping[tuple[str, str], tuple[Measure, ...]] = {
    ("metadata", "overload"): (lambda one: one.metadata,),
    ("metadata", "stall"): (_objects, _made_or_opened),
    ("client", "overload"): (lambda one: one.metadata,),
    ("client", "stall"): (_made_or_opened,),
    ("object", "overload"): (lambda one: one.moved_bytes, _objects, lambda one: one.requests),
    ("object", "stall"): (_objects, lambda one: one.moved_bytes, lambda one: one.requests),
}
"""Quantities to compare, by kind of server and state. The first one in which a job stands out is used."""
_TOLD = {
    "metadata": "metadata", "opens": "opens", "creates": "creates", "object_creates": "object-creates",
    "moved_bytes": "moved", "requests": "requests", "node_bytes": "node-bytes",
}  # fmt: skip


@dataclass(frozen=True)
class _Window:
    """The requests of each job in a period that begins before the trouble, in a reference period before, and
    just before the trouble."""

    seconds: float
    reference_s: float
    during: Mapping[str, Asked]
    before: Mapping[str, Asked]
    lately: Mapping[str, Asked]
    lately_s: float

    def went_on(self, job: str, measure: Measure, rate: float) -> bool:
        """Returns whether a job still sent requests just before and during the trouble. A job whose load
        ended earlier did not cause the trouble."""
        one = self.lately.get(job)
        return one is not None and measure(one) / self.lately_s >= _LEAST_LATELY * rate

    def rates(self, measure: Measure) -> tuple[dict[str, float], dict[str, float]]:
        return (
            {job: measure(one) / self.seconds for job, one in self.during.items()},
            {job: measure(one) / self.reference_s for job, one in self.before.items()},
        )


def suspects(
    verdict: Verdict, jobs: Jobs, step_s: float, clock_ns: int = 0, known_ns: int = 0
) -> tuple[Suspect, ...]:
    """Returns the suspects, the most likely first. The result is empty if no job stands out. STEP_S is the
    length of a sample in s. CLOCK_NS is the number of ns by which the server's clock is ahead. KNOWN_NS is
    the time of the earliest data by the server's clock."""
    measures = _MEASURES.get((verdict.kind, verdict.state), ())
    if not measures:
        return ()
    windows = _windows(verdict, jobs, step_s, clock_ns, known_ns)
    for measure in (*measures, _on_nodes):
        found = max((_standing_out(window, measure) for window in windows), key=lambda one: one[0])
        if found[1]:
            return _at_most(_HARDLY_SURE, found[1]) if measure is _on_nodes else found[1]
    if verdict.state != "overload":
        return ()
    return _grown_slowly(verdict, jobs, windows[0], measures[0], clock_ns)


def _grown_slowly(
    verdict: Verdict, jobs: Jobs, latest: _Window, measure: Measure, clock_ns: int
) -> tuple[Suspect, ...]:
    """Finds a job that sends at least half of all requests and sent far fewer 30 minutes to 6 hours ago."""
    length = int(_REFERENCE[1] * SECOND)
    for long_s in _LONG_BEFORE_S:
        end = verdict.since_ns + clock_ns - int(long_s * SECOND)
        before = {one.job: one for one in jobs.asked(verdict.server, end - length, end, False)}
        if before:
            window = replace(latest, before=before, reference_s=_REFERENCE[1])
            found = tuple(one for one in _standing_out(window, measure)[1] if one.share >= _LEAST_OF_ALL)
            if found:
                return _at_most(_UNSURE, found)
    return ()


def _at_most(confidence: float, found: tuple[Suspect, ...]) -> tuple[Suspect, ...]:
    return tuple(replace(one, confidence=min(one.confidence, confidence)) for one in found)


def _windows(verdict: Verdict, jobs: Jobs, step_s: float, clock_ns: int, known_ns: int) -> list[_Window]:
    """Returns periods of different lengths, which begin three samples to three minutes before the trouble.
    Several are tried, because a job may cause a stall within seconds or within minutes."""
    since, now = verdict.since_ns + clock_ns, verdict.at_ns + clock_ns
    # During a stall the server handles and counts hardly any requests, so only the first sample of the stall
    # is used.
    lasts_s = step_s if verdict.state == "stall" else _length(_DURING, step_s)
    reference_s = _length(_REFERENCE, step_s)
    end = min(now, since + int(lasts_s * SECOND))
    with_objects = verdict.kind == "metadata" and verdict.state == "stall"

    def asked(begin: int, end: int) -> dict[str, Asked]:
        return {one.job: one for one in jobs.asked(verdict.server, begin, end, with_objects)}

    windows: list[_Window] = []
    least_s = _SAMPLES * step_s
    # All periods contain the requests since the beginning of the trouble, so these are queried only once.
    meanwhile = asked(since, end) if end > since else {}
    lately_s = max(least_s, _LATELY_S)
    lately = _together(asked(since - int(lately_s * SECOND), since), meanwhile)
    lately_s += max(0.0, (end - since) / SECOND) if end > since else 0.0
    for before_s in sorted({least_s, _length((18, _BEFORE_S), step_s), max(_BEFORE_S, least_s)}):
        begin = since - int(before_s * SECOND)
        # If the data began only recently, the reference period is shortened to the time with data.
        compared_s = min(reference_s, (begin - known_ns) / SECOND)
        is_known = compared_s >= step_s
        before = asked(begin - int(compared_s * SECOND), begin) if is_known else {}
        # If there is no data of a reference period, only the shortest period is used, because it shows best
        # which job sends many requests now.
        if before or not windows:
            during = _together(asked(begin, since), meanwhile)
            seconds = max((end - begin) / SECOND, 1e-3)
            windows.append(_Window(seconds, max(compared_s, 1e-3), during, before, lately, lately_s))
    return windows


def _together(first: dict[str, Asked], second: dict[str, Asked]) -> dict[str, Asked]:
    found = dict(first)
    for job, more in second.items():
        one = found.get(job)
        found[job] = more if one is None else _sum(one, more)
    return found


def _sum(one: Asked, more: Asked) -> Asked:
    objects = [each.object_creates for each in (one, more) if each.object_creates is not None]
    return Asked(
        one.job, one.metadata + more.metadata, one.opens + more.opens, one.creates + more.creates,
        sum(objects) if objects else None, one.moved_bytes + more.moved_bytes, one.requests + more.requests,
        one.node_bytes + more.node_bytes,
    )  # fmt: skip


def _length(most: tuple[int, float], step_s: float) -> float:
    samples, seconds = most
    return max(min(samples * step_s, seconds), _SAMPLES * step_s)


def _standing_out(window: _Window, measure: Measure) -> tuple[float, tuple[Suspect, ...]]:
    """Returns the jobs that stand out, and before them the growth of the first one relative to the earlier
    requests of all jobs."""
    during, before = window.rates(measure)
    total, usual = sum(during.values()), sum(before.values())
    grown = {job: max(0.0, rate - before.get(job, 0.0)) for job, rate in during.items()}
    growth = sum(grown.values())
    if growth <= 0:
        return 0.0, ()
    standing = [
        job
        for job in sorted(grown, key=lambda job: (-grown[job], job))[:_MOST]
        if grown[job] >= _LEAST_GROWTH * growth
        and window.went_on(job, measure, during[job])
        and during[job] >= _LEAST_SHARE * total
        and grown[job] >= _LEAST_MORE * usual
    ]
    found = [_suspect(job, window, during[job] / total, grown[job] / growth) for job in standing]
    first = grown[standing[0]] / max(usual, 1e-9) if standing else 0.0
    return first, tuple(found)


def _suspect(job: str, window: _Window, share: float, of_growth: float) -> Suspect:
    now, before = window.during[job], window.before.get(job)
    evidence = []
    for name, what in _TOLD.items():
        value = getattr(now, name)
        if value:
            was = (getattr(before, name) or 0.0) / window.reference_s if before else 0.0
            unit = "bytes/s" if what in ("moved", "node-bytes") else "1/s"
            evidence.append(Evidence(what, value / window.seconds, was, unit))
    confidence = round(min(0.95 if window.before else _UNSURE, 0.4 + 0.55 * of_growth), 2)
    return Suspect(job, round(share, 4), confidence, tuple(evidence))
