"""Tests exports for profilers: their sums equal the store's, and the files follow the profilers' own
definitions."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import jsonschema
import pytest

from in_process import asked, printed, shown
from messages_of import fields, numbers
from places import FIXTURES
from stacked import stacked_store

STEP = "solver;main solver.c:77;write_step solver.c:412;__write;write;/data/out"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stacked_store(tmp_path_factory.mktemp("stacked"))


def folded(*arguments: object) -> Counter[str]:
    found: Counter[str] = Counter()
    for line in printed("export", *arguments, "--format", "collapsed").splitlines():
        path, _, weight = line.rpartition(" ")
        found[path] += int(weight)
    return found


def totals(store: Path, *options: str) -> dict[str, int]:
    rows = shown(store, "summary", *options)["rows"]
    return {
        "calls": sum(row["count"] for row in rows),
        "time": sum(row["total_time_ns"] or 0 for row in rows),
        "bytes": sum((row["read_bytes"] or 0) + (row["written_bytes"] or 0) for row in rows),
    }


@pytest.mark.parametrize("weight", ["time", "bytes", "calls"])
def test_collapsed_stacks_have_the_sums_of_the_store(store: Path, weight: str) -> None:
    for options in ((), ("--call", "write"), ("--kind", "all"), ("--file", "/data/in")):
        found = folded(store, "--weigh", weight, *options)
        assert sum(found.values()) == totals(store, *options)[weight], options
    expected = {"time": 297 * 900_000, "bytes": 297 * 16, "calls": 297}
    assert folded(store, "--weigh", weight)[STEP] == expected[weight]


def test_calls_without_a_stack_are_marked(store: Path) -> None:
    found = folded(store, "--weigh", "calls", "--call", "openat")
    assert found == {
        "solver;(stack unknown);openat;/data/in": 1,
        "solver;(stack unknown);openat;/data/out": 1,
    }


def test_without_stacks_calls_are_below_their_file(tmp_path: Path) -> None:
    found = folded(stacked_store(tmp_path, stacks=False), "--weigh", "calls", "--call", "write,openat")
    assert found == {
        "solver;/data/out;write": 300,
        "solver;/data/out;openat": 1,
        "solver;/data/in;openat": 1,
    }


def test_without_times_numbers_of_calls_are_exported(tmp_path: Path) -> None:
    store = stacked_store(tmp_path, times=False)
    assert sum(folded(store).values()) == totals(store)["bytes"] > 0
    status, _, said = asked("export", store, "--format", "collapsed", "--weigh", "time")
    assert status != 0 and "durations" in said and "--weigh calls" in said


def test_the_speedscope_export_fits_its_schema(store: Path, tmp_path: Path) -> None:
    written = tmp_path / "run.speedscope.json"
    printed("export", store, "-o", written, "--weigh", "bytes")
    found = json.loads(written.read_text())
    jsonschema.validate(found, json.loads((FIXTURES / "speedscope" / "file-format-schema.json").read_text()))
    frames = [frame["name"] for frame in found["shared"]["frames"]]
    assert [profile["name"].rpartition(" ")[2] for profile in found["profiles"]] == ["bytes", "time", "calls"]
    for profile in found["profiles"]:
        weight = profile["name"].rpartition(" ")[2]
        assert sum(profile["weights"]) == profile["endValue"] == totals(store)[weight]
        paths = Counter(
            {
                ";".join(frames[at] for at in sample): value
                for sample, value in zip(profile["samples"], profile["weights"], strict=True)
            }
        )
        assert paths == folded(store, "--weigh", weight)
    (step,) = [frame for frame in found["shared"]["frames"] if frame["name"].startswith("write_step")]
    assert (step["file"], step["line"]) == ("/home/u/src/solver.c", 412)


def test_a_profile_of_pprof_has_the_stores_sums(store: Path, tmp_path: Path) -> None:
    written = tmp_path / "run.pb.gz"
    printed("export", store, "-o", written)
    found = fields(gzip.decompress(written.read_bytes()))
    texts = [value.decode() for field, value in found if field == 6]
    assert texts[0] == ""
    kinds = [[texts[value] for _, value in fields(one)] for field, one in found if field == 1]
    assert kinds == [["time", "nanoseconds"], ["bytes", "bytes"], ["calls", "count"]]
    samples = [dict(fields(one)) for field, one in found if field == 2]
    sums = [sum(column) for column in zip(*(numbers(sample[2]) for sample in samples), strict=True)]
    assert dict(zip(("time", "bytes", "calls"), sums, strict=True)) == totals(store)
    functions = {
        one[1]: texts[one[2]] for field, value in found if field == 5 for one in [dict(fields(value))]
    }
    locations = {
        one[1]: functions[dict(fields(one[4]))[1]]
        for field, value in found
        if field == 4
        for one in [dict(fields(value))]
    }
    paths = [";".join(locations[at] for at in numbers(sample[1])) for sample in samples]
    assert "/data/out;write;__write;write_step;main;solver" in paths


@pytest.mark.whole
@pytest.mark.timeout(900)
@pytest.mark.skipif(shutil.which("go") is None, reason="needs Go, which has pprof")
def test_pprof_reads_the_export(store: Path, tmp_path: Path) -> None:
    written = tmp_path / "run.pb.gz"
    printed("export", store, "-o", written)
    for kind, unit, total in (
        ("calls", "count", totals(store)["calls"]),
        ("bytes", "B", totals(store)["bytes"]),
    ):
        said = subprocess.run(
            [
                "go",
                "tool",
                "pprof",
                "-top",
                f"-sample_index={kind}",
                f"-unit={unit}",
                "-nodefraction=0",
                written,
            ],
            check=True,
            capture_output=True,
            text=True,
            timeout=600,
        ).stdout
        assert re.search(rf"100% of {total}{unit if unit == 'B' else ''} total", said), said
        assert re.search(rf"\s{total}B?\s+100%\s+solver", said), said


def test_unknown_export_formats_are_refused(store: Path, tmp_path: Path) -> None:
    status, _, said = asked("export", store, "-o", tmp_path / "run.what")
    assert status != 0 and "--format" in said
    assert not (tmp_path / "run.what").exists()


def test_hostile_frame_names_cannot_break_lines(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('1 openat(AT_FDCWD, "/d;a\\nb c", O_RDONLY) = 3\n')
    from iodock.program.capture import import_logs

    store = import_logs([str(tmp_path / "log")], tmp_path / "run.iodock").store
    assert printed("export", store, "--format", "collapsed") == "pid 1;/d:a b c;openat 1\n"
