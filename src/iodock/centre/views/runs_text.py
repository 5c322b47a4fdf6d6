"""Describes in words how a run compares with earlier runs of the same name."""

from __future__ import annotations

from iodock.centre.monitor.usual import Judgement, Run, Verdict
from iodock.centre.views.amounts import duration
from iodock.shared.language import Language


def evidence(own: Run, judgement: Judgement, text: Language) -> str:
    """Returns sentences with the numbers on which a verdict is based."""
    took, count = duration(own.seconds), len(judgement.compared)
    if judgement.usual_s is None or judgement.spread_s is None or judgement.limit_s is None:
        return text.ngettext(
            "{n} comparable earlier run; five are needed to compare.",
            "{n} comparable earlier runs; five are needed to compare.",
            count,
        )
    usual, spread, limit = (
        duration(value) for value in (judgement.usual_s, judgement.spread_s, judgement.limit_s)
    )
    so_far = (
        text.gettext("This run took {took}.", took=took)
        if own.is_over else text.gettext("This run has lasted {took} so far.", took=took)
    )  # fmt: skip
    others = text.gettext(
        "{n} earlier runs with about the same I/O volume took {usual} (median, spread {spread}). More "
        "than {limit} counts as slower.",
        n=count, usual=usual, spread=spread, limit=limit,
    )  # fmt: skip
    more = ""
    if judgement.verdict is Verdict.USUAL and own.seconds > judgement.limit_s:
        more = text.gettext("This run took longer, but transferred more data, and was not slower per byte.")
    return text.sentences(part for part in (so_far, others, more) if part)
