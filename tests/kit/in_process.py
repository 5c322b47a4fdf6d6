"""Runs the command line in the test's process, because starting a new one takes longer than most queries."""

from __future__ import annotations

import io
import json
import os
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

from iodock.cli.run import run


def asked(*arguments: object) -> tuple[int, str, str]:
    """Runs `iodock ARGUMENTS` and returns exit status, standard output and standard error."""
    out, said = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(said):
        status = run([str(one) for one in arguments])
    for stream in (out, said):
        stream.seek(0)
    return status, out.read(), said.read()


def iodock(*arguments: object, cwd: Path | None = None, **variables: str) -> CompletedProcess[str]:
    """Runs `iodock ARGUMENTS` in the folder CWD with these environment variables."""
    with chdir(cwd or "."), patch.dict(os.environ, variables):
        status, out, said = asked(*arguments)
    return CompletedProcess([str(one) for one in arguments], status, out, said)


def printed(*arguments: object) -> str:
    """Runs `iodock ARGUMENTS`, which must succeed, and returns its standard output."""
    status, out, said = asked(*arguments)
    assert status == 0, said
    return out


def shown(store: object, analysis: str, *options: str) -> dict[str, Any]:
    """Returns the parsed output of `iodock show ANALYSIS STORE OPTIONS --format json`."""
    found: dict[str, Any] = json.loads(printed("show", analysis, store, *options, "--format", "json"))
    return found
