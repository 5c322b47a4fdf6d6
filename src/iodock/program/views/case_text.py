"""Formats a case for the terminal: its page, and the result of running its programs."""

from __future__ import annotations

from collections.abc import Iterator

from iodock.program.casebook.case import Case
from iodock.program.casebook.run import Effect
from iodock.shared.language import N_, Language
from iodock.shared.text import visible
from iodock.shared.units import NANOSECONDS

HEADINGS = (
    ("see", N_("What you see")),
    ("why", N_("Why it is slow")),
    ("change", N_("The change")),
    ("beyond", N_("When it does not help")),
)


def case_page(case: Case, text: Language) -> Iterator[tuple[str, str]]:
    """Yields the headings and paragraphs of a case's page."""
    for key, heading in HEADINGS:
        paragraph = getattr(case, key)
        if paragraph:
            yield text.gettext(heading), text.gettext(paragraph)


def case_list(cases: tuple[Case, ...], text: Language) -> str:
    """Formats one line for each case, with its name, title and rules."""
    width = max((len(case.name) for case in cases), default=0)
    lines = [f"{case.name:<{width}}  {visible(text.gettext(case.title))}{_rules(case)}" for case in cases]
    return "\n".join(lines) + "\n"


def _rules(case: Case) -> str:
    return f" ({', '.join(case.rules)})" if case.rules else ""


def case_text(case: Case, text: Language, width: int) -> str:
    """Formats the whole page of a case in lines of at most WIDTH cells."""
    from iodock.shared.lines import wrapped

    lines = [visible(text.gettext(case.title)), ""]
    for heading, paragraph in case_page(case, text):
        lines += [heading, *(f"  {line}" for line in wrapped(paragraph, width - 2)), ""]
    if case.rules:
        lines += [text.gettext(N_("Rules: {rules}"), rules=text.listed(case.rules))]
    if case.before is not None:
        lines += [text.gettext(N_("Try this case: iodock cases run {name}"), name=case.name)]
    return "\n".join(lines) + "\n"


def effect_text(effect: Effect, text: Language) -> str:
    """Formats one sentence that compares the measured gain with the expected range."""
    values = {
        "before": seconds(effect.before_seconds),
        "after": seconds(effect.after_seconds),
        "gain": seconds(effect.gain_seconds),
        "low": seconds(effect.low_seconds),
        "high": seconds(effect.high_seconds),
    }
    if not effect.gone and effect.remaining:
        said = N_(
            "{before} before, {after} after. The findings of the diagnosis before the change are still "
            "there after it."
        )
        return text.gettext(said, **values)
    if not effect.gone:
        said = N_(
            "{before} before, {after} after. The diagnosis expected no gain: nothing was worth changing."
        )
        return text.gettext(said, **values)
    if effect.is_inside:
        said = N_("{before} before, {after} after: a gain of {gain}. The diagnosis expected {low} to {high}.")
    else:
        said = N_(
            "{before} before, {after} after: a gain of {gain}, outside of the {low} to {high} that the "
            "diagnosis expected."
        )
    return text.gettext(said, **values)


def seconds(value: float) -> str:
    """Formats seconds in a readable unit. A loss is a negative value."""
    return f"-{NANOSECONDS.text(-value * 1e9)}" if value < 0 else NANOSECONDS.text(value * 1e9)
