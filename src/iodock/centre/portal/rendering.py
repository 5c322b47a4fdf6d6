"""Renders pages as HTML, with templates that escape everything, and provides their static files."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from iodock.centre.portal import numbers
from iodock.centre.portal.forms import RANGES, job_address, machine_address, shortened, with_values
from iodock.centre.portal.tables import Column, Row
from iodock.centre.views import verdicts
from iodock.shared.language import Language
from iodock.shared.text import visible, visible_lines

_STATIC = Path(__file__).parent / "static"
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Vary": "Cookie, Authorization, Accept-Language",
}
"""Headers of every page."""
_LONGEST = {"job": 48, "title": 40, "sentence": 1000}
"""Maximum length of a text in a table, by the column's kind."""


@cache
def static_files() -> dict[str, tuple[bytes, str]]:
    """Reads the static files and returns their content and content type by name."""
    return {
        path.name: (path.read_bytes(), KINDS[path.suffix])
        for path in sorted(_STATIC.iterdir()) if path.suffix in KINDS
    }  # fmt: skip


@cache
def static_address(name: str) -> str:
    """Returns the address of a static file. It contains a hash of the content, so a browser may cache the
    file forever."""
    return f"/static/{name}?{hashlib.sha256(static_files()[name][0]).hexdigest()[:12]}"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("iodock.centre.portal"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    # Jinja passes every value in a template through this function, which makes direction marks and invisible
    # characters in names visible.
    made.finalize = _finalized
    made.globals.update(
        static=static_address, cell=cell, moment=numbers.moment, zone=numbers.zone, amount=numbers.amount,
        duration=numbers.duration, ranges=RANGES, job_address=job_address, machine_address=machine_address,
        with_values=with_values, shortened=shortened, words_of=verdicts,
    )  # fmt: skip
    return made


def _finalized(value: object) -> object:
    """Makes invisible characters of a text visible, except line breaks, which texts of templates contain,
    too. Markup and other values are not changed."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else visible_lines(value)


def render(template: str, text: Language, **values: object) -> str:
    """Renders a template with these values, for a whole page or a part of one."""
    return (
        _environment()
        .get_template(template)
        .render(gettext=text.gettext, ngettext=text.ngettext, text=text, **values)
    )


def cell(column: Column, row: Row) -> str:
    """Formats the value of a row in a column. A value that is a lower bound is preceded by `≥`."""
    value = row.get(column.key)
    if value is None or value == "":
        return ""
    if column.kind == "time":
        return numbers.moment(int(str(value)))
    if not column.is_number:
        return shortened(visible(str(value)), _LONGEST.get(column.kind, 200))
    shown = numbers.amount(value, column.kind)
    is_bound = row.get("exact") is False and column.kind not in ("seconds", "short_seconds")
    return f"≥ {shown}" if is_bound and column.key not in ("hosts", "jobs", "queue") else shown
