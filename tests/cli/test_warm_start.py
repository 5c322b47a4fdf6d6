"""Tests that commands do not import the modules that they do not need."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from made_rules import made_store

CHARTS = ("altair", "pyarrow.compute", "iodock.program.views.charts.bars")
RELATIONS = ("duckdb", "importlib.metadata")
"""Of the engine only the part that answers SQL is needed."""
ENGINE = ("duckdb", "pyarrow", "pyarrow.compute")
REMOTE = ("iodock.shared.meanwhile", "iodock.centre")
NOT_NEEDED = {
    "--help": (*ENGINE, *REMOTE, "rich"),
    "show summary STORE": (*CHARTS, *REMOTE, *RELATIONS, "iodock.program.rules"),
    "show files STORE": (*CHARTS, *REMOTE, *RELATIONS, "iodock.program.rules"),
    "show processes STORE": (*CHARTS, *REMOTE, *RELATIONS, "iodock.program.rules"),
    "query STORE SELECT(1)": (*CHARTS, *REMOTE, "iodock.program.rules", "iodock.program.analyses.summary"),
    "diagnose STORE": (
        *RELATIONS,
        "pyarrow",
        "altair",
        "iodock.program.views.charts",
        "iodock.program.meanwhile",
        "iodock.centre",
        "iodock.file_system",
    ),
}
"""Command -> modules."""
_LIST = "import json, sys; from iodock.cli.run import run; run(sys.argv[1:]); " + (
    "print('\\n' + json.dumps(sorted(sys.modules)))"
)


@pytest.mark.parametrize("command", NOT_NEEDED)
def test_commands_import_only_required_modules(command: str, tmp_path: Path) -> None:
    store = made_store(tmp_path)
    # Recordings and imports store this sum. Without it, iodock would sum up the time in I/O from the events
    # by pyarrow.
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["io"] = {"any_ns": 1_000_000, "file_ns": 1_000_000}
    (store / "manifest.json").write_text(json.dumps(manifest))
    words = [str(store) if word == "STORE" else word for word in command.split()]
    ran = subprocess.run([sys.executable, "-c", _LIST, *words], capture_output=True, text=True, check=True)
    assert "error" not in ran.stderr
    loaded = set(json.loads(ran.stdout.splitlines()[-1]))
    assert "iodock.cli.run" in loaded
    assert sorted(loaded & set(NOT_NEEDED[command])) == []
