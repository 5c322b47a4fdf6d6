"""Provides fixtures that many tests share."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from diagnosing import only_rules
from iodock.program.run import Run
from iodock.program.store import Store
from made_up import mixed_store
from places import ROOT


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Splits the cases of parametrized tests: `make test` runs the first case of each, and `make test-rest`
    the others. Cases of tests of the project itself are files and fast, so all of them run."""
    begun: set[str] = set()
    for item in items:
        if item.nodeid.startswith("tests/project/"):
            continue
        name, *case = item.nodeid.split("[", 1)
        if case and name in begun:
            item.add_marker(pytest.mark.whole)
        begun.add(name)


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Restores the default action of SIGINT. Background jobs of a shell ignore it, and so would all processes
    that tests start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def go_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Shares one build cache of Go among all tests, so that Go compiles its standard library only once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GOCACHE", str(tmp_path_factory.mktemp("gocache")))
        yield


@pytest.fixture(scope="session")
def mixed_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a store with calls with two descriptors, nulls, failures, calls without a result and calls
    without a file."""
    return mixed_store(tmp_path_factory.mktemp("stores") / "mixed.iodock")


@pytest.fixture
def mixed(mixed_path: Path) -> Run:
    """Opens the store of `mixed_path`."""
    return Run(Store.open(mixed_path))


@pytest.fixture
def few_rules() -> Iterator[None]:
    """Restricts the diagnosis to two rules, for tests of reports, bundles and similar in which the results of
    the others do not matter."""
    with only_rules("open-close-loop", "small-requests"):
        yield


@pytest.fixture(scope="session")
def agent() -> Path:
    """Returns the most recently built agent. `make test` builds it for Rust's tests, which come first."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    places = [target / kind / "iodock-agent" for kind in ("debug", "release")]
    if not any(place.is_file() for place in places):
        build = ["cargo", "build", "--quiet", "--locked", "-p", "iodock-agent"]
        subprocess.run(build, cwd=ROOT, check=True, timeout=280)
    return max((place for place in places if place.is_file()), key=lambda place: place.stat().st_mtime)
