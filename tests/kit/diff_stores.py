"""Creates stores with known times and names for comparisons, and provides short queries on a comparison."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from iodock.program.comparison import Comparison
from iodock.program.comparison.data import Change
from iodock.shared.language import language_in
from iodock.shared.sentences import say
from made_store import without_checksums
from strace_log import Log

ENGLISH = language_in("en")
HOSTILE = (
    "/d/a'b\\\"c;--",
    "/d/<b>x</b>&amp;@BODY@",
    "/d/{n} {before}%s",
    "/d/日本語 file",
    "/d/[bold]*?",
    "/d/\\n\\t",
)


def written(log: Log, name: str, count: int, seconds: float, size: int = 100) -> None:
    log.open(name)
    log.move("write", name, count, size, seconds)


def run(path: Path, *, wall: float = 10.0, **seconds: float) -> str:
    """Imports a run that writes to `/out/NAME` for this number of seconds, in 10 calls for each name. Returns
    the store's path."""
    log = Log()
    for name, took in seconds.items():
        written(log, f"/out/{name}", 10, took)
    log.compute(wall - sum(seconds.values()))
    return log.store(path)


def rows(comparison: Comparison) -> dict[str, dict[str, Change]]:
    listed = (*comparison.faster.rows, *comparison.slower.rows)
    return {row.name: dict(row.changes) for row in listed}


def seconds(one: Change) -> tuple[float, float]:
    assert one.before is not None and one.after is not None
    return one.before / 1e9, one.after / 1e9


def said(comparison: Comparison, kind: str) -> str:
    return " ".join(say(one.message, ENGLISH) for one in comparison.remarks if one.kind == kind)


def edited(store: str, path: Path, **changes: Any) -> str:
    """Copies the store to PATH and replaces entries of its manifest."""
    without_checksums(Path(shutil.copytree(store, path)))
    manifest = json.loads((path / "manifest.json").read_text())
    for key, value in changes.items():
        manifest[key] = {**manifest[key], **value} if isinstance(value, dict) else value
    (path / "manifest.json").write_text(json.dumps(manifest))
    return str(path)


def argued(path: Path, calls: int, command: list[str]) -> str:
    log = Log()
    log.open("/d/in")
    log.stat("/d/in", 1 << 20)
    log.move("read", "/d/in", calls, (1 << 20) // calls, 1.0)
    return edited(log.store(path.with_suffix(".made")), path, captured={"command": command})
