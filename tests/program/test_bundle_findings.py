"""Tests that an anonymous bundle has the findings of the run itself, with made-up names."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from iodock.program.bundle import write_bundle
from iodock.program.store import Store
from iodock.shared.language import language_in
from iodock.shared.settings import Settings
from recorded import live, record

SECRET = "topsecret"
PROGRAMS = {
    "node_modules": "import os\nfor n in range(3000):\n"
    " os.path.exists(f'node_modules/topsecret/{n % 50}/x.js')\n",
    # The bundle keeps the names of libraries.
    "library": "import os\nfor n in range(3000):\n os.path.exists(f'topsecret/lib{n}.so')\n",
    "proc": "for n in range(2000):\n open('/proc/self/stat').read()\n",
    "suffix": "open('topsecret.h5', 'w').write('x' * 99)\n"
    "for n in range(3000):\n f = open('topsecret.h5'); f.read(9); f.close()\n",
    "quote": "open(\"top'secret, d\", 'w').write('x' * 99)\n"
    'for n in range(3000):\n f = open("top\'secret, d"); f.read(9); f.close()\n',
}


def members(store: Path, target: Path, anonymous: bool) -> dict[str, str]:
    write_bundle(store, target, language_in("en"), Settings(), anonymous, lambda *_: None)
    with tarfile.open(target) as archive:
        return {one.name.rpartition("/")[2]: archive.extractfile(one).read().decode() for one in archive}  # type: ignore[union-attr]


def figures(finding: dict[str, Any]) -> dict[str, Any]:
    named = {"title", "message", "files", "query", "advice", "fine_when", "evidence", "locations"}
    numbers = {key: one for key, one in finding["evidence"].items() if not isinstance(one, str)}
    return {key: one for key, one in finding.items() if key not in named} | {"evidence": numbers}


@live
@pytest.mark.parametrize("name", PROGRAMS)
def test_findings_in_a_bundle_equal_those_of_the_run(tmp_path: Path, name: str) -> None:
    (tmp_path / "program").write_text(PROGRAMS[name])
    done = record(tmp_path, "--", "python3", "-S", "program")
    assert done.returncode == 0, done.stderr
    store = tmp_path / "run.iodock"
    plain, anonymous = (members(store, tmp_path / f"{kind}.tgz", bool(kind)) for kind in (0, 1))
    told, renamed = (json.loads(one["findings.json"])["findings"] for one in (plain, anonymous))
    assert told or name == "proc"
    assert list(map(figures, renamed)) == list(map(figures, told))
    assert not any(one["locations"] for one in renamed)
    for member in ("findings.json", "findings.txt", "report.html"):
        for word in (SECRET, "top'secret", "top''secret", str(tmp_path)):
            assert word not in anonymous[member], (member, word)
    with Store.open(store) as opened:
        assert opened.rows("SELECT 1 AS one") == [{"one": 1}]
