"""Provides stores that many tests compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from diagnosing import only_rules
from diff_stores import run, written
from iodock.shared.settings import load
from strace_log import Log

# The package also exports a function `compare`, which hides the module of that name from a plain import.
compare_module = import_module("iodock.program.comparison.compare")


@pytest.fixture(scope="session")
def once() -> Callable[[str], Any]:
    settings = load()
    reading = compare_module.sums_of

    @cache
    def read(path: str) -> Any:
        with only_rules("small-requests"):
            return reading(path, settings)

    return read


@pytest.fixture(scope="module", autouse=True)
def stores_read_once(once: Callable[[str], Any]) -> Iterator[None]:
    """Reads and diagnoses each store once. These tests change no stores, and a diagnosis takes most of their
    time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compare_module, "sums_of", lambda path, _: once(path))
        yield


@pytest.fixture(scope="session")
def kyoto(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Imitates the second attempt in Kyoto with a thousandth of its calls. Among other changes, one file
    gained the time that another one lost."""
    folder = tmp_path_factory.mktemp("kyoto")
    before, after = Log(), Log()
    written(before, "/data/catalogue.csv", 2600, 13.5, 60)
    written(after, "/data/catalogue.csv", 203, 3.3, 768)
    written(before, "/data/update.log", 500, 21.6)
    written(after, "/data/update.log", 500, 37.9)
    for log, minutes in ((before, 52), (after, 58)):
        log.compute(minutes * 60 - (log.now_s - 1_700_000_000))
    return before.store(folder / "before.iodock"), after.store(folder / "after.iodock")


@pytest.fixture(scope="session")
def several(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[str]]:
    """Returns 5 runs before and 5 after: `steady` differs within its spread, `worse` clearly."""
    folder = tmp_path_factory.mktemp("several")
    steady = ([1.0, 1.3, 1.1, 1.25, 1.05], [1.15, 0.95, 1.28, 1.12, 1.2])
    worse = ([2.0, 2.1, 2.2, 2.05, 2.15], [3.0, 3.3, 3.1, 3.2, 3.15])
    sides = ("before", "after")
    stores = [
        [
            run(
                folder / f"{side}{number}.iodock",
                wall=10 + worse[at][number],
                steady=steady[at][number],
                worse=worse[at][number],
            )
            for number in range(5)
        ]
        for at, side in enumerate(sides)
    ]
    return stores[0], stores[1]


@pytest.fixture(scope="session")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Returns runs with 320 records before and 200 after. Each record has the same calls, which take 0.05 s
    before and 0.02 s after."""
    folder = tmp_path_factory.mktemp("records")
    stores = []
    for name, count, each in (("before", 320, 0.05), ("after", 200, 0.02)):
        log = Log()
        log.open("/d/in")
        log.stat("/d/in", count * 8192)
        log.move("read", "/d/in", count, 8192, count * each)
        written(log, "/d/log", count, count * 0.01, 6000)
        stores.append(log.store(folder / f"{name}.iodock"))
    return stores[0], stores[1]
