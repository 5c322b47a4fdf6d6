"""`iodock health run` and `clean`: cells, estimates, what is kept, what is refused, ranks."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from health_places import ALONE, COMMAND, contents, health, loop_ext4, others_files, small_tmpfs, started
from iodock.errors import RequestError
from iodock.health import engine, workload
from iodock.health.classes import CLASSES, Choice, cells, shuffled
from iodock.health.measurements_json import read
from iodock.health.ranks import Job, job_of

SMALL = ("--sizes", "64k,1m", "--processes", "1,3", "--tests", "large-transfer,metadata")


def measured(folder: Path, *arguments: object, **options: object) -> dict[str, Any]:
    done = health("run", folder, *arguments, "--format", "json", cwd=folder.parent, **options)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    others_files(folder)
    return folder


def test_cells_have_what_was_measured_and_nothing_is_left(place: Path) -> None:
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
    assert found["protocol"]["settings"]["seed"] == 7
    assert found["protocol"]["tool"] == "iodock health"


def test_counts_are_those_of_the_plan(place: Path) -> None:
    found = measured(place, "--sizes", "1m", "--processes", "2", "--tests", "large-transfer", "--class", "M")
    # 1 GiB in all for two processes; a slow disk ends at the time limit with less, and says so.
    limited = any("time limit" in note for note in found["protocol"]["notes"])
    for cell in found["cells"]:
        assert cell["volume_bytes"] == 1 << 30 or (limited and cell["volume_bytes"] < 1 << 30)
        assert cell["latency_ns"]["count"] * (1 << 20) == pytest.approx(3 * cell["volume_bytes"], abs=3)


def test_one_file_for_all(place: Path) -> None:
    before = contents(place)
    arguments = ("--sizes", "64k", "--processes", "1,3", "--tests", "large-transfer", "--shared-file")
    found = measured(place, *arguments)
    assert contents(place) == before
    assert {cell["variant"]["access"] for cell in found["cells"]} == {"shared-file"}
    volumes = {(cell["operation"], cell["processes"]): cell["volume_bytes"] for cell in found["cells"]}
    if not any("time limit" in note for note in found["protocol"]["notes"]):
        assert volumes[("read", 3)] == volumes[("write", 3)] == (64 << 20) // 3 // 65536 * 65536 * 3


def test_labels_of_reads_are_what_the_kernel_says(tmp_path: Path) -> None:
    with loop_ext4(tmp_path / "disk") as place:
        found = measured(place, "--sizes", "1m", "--processes", "1", "--tests", "large-transfer")
        labels = {cell["operation"]: cell["cache"] for cell in found["cells"]}
        assert labels == {"write": None, "read": "uncached", "reread": "cached"}
        found = measured(place, "--sizes", "1m", "--processes", "1", "--tests", "large-transfer", "--direct")
        labels = {cell["operation"]: cell["cache"] for cell in found["cells"]}
        assert labels == {"write": None, "read": "uncached"}
    with small_tmpfs(tmp_path / "memory", "200m") as place:
        found = measured(place, "--sizes", "1m", "--processes", "1", "--tests", "large-transfer")
        assert {cell["cache"] for cell in found["cells"] if cell["operation"] == "read"} == {"cached"}
        assert found["protocol"]["file_system"] == "tmpfs"


def test_without_room_nothing_is_begun(tmp_path: Path) -> None:
    with small_tmpfs(tmp_path / "few", "64m", inodes=300) as place:
        done = health("run", place, "--tests", "metadata", cwd=tmp_path)
        assert done.returncode == 1 and "inodes free" in done.stderr and "hint: " in done.stderr
        assert not contents(place)
    with small_tmpfs(tmp_path / "little", "40m") as place:
        done = health("run", place, "--tests", "large-transfer", cwd=tmp_path)
        assert done.returncode == 1 and "bytes free" in done.stderr and "hint: " in done.stderr
        assert not contents(place)


def test_a_dry_run_says_the_cost_and_measures_nothing(place: Path) -> None:
    before = contents(place)
    done = health("run", place, "--class", "L", "--dry-run", cwd=place.parent)
    assert done.returncode == 0, done.stderr
    assert "class L" in done.stdout and "writes up to" in done.stdout and "about" in done.stdout
    assert contents(place) == before and not list(place.parent.glob("*.partial"))


def test_what_was_cut_short_goes_on(place: Path) -> None:
    before = contents(place)
    kept = place.parent / "place.json.partial"
    process = started(place)
    while not (kept.exists() and kept.read_bytes().count(b"\n") > 5):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130 and "--resume" in said and contents(place) == before
    # A line that was being written when the machine went down.
    lines = kept.read_text().splitlines(keepends=True)
    plan = json.loads(lines[0])
    plan["steps"] = [step for step in plan["steps"] if step["id"] < 14]
    kept.write_text("".join([json.dumps(plan) + "\n", *lines[1:6], '{"id": 7, "don']))
    arguments = ("run", place, "-o", place.parent / "place.json")
    refused = health(*arguments)
    assert refused.returncode == 1 and "--resume" in refused.stderr
    done = health(*arguments, "--resume")
    assert done.returncode == 0, done.stderr
    assert "9 of 14 runs are left" in done.stderr
    assert not kept.exists() and contents(place) == before
    found = read(place.parent / "place.json")
    assert sum(cell.repeats or 0 for cell in found.cells if cell.operation in ("write", "file-create")) == 14


def test_resume_of_nothing_is_refused(place: Path) -> None:
    done = health("run", place, "--resume", cwd=place.parent)
    assert done.returncode == 2 and "no run to go on with" in done.stderr
    (place.parent / "x.json.partial").write_text("{}\n")
    done = health("run", place, "--resume", "-o", place.parent / "x.json")
    assert done.returncode == 2 and "is not what an interrupted check-up keeps" in done.stderr


def test_a_tree_in_use_is_not_cleaned(place: Path) -> None:
    process = started(place)
    while True:
        # Stopped while it is looked at: between two runs of the check-up, and after the last, it has no tree.
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


WORKLOAD = """
files = 20
sizes = ["4k", "100k"]
operations = 300
processes = [2]
[weights]
create = 1
write = 1
append = 1
read = 4
delete = 1
stat = 2
"""


def test_a_workload_from_a_file(place: Path) -> None:
    before = contents(place)
    file = place.parent / "mixture.toml"
    file.write_text(WORKLOAD)
    found = measured(place, "--workload", file)
    assert contents(place) == before
    counts = {cell["operation"]: cell["latency_ns"]["count"] for cell in found["cells"]}
    operations = ("create", "write", "append", "read", "delete", "stat")
    assert set(counts) == {"all", *operations}
    assert counts["all"] == sum(counts[name] for name in operations) == 300 * 2 * 3
    # Four of ten, give or take five standard deviations.
    assert abs(counts["read"] - 720) < 5 * 21
    labels = {cell["operation"]: cell["cache"] for cell in found["cells"]}
    assert labels["read"] == "unknown" and labels["stat"] is None


FILEBENCH = """
set $dir=/tmp
set $nfiles=120
set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)   # a comment
set $nthreads=3
define fileset name=small,path=$dir,size=1k,entries=4
define fileset name=mail,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=80
define process name=mailer,instances=1
{
  thread name=mailerthread,memsize=10m,instances=$nthreads
  {
    flowop deletefile name=deletefile1,filesetname=mail
    flowop createfile name=createfile2,filesetname=mail,fd=1
    flowop writewholefile name=write2,srcfd=1,fd=1,iosize=64k
    flowop fsync name=fsyncfile2,fd=1
    flowop closefile name=closefile2,fd=1
    flowop openfile name=openfile3,filesetname=mail,fd=1
    flowop readwholefile name=readfile3,fd=1,iosize=1m
    flowop appendfilerand name=appendfilerand3,iosize=4k,fd=1
    flowop closefile name=closefile3,fd=1
    flowop statfile name=stat4,filesetname=mail
    flowop readwholefile name=readfile4,fd=1,iosize=1m
  }
}
echo  "Mail personality successfully loaded"
run 2
"""


def test_a_filebench_file_is_a_mixture(place: Path) -> None:
    file = place.parent / "mail.f"
    file.write_text(FILEBENCH)
    (cell,) = workload.cells(file, Choice())
    pattern = cell.pattern
    assert (cell.processes, cell.limit_s, dict(cell.variant)) == (3, 2.0, {"workload": "mail"})
    assert pattern["weights"] == {"create": 3, "write": 0, "append": 3, "read": 6, "delete": 3, "stat": 3}
    assert (pattern["files"], pattern["append_bytes"], pattern["request_bytes"]) == (40, 4096, 1 << 20)
    assert pattern["sync"] is True
    sizes = pattern["sizes_bytes"]
    # Of 32 samples of a gamma distribution: standard deviation 0.82 of the mean, so 0.14 of the mean's.
    assert len(sizes) == 32 and abs(sum(sizes) / 32 - 16384) < 3 * 0.15 * 16384
    before = contents(place)
    found = measured(place, "--workload", file)
    assert contents(place) == before
    assert {one["operation"] for one in found["cells"]} == {
        "all",
        "create",
        "append",
        "read",
        "delete",
        "stat",
    }


COMPOSITE = """
set $nfiles=100
set $total=$nfiles * 4
set $written = randvar(type=tabular, min=1k, round=1k, randtable =
{{ 30,   1k,    3k},
 {10,   9k,   15k}
})
define randvar name=$size, type=tabular, min=1k, randtable =
{{ 1, 2k, 2k},
 { 1, 4k, 4k}}
define fileset name=many,
    path=/tmp,
    entries=$total,
    size=$size
define flowop name=renew, $which
{
  flowop deletefile name=a,filesetname=$which
  flowop createfile name=b,filesetname=$which,fd=1
  flowop appendfile name=c,iosize=$written,fd=1
}
define process name=p,instances=2
{
  thread name=t,memsize=1m,instances=1
  {
    flowop renew name=r,iters=3,$which=many
    flowop delay name=d,value=1
  }
}
run 3
"""


def test_filebenchs_variables_and_composites(tmp_path: Path) -> None:
    file = tmp_path / "composite.f"
    file.write_text(COMPOSITE)
    (cell,) = workload.cells(file, Choice())
    pattern = cell.pattern
    assert pattern["weights"] == {"create": 1, "write": 0, "append": 1, "read": 0, "delete": 1, "stat": 0}
    assert (cell.processes, pattern["files"], pattern["sizes_bytes"]) == (2, 200, [3072])
    # (30 x 2k + 10 x 12k) / 40
    assert pattern["append_bytes"] == 4608


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("  flowop read name=r,random,iosize=4k", "wrong.f:2: read: can't be part"),
        ("define fileset name=a,entries=$many", "wrong.f:2: $many was not set"),
        ("define fileset name=a,entries=lots", "wrong.f:2: 'lots': is no number"),
        ("frobnicate 3", "wrong.f:2: frobnicate: is no command"),
        ("run 60", "wrong.f: no operation was found"),
    ],
)
def test_a_wrong_filebench_file_is_told_by_line(tmp_path: Path, line: str, words: str) -> None:
    file = tmp_path / "wrong.f"
    file.write_text(f"# first\n{line}\n")
    with pytest.raises(RequestError, match=re.escape(words)):
        workload.cells(file, Choice())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("files = 0\n[weights]\nread = 1", "files should be a whole number"),
        ("weigths = 1", "weigths is not known"),
        ("files = 3", "weights is missing"),
        ("[weights]\nread = 0", "none is above 0"),
        ("[weights]\nreed = 1", "weights.reed is not known"),
        ('sizes = ["4x"]\n[weights]\nread = 1', "sizes should be a size"),
        ("files = [", "Invalid"),
    ],
)
def test_a_wrong_workload_is_told_by_field(place: Path, text: str, words: str) -> None:
    file = place.parent / "wrong.toml"
    file.write_text(text)
    done = health("run", place, "--workload", file)
    assert done.returncode == 2 and words in done.stderr and "wrong.toml" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere",), "no such folder"),
        ((".", "--sizes", "4x"), "is no size"),
        ((".", "--processes", "0"), "are no numbers"),
        ((".", "--tests", "reading"), "no such test: reading"),
        ((".", "--repeats", "2"), "--repeats"),
        ((".", "-o", "no/such/x.json"), "no such folder"),
    ],
)
def test_wrong_usage(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = health("run", *arguments, cwd=tmp_path)
    assert done.returncode in (1, 2) and words in done.stderr and "Traceback" not in done.stderr


def test_a_step_is_every_cell_once_a_round() -> None:
    grid = cells(CLASSES["S"], Choice())
    steps = shuffled(grid, 3, seed=1)
    for start in range(0, len(steps), len(grid)):
        assert {id(step.cell) for step in steps[start : start + len(grid)]} == {id(cell) for cell in grid}
    order = [step.cell for step in steps]
    assert order != [step.cell for step in shuffled(grid, 3, seed=2)]
    assert order[: len(grid)] != order[len(grid) : 2 * len(grid)]
    assert len({step.id for step in steps}) == len(steps)


def test_no_more_memory_is_used_than_there_is() -> None:
    few = cells(CLASSES["L"], Choice(memory_bytes=8 << 30))
    assert all(cell.pattern.get("request_bytes", 0) * cell.processes <= 2 << 30 for cell in few)
    assert len(few) < len(cells(CLASSES["L"], Choice()))


def test_ranks_from_the_environment() -> None:
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


def test_ranks_work_together_and_the_first_tells(place: Path) -> None:
    before = contents(place)
    started = ranks(place, 3, *SMALL, "--processes", "1,5", "--format", "json")
    outputs = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0, 0], outputs
    assert [bool(text) for text, _ in outputs] == [True, False, False]
    assert contents(place) == before
    found = json.loads(outputs[0][0])
    # Rounded up, so that every rank has as many.
    assert {cell["processes"] for cell in found["cells"]} == {3, 6}
    limited = any("time limit" in note for note in found["protocol"]["notes"])
    for cell in (cell for cell in found["cells"] if cell["operation"] == "write"):
        many, size = cell["processes"], cell["size_bytes"]
        whole = many * ((64 << 20) // many // size) * size
        assert cell["volume_bytes"] == whole or (limited and cell["volume_bytes"] < whole)


def test_when_a_rank_is_ended_all_end_and_nothing_is_left(place: Path) -> None:
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


@pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is not installed")
def test_under_mpirun(place: Path) -> None:
    before = contents(place)
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", *COMMAND, "run", str(place)]
    command += [*SMALL, "-q", "-o", str(place.parent / "ranks.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ALONE)
    assert done.returncode == 0, done.stderr
    found = read(place.parent / "ranks.json")
    assert {cell.processes for cell in found.cells} == {2, 4} and contents(place) == before
    assert found.protocol.settings["ranks"] == 2


def test_a_signal_between_two_engines_is_not_lost() -> None:
    """An engine is waited for undisturbed; what asks for the end meanwhile ends the check-up after it."""
    told: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        with engine._undisturbed():
            os.kill(os.getpid(), signal.SIGTERM)
            assert told == []
        assert told == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)
