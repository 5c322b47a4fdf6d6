"""Reads and writes measurements as JSON. If a file is wrong, MeasurementError names the position of the error
in the file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from iodock.file_system.health.measurements import (
    PLAIN_FIELDS,
    SCHEMA,
    Cache,
    Cell,
    Json,
    Latency,
    Limit,
    Load,
    MeasurementError,
    Measurements,
    Protocol,
    Remark,
    Unit,
    User,
)
from iodock.shared.bounded import documents, files
from iodock.shared.bounded.limits import RESULT
from iodock.shared.language import fill
from iodock.shared.message import Message

_HINT = "create it with `iodock health run DIR --format json`, or with `iodock bench show FILE --format json`"


def plain(remark: Remark) -> str:
    """Returns the text of a remark in English, with unformatted numbers."""
    return fill(remark.message.text, remark.message.values)


def to_json(measurements: Measurements, say: Callable[[Remark], str] = plain) -> dict[str, Json]:
    """Converts measurements to the form that the JSON schema describes. SAY is the function that converts a
    remark to text."""
    return {
        "schema": SCHEMA,
        "protocol": _protocol_out(measurements.protocol),
        "cells": [cell_out(cell) for cell in measurements.cells],
        "remarks": [
            {"kind": one.kind, "at": dict(one.at), "text": say(one), "evidence": dict(one.evidence)}
            for one in measurements.remarks
        ],
    }


def text_of(measurements: Measurements, say: Callable[[Remark], str] = plain) -> str:
    """Returns the text of a JSON file with these measurements. Each cell and each remark has a line of its
    own."""
    whole = to_json(measurements, say)
    lines = {
        name: ",\n    ".join(_line(one) for one in rows) if isinstance(rows := whole[name], list) else ""
        for name in ("cells", "remarks")
    }
    listed = [
        f'  "{name}": [\n    {text}\n  ]' if text else f'  "{name}": []' for name, text in lines.items()
    ]
    head = [f'  "{name}": {_line(whole[name])}' for name in ("schema", "protocol")]
    return "{\n" + ",\n".join((*head, *listed)) + "\n}\n"


def _line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _protocol_out(protocol: Protocol) -> dict[str, Json]:
    limits: list[Json] = [
        {"name": one.name, "bytes_per_s": one.bytes_per_s, "per": one.per} for one in protocol.limits
    ]
    return {
        **{name: getattr(protocol, name) for name in PLAIN_FIELDS},
        "limits": limits,
        "settings": dict(protocol.settings),
        "notes": list(protocol.notes),
        "parts": [_protocol_out(part) for part in protocol.parts],
    }


def cell_out(cell: Cell) -> dict[str, Json]:
    """Converts a cell to its JSON form."""
    out: dict[str, Json] = {}
    for one in fields(Cell):
        value = getattr(cell, one.name)
        if isinstance(value, Latency):
            value = {name.name: getattr(value, name.name) for name in fields(Latency)}
        elif isinstance(value, Load):
            value = _load_out(value)
        elif isinstance(value, tuple):
            value = list(value)
        elif isinstance(value, Mapping):
            value = dict(value)
        elif isinstance(value, (Unit, Cache)):
            value = value.value
        out[one.name] = value
    return out


_AMOUNTS = {"by_cpu": "processors", "by_io": "bytes_per_s"}


def _load_out(load: Load) -> dict[str, Json]:
    out: dict[str, Json] = {
        name: getattr(load, name) for name in ("load_average", "others_cpu_share", "steal_share")
    }
    for name, amount in _AMOUNTS.items():
        users: tuple[User, ...] | None = getattr(load, name)
        out[name] = None if users is None else [{"name": one.name, amount: one.amount} for one in users]
    return out


def read(path: Path) -> Measurements:
    """Reads measurements from a JSON file. Raises MeasurementError."""
    try:
        content = documents.from_json(files.content(path, RESULT, MeasurementError))
    except OSError as error:
        raise MeasurementError(f"{path}: {error.strerror or error}", "name a file of measurements") from error
    except documents.DocumentError as error:
        raise MeasurementError(f"{path}{error.at}: {error}", _HINT) from error
    return from_json(content, str(path))


def from_json(content: Any, path: str) -> Measurements:
    """Converts parsed JSON to measurements. PATH names the file in messages. Members that this version does
    not know are ignored. Raises MeasurementError."""
    whole = _Place(path, "", content)
    schema = whole.member("schema", (str,), True).value
    if schema not in (None, SCHEMA):
        raise MeasurementError(
            f"{path}: schema {schema!r} is not known to this iodock", "a newer iodock can read it"
        )
    cells = tuple(_cell_in(one) for one in whole.listed("cells", needed=True))
    remarks = tuple(_remark_in(one) for one in whole.listed("remarks"))
    return Measurements(_protocol_in(whole.member("protocol", (dict,))), cells, remarks)


class _Place:
    """A value within a JSON document, with its file and its position there for messages."""

    def __init__(self, path: str, where: str, value: Any) -> None:
        self.path, self.where, self.value = path, where, value
        if not where and not isinstance(value, dict):
            raise self.wrong("is not an object with cells")

    def wrong(self, what: str) -> MeasurementError:
        return MeasurementError(f"{self.path}: {f'{self.where} ' if self.where else ''}{what}", _HINT)

    def member(self, name: str, types: tuple[type, ...], optional: bool = False) -> _Place:
        place = _Place(self.path, f"{self.where}.{name}".lstrip("."), self.value.get(name))
        if place.value is None and optional:
            return place
        if name not in self.value:
            raise place.wrong("is missing")
        if not isinstance(place.value, types) or (isinstance(place.value, bool) and bool not in types):
            raise place.wrong(f"should be {' or '.join(_NAMES[one] for one in types)}")
        if isinstance(place.value, (int, float)) and not _is_finite(place.value):
            raise place.wrong("is not finite")
        return place

    def listed(self, name: str, needed: bool = False) -> list[_Place]:
        value = self.member(name, (list,), not needed).value or []
        places = [
            _Place(self.path, f"{self.where}.{name}[{at}]".lstrip("."), one) for at, one in enumerate(value)
        ]
        for place in places:
            if not isinstance(place.value, dict):
                raise place.wrong("should be an object")
        return places

    def text(self, name: str, optional: bool = True) -> str | None:
        value: str | None = self.member(name, (str,), optional).value
        return value

    def number(self, name: str, optional: bool = True) -> float | None:
        value = self.member(name, (int, float), optional).value
        return None if value is None else float(value)

    def count(self, name: str, least: int = 0) -> int | None:
        place = self.member(name, (int,), True)
        if place.value is not None and place.value < least:
            raise place.wrong(f"should be at least {least}")
        value: int | None = place.value
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        return dict(self.member(name, (dict,), True).value or {})


_NAMES: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    dict: "an object",
    list: "a list",
}


def _protocol_in(place: _Place) -> Protocol:
    limits = tuple(
        Limit(
            one.text("name", False) or "", one.number("bytes_per_s", False) or 0.0, one.text("per") or "total"
        )
        for one in place.listed("limits")
    )
    return Protocol(
        **{name: place.text(name) for name in PLAIN_FIELDS},
        limits=limits,
        settings=place.mapping("settings"),
        notes=tuple(str(note) for note in place.member("notes", (list,), True).value or ()),
        parts=tuple(_protocol_in(part) for part in place.listed("parts")),
    )


def _cell_in(place: _Place) -> Cell:
    return Cell(
        test=place.text("test", False) or "",
        operation=place.text("operation", False) or "",
        size_bytes=place.count("size_bytes"),
        processes=place.count("processes", 1),
        nodes=place.count("nodes", 1),
        value=place.number("value", False) or 0.0,
        unit=_one_of(place, "unit", Unit),
        repeats=place.count("repeats", 1),
        spread=place.number("spread"),
        cache=_one_of(place, "cache", Cache) if place.text("cache") is not None else None,
        latency_ns=_latency_in(place),
        values=_values_in(place.member("values", (list,), True)),
        minimum=place.number("minimum"),
        maximum=place.number("maximum"),
        variant={name: str(value) for name, value in place.mapping("variant").items()},
        cache_reason=place.text("cache_reason"),
        volume_bytes=place.count("volume_bytes"),
        seconds=place.number("seconds"),
        source=place.text("source"),
        load=_load_in(place),
    )


def _load_in(place: _Place) -> Load | None:
    inner = place.member("load", (dict,), True)
    if inner.value is None:
        return None

    def users(name: str) -> tuple[User, ...] | None:
        if inner.member(name, (list,), True).value is None:
            return None
        given = inner.listed(name)
        return tuple(
            User(one.text("name", False) or "", one.number(_AMOUNTS[name], False) or 0.0) for one in given
        )

    return Load(
        load_average=inner.number("load_average"),
        others_cpu_share=inner.number("others_cpu_share"),
        steal_share=inner.number("steal_share"),
        by_cpu=users("by_cpu"),
        by_io=users("by_io"),
    )


Kind = TypeVar("Kind", Unit, Cache)


def _one_of(place: _Place, name: str, kind: type[Kind]) -> Kind:
    try:
        return kind(place.text(name, False) or "")
    except ValueError:
        raise place.member(name, (str,)).wrong(f"should be {' or '.join(kind)}") from None


def _latency_in(place: _Place) -> Latency | None:
    inner = place.member("latency_ns", (dict,), True)
    if inner.value is None:
        return None
    times = {name: inner.number(name) for name in ("p50", "p99", "p99_9", "max", "min", "mean")}
    return Latency(**times, count=inner.count("count"))


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        # An integer with hundreds of digits can't be converted to a float.
        return False


def _values_in(place: _Place) -> tuple[float, ...]:
    values = place.value or []
    for at, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_finite(value):
            raise place.wrong(f"[{at}] should be a number")
    return tuple(float(value) for value in values)


def _remark_in(place: _Place) -> Remark:
    text = place.text("text", False) or ""
    message = Message(text)
    return Remark(place.text("kind", False) or "", place.mapping("at"), message, place.mapping("evidence"))
