"""Formats texts and numbers for all output formats of a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from iodock.program.comparison.data import (
    Change,
    Comparison,
    FindingChange,
    LineChange,
    Row,
    RunLabel,
    Sureness,
)
from iodock.program.views.diagnosis_words import SEVERITIES
from iodock.shared.language import N_, Language
from iodock.shared.text import visible
from iodock.shared.units import BYTES, COUNT, NANOSECONDS, Unit, number_text, share_text

TOTALS = {
    "wall_time_ns": N_("wall time"),
    "io_time_ns": N_("wall time in I/O"),
    "waiting_time_ns": N_("waiting on pipes and sockets"),
    "rest_time_ns": N_("outside I/O"),
    "total_time_ns": N_("time inside calls"),
    "count": N_("I/O calls, excluding waiting"),
    "failed": N_("of which failed"),
    "read_bytes": N_("bytes read"),
    "written_bytes": N_("bytes written"),
    "files": N_("files used"),
}
"""Names of totals, in the order in which they are shown."""
STATES = {
    "gone": N_("gone"),
    "new": N_("new"),
    "still": N_("still present"),
    "unseen": N_("could not be checked on the other side"),
}
SURENESS = {
    Sureness.SAME: N_("same"),
    Sureness.CLEAR: N_("clear"),
    Sureness.NOISE: N_("noise"),
    Sureness.FEW: N_("too few runs to tell"),
    Sureness.SINGLE: "",
    Sureness.UNKNOWN: "",
}
MATCHED = {"before": N_("only before"), "after": N_("only after")}
NO_FILE = N_("(no file)")
_SYSTEM_CPU = N_("system CPU inside calls")
MOST_NAMES = 5
_SIGNS = {True: "+", False: "-"}


class Cells(NamedTuple):
    """Holds the parts of a change as text."""

    before: str
    after: str
    difference: str
    share: str
    """The difference as a percentage of the value before, or as a factor."""
    sure: str


def unit_of(measure: str) -> Unit:
    """Returns the unit of a measure, which follows from its name."""
    if measure.endswith("_ns"):
        return NANOSECONDS
    return BYTES if measure.endswith("_bytes") else COUNT


def cells(change: Change, measure: str, text: Language) -> Cells:
    """Formats the change of a measure. An unknown value becomes `?`."""
    unit = unit_of(measure)
    difference = change.difference
    return Cells(
        amount(change.before, unit),
        amount(change.after, unit),
        "" if difference is None else signed(difference, unit),
        share(change),
        sure(change, text),
    )


def amount(value: float | None, unit: Unit) -> str:
    """Formats a value in its unit. An unknown value becomes `?`."""
    if value == 0 and unit is NANOSECONDS:
        return "0 s"
    return "?" if value is None else unit.text(value)


def signed(value: float, unit: Unit) -> str:
    """Formats a difference with its sign. A difference of 0 has no sign."""
    return "0" if value == 0 else f"{_SIGNS[value > 0]}{unit.text(abs(value))}"


def share(change: Change) -> str:
    """Formats a relative change as `+12 %`, or as `x3.5` if the value at least doubled. It is empty if
    there is no change or the ratio is unknown."""
    ratio = change.ratio
    if ratio is None or change.difference == 0:
        return ""
    if ratio >= 2:
        return f"x{ratio:,.0f}" if ratio >= 9.95 else f"x{ratio:.1f}"
    said = share_text(abs(ratio - 1))
    return said if said.startswith("<") else f"{_SIGNS[ratio > 1]}{said}"


def sure(change: Change, text: Language) -> str:
    """Describes the significance and spread of a difference, such as `noise ±4 %`. It is empty if each
    side has a single run."""
    if len(change.before_runs) == len(change.after_runs) == 1:
        return ""
    word = text.gettext(SURENESS[change.sureness]) if SURENESS[change.sureness] else ""
    apart = change.spread
    return word if not word or not apart else f"{word} ±{share_text(apart)}"


def spread(change: Change, measure: str) -> str:
    """Formats the ranges of the runs of both sides as `1.2 s - 1.4 s -> 0.8 s - 0.9 s`."""
    unit = unit_of(measure)
    return " -> ".join(_range(side, unit) for side in (change.before_runs, change.after_runs))


def _range(values: tuple[float | None, ...], unit: Unit) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "?"
    low, high = unit.text(min(known)), unit.text(max(known))
    return low if low == high else f"{low} - {high}"


def total_name(measure: str, comparison: Comparison, text: Language) -> str:
    """Returns the name of a total."""
    if measure == "total_time_ns" and comparison.time == "system-cpu":
        return text.gettext(_SYSTEM_CPU)
    return text.gettext(TOTALS[measure])


def shown_totals(comparison: Comparison) -> Iterator[tuple[str, Change]]:
    """Yields the totals that are known, except for those that are 0 in all runs."""
    for measure in TOTALS:
        change = comparison.totals[measure]
        if any((*change.before_runs, *change.after_runs)):
            yield measure, change


def file_words(row: Row, text: Language) -> str:
    """Returns the text after a file's name: the number of files for a pattern, and which side has them if
    it is only one."""
    said = []
    if max(row.files) > 1:
        before, after = row.files
        values = {"before": f"{before:,}", "after": f"{after:,}", "n": f"{max(row.files):,}"}
        said.append(
            text.gettext(N_("{n} files"), **values)
            if before == after or not all(row.files)
            else text.gettext(N_("{before} -> {after} files"), **values)
        )
    if row.matched in MATCHED:
        said.append(text.gettext(MATCHED[row.matched]))
    return text.listed(said)


def file_name(row: Row, text: Language) -> str:
    """Returns a file's name on one line. Control characters in it are made visible."""
    return visible(row.name) if row.name else text.gettext(NO_FILE)


def side_words(runs: tuple[RunLabel, ...], text: Language) -> str:
    """Describes the stores of one side, and their command if it is the same for all."""
    stores = list(dict.fromkeys(visible(run.store) for run in runs))
    names = text.listed(stores[:MOST_NAMES])
    if len(stores) > MOST_NAMES:
        more = text.ngettext("and {n} more", "and {n} more", len(stores) - MOST_NAMES)
        names = f"{names} {more}"
    commands = list(dict.fromkeys(visible(run.command) for run in runs if run.command))
    return f"{names}: {commands[0]}" if len(commands) == 1 else names


def noise_words(comparison: Comparison, text: Language) -> str:
    """Describes the files that changed too little for either list. The text is empty if there are none."""
    noise = comparison.noise
    if not noise.files:
        return ""
    files = text.ngettext("{n} file", "{n} files", noise.files)
    unit = unit_of("total_time_ns" if comparison.time else "count")
    difference = "?" if noise.change.difference is None else signed(noise.change.difference, unit)
    if not noise.least_ns:
        spread = N_("Within noise: {files}, {difference} in total. The runs differ by that much anyway.")
        return text.gettext(spread, files=files, difference=difference)
    limits = {"share": share_text(noise.share), "least": NANOSECONDS.text(noise.least_ns)}
    single = N_(
        "Within noise: {files}, {difference} in total. Noise is less than {share} of a file's time, or "
        "less than {least}."
    )
    several = N_(
        "Within noise: {files}, {difference} in total. Noise is less than {share} of a file's time, less "
        "than {least}, or no more than the usual difference between runs."
    )
    is_single = len(comparison.before) == len(comparison.after) == 1
    return text.gettext(single if is_single else several, files=files, difference=difference, **limits)


def finding_cost(one: FindingChange, text: Language) -> str:
    """Formats the cost of a finding as `cost 3.2 s -> 0.4 s`."""
    before, after = one.cost_seconds.before, one.cost_seconds.after
    if before is None and after is None:
        return text.gettext(N_("cost not known"))
    values = {"before": _seconds(before), "after": _seconds(after)}
    return text.gettext(N_("cost {before} -> {after}"), **values)


def _seconds(value: float | None) -> str:
    return amount(None if value is None else value * 1e9, NANOSECONDS)


def finding_severity(one: FindingChange, text: Language) -> str:
    """Formats the severity of a finding as `high -> low`. If it did not change, or only one side has the
    finding, it is one word."""
    words = [text.gettext(SEVERITIES[side.severity]) for side in (one.before, one.after) if side is not None]
    return words[0] if len(set(words)) == 1 else " -> ".join(words)


def per_words(comparison: Comparison, text: Language) -> str:
    """Describes the unit of work by which all numbers are divided. The text is empty if numbers are for
    whole runs."""
    work = comparison.work
    if work is None:
        return ""
    before, after = (
        text.listed(number_text(unit, 6) for unit in dict.fromkeys(side))
        for side in (work.before, work.after)
    )
    said: Mapping[str, str] = {"unit": visible(work.name), "before": before, "after": after}
    return text.gettext(
        N_("All numbers are per unit of work ({unit}): {before} before, {after} after."), **said
    )


def runs_words(comparison: Comparison, text: Language) -> str:
    """Describes how the numbers combine several runs. The text is empty if each side has one run."""
    before, after = len(comparison.before), len(comparison.after)
    if before == after == 1:
        return ""
    numbers = {"before": str(before), "after": str(after)}
    if min(before, after) < 4:
        few = N_(
            "Medians of {before} runs before and {after} after; ± is half the range of the runs. Too "
            "few runs to be certain of a difference: 4 of each are needed."
        )
        return text.gettext(few, **numbers)
    enough = N_(
        "Medians of {before} runs before and {after} after; ± is half the range of the runs. A "
        "difference is called clear if it occurs by chance in less than 5 % of cases, otherwise noise."
    )
    return text.gettext(enough, **numbers)


def line_name(one: LineChange, text: Language) -> str:
    """Formats a source line as `solver.c:412 -> 430 in write_step`."""
    before, after = one.lines
    numbers = dict.fromkeys(str(line) for line in (before, after) if line is not None)
    place = visible(f"{one.file}:{' -> '.join(numbers)}")
    if one.function is None:
        return place
    return text.gettext(N_("{place} in {function}"), place=place, function=visible(one.function))
