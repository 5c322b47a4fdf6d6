"""Renders Vega-Lite specifications with vl-convert. It runs inside this process and needs neither a browser
nor a network. Raises IodockError if the limit of virtual memory prevents rendering."""

from __future__ import annotations

import functools
import json
import mmap
import re
from typing import Any

from iodock.shared.charts.theme import CJK_FONT, THEMES
from iodock.shared.errors import IodockError

# The specification contains all data, so the renderer must not load anything. An empty list denies all
# addresses.
_NO_ADDRESS: list[str] = []

_ADDRESS_SPACE_BYTES = 66 << 30
"""Address space that the renderer's engine (V8) reserves at its start: 32 GiB, doubled for alignment, and
some more."""

_EAST_ASIAN = re.compile("[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


def png_of(spec: dict[str, Any], scale: float) -> bytes:
    """Renders a specification as a PNG picture. SCALE is the number of pixels of the picture for each pixel
    of the chart."""
    drawn: bytes = _renderer().vegalite_to_png(
        _with_letters(spec), scale=scale, allowed_base_urls=_NO_ADDRESS
    )
    return drawn


def svg_of(spec: dict[str, Any]) -> str:
    """Renders a specification as an SVG picture. Its texts remain texts, and do not become curves."""
    drawn: str = _renderer().vegalite_to_svg(_with_letters(spec), allowed_base_urls=_NO_ADDRESS)
    return drawn


def pdf_of(spec: dict[str, Any]) -> bytes:
    """Renders a specification as a PDF with one page, which has the size of the chart. Fonts are embedded."""
    drawn: bytes = _renderer().vegalite_to_pdf(_with_letters(spec), allowed_base_urls=_NO_ADDRESS)
    return drawn


def html_of(spec: dict[str, Any], theme: str, is_sized: bool) -> bytes:
    """Makes an HTML page with the chart. It works offline, because it contains the drawing libraries and all
    data. Its security policy forbids loading anything. IS_SIZED states that the user chose the width of the
    chart."""
    from iodock.shared.charts.page import page

    return page(spec, _libraries(), THEMES[theme], is_sized).encode()


@functools.cache
def _renderer() -> Any:
    """Returns the module vl_convert. Raises IodockError if its engine could not reserve enough address space.
    The engine would otherwise abort the process, for example the kernel of a notebook."""
    import vl_convert

    try:
        # This mapping has no access rights, so it takes no memory, but it counts for the limit of `ulimit -v`
        # as that of the engine does.
        mmap.mmap(-1, _ADDRESS_SPACE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0).close()
    except OSError:
        raise IodockError(
            f"no chart can be drawn: that needs {_ADDRESS_SPACE_BYTES >> 30} GiB of address space, and "
            "the limit of virtual memory leaves less",
            "ulimit -v unlimited; or NAME.html, which the browser draws",
        ) from None
    return vl_convert


@functools.cache
def _libraries() -> str:
    """Returns the drawing libraries as one script (0.9 MB), which defines only `vegaEmbed`. Building the
    script takes a second."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _with_letters(spec: dict[str, Any]) -> str:
    """Returns a specification as JSON. Texts with East Asian letters get a font that has these letters.

    The renderer does not choose fonts letter by letter. If its font lacks a letter, it draws the whole text
    in the first font that has this letter, even if that font has another style.
    """
    if _EAST_ASIAN.search(json.dumps(spec, ensure_ascii=False)):
        spec["config"]["font"] = f"{CJK_FONT}, {spec['config']['font']}"
    return json.dumps(spec)
