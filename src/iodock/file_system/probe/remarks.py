"""Makes sentences about a watch. The present state comes first, then episodes, daily patterns, changes and
marks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby

from iodock.file_system.probe.daily import Daily
from iodock.file_system.probe.episodes import Episode, Sort
from iodock.file_system.probe.history import History
from iodock.file_system.probe.judge import MarkEffect, Sight, State
from iodock.file_system.probe.levels import Change
from iodock.file_system.probe.operations import Operation
from iodock.file_system.probe.records import Kind
from iodock.shared.language import N_
from iodock.shared.message import Message, Scalar

MOST_EPISODES = 10
STATES = {
    State.OK: N_("ok"),
    State.SLOW: N_("slow"),
    State.FAILING: N_("failing"),
    State.NO_ANSWER: N_("no answer"),
    State.STALE: N_("not probed"),
}
_NOW = {
    State.OK: N_(
        "At {when} all operations were answered; together they took {recent_ns} (usually {usual_ns})."
    ),
    State.SLOW: N_("At {when} the file system is slow: {recent_ns} (usually {usual_ns})."),
    State.FAILING: N_("At {when} operations on the file system fail: {operations}."),
    State.NO_ANSWER: N_("At {when} the file system does not answer: {operations}."),
    State.STALE: N_("No data since {when}: no probe has run."),
}
_NO_ANSWER = N_("{when}: no answer to {operations}; this lasted at least {length_s}.")
_FAILED = N_("{when}: {operation} failed with {error}; outliers at that time: {count}.")
_SLOW = N_("{when}: {operation} took {span_ns} (usually {usual_ns}); outliers at that time: {count}.")
_EPISODES = {Sort.SLOW: _SLOW, Sort.FAILED: _FAILED, Sort.UNANSWERED: _NO_ANSWER}
_MORE = N_("Other times at which an operation was slow, failed or had no answer: {count}.")
_DAILY = N_(
    "{operation} is slower every day from {start} to {end} o'clock: {busy_ns}, compared with {quiet_ns} "
    "at other hours."
)
_DAILY_ALL = N_(
    "Slower every day from {start} to {end} o'clock: {operations}; the largest difference is that of "
    "{operation} with {busy_ns}, compared with {quiet_ns} at other hours."
)
_SLOWER = N_("{operation} became slower at {when}: {before_ns} before, {after_ns} since then.")
_FASTER = N_("{operation} became faster at {when}: {before_ns} before, {after_ns} since then.")
_RISING = N_("{operation} gradually becomes slower: {first_ns} on {since}, {last_ns} on {until}.")
_FALLING = N_("{operation} gradually becomes faster: {first_ns} on {since}, {last_ns} on {until}.")
_MARK = N_("'{mark}' ({when}): {operation} took {before_ns} before and takes {after_ns} after it.")
_MARK_SAME = N_("'{mark}' ({when}) made no significant difference in: {operations}.")
DAMAGED = N_("Damaged parts of the store that were left out: {count}.")
UNKNOWN = N_("Records that only a newer iodock can read: {count}.")
ORPHANS = N_("Rounds whose target is unknown, because its record is damaged: {count}.")


def remarks(sight: Sight) -> tuple[Message, ...]:
    """Returns all remarks on a watch, as sentences for translation."""
    return (
        now_remark(sight),
        *_episodes(sight.episodes),
        *_dailies(sight.daily),
        *(_change(one, change) for one, changes in sight.changes.items() for change in changes),
        *_drifts(sight),
        *_marks(sight.marks),
    )


def losses(known: History) -> tuple[Message, ...]:
    """Returns sentences about data in the store that could not be used."""
    counts = (
        (DAMAGED, known.losses.damaged), (UNKNOWN, known.losses.unknown), (ORPHANS, known.orphans),
    )  # fmt: skip
    return tuple(Message(text, {"count": count}) for text, count in counts if count)


def now_remark(sight: Sight) -> Message:
    """Describes the present state of the watch."""
    now, last = sight.now, sight.watch.last
    bad = [
        one.value
        for one, outcome in (last.outcomes if last else {}).items()
        if outcome.kind not in (Kind.ANSWERED, Kind.NOT_TRIED)
    ]
    values: dict[str, Scalar] = {
        "when": moment(now.ts),
        "recent_ns": now.recent_ns,
        "usual_ns": now.usual_ns,
        "operations": ", ".join(bad),
    }
    return Message(_NOW[now.state], values)


def moment(ts: int) -> str:
    """Formats a time as local date and time, to the minute."""
    return datetime.fromtimestamp(ts / 1e9).strftime("%Y-%m-%d %H:%M")


def _day(ts: int) -> str:
    return datetime.fromtimestamp(ts / 1e9).strftime("%Y-%m-%d")


def _episodes(found: tuple[Episode, ...]) -> Iterator[Message]:
    """Describes the most severe episodes in the order of time. A last sentence gives the number of the
    others."""
    worst = sorted(found, key=_weight, reverse=True)[:MOST_EPISODES]
    for one in sorted(worst, key=lambda one: one.start_ts):
        yield episode_remark(one)
    if len(found) > len(worst):
        yield Message(_MORE, {"count": len(found) - len(worst)})


def _weight(one: Episode) -> tuple[int, int, int]:
    lasting = one.end_ts - one.start_ts
    return one.sort.value, lasting if one.sort is Sort.UNANSWERED else one.worst.ns or 0, one.start_ts


def episode_remark(one: Episode) -> Message:
    """Describes one episode."""
    worst = one.worst
    values: dict[str, Scalar] = {
        "when": moment(one.start_ts),
        "operation": worst.operation.value,
        "operations": ", ".join(operation.value for operation in one.operations),
        "length_s": (one.end_ts - one.start_ts) / 1e9,
        "error": worst.detail,
        "span_ns": worst.ns,
        "usual_ns": worst.usual_ns,
        "count": len(one.points),
    }
    return Message(_EPISODES[one.sort], values)


def _dailies(found: Mapping[Operation, Daily]) -> Iterator[Message]:
    """Describes daily patterns. Operations that are slow at the same hours are described in one sentence."""
    by_hours = sorted(found.items(), key=lambda one: (one[1].busy, -one[1].busy_ns / one[1].quiet_ns))
    for (start, end), group in groupby(by_hours, key=lambda one: one[1].busy):
        together = list(group)
        operation, most = together[0]
        values: dict[str, Scalar] = {
            "operation": operation.value,
            "operations": ", ".join(one.value for one, _ in together),
            "start": start,
            "end": end or 24,
            "busy_ns": most.busy_ns,
            "quiet_ns": most.quiet_ns,
        }
        yield Message(_DAILY if len(together) == 1 else _DAILY_ALL, values)


def _change(operation: Operation, one: Change) -> Message:
    values: dict[str, Scalar] = {
        "operation": operation.value,
        "when": moment(one.ts),
        "before_ns": one.before_ns,
        "after_ns": one.after_ns,
    }
    return Message(_SLOWER if one.after_ns > one.before_ns else _FASTER, values)


def _drifts(sight: Sight) -> Iterator[Message]:
    for operation, one in sight.drifts.items():
        values: dict[str, Scalar] = {
            "operation": operation.value,
            "first_ns": one.first_ns,
            "last_ns": one.last_ns,
            "since": _day(one.since_ts),
            "until": _day(one.until_ts),
        }
        yield Message(_RISING if one.last_ns > one.first_ns else _FALLING, values)


def _marks(found: Mapping[Operation, Iterable[MarkEffect]]) -> Iterator[Message]:
    effects = [
        (one.mark.ts, one.mark.text, operation, one) for operation, many in found.items() for one in many
    ]
    effects.sort(key=lambda one: one[:2])
    for (ts, text), group in groupby(effects, key=lambda one: one[:2]):
        together = [(operation, one) for _, _, operation, one in group]
        for operation, one in together:
            if one.is_clear:
                yield _mark(operation, one)
        same = [operation.value for operation, one in together if not one.is_clear]
        if same:
            said = {"mark": text, "when": moment(ts), "operations": ", ".join(same)}
            yield Message(_MARK_SAME, said)


def _mark(operation: Operation, one: MarkEffect) -> Message:
    values: dict[str, Scalar] = {
        "mark": one.mark.text,
        "when": moment(one.mark.ts),
        "operation": operation.value,
        "before_ns": one.before_ns,
        "after_ns": one.after_ns,
    }
    return Message(_MARK, values)
