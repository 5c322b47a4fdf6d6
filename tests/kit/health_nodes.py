"""Simulates nodes by namespaces of this machine, for check-ups on several nodes. Each node has its own host
name, boot id and monotonic clock, and all share the files. Needs root."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest

CLOCKS_S = {"node-a": 1_000_000, "node-b": 3_000_000}
"""How far their clocks are ahead of this machine's."""
BOOT = "/proc/sys/kernel/random/boot_id"
_UNSHARE = ("unshare", "--uts", "--mount", "--time", "--kill-child")
_INSIDE = 'hostname "$1" && mount --bind "$2" {boot} && shift 2 && exec "$@"'


@functools.cache
def missing() -> str:
    """Returns why such nodes cannot be created here, or an empty string if they can."""
    if os.geteuid() != 0:
        return "needs root"
    tried = subprocess.run([*_UNSHARE, "true"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"no namespaces: {tried.stderr.strip()}"


needs_nodes = pytest.mark.skipif(bool(missing()), reason=f"no nodes can be made here: {missing()}")


def on_node(name: str, folder: Path, *command: str) -> list[str]:
    """Returns the command line that runs COMMAND on a node; FOLDER contains the node's files."""
    boot = folder / f"boot-{name}"
    boot.write_text(f"boot-of-{name}\n")
    ahead = str(CLOCKS_S[name])
    clocks = ["--monotonic", ahead, "--boottime", ahead]
    inside = ["sh", "-c", _INSIDE.format(boot=BOOT), "sh", name, str(boot)]
    return [*_UNSHARE, *clocks, *inside, *command]


def remote_shell(folder: Path) -> Path:
    """Writes a program that replaces ssh: `remote_shell HOST COMMAND...` runs the command on that node."""
    path = folder / "remote_shell"
    lines = ["#!/bin/sh", "host=$1", "shift", "case $host in"]
    for name in CLOCKS_S:
        words = " ".join(f"'{word}'" for word in on_node(name, folder, "sh", "-c"))
        lines.append(f'{name}) exec {words} "$*";;')
    path.write_text("\n".join([*lines, "esac", "exit 255"]) + "\n")
    path.chmod(0o755)
    return path
