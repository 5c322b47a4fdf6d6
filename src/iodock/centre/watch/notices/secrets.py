"""Reads passwords and tokens, each from a file of its own."""

from __future__ import annotations

import os
from pathlib import Path

from iodock.shared.bounded import files
from iodock.shared.bounded.limits import SECRET
from iodock.shared.errors import RequestError


def secret(path: str) -> str:
    """Returns the first line of a file. Raises RequestError if the file is unreadable or empty, or if other
    users may read it."""
    try:
        with files.opened(Path(path)) as file:
            mode = os.fstat(file.fileno()).st_mode
            found = files.whole(file, path, SECRET).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{path}: {error}", "name a file with one line") from error
    if mode & 0o077:
        raise RequestError(f"{path}: other users may read it", f"chmod 600 {path}")
    line = found.split("\n")[0].strip()
    if not line or not line.isprintable():
        raise RequestError(f"{path}: not one line of text", "name a file with one line")
    return line
