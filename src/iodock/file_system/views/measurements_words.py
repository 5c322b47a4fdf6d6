"""Formats the values of cells as text: rates, sizes, spreads and variants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from iodock.file_system.health import busy
from iodock.file_system.health.measurements import Cache, Cell, Unit
from iodock.shared.language import N_, Language
from iodock.shared.text import visible
from iodock.shared.units import (
    BYTES,
    BYTES_PER_SECOND,
    COUNT_PER_SECOND,
    NANOSECONDS,
    number_text,
    share_text,
)

OPERATIONS = {
    "write": N_("write"),
    "read": N_("read"),
    "reread": N_("reread"),
    "file-create": N_("file creation"),
    "file-open": N_("file open"),
    "file-stat": N_("file stat"),
    "file-read": N_("file read"),
    "file-remove": N_("file removal"),
    "file-rename": N_("file rename"),
    "directory-create": N_("directory creation"),
    "directory-stat": N_("directory stat"),
    "directory-remove": N_("directory removal"),
    "directory-rename": N_("directory rename"),
}
"""Texts of known operations. Other operations are shown under their names."""
TESTS = {
    "large-transfer": N_("large transfer"),
    "constant-volume": N_("constant volume"),
    "metadata": N_("metadata access"),
    "workload": N_("mixed workload"),
}


CACHES = {
    Cache.CACHED: N_("cached"),
    Cache.UNCACHED: N_("uncached"),
    Cache.MAYBE_CACHED: N_("maybe cached"),
    Cache.PAGE_CACHE: N_("into the page cache"),
    Cache.UNKNOWN: N_("unknown"),
}


def cache_text(cache: Cache | None, text: Language) -> str:
    """Describes a cell's cache label. The text is empty if the cell has none."""
    return "" if cache is None else text.gettext(CACHES[cache])


def busy_text(cell: Cell, text: Language) -> str:
    """Describes the load of other programs and virtual machines while the cell was measured. The text is
    empty if the load was low or is not known."""
    parts = []
    load = cell.load
    if load is not None and (share := busy.high_cpu(cell)) is not None:
        names = ", ".join(one.name for one in load.by_cpu or ())
        said = text.gettext(N_("CPU {share}"), share=share_text(share))
        parts.append(f"{said} ({visible(names)})" if names else said)
    if (steal := busy.high_steal(cell)) is not None:
        parts.append(text.gettext(N_("steal {share}"), share=share_text(steal)))
    if (user := busy.high_io(cell)) is not None:
        rate = BYTES_PER_SECOND.text(user.amount)
        parts.append(text.gettext(N_("I/O {rate} ({name})"), rate=rate, name=visible(user.name)))
    return text.listed(parts)


def operation_text(operation: str, text: Language) -> str:
    """Returns the name of an operation in the user's language."""
    return text.gettext(OPERATIONS[operation]) if operation in OPERATIONS else visible(operation)


def test_text(test: str, text: Language) -> str:
    """Returns the name of a test in the user's language."""
    return text.gettext(TESTS[test]) if test in TESTS else visible(test)


def value_text(value: float | None, unit: Unit) -> str:
    """Formats a value with its unit, such as `1.2 GiB/s`, `35,000/s`, `3.1 ms` or `14.3`."""
    if value is None:
        return ""
    if unit is Unit.BYTES_PER_S:
        return BYTES_PER_SECOND.text(value)
    if unit is Unit.OPERATIONS_PER_S:
        return COUNT_PER_SECOND.text(value)
    return NANOSECONDS.text(value * 1e9) if unit is Unit.SECONDS else number_text(value, 4)


def size_text(size: int | None) -> str:
    """Formats a size, such as `4 KiB`. The text is empty for None."""
    return "" if size is None else BYTES.text(size)


def time_text(nanoseconds: float | None) -> str:
    return "" if nanoseconds is None else NANOSECONDS.text(nanoseconds)


def spread_text(spread: float | None) -> str:
    """Formats a spread, such as `±4 %`. The text is empty for None."""
    if spread is None:
        return ""
    return f"±{spread:.0%}".replace("%", " %") if spread >= 0.0095 else f"±{spread * 100:.1f} %"


def variant_text(variant: Mapping[str, str], same: Iterable[str] = ()) -> str:
    """Formats a variant, such as `api POSIX, access shared-file`. Properties whose names are in SAME are left
    out, because all cells share them."""
    left_out = set(same)
    parts = (_part(name, value) for name, value in variant.items() if name not in left_out)
    return visible(", ".join(parts))


def _part(name: str, value: str) -> str:
    if name.endswith("_bytes") and value.isdigit():
        return f"{name.removesuffix('_bytes').replace('_', ' ')} {BYTES.text(int(value))}"
    return f"{name.replace('_', ' ')} {value}"


def in_common(cells: Iterable[Cell]) -> dict[str, str]:
    """Returns the properties that have the same value in the variants of all cells."""
    given = [cell.variant for cell in cells]
    if not given:
        return {}
    first = dict(given[0])
    return {
        name: value for name, value in first.items() if all(variant.get(name) == value for variant in given)
    }
