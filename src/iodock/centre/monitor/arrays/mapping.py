"""Reads the file in which a site declares the counters of an array: each entry says which quantity of which
target a CSV column or SNMP object holds.

The keys of the file are described in docs/how-to/import-counters.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from iodock.shared.bounded import files
from iodock.shared.bounded.documents import DocumentError, from_toml
from iodock.shared.bounded.limits import SETTINGS
from iodock.shared.errors import RequestError, meant

Kind = Literal["counter", "rate", "sum", "level"]
KINDS: tuple[Kind, ...] = ("counter", "rate", "sum", "level")
"""What a column's value means: it grows since a start, is a rate per second, covers the time since the
previous line, or is a level."""
QUANTITIES: Mapping[str, tuple[str, str]] = {
    "read_bytes": ("read", "bytes"), "written_bytes": ("write", "bytes"), "moved_bytes": ("moved", "bytes"),
    "reads": ("read", "count"), "writes": ("write", "count"), "operations": ("operations", "count"),
    "busy": ("busy", "time"), "waiting": ("waiting", "level"), "response": ("response_us", "level"),
}  # fmt: skip
"""Maps a quantity to the operation and quantity of a sample."""
_KIB = 1024.0
UNITS: Mapping[str, Mapping[str, float]] = {
    "bytes": {
        "B": 1.0, "KiB": _KIB, "MiB": _KIB**2, "GiB": _KIB**3, "KB": 1e3, "MB": 1e6, "GB": 1e9,
        "sectors": 512.0,
    },
    "count": {"1": 1.0},
    # These factors convert to microseconds. A busy time in percent is a share of each second, so 1 % is 1e4
    # us per second.
    "time": {"us": 1.0, "ms": 1e3, "s": 1e6, "percent": 1e4, "share": 1e6},
    "level": {"1": 1.0, "us": 1.0, "ms": 1e3, "s": 1e6},
}  # fmt: skip
_DEFAULT_UNIT = {"bytes": "B", "count": "1", "time": "percent", "level": "1"}
_TOP = ("format", "host", "file_system", "time", "delimiter", "targets", "counters")
_TIME = ("column", "form", "zone")
_COUNTER = ("column", "oid", "quantity", "unit", "kind", "target", "target_column")


@dataclass(frozen=True)
class Declared:
    """The declaration of one CSV column or one SNMP object."""

    name: str
    quantity: str
    factor: float
    kind: Kind
    target: str | None
    """Name of the target; None: the name is in a column, or in the object's index."""
    target_column: str | None = None

    @property
    def metric(self) -> tuple[str, str]:
        return QUANTITIES[self.quantity]


@dataclass(frozen=True)
class Mapped:
    """The content of the whole file."""

    path: Path
    form: Literal["csv", "snmp"]
    host: str
    file_system: str
    counters: tuple[Declared, ...]
    time_column: str = ""
    time_form: str | None = None
    """Format of times for strptime; None: times are ISO 8601 or seconds since 1970."""
    zone: ZoneInfo | None = None
    """Time zone of times without one; None: UTC."""
    delimiter: str = ","
    targets: Mapping[str, str] = field(default_factory=dict)
    """Maps an index or the text of a cell to the target's name."""


def read_map(path: Path) -> Mapped:
    """Reads the file with the declaration. Raises RequestError if it is invalid."""
    try:
        document = from_toml(files.text(path, SETTINGS))
    except OSError as error:
        raise RequestError(
            f"{path}: {error.strerror}", "--map names the file that declares columns"
        ) from error
    except (DocumentError, ValueError) as error:
        raise RequestError(f"{path}: {error}", "docs/how-to/import-counters.md has an example") from error
    _known(path, "", document, _TOP)
    form = _word(path, document, "format")
    if form not in ("csv", "snmp"):
        raise RequestError(f"{path}: format is {form!r}", 'write format = "csv" or format = "snmp"')
    time = document.get("time", {})
    if not isinstance(time, dict):
        raise RequestError(f"{path}: [time] is not a table", '[time] with column = "..."')
    _known(path, "[time] ", time, _TIME)
    given = document.get("counters")
    if not isinstance(given, list) or not given or not all(isinstance(one, dict) for one in given):
        raise RequestError(
            f"{path}: contains no [[counters]]", "declare each column: [[counters]] column, quantity"
        )
    delimiter = document.get("delimiter", ",")
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise RequestError(f"{path}: delimiter is not one character", 'e.g. delimiter = ";"')
    return Mapped(
        path, "csv" if form == "csv" else "snmp", _word(path, document, "host"),
        _word(path, document, "file_system"),
        tuple(_declared(path, form, number, one) for number, one in enumerate(given, 1)),
        _word(path, time, "column", "[time] ") if form == "csv" else "",
        _word(path, time, "form", "[time] ") if "form" in time else None, _zone(path, time), delimiter,
        _targets(path, document.get("targets", {})),
    )  # fmt: skip


def _declared(path: Path, form: str, number: int, given: dict[str, Any]) -> Declared:
    place = f"[[counters]] {number}: "
    _known(path, place, given, _COUNTER)
    quantity = _word(path, given, "quantity", place)
    if quantity not in QUANTITIES:
        hint = meant(quantity, QUANTITIES, f"quantities: {', '.join(QUANTITIES)}")
        raise RequestError(f"{path}: {place}no such quantity: {quantity}", hint)
    sort = QUANTITIES[quantity][1]
    unit = str(given.get("unit", _DEFAULT_UNIT[sort]))
    if unit not in UNITS[sort] or (quantity == "waiting" and unit != "1"):
        raise RequestError(
            f"{path}: {place}no such unit of {quantity}: {unit}", f"units: {', '.join(UNITS[sort])}"
        )
    kind = given.get("kind", "level" if sort == "level" else "rate" if form == "csv" else "counter")
    if kind not in KINDS or (kind == "level") != (sort == "level"):
        raise RequestError(
            f"{path}: {place}kind {kind!r} can't be combined with {quantity}",
            "waiting and response are levels; the others are counter, rate or sum",
        )
    target = given.get("target")
    if target is not None and (not isinstance(target, str) or not target or "/" in target):
        raise RequestError(f"{path}: {place}target is not a name without /", 'e.g. target = "controller A"')
    name = _word(path, given, "column" if form == "csv" else "oid", place)
    column = _word(path, given, "target_column", place) if "target_column" in given else None
    if form == "csv" and target is None and column is None:
        raise RequestError(
            f"{path}: {place}no target",
            "name the target with target, or with target_column if a column contains it",
        )
    return Declared(name, quantity, UNITS[sort][unit], kind, target, column)


def _known(path: Path, place: str, given: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    for key in given:
        if key not in keys:
            raise RequestError(
                f"{path}: {place}{key} is not known", meant(key, keys, f"keys: {', '.join(keys)}")
            )


def _word(path: Path, given: Mapping[str, Any], key: str, place: str = "") -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value.strip():
        raise RequestError(f"{path}: {place}{key} is missing or not text", f'write {key} = "..."')
    return value


def _zone(path: Path, time: Mapping[str, Any]) -> ZoneInfo | None:
    if "zone" not in time:
        return None
    try:
        return ZoneInfo(str(time["zone"]))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise RequestError(
            f"{path}: [time] has an unknown zone: {time['zone']}", "e.g. Asia/Tokyo"
        ) from error


def _targets(path: Path, given: Any) -> Mapping[str, str]:
    if not isinstance(given, dict) or not all(
        isinstance(one, str) and "/" not in one for one in given.values()
    ):
        raise RequestError(f"{path}: [targets] needs names without /", '[targets] then "1" = "controller A"')
    return {str(key): str(value) for key, value in given.items()}
