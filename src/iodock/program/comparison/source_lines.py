"""Follows the lines of a program from one version to the next, and determines which of them changed.

A line counts as the same line after it moved, if it is in the same function, makes the same calls, and has
the same order among the function's other lines. The store does not contain the text of lines, so a line that
makes other calls counts as a new line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from iodock.program.comparison.data import MEASURES, LineChange
from iodock.program.comparison.significance import change
from iodock.program.comparison.sums import RunSums

_MOST_LINES = 200
"""Lines of a function are matched one by one up to this number. If there are more, lines with equal numbers
are the same."""
_GAP, _FAR, _MOST_DISTANCE = 2.0, 0.9, 1_000

Row = Mapping[str, Any]


@dataclass(slots=True)
class _Followed:
    """Holds one source line with its sums in all runs."""

    function: str | None
    file: str
    calls: frozenset[str]
    rows: dict[int, Row] = field(default_factory=dict)
    """The line's sums in each run."""
    line: int = 0
    """Number of the line in the last run that contains it."""


def line_changes(
    before: Sequence[RunSums],
    after: Sequence[RunSums],
    units: Sequence[float],
    measure: str,
    least: float,
    most: int,
) -> tuple[LineChange, ...]:
    """Returns the lines that changed by more than LEAST, the largest change first. Returns nothing if a run
    has no information on lines."""
    runs = [*before, *after]
    if not all(run.lines for run in runs):
        return ()
    found = (_change(one, len(before), units) for one in _followed(runs))
    moved = [one for one in found if abs(one.changes[measure].difference or 0) > least]
    return tuple(sorted(moved, key=lambda one: -abs(one.changes[measure].difference or 0))[:most])


def _change(one: _Followed, before: int, units: Sequence[float]) -> LineChange:
    def of(measure: str) -> list[float]:
        # A line that makes no calls in a run has no row. Its value then is 0.
        return [(one.rows[run][measure] if run in one.rows else 0.0) / unit for run, unit in enumerate(units)]

    lines = [one.rows[run]["line"] if run in one.rows else None for run in range(len(units))]
    sides = lines[:before], lines[before:]
    last = [next((line for line in reversed(side) if line is not None), None) for side in sides]
    return LineChange(
        file=one.file,
        function=one.function,
        lines=(last[0], last[1]),
        changes={measure: change(of(measure)[:before], of(measure)[before:]) for measure in MEASURES},
    )


def _followed(runs: Sequence[RunSums]) -> Iterator[_Followed]:
    known: dict[tuple[str, str | None], list[_Followed]] = {}
    for run, sums in enumerate(runs):
        groups: dict[tuple[str, str | None], list[Row]] = {}
        for row in sums.lines:
            groups.setdefault((row["file"], row["function"]), []).append(row)
        for key, rows in groups.items():
            known[key] = _joined(known.get(key, []), sorted(rows, key=lambda row: row["line"]), run)
    for lines in known.values():
        yield from lines


def _joined(known: list[_Followed], rows: Sequence[Row], run: int) -> list[_Followed]:
    """Matches the known lines of a function with its lines in one more run, and returns all of them in
    order."""
    joined: list[_Followed] = []
    for one, row in _pairs(known, rows):
        followed = one or _Followed(row["function"], row["file"], frozenset(row["calls"])) if row else one
        assert followed is not None
        if row is not None:
            followed.rows[run], followed.line = row, row["line"]
            followed.calls = frozenset(row["calls"])
        joined.append(followed)
    return joined


def _pairs(known: Sequence[_Followed], rows: Sequence[Row]) -> list[tuple[_Followed | None, Row | None]]:
    """Pairs the known lines with the lines of one more run. The pairs keep the order of both sequences, and
    their total cost is minimal. For more than _MOST_LINES lines, the lines are paired by number."""
    if max(len(known), len(rows)) > _MOST_LINES:
        return _by_number(known, rows)
    costs = [[_GAP * at for at in range(len(rows) + 1)]]
    for above, one in enumerate(known, 1):
        line = [_GAP * above]
        for left, row in enumerate(rows, 1):
            pair = costs[above - 1][left - 1] + _cost(one, row)
            line.append(min(pair, costs[above - 1][left] + _GAP, line[-1] + _GAP))
        costs.append(line)
    pairs: list[tuple[_Followed | None, Row | None]] = []
    above, left = len(known), len(rows)
    while above or left:
        here = costs[above][left]
        if above and left and here == costs[above - 1][left - 1] + _cost(known[above - 1], rows[left - 1]):
            above, left = above - 1, left - 1
            pairs.append((known[above], rows[left]))
        elif above and here == costs[above - 1][left] + _GAP:
            above -= 1
            pairs.append((known[above], None))
        else:
            left -= 1
            pairs.append((None, rows[left]))
    return pairs[::-1]


def _cost(one: _Followed, row: Row) -> float:
    """Returns the cost of pairing two lines. If they have no call in common, the cost exceeds that of leaving
    both unpaired (two gaps)."""
    calls = frozenset(row["calls"])
    if not one.calls & calls:
        return 3 * _GAP
    unlike = 1 - len(one.calls & calls) / len(one.calls | calls)
    distance: int = abs(one.line - row["line"])
    return unlike + _FAR * min(distance, _MOST_DISTANCE) / _MOST_DISTANCE


def _by_number(known: Sequence[_Followed], rows: Sequence[Row]) -> list[tuple[_Followed | None, Row | None]]:
    numbered = {row["line"]: row for row in rows}
    pairs: list[tuple[_Followed | None, Row | None]] = [(one, numbered.pop(one.line, None)) for one in known]
    return [*pairs, *((None, row) for row in numbered.values())]
