"""Computes units of work, by which the numbers of a run are divided, and checks whether runs did different
amounts of work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from iodock.program.comparison.data import Remark, Work, middle
from iodock.program.comparison.sums import RunSums
from iodock.shared.errors import RequestError, meant
from iodock.shared.language import N_
from iodock.shared.message import Message

EQUAL_WITHIN = 1.2
"""Two amounts of work count as equal if their ratio is below this."""
MUCH = 2.0
"""If the numbers of calls differ by this ratio, different arguments may mean different work."""
_FEW_CALLS = 100
_SMALL = {"files": 5, "read_bytes": 4096, "written_bytes": 4096, "size_bytes": 4096}
"""Smaller differences are ignored."""
_KNOWN_SHARE = 0.9
_MEBIBYTE = 1 << 20
_UNITS = ("run", "files", "bytes")
_HINT = "--per records=200,320 (any name; before, after), --per files or --per bytes"


def work_of(asked: str | None, before: Sequence[RunSums], after: Sequence[RunSums]) -> Work | None:
    """Returns the unit of work that `--per` names, or None for whole runs. Raises RequestError."""
    if asked is None or asked == "run":
        return None
    if asked in ("files", "bytes"):
        return _measured(asked, before, after)
    name, _, numbers = asked.partition("=")
    if not name.strip() or not numbers:
        raise RequestError(f"--per {asked}: not a unit of work", _HINT)
    return _given(name.strip(), numbers, len(before), len(after))


def check(asked: str | None) -> None:
    """Raises RequestError if the value of `--per` is not a unit of work. This check needs no store, so a
    wrong value is reported before stores are read."""
    if asked is not None and asked not in _UNITS and "=" not in asked:
        raise RequestError(f"--per {asked}: not a unit of work", meant(asked, _UNITS, _HINT))


def _measured(asked: str, before: Sequence[RunSums], after: Sequence[RunSums]) -> Work:
    units = []
    for run in (*before, *after):
        amount = _amount(run, asked)
        if not amount:
            raise RequestError(
                f"--per {asked}: {run.name} has no such value", "--per run compares whole runs"
            )
        units.append(amount)
    return Work(
        "MiB" if asked == "bytes" else asked, tuple(units[: len(before)]), tuple(units[len(before) :])
    )


def _amount(run: RunSums, asked: str) -> float:
    if asked == "files":
        return run.work["files"]
    return (run.work["read_bytes"] + run.work["written_bytes"]) / _MEBIBYTE


def _given(name: str, numbers: str, before: int, after: int) -> Work:
    try:
        units = [float(number) for number in numbers.split(",")]
    except ValueError:
        raise RequestError(f"--per {name}={numbers}: not numbers", _HINT) from None
    if any(not 0 < unit < float("inf") for unit in units):
        raise RequestError(f"--per {name}={numbers}: units of work must be above 0", _HINT)
    if len(units) == 2:
        return Work(name, (units[0],) * before, (units[1],) * after)
    if len(units) == before + after:
        return Work(name, tuple(units[:before]), tuple(units[before:]))
    raise RequestError(
        f"--per {name}={numbers}: {before + after} runs need 2 numbers, or one number for each run", _HINT
    )


def unequal_work(before: Sequence[RunSums], after: Sequence[RunSums]) -> Iterator[Remark]:
    """Yields a note for each sign that the runs did different amounts of work."""
    differing = [
        name
        for name in _comparable(before, after)
        if _differ(name, _middle(before, name), _middle(after, name))
    ]
    for name in differing[:2]:
        values = {
            f"before{_ENDINGS[name]}": _middle(before, name),
            f"after{_ENDINGS[name]}": _middle(after, name),
        }
        yield Remark("work", Message(_TEXTS[name], values))
    told = None if differing else _other_arguments(before, after)
    if told:
        yield Remark("work", told)
    if differing or told:
        yield Remark(
            "work",
            Message(
                N_(
                    "If the work was not equal, compare per unit of work: --per records=N,M (N before, "
                    "M after), --per files or --per bytes; --per run says that the work was equal."
                )
            ),
        )


def _other_arguments(before: Sequence[RunSums], after: Sequence[RunSums]) -> Message | None:
    """Returns a note if the same program had other arguments after the change and made many more or fewer
    calls. Otherwise returns None."""
    sides = [{tuple(map(str, run.captured.get("command") or ())) for run in side} for side in (before, after)]
    programs = {PurePath(command[0]).name if command else "" for side in sides for command in side}
    if len(programs) != 1 or "" in programs or {c[1:] for c in sides[0]} == {c[1:] for c in sides[1]}:
        return None
    first, second = (
        round(middle([run.manifest.rows.get("events", 0) for run in side]) or 0) for side in (before, after)
    )
    low, high = sorted((first, second))
    if high - low < _FEW_CALLS or high < MUCH * low:
        return None
    return Message(
        N_(
            "The work may not have been equal: {program} was started with other arguments, and made {before} "
            "-> {after} calls."
        ),
        {"program": programs.pop(), "before": first, "after": second},
    )


_ENDINGS = {"files": "_files", "read_bytes": "_bytes", "written_bytes": "_bytes", "size_bytes": "_bytes"}
_TEXTS = {
    "files": N_("The work may not have been equal: files used {before_files} -> {after_files}."),
    "read_bytes": N_("The work may not have been equal: read {before_bytes} -> {after_bytes}."),
    "written_bytes": N_("The work may not have been equal: written {before_bytes} -> {after_bytes}."),
    "size_bytes": N_(
        "The work may not have been equal: the files read hold {before_bytes} -> {after_bytes}."
    ),
}


def _comparable(before: Sequence[RunSums], after: Sequence[RunSums]) -> list[str]:
    """Returns the names of the quantities that indicate the amount of work. The number of bytes read is one
    only if the files' sizes are not known, because a program that reads the same data fewer times does not do
    less work."""
    sized = all(
        run.work["sized_read_bytes"] >= _KNOWN_SHARE * run.work["read_bytes"] for run in (*before, *after)
    )
    return ["size_bytes" if sized else "read_bytes", "written_bytes", "files"]


def _middle(runs: Sequence[RunSums], name: str) -> int:
    return round(middle([run.work[name] for run in runs]) or 0)


def _differ(name: str, before: int, after: int) -> bool:
    low, high = sorted((before, after))
    return high - low > _SMALL[name] and high > EQUAL_WITHIN * low
