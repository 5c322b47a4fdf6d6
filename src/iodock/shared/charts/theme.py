"""Defines the colours and fonts of charts.

The hues are those of Okabe and Ito (2008), which people with common forms of colour blindness can
distinguish. Two hues in one chart also differ in lightness, so that they can be distinguished in a grey
print.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Font families, of which the first installed one is used. For letters that it lacks, such as Japanese ones,
# browsers use the following families.
FONT = "Noto Sans, DejaVu Sans, Noto Sans CJK JP, Noto Sans JP, Hiragino Sans, Yu Gothic, sans-serif"
# Font families with Latin and Japanese letters, for renderers that draw each text in a single font.
CJK_FONT = "Noto Sans CJK JP, Noto Sans JP, IPAexGothic, TakaoGothic"


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a chart. Their names state their meaning, such as `read`, instead of their hue."""

    background: str
    ink: str
    quiet: str
    grid: str
    read: str
    write: str
    both: str
    other: str
    success: str
    failed: str
    no_result: str
    categories: tuple[str, ...]
    dark: bool = False
    shades: tuple[float, ...] = (0.3, 0.55, 0.8, 1.0)
    """Opacities of a density grid, from low to high counts."""


THEMES: dict[str, Theme] = {
    "light": Theme(
        background="#ffffff",
        ink="#111111",
        quiet="#555555",
        grid="#e3e3e3",
        read="#0072b2",
        write="#e69f00",
        both="#222222",
        other="#9a9a9a",
        success="#56b4e9",
        failed="#c04a00",
        no_result="#b5b5b5",
        categories=("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#c04a00", "#8a7f00"),
    ),
    "dark": Theme(
        background="#16181d",
        ink="#f2f2f2",
        quiet="#b4b8c0",
        grid="#343841",
        read="#56b4e9",
        write="#e69f00",
        both="#f5f5f5",
        other="#7d828c",
        success="#56b4e9",
        failed="#ff7a33",
        no_result="#7d828c",
        categories=("#56b4e9", "#e69f00", "#00b88a", "#cc79a7", "#f0e442", "#ff7a33", "#9db7ff"),
        dark=True,
    ),
    "print": Theme(
        background="#ffffff",
        ink="#000000",
        quiet="#333333",
        grid="#dddddd",
        read="#222222",
        write="#b4b4b4",
        both="#000000",
        other="#d0d0d0",
        success="#b0b0b0",
        failed="#111111",
        no_result="#dedede",
        categories=("#111111", "#999999", "#555555", "#bbbbbb", "#333333", "#777777", "#d5d5d5"),
        # The range of opacities is narrow, so that the lightest cell of reads is still darker than the
        # darkest cell of writes.
        shades=(0.65, 0.77, 0.89, 1.0),
    ),
}


def vega_config(theme: Theme) -> dict[str, Any]:
    """Returns the `config` of a Vega-Lite specification for a theme."""
    text = {"labelColor": theme.ink, "titleColor": theme.ink}
    return {
        "background": theme.background,
        "padding": 12,
        "font": FONT,
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "color": theme.ink,
            "fontSize": 15,
            "fontWeight": 600,
            "subtitleColor": theme.quiet,
            "subtitleFontSize": 11.5,
            "subtitlePadding": 5,
            "offset": 12,
            "frame": "group",
        },
        "axis": text
        | {
            "domainColor": theme.quiet,
            "tickColor": theme.quiet,
            "gridColor": theme.grid,
            "labelFontSize": 11,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "labelLimit": 400,
        },
        "legend": text
        | {
            "orient": "top",
            "direction": "horizontal",
            "labelFontSize": 11.5,
            "titleFontSize": 11.5,
            "titleFontWeight": "normal",
            "symbolType": "square",
            "labelLimit": 300,
        },
        "text": {"color": theme.ink, "fontSize": 11},
    }
