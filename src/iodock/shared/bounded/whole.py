"""Writes files in such a way that other programs never see an incomplete file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from iodock.shared.errors import IodockError

ELSEWHERE = "name another file"


@contextmanager
def whole_file(path: Path, elsewhere: str = ELSEWHERE) -> Iterator[BinaryIO]:
    """Opens a file for writing. The content goes to a temporary file, which replaces the file at PATH when it
    is complete. ELSEWHERE is the hint in the error message if writing fails. Raises IodockError."""
    if path.is_dir():
        raise IodockError(f"{path}: is a folder", elsewhere)
    if path.exists() and not path.is_file():
        # A pipe or a device can't be replaced by a file, so it is written directly.
        with path.open("wb") as out:
            yield out
        return
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as out:
            yield out
        part.replace(path)
    except FileNotFoundError as error:
        raise IodockError(f"{path}: no such folder", f"mkdir -p {path.parent}") from error
    except OSError as error:
        # The caller's own code raised the error, and it is about another file, whose name it already
        # contains.
        if error.errno is None or error.filename not in (None, str(part)):
            raise
        raise IodockError(f"{path}: can't be written: {error.strerror}", elsewhere) from error
    finally:
        with suppress(OSError):
            part.unlink()
