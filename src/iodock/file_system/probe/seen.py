"""Compares what a site's probes measured while a program ran to what they usually measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from statistics import median

from iodock.file_system.probe.episodes import Episode, Sort, episodes
from iodock.file_system.probe.history import Watch, history
from iodock.file_system.probe.judge import DAY_NS
from iodock.file_system.probe.remarks import moment
from iodock.file_system.probe.store import ProbeStore
from iodock.shared.errors import StoreError
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar
from iodock.shared.quantile import quantile

USUAL_DAYS = 7
"""Rounds in this number of days before the run define the usual duration."""
SLOWER = 1.5
"""A duration counts as slow if it exceeds this multiple of the usual one, and its 90 % quantile."""
LEAST_USUAL = 20
"""This number of rounds is needed to know the usual duration."""
_NONE = N_("{mount}: no probe ran while the program did.")
_USUAL = N_(
    "{mount}: while the program ran, probe times were normal: {rounds} rounds of {during_ns} each "
    "(usually {usual_ns})."
)
_SLOWER = N_(
    "{mount}: while the program ran, probes found it slower than usual: {rounds} rounds of {during_ns} "
    "each (usually {usual_ns}). The costs above are not only the program's, or the program itself "
    "slowed it down."
)
_UNKNOWN = N_("{mount}: while the program ran, probes found no problem; the usual times are not known yet.")
_NO_ANSWER = N_(
    "{mount}: while the program ran, it did not answer a probe: {operations}, from {when} on, for at least "
    "{length_s}."
)
_FAILED = N_("{mount}: while the program ran, a probe failed: {operation} with {error}, at {when}.")
_SLOW = N_(
    "{mount}: while the program ran, a probe met an outlier: {operation} took {span_ns} at {when} "
    "(usually {usual_ns}); further ones: {more}."
)
_BROKEN = N_("{mount}: the results of the probes can't be read: {error}.")


def during(stores: Mapping[str, str], since_ns: int, until_ns: int) -> Iterator[Message]:
    """Yields sentences about each mount point. STORES contains the folder of the probe store for each mount
    point. If a store can't be read, a sentence says so, and the other stores are still evaluated."""
    for mount, folder in sorted(stores.items()):
        try:
            found = history(ProbeStore.open(folder), since_ns - USUAL_DAYS * DAY_NS, until_ns + DAY_NS)
        except StoreError as error:
            yield Message(_BROKEN, {"mount": mount, "error": str(error)})
            continue
        # A command and a round of calls have different durations, so they are not mixed. Commands are used
        # only if no calls were probed.
        watches = [one for one in found.watches if not one.is_command] or list(found.watches)
        said = list(chain.from_iterable(_said(mount, one, since_ns, until_ns) for one in watches))
        yield from said or [Message(_NONE, {"mount": mount})]


def _said(mount: str, watch: Watch, since: int, until: int) -> Iterator[Message]:
    # The period of the program is extended by one interval on both sides. Otherwise, a program that ran
    # between two rounds would have no results.
    margin = int(watch.every_s * 1e9)
    within = [one for one in episodes(watch) if one.end_ts >= since and one.start_ts <= until]
    yield from _troubles(mount, within)
    spans = watch.totals.between(since - margin, until + margin)
    before = sorted(watch.totals.between(since - USUAL_DAYS * DAY_NS, since - margin))
    if not spans:
        return
    during_ns = median(spans)
    values: dict[str, Scalar] = {"mount": mount, "rounds": len(spans), "during_ns": during_ns}
    if len(before) < LEAST_USUAL:
        if not within:
            yield Message(_UNKNOWN, values)
        return
    usual_ns = quantile(before, 0.5)
    values["usual_ns"] = usual_ns
    if during_ns > max(SLOWER * usual_ns, quantile(before, 0.9)):
        yield Message(_SLOWER, values)
    elif not within:
        yield Message(_USUAL, values)


def _troubles(mount: str, within: list[Episode]) -> Iterator[Message]:
    """Describes all outages and errors. Of the slow operations, only the slowest one is described."""
    slow = [one for one in within if one.sort is Sort.SLOW]
    for one in within:
        worst = one.worst
        values: dict[str, Scalar] = {"mount": mount, "when": moment(one.start_ts)}
        if one.sort is Sort.FAILED:
            yield Message(_FAILED, {**values, "operation": worst.operation.value, "error": worst.detail})
        elif one.sort is Sort.UNANSWERED:
            names = ", ".join(operation.value for operation in one.operations)
            length = (one.end_ts - one.start_ts) / 1e9
            yield Message(_NO_ANSWER, {**values, "operations": names, "length_s": length})
    if slow:
        worst = max((one.worst for one in slow), key=lambda one: one.ns or 0)
        values = {"mount": mount, "when": moment(worst.ts), "more": len(slow) - 1}
        spans = {"span_ns": worst.ns, "usual_ns": worst.usual_ns}
        yield Message(_SLOW, {**values, **spans, "operation": worst.operation.value})
