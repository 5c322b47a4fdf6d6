"""Chooses destination and format of data: stdout or a file."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from iodock.cli.spoken import language
from iodock.shared.bounded.whole import whole_file
from iodock.shared.charts import CHART_FORMATS
from iodock.shared.errors import IodockError, RequestError
from iodock.shared.tables import DATA_FORMATS

if TYPE_CHECKING:
    from iodock.shared.answer import Answer

TABLE_FORMATS = ("table", *DATA_FORMATS)
_TEXTS = ("txt", "text", "out", "log")
BINARY_FORMATS = ("parquet", "png", "pdf")
_ELSEWHERE = "name a file in another folder with -o"


def chosen_format(wanted: str | None, output: str | None) -> str:
    """Returns the requested format, or the one that the file's ending determines. Raises RequestError."""
    if wanted is not None:
        chosen = wanted
    else:
        ending = Path(output).suffix.lstrip(".").lower() if output else ""
        if ending and ending not in (*TABLE_FORMATS, *CHART_FORMATS, *_TEXTS):
            known = ", ".join((*TABLE_FORMATS, *CHART_FORMATS, *_TEXTS))
            raise RequestError(
                f"{output}: no format has the ending {ending}", f"endings: {known}; or --format"
            )
        chosen = ending if ending in (*TABLE_FORMATS, *CHART_FORMATS) else "table"
    if chosen in BINARY_FORMATS and output is None and sys.stdout.isatty():
        raise RequestError(
            f"{chosen} is not text, so it can't be printed on a terminal", f"use -o FILE.{chosen}, or a pipe"
        )
    return chosen


def form_of(output: str) -> str:
    """Returns the format for data that has no chart: the one that the file's ending determines, else a
    table."""
    return {".json": "json", ".html": "html"}.get(Path(output).suffix, "table")


@contextmanager
def destination(output: str | None, sideways: bool = False) -> Iterator[BinaryIO]:
    """Opens the output file, or stdout; on a terminal stdout goes through the pager. A file appears as a
    whole or not at all. SIDEWAYS: lines may be wider than a screen."""
    if output is None or output == "-":
        from iodock.cli.pager import paged

        with paged(sideways) as out:
            yield out
        return
    with whole_file(Path(output), _ELSEWHERE) as out:
        yield out


def check_folder(output: str | None) -> None:
    """Checks, before a long operation, that the output file can be created in its folder. Raises
    IodockError."""
    if output is None or output == "-" or Path(output).exists():
        return
    folder = Path(output).parent
    if not folder.is_dir():
        raise IodockError(f"{output}: no such folder", f"mkdir -p {folder}")
    if not os.access(folder, os.W_OK):
        raise IodockError(f"{output}: you may not write there", _ELSEWHERE)


def is_coloured(output: str | None) -> bool:
    """Whether output to OUTPUT may be in colour."""
    return (
        output in (None, "-")
        and sys.stdout.isatty()
        and os.environ.get("TERM", "dumb") != "dumb"
        and not os.environ.get("NO_COLOR")
    )


def write_table(
    answer: Answer, output: str | None, is_wide: bool, is_query: bool = False, more: str = ""
) -> None:
    """Writes an answer as a table. In a terminal it has only the columns that fit, unless IS_WIDE. A query
    has all columns, even empty ones. MORE: a line below the table."""
    from iodock.shared.tables.table import render, terminal_width

    is_shown = output in (None, "-")
    width = terminal_width() if is_shown and not is_wide else None
    text = render(answer, width, is_coloured(output), empty_columns=is_query, text=language()) + more
    with destination(output, sideways=is_wide) as out:
        out.write(text.encode("utf-8", "backslashreplace"))
