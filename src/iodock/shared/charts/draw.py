"""Renders specifications with vl-convert, a renderer in this process that needs no browser and no network.
Raises IodockError if a memory limit prevents rendering."""

from __future__ import annotations

import functools
import json
import mmap
import re
from typing import Any

from iodock.shared.charts.theme import CJK_FONT, THEMES
from iodock.shared.errors import IodockError

# Nothing may be loaded while rendering, because the data is in the specification. An empty list denies every
# address.
_NO_ADDRESS: list[str] = []

_ADDRESS_SPACE_BYTES = 66 << 30
"""Address space that the renderer's engine (V8) reserves at its start: 32 GiB, doubled for alignment, and
some more."""

_EAST_ASIAN = re.compile("[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


def png_of(spec: dict[str, Any], scale: float) -> bytes:
    """Renders any specification as a PNG picture, with SCALE pixels for each pixel of the chart."""
    drawn: bytes = _renderer().vegalite_to_png(
        _with_letters(spec), scale=scale, allowed_base_urls=_NO_ADDRESS
    )
    return drawn


def svg_of(spec: dict[str, Any]) -> str:
    """Renders any specification as an SVG picture, with text as text."""
    drawn: str = _renderer().vegalite_to_svg(_with_letters(spec), allowed_base_urls=_NO_ADDRESS)
    return drawn


def pdf_of(spec: dict[str, Any]) -> bytes:
    """Renders any specification as a PDF of one page with the size of the chart and embedded fonts."""
    drawn: bytes = _renderer().vegalite_to_pdf(_with_letters(spec), allowed_base_urls=_NO_ADDRESS)
    return drawn


def html_of(spec: dict[str, Any], theme: str, is_sized: bool) -> bytes:
    """Makes a page that works offline: it contains libraries and data, and its policy forbids loading
    anything. IS_SIZED: the chart has its own width."""
    from iodock.shared.charts.page import page

    return page(spec, _libraries(), THEMES[theme], is_sized).encode()


@functools.cache
def _renderer() -> Any:
    """Returns vl-convert. Raises IodockError if it could not start, because it would then abort the process,
    including a notebook's kernel."""
    import vl_convert

    try:
        # The test maps memory without access rights, which takes no memory but counts for `ulimit -v`.
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
    """Returns the drawing libraries as one script (0.9 MB) that sets only `vegaEmbed`. Building it takes a
    second."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _with_letters(spec: dict[str, Any]) -> str:
    """Returns a specification as JSON, for a renderer that does not choose fonts letter by letter.

    If a letter is missing, the renderer switches the whole text to the first font that has it, whatever its
    style. So texts with East Asian letters request families that have those letters first.
    """
    if _EAST_ASIAN.search(json.dumps(spec, ensure_ascii=False)):
        spec["config"]["font"] = f"{CJK_FONT}, {spec['config']['font']}"
    return json.dumps(spec)
