"""Tests that work that a program does only once, to fill a cache, gives a note."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Severity
from metadata_log import Trace


def looks_at_fonts(log: Trace) -> None:
    """Adds random reads of fonts, as by a program that lists fonts."""
    log.open("/usr/share/fonts/noto.ttc", flags="O_RDONLY")
    for number in range(2000):
        log.call(f'pread64(3, ""..., 9000, {number * number * 31 % 2003 * 16384})', "9000", 200)
    log.close()


def writes(log: Trace, name: str) -> None:
    log.open(name, flags="O_WRONLY|O_CREAT")
    log.write(40_000, 20)
    log.close()


@pytest.mark.parametrize(
    ("name", "is_first", "once"),
    [
        ("/home/me/.cache/matplotlib/fontlist.json", False, True),
        ("/home/me/lib/__pycache__/plot.cpython-311.pyc", True, False),
        ("/home/me/plot.png", False, False),
    ],
    ids=["a cache is made of it", "a cache was made before", "no cache"],
)
def test_the_creation_of_a_cache_counts_as_a_one_time_cost(
    tmp_path: Path, name: str, is_first: bool, once: bool
) -> None:
    log = Trace()
    if is_first:
        writes(log, name)
    looks_at_fonts(log)
    if not is_first:
        writes(log, name)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "random-access")
    assert (found.severity is Severity.NOTE) == once
    assert ("happens once" in found.title.text) == once
    assert (found.gain is None) == once
