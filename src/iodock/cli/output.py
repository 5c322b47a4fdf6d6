"""Determines where a command writes its data (stdout or a file), and in which format."""

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
    """Returns the format WANTED, or else the one that the ending of the file OUTPUT indicates. Raises
    RequestError for an unknown ending, and for a binary format on a terminal."""
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
    """Returns the format that the ending of OUTPUT indicates, for commands that have no charts. Endings other
    than .json and .html mean a table."""
    return {".json": "json", ".html": "html"}.get(Path(output).suffix, "table")


@contextmanager
def destination(output: str | None, sideways: bool = False) -> Iterator[BinaryIO]:
    """Opens the file OUTPUT for writing, or stdout. A file appears only when it is complete. On a terminal,
    long text is shown in a pager. SIDEWAYS states that lines may be wider than the screen."""
    if output is None or output == "-":
        from iodock.cli.pager import paged

        with paged(sideways) as out:
            yield out
        return
    with whole_file(Path(output), _ELSEWHERE) as out:
        yield out


def check_folder(output: str | None) -> None:
    """Checks that the output file can be created. Commands call this before long operations, so that an
    invalid name does not lose a result. Raises IodockError."""
    if output is None or output == "-" or Path(output).exists():
        return
    folder = Path(output).parent
    if not folder.is_dir():
        raise IodockError(f"{output}: no such folder", f"mkdir -p {folder}")
    if not os.access(folder, os.W_OK):
        raise IodockError(f"{output}: you may not write there", _ELSEWHERE)


def is_coloured(output: str | None) -> bool:
    """Returns whether text that is written to OUTPUT may contain colours."""
    return (
        output in (None, "-")
        and sys.stdout.isatty()
        and os.environ.get("TERM", "dumb") != "dumb"
        and not os.environ.get("NO_COLOR")
    )


def write_table(
    answer: Answer, output: str | None, is_wide: bool, is_query: bool = False, more: str = ""
) -> None:
    """Writes an answer as a table. On a terminal, columns that do not fit are left out unless IS_WIDE is set.
    IS_QUERY states that the answer is that of a user's SQL query, whose empty columns are kept. MORE is a
    line below the table."""
    from iodock.shared.tables.table import render, terminal_width

    is_shown = output in (None, "-")
    width = terminal_width() if is_shown and not is_wide else None
    text = render(answer, width, is_coloured(output), empty_columns=is_query, text=language()) + more
    with destination(output, sideways=is_wide) as out:
        out.write(text.encode("utf-8", "backslashreplace"))
