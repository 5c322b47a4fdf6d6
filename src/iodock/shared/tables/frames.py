"""Converts tables of answers for Python programs: to Arrow tables with time types, and to data frames of
pandas and polars."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from iodock.shared.answer import Answer, Column
from iodock.shared.errors import MissingPackage

if TYPE_CHECKING:
    import pandas
    import polars

_NS_IN = {"ns": 1, "s": 1_000_000_000}
"""Number of ns in each unit of time."""


def with_times(answer: Answer) -> pa.Table:
    """Returns the answer's table, in which times have Arrow's time types, in ns. Points in time become
    timestamps (UTC) if the source has dates, and otherwise durations since the start of the run. Lengths of
    time become durations."""
    table = answer.table
    for at, column in enumerate(answer.columns):
        if column.unit in _NS_IN and (times := _times(answer, column)) is not None:
            table = table.set_column(at, column.name, times)
    return table


def _times(answer: Answer, column: Column) -> pa.ChunkedArray | None:
    """Returns a column with a time type. Returns None if a value does not fit into 64 bits of ns, which
    happens only with damaged input."""
    numbers = answer.table.column(column.name)
    try:
        whole = _whole_ns(numbers, _NS_IN[column.unit or ""])
        if column.role != "time":
            return whole.cast(pa.duration("ns"))
        if answer.clock == "epoch":
            return whole.cast(pa.timestamp("ns", tz="UTC"))
        return pc.subtract_checked(whole, answer.first_ts or 0).cast(pa.duration("ns"))
    except pa.ArrowInvalid:
        return None


def _whole_ns(numbers: pa.ChunkedArray, ns: int) -> pa.ChunkedArray:
    if pa.types.is_floating(numbers.type):
        known = pc.if_else(pc.is_finite(numbers), numbers, None)
        return pc.round(pc.multiply(known, float(ns))).cast(pa.int64())
    return pc.multiply_checked(numbers.cast(pa.int64()), ns)


def to_pandas(table: pa.Table) -> pandas.DataFrame:
    """Converts a table to a pandas data frame. Integer columns with missing values get a nullable type such
    as Int64. Raises MissingPackage if pandas is not installed."""
    pd = _package("pandas", "to_pandas()")
    with_unknown = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype(), pa.uint64(): pd.UInt64Dtype()}
    frame: pandas.DataFrame = table.to_pandas()
    for name in table.column_names:
        column = table.column(name)
        # By default, pandas would convert these columns to floats. A time in ns since the epoch has 19
        # digits, of which a float keeps only 16.
        if column.type in with_unknown and column.null_count:
            frame[name] = column.to_pandas(types_mapper=with_unknown.get)
    return frame


def to_polars(table: pa.Table) -> polars.DataFrame:
    """Converts a table to a polars data frame. Raises MissingPackage if polars is not installed."""
    pl = _package("polars", "to_polars()")
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return frame


def _package(name: str, wish: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
    raise MissingPackage(f"{wish} needs the Python package {name}", f"pip install {name}")
