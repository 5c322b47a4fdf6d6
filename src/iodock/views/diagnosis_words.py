"""Messages of a diagnosis in a language: numbers get the form that their name asks for."""

from __future__ import annotations

from collections.abc import Mapping

from iodock.findings import Advice, Finding, Message, Scalar, Severity
from iodock.language import N_, Language
from iodock.views.charts.units import BYTES, NANOSECONDS
from iodock.views.charts.words import visible
from iodock.views.verdict import share_text

NOT_KNOWN = "?"
SEVERITIES = {
    Severity.HIGH: N_("high"),
    Severity.MEDIUM: N_("medium"),
    Severity.LOW: N_("low"),
    Severity.NOTE: N_("note"),
}


def say(message: Message, text: Language) -> str:
    """The whole sentence."""
    return text.gettext(message.text, **shown(message.values))


def whose_advice(advice: Advice, text: Language) -> str:
    """`C++`; `in reduce.py (Python)` where programs of several languages share a fault; empty for all."""
    if advice.program is None:
        return advice.heading
    program = visible(advice.program)
    return text.gettext(N_("in {program} ({language})"), program=program, language=advice.heading)


def shown(values: Mapping[str, Scalar]) -> dict[str, str]:
    """Values as text, by the ending of their names (`Message.values`)."""
    return {name: value_text(name, value) for name, value in values.items()}


def value_text(name: str, value: Scalar) -> str:
    """One value: `_s` seconds, `_ns`, `_bytes`, `_share`, `_bytes_per_s`; else a count or a name."""
    if value is None:
        return NOT_KNOWN
    if isinstance(value, (str, bool)):
        return visible(str(value))
    if name.endswith("_bytes_per_s"):
        return f"{BYTES.text(value)}/s"
    if name.endswith("_bytes"):
        return BYTES.text(value)
    if name.endswith("_share"):
        return share_text(value)
    if name.endswith("_ns"):
        return NANOSECONDS.text(value)
    if name.endswith(("_s", "_seconds")):
        return NANOSECONDS.text(value * 1e9)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3g}"


def cost_text(finding: Finding, text: Language) -> str:
    """`Cost: 3.1 s, 49 % of the run; expected gain 1.2 s to 3 s`; empty where the cost is not known."""
    if finding.cost_seconds is None:
        return ""
    cost = NANOSECONDS.text(finding.cost_seconds * 1e9)
    share = share_text(finding.cost_share) if finding.cost_share is not None else None
    said = (
        text.gettext(N_("Cost: {cost}"), cost=cost)
        if share is None
        else text.gettext(N_("Cost: {cost}, {share} of the run"), cost=cost, share=share)
    )
    if finding.gain is None:
        return said
    low, high = (NANOSECONDS.text(one * 1e9) for one in (finding.gain.low_seconds, finding.gain.high_seconds))
    gain = text.gettext(N_("expected gain {low} to {high}"), low=low, high=high)
    return f"{said}; {gain}"
