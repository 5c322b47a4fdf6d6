"""Shows a site's distribution of CPU utilisation in the terminal: numbers, bars, and a line that users can
copy into the settings file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iodock.program.views.ratio_text import ENGLISH, WIDTH_WITHOUT_TERMINAL, share_text
from iodock.shared.answer import Answer
from iodock.shared.language import N_, Language
from iodock.shared.units import number_text

_BARS = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"
_WIDEST = 60
_BESIDE = 22
"""Width of the texts next to a bar: its range and its number."""


def render(answer: Answer, width: int | None = None, colour: bool = False, text: Language = ENGLISH) -> str:
    """Formats the whole answer as text. WIDTH is in cells, or None if the output is not a terminal."""
    total = answer.totals.total if answer.totals else {}
    size = width or WIDTH_WITHOUT_TERMINAL
    lines = [_strong(text.gettext(N_("CPU utilisation of jobs: (user / cores) / elapsed")), colour)]
    lines += _numbers(total, text)
    lines += ["", *_histogram(answer, total, min(_WIDEST, max(8, size - _BESIDE)), colour), ""]
    lines += _proposal(total, colour, text)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _numbers(total: Mapping[str, Any], text: Language) -> list[str]:
    deciles = [share_text(value) for value in total["deciles"]]
    return [
        text.gettext(
            N_("{jobs} jobs, {hours} core-hours"),
            jobs=f"{total['count']:,}",
            hours=f"{total['core_hours']:,.0f}",
        ),
        text.gettext(
            N_("mean {mean} (by core-hours {weighted}), median {median}"),
            mean=share_text(total["mean"]),
            weighted=share_text(total["mean_by_core_hours"]),
            median=share_text(total["median"]),
        ),
        text.gettext(N_("deciles {deciles}"), deciles=" ".join(deciles)),
    ]


def _histogram(answer: Answer, total: Mapping[str, Any], width: int, colour: bool) -> list[str]:
    counts = _merged(answer.table.column("count").to_pylist())
    largest = max(counts)
    lines = []
    for place, count in enumerate(counts):
        lower = place / _BARS
        bar = _bar(count / largest * width)
        heavy = colour and lower + 1 / _BARS <= total["proposed_io_below"] + 1e-9
        painted = f"\x1b[31m{bar}\x1b[0m" if heavy else bar
        lines.append(f"{lower:.2f} {count:>11,} {painted}")
    return lines


def _merged(counts: Sequence[int]) -> list[int]:
    each = max(1, len(counts) // _BARS)
    return [sum(counts[at : at + each]) for at in range(0, len(counts), each)]


def _bar(length: float) -> str:
    """Draws a bar of LENGTH cells, in steps of an eighth of a cell. A length above zero is at least one
    such step."""
    eighths = max(1, round(length * 8)) if length > 0 else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _proposal(total: Mapping[str, Any], colour: bool, text: Language) -> list[str]:
    now, then = _shares(total["below_now"], text), _shares(total["below_proposed"], text)
    in_use = N_("in use: I/O-heavy below {limit}: {shares}")
    proposed = N_("proposed: {limit}: {shares}")
    return [
        text.gettext(in_use, limit=number_text(total["io_below"], 6), shares=now),
        _strong(text.gettext(proposed, limit=f"{total['proposed_io_below']:.2f}", shares=then), colour),
        text.gettext(N_("why: {reason}"), reason=text.told(total["reason"])),
        text.gettext(N_("line for the settings file:")),
        *(f"  {line}" for line in total["toml"].splitlines()),
    ]


def _shares(shares: Sequence[float], text: Language) -> str:
    of = N_("{jobs} of the jobs, {hours} of the core-hours")
    return text.gettext(of, jobs=f"{shares[0]:.1%}", hours=f"{shares[1]:.1%}")


def _strong(text: str, colour: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if colour else text
