"""Writes the table of an answer in several formats, for display or export. Each data format is a module with
a function `write`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from iodock.shared.answer import Answer

DATA_FORMATS = ("csv", "json", "parquet")


def write_data(answer: Answer, form: str, out: BinaryIO) -> None:
    """Writes the whole answer to OUT. FORM is one of DATA_FORMATS."""
    import_module(f"{__name__}.{form}").write(answer, out)
