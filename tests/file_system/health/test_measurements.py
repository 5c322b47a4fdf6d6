"""Tests measurements as data and as JSON: written files follow the schema and are read back unchanged."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from iodock.file_system.health import measurements_json
from iodock.file_system.health.measurements import (
    Cache,
    Cell,
    Latency,
    Limit,
    MeasurementError,
    Measurements,
    Protocol,
    Remark,
    Unit,
    joined,
    repeated,
    spread_of,
)
from iodock.shared.message import Message
from places import ROOT

SCHEMA = json.loads((ROOT / "docs" / "reference" / "measurements.schema.json").read_text())
CELL = Cell("large-transfer", "read", 1 << 20, 4, 2, 2e9, Unit.BYTES_PER_S, 3, 0.04, Cache.UNCACHED)
FULL = Measurements(
    Protocol(
        "iodock",
        "0.1",
        "2026-11-21T03:18:17+00:00",
        limits=(Limit("link of a node", 1.25e9, "node"),),
        settings={"class": "S", "memory_bytes": 1 << 34},
        notes=("one cell was left out",),
        parts=(Protocol("ior", "4.1"),),
    ),
    (
        CELL,
        repeated(
            replace(
                CELL,
                latency_ns=Latency(1.0, 2.0, 3.0, 4.0, count=9),
                variant={"api": "POSIX"},
                cache_reason="O_DIRECT",
                volume_bytes=1 << 30,
                seconds=2.5,
                source="a.json:3",
            ),
            (1.0, 3.0, 2.5),
        ),
        Cell(
            "metadata", "file-stat", None, 1, 1, 9e4, Unit.OPERATIONS_PER_S, 1, None, minimum=1.0, maximum=2.0
        ),
    ),
    (
        Remark(
            "levels-off",
            {"processes": 8},
            Message("Levels off at {processes}", {"processes": 8}),
            {"gain": 0.1},
        ),
    ),
)


def test_measurement_json_fits_its_schema() -> None:
    jsonschema.validate(measurements_json.to_json(FULL), SCHEMA)
    members = SCHEMA["properties"]["cells"]["items"]
    assert list(members["properties"]) == members["required"] == [one.name for one in fields(Cell)]


def test_written_measurements_are_read_back_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    path.write_text(measurements_json.text_of(FULL), encoding="utf-8")
    again = measurements_json.read(path)
    assert (again.protocol, again.cells) == (FULL.protocol, FULL.cells)
    assert again.remarks[0].message.text == "Levels off at 8"
    assert again.remarks[0].evidence == {"gain": 0.1}


def test_a_document_with_only_the_required_keys_is_read() -> None:
    """The document has exactly the members that the published format requires."""
    cell = {
        "test": "t",
        "operation": "write",
        "size_bytes": 4096,
        "processes": 1,
        "nodes": 1,
        "value": 1,
        "unit": "bytes_per_s",
        "repeats": 3,
        "spread": 0.1,
        "cache": None,
        "latency_ns": {"p50": 1, "p99": 2, "p99_9": 3, "max": 4},
    }
    read = measurements_json.from_json({"protocol": {}, "cells": [cell], "remarks": []}, "m.json")
    assert read.cells[0].latency_ns == Latency(1, 2, 3, 4)


@pytest.mark.parametrize(
    ("member", "value", "said"),
    [
        ("value", None, "cells[0].value should be a whole number or a number"),
        ("value", "12", "cells[0].value should be"),
        ("value", True, "cells[0].value should be"),
        ("value", float("inf"), "cells[0].value is not finite"),
        ("unit", "MiB/s", "cells[0].unit should be bytes_per_s or"),
        ("processes", 0, "cells[0].processes should be at least 1"),
        ("cache", "warm", "cells[0].cache should be cached or"),
        ("values", [1, "x"], "cells[0].values [1] should be a number"),
        ("latency_ns", {"p50": "x"}, "cells[0].latency_ns.p50 should be"),
    ],
)
def test_invalid_fields_are_named(member: str, value: Any, said: str) -> None:
    content: Any = measurements_json.to_json(FULL)
    content["cells"][0][member] = value
    with pytest.raises(MeasurementError) as raised:
        measurements_json.from_json(content, "m.json")
    assert str(raised.value).startswith(f"m.json: {said}")
    assert raised.value.hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "m.json:1: is not JSON"),
        ("[]", "is not an object with cells"),
        ('{"protocol": {}}', "cells is missing"),
        ('{"protocol": {}, "cells": [1]}', "cells[0] should be an object"),
        ('{"schema": "iodock-measurements-9", "cells": []}', "schema 'iodock-measurements-9' is not known"),
        ("[" * 100_000, "m.json: is nested too deeply"),
        ('{"protocol": {}, "cells": [' + "9" * 5000 + "]}", "m.json: "),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(MeasurementError) as raised:
        measurements_json.read(tmp_path / "m.json")
    assert said in str(raised.value)


def test_the_spread_is_relative_to_the_mean() -> None:
    assert spread_of((90.0, 110.0)) == pytest.approx(0.1414, abs=1e-4)
    assert spread_of((5.0,)) is None
    assert spread_of((0.0, 0.0)) is None


def test_joined_results_keep_the_common_fields() -> None:
    one = Measurements(Protocol("ior", "4.0", host="a"), (CELL,))
    other = Measurements(Protocol("ior", "4.1", host="a"), (CELL, CELL))
    both = joined((one, other))
    assert (both.protocol.tool, both.protocol.version, both.protocol.host) == ("ior", None, "a")
    assert len(both.cells) == 3
    assert len(joined((both, one)).protocol.parts) == 3
