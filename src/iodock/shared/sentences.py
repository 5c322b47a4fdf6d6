"""Formats messages in a language. The ending of a value's name determines its format."""

from __future__ import annotations

from collections.abc import Mapping

from iodock.shared.language import Language
from iodock.shared.message import Message, Scalar
from iodock.shared.text import visible
from iodock.shared.units import BYTES, NANOSECONDS, number_text, share_text

NOT_KNOWN = "?"


def say(message: Message, text: Language) -> str:
    """Returns the translated message, with its values filled in."""
    return text.gettext(message.text, **shown(message.values))


def shown(values: Mapping[str, Scalar]) -> dict[str, str]:
    """Formats all values. The endings of their names determine the units (see `Message.values`)."""
    return {name: value_text(name, value) for name, value in values.items()}


def value_text(name: str, value: Scalar) -> str:
    """Formats one value. The ending of its name determines the unit: `_s` for seconds, `_ns`, `_bytes`,
    `_share`, or `_bytes_per_s`. Other values are counts or names."""
    if value is None:
        return NOT_KNOWN
    if isinstance(value, (str, bool)):
        return visible(str(value))
    if name.endswith("_bytes_per_s"):
        return f"{BYTES.text(value)}/s"
    if name.endswith("_bytes"):
        return BYTES.text(value)
    if name.endswith("_share"):
        return share_text(value)
    if name.endswith("_ns"):
        return NANOSECONDS.text(value)
    if name.endswith(("_s", "_seconds")):
        return NANOSECONDS.text(value * 1e9)
    return f"{value:,}" if isinstance(value, int) else number_text(value)
