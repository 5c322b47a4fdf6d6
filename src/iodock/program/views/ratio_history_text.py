"""A site's distribution of CPU utilisation in the terminal: numbers, bars, and the line for the settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from iodock.program.views.ratio_text import WIDTH_WITHOUT_TERMINAL, share_text
from iodock.shared.answer import Answer

_BARS = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"
_WIDEST = 60
_BESIDE = 22
"""Cells beside a bar: its range and its number."""


def render(answer: Answer, width: int | None = None, colour: bool = False) -> str:
    """The whole answer as text. WIDTH is in cells; None is no terminal."""
    total = answer.totals.total if answer.totals else {}
    size = width or WIDTH_WITHOUT_TERMINAL
    lines = [_strong("CPU utilisation of jobs: (user / cores) / elapsed", colour)]
    lines += _numbers(total)
    lines += ["", *_histogram(answer, total, min(_WIDEST, max(8, size - _BESIDE)), colour), ""]
    lines += _proposal(total, colour)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _numbers(total: Mapping[str, Any]) -> list[str]:
    deciles = [share_text(value) for value in total["deciles"]]
    return [
        f"{total['count']:,} jobs, {total['core_hours']:,.0f} core-hours",
        f"mean {share_text(total['mean'])} (by core-hours {share_text(total['mean_by_core_hours'])}), "
        f"median {share_text(total['median'])}",
        f"deciles {' '.join(deciles)}",
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
    """Blocks with a last part in eighths; anything above zero is seen."""
    eighths = max(1, round(length * 8)) if length > 0 else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _proposal(total: Mapping[str, Any], colour: bool) -> list[str]:
    return [
        f"in use: I/O-heavy below {total['io_below']:g}: {_shares(total['below_now'])}",
        _strong(f"proposed: {total['proposed_io_below']:.2f}: {_shares(total['below_proposed'])}", colour),
        f"why: {total['reason']}",
        "for the settings file:",
        *(f"  {line}" for line in total["toml"].splitlines()),
    ]


def _shares(shares: Sequence[float]) -> str:
    return f"{shares[0]:.1%} of the jobs, {shares[1]:.1%} of the core-hours"


def _strong(text: str, colour: bool) -> str:
    return f"\x1b[1m{text}\x1b[0m" if colour else text
