"""Tests `iodock health run` and `clean`: cells, estimates, files kept, refusals, ranks."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from health_places import (
    ALONE,
    COMMAND,
    contents,
    health,
    kept_in_memory,
    loop_ext4,
    measured,
    place_among_others,
    small_tmpfs,
    started,
)
from iodock.file_system.health import engine
from iodock.file_system.health.classes import CLASSES, Choice, cells, shuffled
from iodock.file_system.health.measurements_json import read
from iodock.file_system.health.ranks import Job, job_of
from iodock.file_system.health.results import Plan, Result, Step
from iodock.file_system.health.run import measurements

SMALL = ("--sizes", "64k,1m", "--processes", "1,3", "--tests", "large-transfer,metadata")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return place_among_others(tmp_path)


def test_measurements_are_complete_and_no_test_file_remains(place: Path) -> None:
    before = contents(place)
    found = measured(place, *SMALL, "--seed", "7")
    assert contents(place) == before
    assert not list(place.parent.glob("*.partial"))
    grid = {
        (cell["test"], cell["operation"], cell["size_bytes"], cell["processes"]) for cell in found["cells"]
    }
    transfers = {
        ("large-transfer", operation, size, many)
        for operation in ("write", "read", "reread")
        for size in (65536, 1 << 20)
        for many in (1, 3)
    }
    assert grid >= transfers
    assert {one[1] for one in grid if one[0] == "metadata"} == {
        *(f"file-{name}" for name in ("create", "stat", "open", "remove")),
        *(f"directory-{name}" for name in ("create", "stat", "remove")),
    }
    for cell in found["cells"]:
        latency = cell["latency_ns"]
        assert cell["repeats"] == 3 == len(cell["values"]) and cell["spread"] is not None
        assert cell["value"] == sorted(cell["values"])[1] > 0 and cell["nodes"] == 1
        assert 0 < latency["min"] <= latency["p50"] <= latency["p99"] <= latency["p99_9"] <= latency["max"]
        assert (cell["cache"] is not None) == (cell["operation"] in ("read", "reread")), cell
        load = cell["load"]
        assert load["load_average"] >= 0 and 0 <= load["others_cpu_share"] <= 1
        assert 0 <= load["steal_share"] <= 1 and len(load["by_cpu"]) <= 3
    assert found["protocol"]["settings"]["seed"] == 7
    assert found["protocol"]["tool"] == "iodock health"


@pytest.mark.whole
def test_numbers_of_operations_follow_the_plan(place: Path) -> None:
    found = measured(place, "--sizes", "1m", "--processes", "2", "--tests", "large-transfer", "--class", "M")
    # Two processes write 1 GiB in total. A slow disk reaches the time limit with less, and a note says so.
    limited = any("time limit" in note for note in found["protocol"]["notes"])
    for cell in found["cells"]:
        assert cell["volume_bytes"] == 1 << 30 or (limited and cell["volume_bytes"] < 1 << 30)
        assert cell["latency_ns"]["count"] * (1 << 20) == pytest.approx(3 * cell["volume_bytes"], abs=3)


@pytest.mark.whole
def test_processes_can_share_one_file(place: Path) -> None:
    before = contents(place)
    arguments = ("--sizes", "64k", "--processes", "1,3", "--tests", "large-transfer", "--shared-file")
    found = measured(place, *arguments)
    assert contents(place) == before
    assert {cell["variant"]["access"] for cell in found["cells"]} == {"shared-file"}
    volumes = {(cell["operation"], cell["processes"]): cell["volume_bytes"] for cell in found["cells"]}
    if not any("time limit" in note for note in found["protocol"]["notes"]):
        assert volumes[("read", 3)] == volumes[("write", 3)] == (64 << 20) // 3 // 65536 * 65536 * 3


def test_cache_labels_of_reads_agree_with_the_kernel(tmp_path: Path) -> None:
    with loop_ext4(tmp_path / "disk") as place:
        one = ("--sizes", "1m", "--processes", "1", "--tests", "large-transfer")
        found = kept_in_memory(lambda: measured(place, *one))
        labels = {cell["operation"]: cell["cache"] for cell in found["cells"]}
        # The kernel may hold all of the file that backs this loop device in memory.
        assert labels == {"write": None, "read": "maybe-cached", "reread": "cached"}
        found = measured(place, "--sizes", "1m", "--processes", "1", "--tests", "large-transfer", "--direct")
        labels = {cell["operation"]: cell["cache"] for cell in found["cells"]}
        assert labels == {"write": None, "read": "maybe-cached"}
        read = next(cell for cell in found["cells"] if cell["operation"] == "read")
        assert "page cache" in read["cache_reason"] and "disk.image" in read["cache_reason"]
    with small_tmpfs(tmp_path / "memory", "200m") as place:
        found = measured(place, "--sizes", "1m", "--processes", "1", "--tests", "large-transfer")
        assert {cell["cache"] for cell in found["cells"] if cell["operation"] == "read"} == {"cached"}
        assert found["protocol"]["file_system"] == "tmpfs"


@pytest.mark.whole
def test_other_load_is_recorded_with_each_measurement(place: Path) -> None:
    """The measurement reports the share of processor time that other programs use during the check-up, and
    names the programs."""
    spin = ["sh", "-c", "while :; do :; done"]
    others = [subprocess.Popen(spin) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        found = measured(place, "--sizes", "1m", "--processes", "1", "--tests", "metadata")
    finally:
        for one in others:
            one.kill()
            one.wait()
    for cell in found["cells"]:
        assert cell["load"]["others_cpu_share"] > 0.2, cell["load"]
        assert cell["load"]["by_cpu"][0]["processors"] > 0


def test_workers_have_their_own_session(place: Path) -> None:
    """In the session of the check-up's caller, autogroup (sched(7)) would make workers and caller share
    processor time."""
    pattern = {"kind": "metadata", "items": 1_000_000, "directories": False}
    step = {"id": 0, "processes": 2, "limit_seconds": 0.5, "pattern": pattern}
    found: set[int] = set()

    def look() -> None:
        while not stop.wait(0.01):
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
            for child in children:
                with suppress(OSError):
                    workers = Path(f"/proc/{child}/task/{child}/children").read_text().split()
                    found.update(os.getsid(int(one)) == int(one) for one in workers)

    stop = threading.Event()
    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        events = list(engine.run({"directory": str(place), "steps": [step]}))
    finally:
        stop.set()
        watcher.join()
    assert events and True in found


def test_without_free_space_no_measurement_begins(tmp_path: Path) -> None:
    with small_tmpfs(tmp_path / "few", "64m", inodes=300) as place:
        done = health("run", place, "--tests", "metadata", cwd=tmp_path)
        assert done.returncode == 1 and "inodes free" in done.stderr and "hint: " in done.stderr
        assert not contents(place)
    with small_tmpfs(tmp_path / "little", "40m") as place:
        done = health("run", place, "--tests", "large-transfer", cwd=tmp_path)
        assert done.returncode == 1 and "bytes free" in done.stderr and "hint: " in done.stderr
        assert not contents(place)


def test_a_dry_run_prints_the_cost_and_measures_nothing(place: Path) -> None:
    before = contents(place)
    done = health("run", place, "--class", "L", "--dry-run", cwd=place.parent)
    assert done.returncode == 0, done.stderr
    assert "class L" in done.stdout and "writes up to" in done.stdout and "about" in done.stdout
    assert contents(place) == before and not list(place.parent.glob("*.partial"))


@pytest.mark.whole
def test_an_interrupted_check_up_can_be_resumed(place: Path) -> None:
    before = contents(place)
    kept = place.parent / "place.json.partial"
    process = started(place)
    while not (kept.exists() and kept.read_bytes().count(b"\n") > 5):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "--resume" in said and contents(place) == before
    # The last line is incomplete, as after a crash of the machine.
    lines = kept.read_text().splitlines(keepends=True)
    plan = json.loads(lines[0])
    plan["steps"] = [step for step in plan["steps"] if step["id"] < 14]
    kept.write_text("".join([json.dumps(plan) + "\n", *lines[1:6], '{"id": 7, "don']))
    arguments = ("run", place, "-o", place.parent / "place.json")
    refused = health(*arguments)
    assert refused.returncode == 1 and "--resume" in refused.stderr
    done = health(*arguments, "--resume")
    assert done.returncode == 0, done.stderr
    assert re.search(r"note: 9 of 14 runs are left; about \d+ (s|min)", done.stderr), done.stderr
    assert "9 of 14 runs are left" in done.stderr
    assert not kept.exists() and contents(place) == before
    found = read(place.parent / "place.json")
    assert sum(cell.repeats or 0 for cell in found.cells if cell.operation in ("write", "file-create")) == 14


def test_resume_without_an_earlier_result_is_refused(place: Path) -> None:
    done = health("run", place, "--resume", cwd=place.parent)
    assert done.returncode == 2 and "no run to resume" in done.stderr
    (place.parent / "x.json.partial").write_text("{}\n")
    done = health("run", place, "--resume", "-o", place.parent / "x.json")
    assert done.returncode == 2 and "is not the saved state of an interrupted check-up" in done.stderr


def test_a_tree_in_use_is_not_cleaned(place: Path) -> None:
    process = started(place)
    while True:
        # The process group is stopped during the inspection. The check-up has no tree of files between two
        # runs and after the last.
        os.killpg(process.pid, signal.SIGSTOP)
        if list(place.glob(".iodock-load-*/w*")):
            break
        os.killpg(process.pid, signal.SIGCONT)
        time.sleep(0.01)
        assert process.poll() is None, process.communicate()[1]
    try:
        done = health("clean", place)
        assert "uses it" in done.stderr and list(place.glob(".iodock-load-*/w*"))
    finally:
        process.terminate()
        os.killpg(process.pid, signal.SIGCONT)
    process.communicate(timeout=60)
    assert process.returncode == 143


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere",), "no such folder"),
        ((".", "--sizes", "4x"), "not a size"),
        ((".", "--processes", "0"), "must be numbers"),
        ((".", "--tests", "reading"), "no such test: reading"),
        ((".", "--repeats", "2"), "--repeats"),
        ((".", "-o", "no/such/x.json"), "no such folder"),
    ],
)
def test_invalid_arguments_are_refused(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = health("run", *arguments, cwd=tmp_path)
    assert done.returncode in (1, 2) and words in done.stderr and "Traceback" not in done.stderr


def test_each_round_measures_every_cell_once() -> None:
    grid = cells(CLASSES["S"], Choice())
    steps = shuffled(grid, 3, seed=1)
    for start in range(0, len(steps), len(grid)):
        assert {id(step.cell) for step in steps[start : start + len(grid)]} == {id(cell) for cell in grid}
    order = [step.cell for step in steps]
    assert order != [step.cell for step in shuffled(grid, 3, seed=2)]
    assert order[: len(grid)] != order[len(grid) : 2 * len(grid)]
    assert len({step.id for step in steps}) == len(steps)


def test_memory_for_large_requests_is_limited() -> None:
    few = cells(CLASSES["L"], Choice(memory_bytes=8 << 30))
    assert all(cell.pattern.get("request_bytes", 0) * cell.processes <= 2 << 30 for cell in few)
    assert len(few) < len(cells(CLASSES["L"], Choice()))


def test_ranks_are_read_from_the_environment() -> None:
    assert job_of({}) is None
    assert job_of({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}) is None, "a batch script, not a step"
    step = {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8", "SLURM_JOB_ID": "17", "SLURM_STEP_ID": "2"}
    assert job_of(step) == Job(3, 8, "17.2.8")
    assert job_of({**step, "SLURM_STEP_TASKS_PER_NODE": "4(x2)"}) == Job(3, 8, "17.2.8", 4)
    open_mpi = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "n"}
    assert job_of(open_mpi) == Job(1, 2, "n..2")
    assert job_of({"PMI_RANK": "1", "PMI_SIZE": "4", "PMI_JOBID": "j"}) == Job(1, 4, "j..4")
    assert job_of({"PMI_RANK": "0", "PMI_SIZE": "1"}) is None


def ranks(place: Path, count: int, *arguments: str) -> list[subprocess.Popen[str]]:
    command = [*COMMAND, "run", str(place), *arguments]
    step = {"SLURM_STEP_NUM_TASKS": str(count), "SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": "0"}
    return [
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=place.parent,
            env={**ALONE, **step, "SLURM_PROCID": str(rank)},
        )
        for rank in range(count)
    ]


@pytest.mark.whole
def test_ranks_work_together_and_the_first_reports(place: Path) -> None:
    before = contents(place)
    started = ranks(place, 3, *SMALL, "--processes", "1,5", "--format", "json")
    outputs = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], outputs
    assert [bool(text) for text, _ in outputs] == [True, False, False]
    assert contents(place) == before
    found = json.loads(outputs[0][0])
    # The number of processes is rounded up, so that every rank has the same number.
    assert {cell["processes"] for cell in found["cells"]} == {3, 6}
    limited = any("time limit" in note for note in found["protocol"]["notes"])
    for cell in (cell for cell in found["cells"] if cell["operation"] == "write"):
        many, size = cell["processes"], cell["size_bytes"]
        whole = many * ((64 << 20) // many // size) * size
        assert cell["volume_bytes"] == whole or (limited and cell["volume_bytes"] < whole)
        reads = [
            one["volume_bytes"]
            for one in found["cells"]
            if (one["processes"], one["size_bytes"], one["operation"]) == (many, size, "read")
        ]
        # Each rank reads the file of another rank completely.
        assert reads == [cell["volume_bytes"]] or limited


@pytest.mark.whole
def test_if_a_rank_is_killed_all_end_and_remove_their_files(place: Path) -> None:
    before = contents(place)
    started = ranks(place, 3, "--repeats", "50", "-q")
    while not list(place.glob(".iodock-load-*/w2")):
        assert all(process.poll() is None for process in started)
        time.sleep(0.01)
    started[1].terminate()
    outputs = [process.communicate(timeout=90) for process in started]
    assert started[1].returncode == 143 and started[0].returncode == 1, outputs
    assert "another rank stopped" in outputs[0][1]
    assert contents(place) == before


@pytest.mark.whole
@pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is not installed")
def test_a_check_up_runs_under_mpirun(place: Path) -> None:
    before = contents(place)
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", *COMMAND, "run", str(place)]
    command += [*SMALL, "-q", "-o", str(place.parent / "ranks.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ALONE)
    assert done.returncode == 0, done.stderr
    found = read(place.parent / "ranks.json")
    assert {cell.processes for cell in found.cells} == {2, 4} and contents(place) == before
    assert found.protocol.settings["ranks"] == 2


def test_a_signal_between_two_engines_is_not_lost() -> None:
    """A signal does not interrupt an engine. A signal that arrives during its run ends the check-up after
    it."""
    told: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        with engine._undisturbed():
            os.kill(os.getpid(), signal.SIGTERM)
            assert told == []
        assert told == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_measurement_of_zero_duration_has_no_rate(tmp_path: Path) -> None:
    (cell, *_) = [one for one in cells(CLASSES["S"], Choice()) if one.pattern["kind"] == "data"]
    plan = Plan(
        name="S",
        directory=str(tmp_path),
        repeats=2,
        seed=1,
        ranks=1,
        steps=[Step("one", cell), Step("two", cell)],
        started="2026-11-27T10:00:00+00:00",
    )

    def result(name: str, *seconds: float) -> Result:
        done = [
            {
                "operation": operation,
                "seconds": time,
                "bytes": 1 << 30,
                "operations": 1024,
                "cache": None,
                "cache_reason": None,
                "latencies": {"min_ns": 0, "max_ns": 0, "sum_ns": 0, "count": 0, "buckets": []},
                "limited": False,
            }
            for operation, time in zip(("write", "read"), seconds, strict=True)
        ]
        return {"id": name, "machines": 1, "done": done}

    folded = measurements(plan, [result("one", 2.0, 0.0), result("two", 0.0, 0.0)])
    assert [(one.operation, one.value, one.repeats) for one in folded.cells] == [("write", 1 << 29, 1)]
    assert folded.protocol.notes[-1] == "3 of 4 runs took no time by the clock, so they have no rate"
