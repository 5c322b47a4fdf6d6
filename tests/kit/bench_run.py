"""The command line, run from the outside on results of benchmarks."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any


def iodock(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "120", "LC_ALL": "C.UTF-8"}
    command = [sys.executable, "-m", "iodock", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=environment, **options
    )
