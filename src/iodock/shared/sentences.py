"""Formats messages in a language. The name of a number selects the number's format."""

from __future__ import annotations

from collections.abc import Mapping

from iodock.shared.language import Language
from iodock.shared.message import Message, Scalar
from iodock.shared.text import visible
from iodock.shared.units import BYTES, NANOSECONDS, number_text, share_text

NOT_KNOWN = "?"


def say(message: Message, text: Language) -> str:
    """Returns the message with its values, in the language of TEXT."""
    return text.gettext(message.text, **shown(message.values))


def shown(values: Mapping[str, Scalar]) -> dict[str, str]:
    """Formats values by the ending of their names (`Message.values`)."""
    return {name: value_text(name, value) for name, value in values.items()}


def value_text(name: str, value: Scalar) -> str:
    """Formats one value: `_s` seconds, `_ns`, `_bytes`, `_share`, `_bytes_per_s`; else a count or a name."""
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
