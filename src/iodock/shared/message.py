"""Defines the type of sentences that are translated when they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence that can be translated: an English text with `{placeholders}`, and the values for them."""

    text: str
    values: Mapping[str, Scalar] = field(default_factory=dict)
    """Values of the placeholders. Numbers are not formatted. The ending of the placeholder's name gives the
    unit: `_s` seconds, `_bytes`, `_share` (0 to 1), `_bytes_per_s`; others are counts or names."""
