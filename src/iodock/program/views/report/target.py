"""Writes a report to a file. It replaces an earlier report of that name, but no other file."""

from __future__ import annotations

from pathlib import Path

from iodock.shared.bounded.whole import ELSEWHERE, whole_file
from iodock.shared.errors import IodockError, RequestError

_MARK = b'<meta name="generator" content="iodock">'
_HEAD_BYTES = 4096


def check_target(path: Path) -> None:
    """Raises RequestError if the ending of the name belongs to another format, and IodockError if the file
    exists and is not a report."""
    if path.suffix.lower() not in ("", ".html", ".htm"):
        raise RequestError(
            f"{path}: a report is one HTML page", "-o NAME.html; iodock show makes charts and tables"
        )
    if not path.is_file() or path.stat().st_size == 0:
        return
    with path.open("rb") as file:
        if _MARK not in file.read(_HEAD_BYTES):
            raise IodockError(
                f"{path}: exists and is not an iodock report, so it is not replaced",
                "choose another name, or remove the file yourself",
            )


def page_bytes(page: str) -> bytes:
    """Encodes the report as UTF-8. Characters that UTF-8 can't represent become backslash escapes."""
    return page.encode("utf-8", "backslashreplace")


def write_page(page: str, path: Path, elsewhere: str = ELSEWHERE) -> None:
    """Writes the report so that the file appears completely or not at all. ELSEWHERE is the hint for the
    case that it can't be written. Raises IodockError."""
    with whole_file(path, elsewhere) as out:
        out.write(page_bytes(page))
