"""Specifications to bytes by vl-convert, a renderer in this process: no browser, no network. Pictures
raise IodockError where a limit of memory forbids to draw."""

from __future__ import annotations

import functools
import json
import mmap
import re
from typing import Any

from iodock.answer import Answer
from iodock.errors import IodockError
from iodock.views.charts import ChartOptions, specification
from iodock.views.charts.theme import CJK_FONT, THEMES

#: Nothing may be loaded while drawing: the data is in the specification. An empty list denies every address.
_NO_ADDRESS: list[str] = []

_ADDRESS_SPACE_BYTES = 66 << 30
"""What the renderer's engine (V8) reserves at its start: 32 GiB, twice that to align them, and some more."""

_EAST_ASIAN = re.compile("[\u2e80-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


def to_png(answer: Answer, chart: str | None, options: ChartOptions) -> bytes:
    """A PNG picture, `options.scale` pixels for each of the chart's."""
    spec = _static(answer, chart, options)
    drawn: bytes = _renderer().vegalite_to_png(spec, scale=options.scale, allowed_base_urls=_NO_ADDRESS)
    return drawn


def to_svg(answer: Answer, chart: str | None, options: ChartOptions) -> bytes:
    """An SVG picture, UTF-8, with text as text."""
    return svg_of(specification(answer, chart, options)).encode()


def svg_of(spec: dict[str, Any]) -> str:
    """An SVG picture of any specification, with text as text."""
    drawn: str = _renderer().vegalite_to_svg(_with_letters(spec), allowed_base_urls=_NO_ADDRESS)
    return drawn


def pdf_of(spec: dict[str, Any]) -> bytes:
    """A PDF of one page of any specification."""
    drawn: bytes = _renderer().vegalite_to_pdf(_with_letters(spec), allowed_base_urls=_NO_ADDRESS)
    return drawn


def to_pdf(answer: Answer, chart: str | None, options: ChartOptions) -> bytes:
    """A PDF of one page, the size of the chart, fonts embedded."""
    spec = _static(answer, chart, options)
    drawn: bytes = _renderer().vegalite_to_pdf(spec, allowed_base_urls=_NO_ADDRESS)
    return drawn


def to_html(answer: Answer, chart: str | None, options: ChartOptions) -> bytes:
    """A page that works offline: libraries and data are in it, and it is forbidden to load anything."""
    from iodock.views.charts.page import page

    spec = specification(answer, chart, options)
    return page(spec, _libraries(), THEMES[options.theme], options.width is not None).encode()


@functools.cache
def _renderer() -> Any:
    """vl-convert. Raises IodockError where it could not start: it would end the process, a notebook's kernel
    too."""
    import vl_convert

    try:
        # Without access: takes no memory, but counts for `ulimit -v`.
        mmap.mmap(-1, _ADDRESS_SPACE_BYTES, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0).close()
    except OSError:
        raise IodockError(
            f"no picture can be drawn: that needs {_ADDRESS_SPACE_BYTES >> 30} GiB of addresses, and the "
            "limit of virtual memory leaves less",
            "ulimit -v unlimited; or NAME.html, which the browser draws",
        ) from None
    return vl_convert


@functools.cache
def _libraries() -> str:
    """The drawing libraries as one script (0.9 MB) that sets `vegaEmbed` only; a second to make."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


def _static(answer: Answer, chart: str | None, options: ChartOptions) -> str:
    """The specification as JSON."""
    return _with_letters(specification(answer, chart, options))


def _with_letters(spec: dict[str, Any]) -> str:
    """A specification as JSON, for a renderer whose fonts do not fall through letter by letter.

    It swaps a whole text to the first font that has a missing letter, of whatever style. So where there are
    East Asian letters, families that have them are asked for first.
    """
    if _EAST_ASIAN.search(json.dumps(spec, ensure_ascii=False)):
        spec["config"]["font"] = f"{CJK_FONT}, {spec['config']['font']}"
    return json.dumps(spec)
