"""Shows the I/O ratio in the terminal: a table as wide as the window, and below it the meaning of each
verdict."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from iodock.shared.answer import Answer
from iodock.shared.language import N_, Language, language_in
from iodock.shared.lines import print_sentence, wrapped
from iodock.shared.text import shorten, visible
from iodock.shared.units import BYTES, NANOSECONDS, number_text

ENGLISH = language_in("en")
MOST_ROWS = 1_000
WIDTH_WITHOUT_TERMINAL = 120
_NARROWEST_NAME = 14
_GAP = 2
_STYLES = {"I/O-heavy": "bold red", "between": "yellow", "compute": "green", "unknown": "dim"}
_ALWAYS = ("utilisation", "reading")
# If the window is narrow, columns are left out, beginning with the last one in this list.
_TELLING = ("user", "real", "system", "cores", "expected", "moved", "count", "node")
_ORDER = ("node", "count", "real", "user", "system", "cores", "moved", "expected", "utilisation", "reading")
_HEADINGS = {
    "node": N_("node"),
    "count": N_("count"),
    "real": N_("real"),
    "user": N_("user"),
    "system": N_("system"),
    "cores": N_("cores"),
    "moved": "I/O",
    "expected": N_("of the expected volume"),
    "utilisation": N_("use"),
    "reading": N_("reading"),
}
READINGS = (N_("I/O-heavy"), N_("between"), N_("compute"), N_("unknown"))
_EXPLAINED = 8

Row = Mapping[str, Any]


def render(answer: Answer, width: int | None = None, colour: bool = False, text: Language = ENGLISH) -> str:
    """Formats the whole answer as text. WIDTH is in cells, or None if the output is not a terminal."""
    out = io.StringIO()
    size = width or WIDTH_WITHOUT_TERMINAL
    console = Console(
        file=out, width=size, force_terminal=colour, no_color=not colour, highlight=False, soft_wrap=False
    )
    rows = answer.table.slice(0, MOST_ROWS).to_pylist()
    print_sentence(console, text.gettext(N_("CPU utilisation: use = (user / cores) / real")), "bold")
    if not rows:
        console.print(text.gettext(N_("no times were found")))
        return out.getvalue()
    console.print(_table(rows, size, text))
    if answer.table.num_rows > len(rows):
        first = N_("the first {shown} of {n} rows; --format csv has all")
        console.print(text.gettext(first, shown=f"{len(rows):,}", n=f"{answer.table.num_rows:,}"))
    _explain(answer, console, text)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _table(rows: Sequence[Row], width: int, text: Language) -> Table:
    cells = {name: [_cell(row, name) for row in rows] for name in _ORDER}
    cells["reading"] = [text.gettext(one) for one in cells["reading"]]
    headings = {name: text.gettext(_HEADINGS[name]) for name in _ORDER}
    names = [visible(row["name"]) for row in rows]
    kept, room = _fitting(cells, headings, names, width)
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold", width=None)
    table.add_column(text.gettext(N_("name")), no_wrap=True)
    for name in kept:
        right = name not in ("node", "reading")
        table.add_column(headings[name], justify="right" if right else "left", no_wrap=True)
    for at, label in enumerate(names):
        texts = [Text(cells[name][at], style=_style(rows[at], name)) for name in kept]
        table.add_row(Text(shorten(label, room)), *texts)
    return table


def _style(row: Row, name: str) -> str:
    return _STYLES.get(row["reading"], "") if name == "reading" else ""


def _fitting(
    cells: Mapping[str, list[str]], headings: Mapping[str, str], names: list[str], width: int
) -> tuple[list[str], int]:
    """Returns the columns that fit into WIDTH cells, and the number of cells that remain for the name."""
    sizes = {
        name: max(cell_len(headings[name]), *map(cell_len, texts)) + _GAP for name, texts in cells.items()
    }
    longest = max(len("name"), *map(cell_len, names))
    used = sum(sizes[name] for name in _ALWAYS) + min(longest, _NARROWEST_NAME) + _GAP
    kept = set(_ALWAYS)
    for name in _TELLING:
        if not _says_something(name, cells[name], names):
            continue
        used += sizes[name]
        if used > width + _GAP:
            used -= sizes[name]
            break
        kept.add(name)
    spare = width + _GAP - used
    return [name for name in _ORDER if name in kept], min(longest, _NARROWEST_NAME) + max(0, spare)


def _says_something(name: str, texts: Sequence[str], names: Sequence[str]) -> bool:
    if name not in ("node", "count", "moved", "expected"):
        return True
    if name in ("moved", "expected"):
        return any(texts)
    return any(text not in ("", "1") for text in texts) and list(texts) != list(names)


def _cell(row: Row, name: str) -> str:
    if name == "user":
        return _seconds(row["user_seconds"]) or _both(row)
    if name in ("real", "system"):
        return _seconds(row[f"{name}_seconds"])
    if name == "utilisation":
        return share_text(row["utilisation"]) + ("*" if row["basis"] == "user+system" else "")
    if name == "cores":
        return (
            "" if row["cores"] is None else number_text(row["cores"], 4) + ("" if row["cores_known"] else "?")
        )
    if name == "moved":
        return "" if row["io_bytes"] is None else BYTES.text(row["io_bytes"])
    if name == "expected":
        return "" if row["io_factor"] is None else f"{number_text(row['io_factor'])} x"
    if name == "count":
        return f"{row['count']:,}"
    return visible(row[name] or "")


def _both(row: Row) -> str:
    return f"{_seconds(row['both_seconds'])}*" if row["both_seconds"] is not None else ""


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    return NANOSECONDS.text(value * 1e9) if value > 0 else f"{value:,.0f} s"


def share_text(value: float | None) -> str:
    """Formats a utilisation with three significant digits, such as `0.000479` or `0.927`. A missing value
    becomes `-`."""
    return "-" if value is None else number_text(value)


def _reasons(answer: Answer) -> list[tuple[str, str, str, int]]:
    """Returns the verdict, the reason, the next step and the number of rows of each combination. The most
    frequent one comes first."""
    names = ["reading", "why", "next"]
    found = answer.table.group_by(names, use_threads=False).aggregate([([], "count_all")])
    rows = zip(*(found.column(name).to_pylist() for name in (*names, "count_all")), strict=True)
    return sorted(rows, key=lambda row: -row[3])


def _explain(answer: Answer, console: Console, text: Language) -> None:
    """Prints each verdict once, with its reason and the next step."""
    found = _reasons(answer)
    console.print()
    for reading, why, following, count in found[:_EXPLAINED]:
        times = f" ({count:,})" if len(found) > 1 or count > 1 else ""
        name = f"{text.gettext(reading)}{times}"
        first, *more = wrapped(f"{name}: {text.told(why)}", console.width)
        coloured = (first[: len(name)], _STYLES.get(reading, ""))
        console.print(Text.assemble(coloured, "\n".join((first[len(name) :], *more))))
        print_sentence(console, text.gettext(N_("next: {step}"), step=text.told(following)), indent=2)
    if len(found) > _EXPLAINED:
        others = N_("and {n} other reasons; --format csv has all")
        console.print(text.gettext(others, n=len(found) - _EXPLAINED))
    for line in _remarks(answer, text):
        print_sentence(console, line)


def _remarks(answer: Answer, text: Language) -> Iterator[str]:
    """Yields sentences that explain columns and marks of the table."""
    if pc.any(pc.greater(answer.table.column("count"), 1)).as_py():
        yield text.gettext(N_("count: number of records added up; their real times are added up, too"))
    if answer.table.column("both_seconds").null_count < answer.table.num_rows:
        yield text.gettext(N_("*: user and system time together; the source does not separate them"))
    if (expected := answer.options.get("expected_bytes")) is not None:
        of = N_("of the expected volume: I/O divided by the {size} of --expect")
        yield text.gettext(of, size=BYTES.text(expected))
    unsaid = pc.invert(answer.table.column("cores_known"))
    if pc.any(pc.and_(unsaid, pc.is_valid(answer.table.column("cores")))).as_py():
        yield text.gettext(N_("?: the source does not give the number of cores; specify it with --cores N"))
