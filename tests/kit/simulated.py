"""Reads trees of the simulated Lustre with `iodock-agent`, and computes the expected samples."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from iodock.simulation.centre import Centre
from iodock.simulation.counters import Rate
from iodock.simulation.scenarios import named
from iodock.simulation.tree import Tree


def read_by(agent: Path, tree: Tree) -> list[dict[str, Any]]:
    """Returns the agent's samples of all servers. The agent must report no losses or remarks."""
    return [one for server in tree.centre.servers for one in read_from(agent, tree.root / server.name)]


def read_from(agent: Path, root: Path) -> list[dict[str, Any]]:
    command = [agent, "once", "--root", root, "--format", "json", "--deadline", "60"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    answer = json.loads(told.stdout)
    assert (answer["losses"], told.stderr) == ([], "")
    samples: list[dict[str, Any]] = answer["samples"]
    return samples


def wanted(tree: Tree, timed: bool) -> dict[tuple[str, str, str], int]:
    """Returns the expected values: (job id, target, counter) -> value. Without TIMED, times of operations are
    left out."""
    tree.write_truth()
    found = {}
    for job in json.loads((tree.root / "truth.json").read_text())["jobs"]:
        for job_id, targets in job["work"].items():
            for target, operations in targets.items():
                for operation, done in operations.items():
                    rate = Rate(operation, 1, 0)
                    if not timed and operation in ("read", "write"):
                        continue
                    found[job_id, target, rate.count_name] = done["samples"]
                    if timed or operation.endswith("_bytes"):
                        found[job_id, target, rate.sum_name] = done["sum"]
    return found


def played(root: Path, name: str, seconds: float, **changes: Any) -> Tree:
    centre = Centre(replace(named(name), **changes), jobs=20)
    tree = Tree(root, centre)
    centre.advance(seconds)
    tree.write()
    return tree
