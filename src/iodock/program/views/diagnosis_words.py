"""Formats messages of a diagnosis in a language. The name of a number in a message determines its unit and
format (`iodock.shared.sentences`)."""

from __future__ import annotations

import math
from collections.abc import Callable

from iodock.program.findings import Advice, Caller, Finding, Gain, Location, Severity, Verdict
from iodock.shared.language import N_, Language
from iodock.shared.sentences import say
from iodock.shared.text import visible
from iodock.shared.units import NANOSECONDS, number_text, share_text

SEVERITIES = {
    Severity.HIGH: N_("high"),
    Severity.MEDIUM: N_("medium"),
    Severity.LOW: N_("low"),
    Severity.NOTE: N_("note"),
}

_LEAST_SHARE = 0.01
"""Share of a finding's calls below which a further line is not shown."""

_ALL = 0.995
"""Share of a line's calls from which on one caller is said to be the only one."""


def whose_advice(advice: Advice, text: Language) -> str:
    """Returns the language or role that advice is for, such as `C++`, or `in reduce.py (Python)` if
    programs in several languages made the calls. It is empty for advice that applies to all."""
    whose = text.gettext(_HEADINGS.get(advice.heading, advice.heading))
    if advice.program is None:
        return whose
    program = visible(advice.program)
    return text.gettext(N_("in {program} ({language})"), program=program, language=whose)


def meanwhile_text(finding: Finding, text: Language) -> str:
    """Describes the state of the servers while a call hung. It is empty if no monitor was queried."""
    return " ".join(say(one, text) for one in finding.meanwhile)


def location_text(finding: Finding, text: Language, most: int = 3) -> str:
    """Formats the source lines as `at solver.c:412 in write_step, called from solver.c:80 in step (96 % of
    these calls)`. The text is empty if lines are not known."""
    shown = [one for at, one in enumerate(finding.locations[:most]) if at == 0 or one.share >= _LEAST_SHARE]
    places = [
        text.gettext(
            N_("{place} ({share} of these calls)"), place=_chain(one, text), share=share_text(one.share)
        )
        for one in shown
    ]
    return text.gettext(N_("at {places}"), places=text.listed(places)) if places else ""


def _chain(one: Location, text: Language) -> str:
    place, caller = _place(one, text), one.called_from
    if caller is None:
        return place
    if caller.share >= _ALL:
        return text.gettext(N_("{place}, called from {caller}"), place=place, caller=_place(caller, text))
    return text.gettext(
        N_("{place}, most often called from {caller}"), place=place, caller=_place(caller, text)
    )


def _place(one: Location | Caller, text: Language) -> str:
    place = visible(one.place)
    if one.function is None or one.function == one.place:
        return place
    return text.gettext(N_("{place} in {function}"), place=place, function=visible(one.function))


def line_text(finding: Finding, text: Language) -> str:
    """Formats a finding as one entry of a list: its title, its observation, and the state of the servers
    at that time."""
    said = f"{say(finding.title, text)}: {say(finding.message, text)}"
    return f"{said} {meanwhile_text(finding, text)}".rstrip()


_HEADINGS = {"administrator": N_("administrator"), "shell": N_("shell")}
"""Headings of advice that must be translated, because they are not proper names."""


_TOGETHER = N_("Together they save about {saved} of {run}.")


def headline(verdict: Verdict, text: Language) -> list[str]:
    """Returns the sentences at the top of every view of a diagnosis."""
    said = [say(one, text) for one in (*verdict.before, verdict.text)]
    is_one = verdict.text.values.get("things") == 1
    sentence = N_("This saves about {saved} of {run}.") if is_one else _TOGETHER
    together = saves_text(verdict.gain, text, sentence)
    return [*said, together] if together else said


def gain_text(finding: Finding, text: Language) -> str:
    """Formats the gain as `This saves about 0.3 to 0.4 s of 2.1 s.`. For findings that need no change, it
    formats their cost. The text is empty if neither is known."""
    if finding.gain is not None:
        return saves_text(finding.gain, text, N_("This saves about {saved} of {run}."))
    if finding.cost_seconds is None:
        return ""
    cost = NANOSECONDS.text(finding.cost_seconds * 1e9)
    if finding.cost_share is None:
        return text.gettext(N_("This takes {cost}."), cost=cost)
    share = share_text(finding.cost_share)
    return text.gettext(N_("This takes {cost}, {share} of the run."), cost=cost, share=share)


def has_pattern(finding: Finding, shown: int) -> bool:
    """Returns whether one of the first SHOWN names of files is a pattern."""
    return any("*" in name for name in finding.files[:shown])


def more_files(finding: Finding, shown: int, text: Language) -> str:
    """Returns the text after the first SHOWN file names of a finding: the number of all files if a name is
    a pattern, otherwise that of further files. The text is empty if there are none."""
    if has_pattern(finding, shown):
        return text.gettext(N_("{n} files in all"), n=f"{finding.file_count:,}")
    more = finding.file_count - shown
    return text.ngettext("and {n} more", "and {n} more", more) if more > 0 else ""


def saves_text(gain: Gain | None, text: Language, sentence: str) -> str:
    """Fills in `{saved}` and `{run}` in SENTENCE, with two digits. The text is empty if the gain is
    unknown or zero."""
    if gain is None or gain.high_seconds <= 0 or not gain.of_seconds:
        return ""
    run = NANOSECONDS.text(gain.of_seconds * 1e9)
    return text.gettext(sentence, saved=range_text(gain, text), run=run)


def range_text(gain: Gain, text: Language) -> str:
    """Formats the range of a gain as `0.3 to 0.4 s`. Both ends are in the unit of the upper one. The lower
    one is never above the upper one."""
    size, unit = NANOSECONDS.step(gain.high_seconds * 1e9)
    high = _two_digits(gain.high_seconds * 1e9 / size, math.floor)
    low = min(high, _two_digits(gain.low_seconds * 1e9 / size, round))
    ends = [number_text(end, 10) for end in (low, high)]
    if low == high:
        return f"{ends[1]} {unit}"
    if low <= 0:
        return text.gettext(N_("0 to {high}"), high=f"{ends[1]} {unit}")
    return text.gettext(N_("{low} to {high}"), low=ends[0], high=f"{ends[1]} {unit}")


def _two_digits(value: float, rounded: Callable[[float], int]) -> float:
    if value <= 0:
        return 0.0
    digits = 1 - math.floor(math.log10(value))
    return round(rounded(value * 10.0**digits) / 10.0**digits, max(0, digits))
