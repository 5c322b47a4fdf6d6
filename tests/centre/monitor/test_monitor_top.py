"""Tests `iodock monitor top`: its rates equal the counted values, also in a real terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from batches import BYTES, COUNT, Entry, Part, frame
from in_process import iodock, printed
from iodock.centre.monitor.collector import Collector

IODOCK = [sys.executable, "-m", "iodock"]
TOP = ("monitor", "top", "--store")
SECOND = 1_000_000_000
NOW = time.time_ns() - 60 * SECOND
HOSTILE = "9\x1b[2J<b>"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a store with a minute of two jobs on up to two nodes and two targets, and of one job with a
    hostile id."""
    folder = tmp_path_factory.mktemp("monitor") / "store"
    collector = Collector(folder)
    ids = {"71:1001:n1": 60, "71:1001:n2": 120, "72:1002:n1": 600, HOSTILE: 6}
    for number in range(7):
        at = NOW - (60 - number * 10) * SECOND
        collector.push(frame(number + 1, [part(at, f"lfs-OST000{target}", ids, number) for target in (0, 1)]))
    # Names of jobs were sent hours before. Another user also claims one of the jobs.
    told = [("71", "1001", "ocean \x1b[2J<b>"), ("72", "4242", "claimed")]
    names: list[tuple[str | bytes, str, str | bytes]] = [*told]
    collector.push(frame(1, [], spool=b"N" * 16, host="n1", names=names, named_at=NOW - 7200 * SECOND))
    collector.flush()
    return folder


def part(at: int, target: str, ids: dict[str, int], number: int) -> Part:
    entries = [
        Entry(
            job, {("write_bytes", BYTES): 1000 * rate * number, ("write_bytes", COUNT): rate * number}, at, at
        )
        for job, rate in ids.items()
        if number
    ]
    for entry in entries:
        entry.start = NOW - 3600 * SECOND
    return Part(at, entries, target=target, full=True)


def asked(store: Path, *options: str) -> dict[str, dict[str, object]]:
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(NOW / SECOND + 1))
    given = ("--once", "--format", "json", "--over", "120", "--at", moment, *options)
    return {row["name"]: row for row in json.loads(printed(*TOP, store, *given))["rows"]}


def written(rows: dict[str, dict[str, object]]) -> dict[str, float]:
    """Returns the bytes written in the two minutes of the table: the rate times its duration."""
    return {name: round(float(str(row["write_rate"])) * 120) for name, row in rows.items()}


def test_jobs_are_shown_with_their_names_and_found_by_name(store: Path) -> None:
    jobs = asked(store)
    assert {name: row["job_name"] for name, row in jobs.items()} == {
        "71": "ocean \\x1b[2J<b>", "72": None, HOSTILE.replace("\x1b", "\\x1b"): None,
    }  # fmt: skip
    assert set(asked(store, "--find", "OCEAN")) == {"71"}
    assert not any("job_name" in row for row in asked(store, "--by", "user").values())


def test_rates_equal_the_counted_growth(store: Path) -> None:
    jobs = asked(store)
    # Six readings show growth, on two targets.
    assert written(jobs) == {"72": 7_200_000, "71": 2_160_000, HOSTILE.replace("\x1b", "\\x1b"): 72_000}
    assert list(jobs) == ["72", "71", "9\\x1b[2J<b>"]
    assert (jobs["71"]["nodes"], jobs["71"]["user"], jobs["71"]["exact"]) == (2, "1001", True)
    assert list(asked(store, "--sort", "name")) == ["71", "72", "9\\x1b[2J<b>"]


def test_the_sum_is_the_same_for_every_grouping(store: Path) -> None:
    groups = ("job", "user", "node", "target", "file-system")
    sums = {by: sum(written(asked(store, "--by", by)).values()) for by in groups}
    assert set(sums.values()) == {9_432_000}
    assert written(asked(store, "--by", "target")) == {"lfs-OST0000": 4_716_000, "lfs-OST0001": 4_716_000}
    assert set(asked(store, "--by", "node")) == {"n1", "n2", ""}


def test_filters_select_rows(store: Path) -> None:
    assert list(asked(store, "--user", "1002")) == ["72"]
    assert list(asked(store, "--find", "71")) == ["71"]
    assert list(asked(store, "--find", "'; --")) == []
    assert list(asked(store, "--file-system", "other")) == []
    assert list(asked(store, "--counted", "processes")) == []
    assert len(asked(store, "--top", "1")) == 1


def test_hostile_names_cannot_control_the_terminal(store: Path) -> None:
    shown = printed(*TOP, store, "--once", "--over", "1h")
    assert "\x1b" not in shown
    assert "9\\x1b[2J<b>" in shown


@pytest.mark.parametrize("width", [40, 80, 200])
def test_tables_are_no_wider_than_the_terminal(store: Path, width: int) -> None:
    done = iodock(*TOP, store, "--once", "--over", "1h", COLUMNS=str(width))
    assert done.returncode == 0 and max(map(len, done.stdout.splitlines())) <= width


def test_keys_change_the_view_in_a_terminal(store: Path) -> None:
    command = [*IODOCK, *TOP, str(store), "--over", "1h", "--every", "60"]
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "24"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        assert "live" in seen(ours, "lfs")
        os.write(ours, b"b")
        assert "1002" in seen(ours, "user")
        os.write(ours, b"\x1b[D")
        seen(ours, "replay")
        os.write(ours, b"/nobody\r")
        seen(ours, "No activity was counted")
        os.write(ours, b"q")
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def seen(terminal: int, wanted: str) -> str:
    """Returns everything that the program draws until WANTED appears."""
    drawn, ends = "", time.monotonic() + 30
    while wanted not in drawn:
        ready, _, _ = select.select([terminal], [], [], max(0.0, ends - time.monotonic()))
        assert ready, f"{wanted} does not come: {drawn[-2000:]}"
        drawn += os.read(terminal, 65536).decode(errors="replace")
    return drawn


def test_a_missing_store_gives_an_error(tmp_path: Path) -> None:
    done = iodock(*TOP, tmp_path / "none", "--once")
    assert done.returncode == 1
    assert "not a monitor store" in done.stderr
