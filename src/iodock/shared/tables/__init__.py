"""Writes the table of an answer in each format for display or export. A data format is a module with
`write`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from iodock.shared.answer import Answer

DATA_FORMATS = ("csv", "json", "parquet")


def write_data(answer: Answer, form: str, out: BinaryIO) -> None:
    """Writes the whole answer in one of `DATA_FORMATS`."""
    import_module(f"{__name__}.{form}").write(answer, out)
