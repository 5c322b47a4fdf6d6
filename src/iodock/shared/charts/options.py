"""Defines the options of a chart. This module does not import the drawing library, because importing it is
slow."""

from __future__ import annotations

from dataclasses import dataclass

from iodock.shared.charts.theme import THEMES


@dataclass(frozen=True, slots=True)
class ChartOptions:
    """Options that every chart understands.

    title: the heading; None uses the chart's own, an empty string omits it. Any text is safe. width, height:
    of the plot area in pixels, without axes and legend; None lets the chart choose. theme: "light" (black on
    white, the default), "dark", or "print" (greys only). only: series to keep, such as ("read",) or
    ("failed",); empty keeps all. scale: pixels of a PNG for each pixel of the chart; 2 is sharp on paper and
    on dense screens.

    Raises ValueError for a size, scale or theme that cannot be drawn.
    """

    title: str | None = None
    width: int | None = None
    height: int | None = None
    theme: str = "light"
    only: tuple[str, ...] = ()
    scale: float = 2.0

    def __post_init__(self) -> None:
        for name, value in (("width", self.width), ("height", self.height)):
            if value is not None and not (_is_number(value) and 40 <= value <= 8000):
                raise ValueError(f"chart {name} must be 40 to 8000 pixels, not {value!r}")
        if not (_is_number(self.scale) and 0.25 <= self.scale <= 8):
            raise ValueError(f"chart scale must be from 0.25 to 8, not {self.scale!r}")
        if self.theme not in list(THEMES):
            raise ValueError(f"unknown chart theme {self.theme!r}; there are {', '.join(THEMES)}")

        if not isinstance(self.title, str | None):
            raise ValueError(f"chart title must be a text, not {self.title!r}")
        if not isinstance(self.only, tuple | list) or not all(isinstance(one, str) for one in self.only):
            raise ValueError(f"chart only must be names of series, not {self.only!r}")

    def keeps(self, series: str) -> bool:
        """Returns whether the user wants the series with this name to be drawn."""
        return not self.only or series in self.only


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
