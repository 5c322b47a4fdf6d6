"""Tests that `iodock monitor top` and the portal show each quantity in the same form and under the same
name."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from iodock.centre.portal.numbers import nice_top, tick
from iodock.centre.portal.rendering import cell
from iodock.centre.portal.shown.jobs import columns
from iodock.centre.views.amounts import amount, short_time
from iodock.centre.views.top_text import Heading, printed, top_table
from iodock.shared.language import language_in

TEXT = language_in("en")
SECOND = 1_000_000_000
VALUES = (0.0, 0.25, 10.0, 999.0, 1000.0, 1024.0, 1536.0, 123_456.0, 10**6, 2.0**30, 5.5 * 2**40)


@pytest.mark.parametrize("value", VALUES)
def test_top_and_portal_format_amounts_alike(value: float) -> None:
    rates = {"read_rate": value, "write_rate": value * 3, "metadata_rate": value / 7}
    row = {"name": "4711", "user": "ann", "file_systems": "lfs", "nodes": 3, "command": None,
           "job_name": None, "exact": True, "read_ts": 1, "total": 1, **rates}  # fmt: skip
    heading = Heading(time.time_ns(), True, "job", "write", "servers", 60.0)
    lines = printed(top_table(pa.Table.from_pylist([row]), heading, TEXT, 160, 20), 160, False).splitlines()
    head = next(line for line in lines if line.startswith("job"))
    shown = next(line for line in lines if line.startswith("4711"))
    of_portal = {column.key: column for column in columns(TEXT)}
    place = 0
    for name in rates:
        assert of_portal[name].title in head
        text = cell(of_portal[name], row)
        place = shown.index(f" {text} ", place) + 1
    assert of_portal["hosts"].title in head


def test_the_averaging_period_of_rates_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    rows = pa.Table.from_pylist([{"exact": True, "total": 1}]).slice(1)
    noon = 1_775_044_800 * SECOND
    said = [
        printed(
            top_table(rows, Heading(noon, False, "job", "write", "servers", over), TEXT, 120, 9), 120, False
        )
        for over in (60.0, 86_400.0)
    ]
    monkeypatch.undo()
    time.tzset()
    assert "rates are means over 60 s, since 11:59:00" in said[0]
    assert "rates are means over 24 h 0 min, since 2026-03-31 12:00:00" in said[1]


def test_amounts_are_written_with_units() -> None:
    assert [amount(value, "bytes") for value in (None, 0, 1, 1536, 10 * 2**30)] == [
        "", "0", "1 B", "1.5 KiB", "10 GiB",
    ]  # fmt: skip
    assert amount(2.0**20, "bytes_rate") == "1 MiB/s" and amount(0.5, "bytes_rate") == "0.5 B/s"
    assert amount(12_345.0, "rate") == "12.3 k/s" and amount(12_345, "integer") == "12,345"


@pytest.mark.parametrize("value", [0.3, 1.0, 700.0, 1023.0, 1025.0, 3e6, 9.99e8, 1e12])
def test_byte_axes_end_at_round_numbers_of_their_unit(value: float) -> None:
    top = nice_top(value, "bytes_rate")
    assert value <= top <= 4 * value
    for level in (top, top / 2):
        number = float(amount(level, "bytes_rate").split()[0].replace(",", ""))
        # 512 is half of 1 KiB, and the only exception.
        assert number == 512 or f"{number:g}".strip("0.") in ("1", "2", "4", "5", "25")


def test_labels_of_a_short_axis_are_distinct() -> None:
    length = 110 * 1_000_000_000
    labels = [tick(1_780_000_000_000_000_000 + length * part // 4, length) for part in range(5)]
    assert len(set(labels)) == 5
    assert len(tick(0, 3600 * 1_000_000_000)) == len("12:00")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0009997, "1.00 ms"),
        (0.00099949, "999 µs"),
        (0.9996, "1.00 s"),
        (999.7, "1,000 s"),
        (999.4, "999 s"),
        (9.996e-7, "1.00 µs"),
    ],
)
def test_times_that_round_up_use_the_next_unit(seconds: float, shown: str) -> None:
    assert short_time(seconds) == shown


def test_times_have_only_one_unit_prefix() -> None:
    for at in range(-900, 600):
        number, unit = short_time(10 ** (at / 100)).split(" ")
        assert unit in ("ns", "µs", "ms", "s")
        assert unit == "s" or (float(number) < 1000 and len(number.replace(".", "")) <= 3)
