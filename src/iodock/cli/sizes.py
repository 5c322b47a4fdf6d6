"""Parses sizes that users write, such as `500M`, `1.5TiB`, `2TB`, or a number of bytes."""

from __future__ import annotations

import re

from iodock.shared.errors import RequestError

FORMS = "500M or 1.5TiB (powers of 1024), 2TB (powers of 1000), or a number of bytes"
_SIZE = re.compile(r"(\d{1,18}(?:\.\d{1,18})?|\.\d{1,18})\s*([KMGTPE]?)(IB|B)?", re.ASCII)
_MOST = (1 << 63) - 1


def size_bytes(given: str, option: str) -> int:
    """Parses the value of OPTION and returns bytes. `M` and `MiB` are powers of 1024, and `MB` is a power of
    1000; the same holds for other letters. Raises RequestError."""
    text = given.strip().upper()
    if re.fullmatch(r"[-+]?0*(\.0*)?[KMGTPE]?(I?B)?|-.*", text) and any(one.isdigit() for one in text):
        raise RequestError(f"{option} must be above 0, not {given}", f"sizes: {FORMS}")
    found = _SIZE.fullmatch(text)
    if found is None:
        raise RequestError(f"{option}: {given} is not a size", f"sizes: {FORMS}")
    base = 1000 if found[3] == "B" and found[2] else 1024
    size = int(float(found[1]) * base ** " KMGTPE".index(found[2] or " "))
    if not 0 < size <= _MOST:
        raise RequestError(f"{option}: {given} is not a possible file size", f"sizes: {FORMS}")
    return size
