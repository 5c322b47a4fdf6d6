"""Finds facts that may explain or distort a comparison: the runs differ in the way they were recorded, in
clocks, losses or machines, or in how they ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from iodock.program.comparison.data import Remark
from iodock.program.comparison.sums import RunSums
from iodock.shared.language import N_
from iodock.shared.message import Message

MOST_LOSSES = 6
Runs = Sequence[RunSums]


def remarks_on(before: Runs, after: Runs) -> Iterator[Remark]:
    """Yields all notes on facts that may explain or distort the numbers."""
    yield from _times(before, after)
    yield from _capture(before, after)
    yield from _clocks(before, after)
    yield from _ends(before, after)
    yield from _programs(before, after)
    yield from _machines(before, after)
    yield from _losses(before, after)


def _times(before: Runs, after: Runs) -> Iterator[Remark]:
    kinds = {run.time for run in (*before, *after)}
    if kinds == {"elapsed"}:
        return
    if kinds == {None}:
        text = N_(
            "No call has a duration: times can't be compared, files and calls are ranked by number of calls."
        )
        yield Remark("durations", Message(text))
    elif kinds == {"system-cpu"}:
        text = N_(
            "Times are system CPU time inside the calls, not elapsed time: they do not include waiting."
        )
        yield Remark("durations", Message(text))
    elif None in kinds:
        names = ", ".join(run.name for run in (*before, *after) if run.time is None)
        text = N_("Calls have no durations in {names}: times can't be compared, only calls and bytes.")
        yield Remark("durations", Message(text, {"names": names}))
    else:
        text = N_("Some runs have elapsed times, others only system CPU time: times can't be compared.")
        yield Remark("durations", Message(text))


def _capture(before: Runs, after: Runs) -> Iterator[Remark]:
    def how(run: RunSums) -> str:
        return str(run.captured.get("how") or "?")

    if one := _differing(before, after, how):
        text = N_(
            "Recorded in different ways ({before} -> {after}): tracing slows programs by different "
            "amounts, above all with many short calls, so part of the difference may come from the "
            "tracer."
        )
        yield Remark("capture", Message(text, one))

    def measured(run: RunSums) -> str:
        recorder = run.manifest.raw.get("recorder") or {}
        return "yes" if recorder.get("on_measured_file_system") else "no"

    if _differing(before, after, measured):
        text = N_(
            "Some of the recordings were written to the file system that they measured, others were not. "
            "Writing the recording may have slowed the former."
        )
        yield Remark("capture", Message(text))


def _clocks(before: Runs, after: Runs) -> Iterator[Remark]:
    if one := _differing(before, after, lambda run: run.manifest.clock):
        text = N_(
            "The sources' clocks differ ({before} -> {after}). Only durations are compared, not "
            "the times at which calls happened."
        )
        yield Remark("clock", Message(text, one))
    unknown = ", ".join(run.name for run in (*before, *after) if not run.manifest.wall_ns)
    if unknown:
        text = N_("The elapsed time of the run is unknown for {names}.")
        yield Remark("clock", Message(text, {"names": unknown}))


def _ends(before: Runs, after: Runs) -> Iterator[Remark]:
    for run in (*before, *after):
        captured = run.captured
        if run.manifest.in_progress is not None:
            text = N_("{name} is still being recorded: it contains the beginning of the run.")
            yield Remark("end", Message(text, {"name": run.name}))
        elif run.manifest.state != "complete":
            text = N_("{name} is incomplete: it does not contain the whole run.")
            yield Remark("end", Message(text, {"name": run.name}))
        if signal := captured.get("exit_signal"):
            text = N_("The program of {name} was ended by {signal}.")
            yield Remark("end", Message(text, {"name": run.name, "signal": str(signal)}))
        elif status := captured.get("exit_status"):
            text = N_("The program of {name} ended with status {status}: it may not have done all its work.")
            yield Remark("end", Message(text, {"name": run.name, "status": str(status)}))
        if not run.manifest.rows.get("events"):
            text = N_("{name} contains no calls.")
            yield Remark("end", Message(text, {"name": run.name}))


def _programs(before: Runs, after: Runs) -> Iterator[Remark]:
    def program(run: RunSums) -> str:
        command = run.captured.get("command") or []
        return str(command[0]).rsplit("/", 1)[-1] if command else ""

    one = _differing(before, after, program)
    if one and all(one.values()):
        text = N_("These are different programs: {before} -> {after}.")
        yield Remark("program", Message(text, one))

    def ranks(run: RunSums) -> str:
        return str(run.manifest.raw.get("ranks") or 1)

    if one := _differing(before, after, ranks):
        text = N_("The number of MPI ranks differs: {before} -> {after}.")
        yield Remark("program", Message(text, one))


def _machines(before: Runs, after: Runs) -> Iterator[Remark]:
    def host(run: RunSums, key: str) -> str:
        found: dict[str, Any] = dict(run.manifest.raw.get("host") or {})
        return str(found.get(key) or "")

    for key, text in (
        ("name", N_("The runs were on different hosts: {before} -> {after}.")),
        ("kernel", N_("The kernels differ: {before} -> {after}.")),
    ):
        one = _differing(before, after, lambda run, key=key: host(run, key))  # type: ignore[misc]
        if one and all(one.values()):
            yield Remark("machine", Message(text, one))


def _losses(before: Runs, after: Runs) -> Iterator[Remark]:
    """Yields notes on losses. Losses whose numbers differ between the sides come first, the largest
    difference first."""
    names = {loss.name for run in (*before, *after) for loss in run.manifest.losses}
    counts = {name: (_lost(before, name), _lost(after, name)) for name in names}
    differing = sorted(
        (name for name, (first, second) in counts.items() if first != second),
        key=lambda name: -abs(counts[name][1] - counts[name][0]),
    )
    for name in differing[:MOST_LOSSES]:
        text = N_("The two recordings have different blind spots: {loss} {before} -> {after}.")
        first, second = counts[name]
        yield Remark("losses", Message(text, {"loss": name, "before": first, "after": second}))
    if shared := sorted(names.difference(differing)):
        text = N_("Missing in both: {losses}.")
        yield Remark("losses", Message(text, {"losses": ", ".join(shared)}))


def _lost(runs: Runs, name: str) -> int:
    """Returns the largest number that a loss has in any of the runs."""
    return max(sum(loss.count for loss in run.manifest.losses if loss.name == name) for run in runs)


def _differing(before: Runs, after: Runs, key: Callable[[RunSums], str]) -> dict[str, str] | None:
    """Returns the values of KEY on each side as texts, or None if all runs have the same value."""
    sides = [sorted({key(run) for run in side}) for side in (before, after)]
    if len({*sides[0], *sides[1]}) <= 1:
        return None
    return {"before": ", ".join(sides[0]), "after": ", ".join(sides[1])}
