"""Where data goes: stdout or a file, and as what."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from iodock.bounded.whole import whole_file
from iodock.errors import IodockError, RequestError

DATA_FORMATS = ("table", "csv", "json", "parquet")
CHART_FORMATS = ("png", "svg", "pdf", "html")
_TEXTS = ("txt", "text", "out", "log")
BINARY_FORMATS = ("parquet", "png", "pdf")
_ELSEWHERE = "name a file elsewhere with -o"


def chosen_format(wanted: str | None, output: str | None) -> str:
    """The format asked for, or the one that the file's ending says. Raises RequestError."""
    if wanted is not None:
        chosen = wanted
    else:
        ending = Path(output).suffix.lstrip(".").lower() if output else ""
        if ending and ending not in (*DATA_FORMATS, *CHART_FORMATS, *_TEXTS):
            known = ", ".join((*DATA_FORMATS, *CHART_FORMATS, *_TEXTS))
            raise RequestError(f"{output}: no format is called {ending}", f"endings: {known}; or --format")
        chosen = ending if ending in (*DATA_FORMATS, *CHART_FORMATS) else "table"
    if chosen in BINARY_FORMATS and output is None and sys.stdout.isatty():
        raise RequestError(f"{chosen} is no text for a terminal", f"-o FILE.{chosen}, or a pipe")
    return chosen


@contextmanager
def destination(output: str | None) -> Iterator[BinaryIO]:
    """The file to write, or stdout. A file appears whole or not at all."""
    if output is None or output == "-":
        sys.stdout.flush()
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with whole_file(Path(output), _ELSEWHERE) as out:
        yield out


def check_folder(output: str | None) -> None:
    """That a file can be made there: for who asks before something long runs. Raises IodockError."""
    if output is None or output == "-" or Path(output).exists():
        return
    folder = Path(output).parent
    if not folder.is_dir():
        raise IodockError(f"{output}: no such folder", f"mkdir -p {folder}")
    if not os.access(folder, os.W_OK):
        raise IodockError(f"{output}: you may not write there", _ELSEWHERE)
