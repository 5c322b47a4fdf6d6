"""Compares iodock's results on every case in `fixtures/cases/` with its truth. IODOCK_CASES names another
folder with the same layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from case_folders import FOLDERS, differences, import_case, iodock
from case_truth import load


def truths(kind: str) -> list[Any]:
    patterns = {
        "strace": "strace/*/truth.json*",
        "truss": "truss/*.truth.json*",
        "damaged": "damaged/*.expect.json*",
    }
    return [
        pytest.param(path, id=f"{kind}-{path.parent.name if kind == 'strace' else path.name.split('.')[0]}")
        for folder in FOLDERS
        for path in sorted(folder.glob(patterns[kind]))
    ]


def logs(path: Path, truth: dict[str, Any]) -> list[Path]:
    names = truth.get("logs") or [truth.get("log") or path.name.split(".")[0] + ".truss"]
    return [next(path.parent.glob(f"{name.removesuffix('.xz')}*")) for name in names]


def check(path: Path, truth: dict[str, Any], tool: str, store: Path) -> None:
    done = import_case(store, logs(path, truth), truth)
    assert done.returncode == 0, done.stderr
    found = differences(store, truth, tool)
    assert not found, "\n".join(found[:40])


@pytest.mark.parametrize("path", truths("strace"))
def test_strace_cases_give_their_known_results(path: Path, tmp_path: Path) -> None:
    check(path, load(path), "strace", tmp_path / "case.iodock")


@pytest.mark.parametrize("path", truths("truss"))
def test_truss_cases_give_their_known_results(path: Path, tmp_path: Path) -> None:
    check(path, load(path), "truss", tmp_path / "case.iodock")


@pytest.mark.parametrize("path", truths("damaged"))
def test_damaged_cases_give_their_known_results(path: Path, tmp_path: Path) -> None:
    expect = load(path)
    store = tmp_path / "case.iodock"
    done = import_case(store, logs(path, expect), expect)
    assert "Traceback" not in done.stderr and "panicked" not in done.stderr, done.stderr
    if expect["verdict"] == "message":
        assert done.returncode == 1, done.stderr
        assert done.stderr.startswith("error: ") and expect["log"].split(".")[0] in done.stderr
        assert "hint: " in done.stderr
        assert not store.exists()
        return
    assert done.returncode == 0, done.stderr
    if "truth" in expect:
        found = differences(store, expect["truth"], "strace")
        assert not found, "\n".join(found[:40])
    if expect["verdict"] == "partial":
        answer = json.loads(iodock("show", "summary", str(store), "--format", "json").stdout)
        assert answer["losses"] and all(loss["cure"] for loss in answer["losses"])
