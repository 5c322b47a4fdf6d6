"""Faults behind other people's habits: files gone through column by column, commands that a shell starts in a
sub-shell for each value, tiny files of each rank, text that is written to be parsed again; and neighbours."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iodock.program.findings import Diagnosis
from made_store import without_checksums
from metadata_log import FIRST, Trace, diagnosed, of_rule


def columns(
    folder: Path, passes: int = 40, stride: int = 16000, size: int = 8, step: int = 8, verb: str = "pread64"
) -> Diagnosis:
    """A matrix is gone through PASSES times, each time a piece of SIZE bytes of each row of STRIDE bytes; the
    next pass begins STEP bytes further on."""
    log = Trace()
    log.open("/data/field.bin")
    for number in range(passes):
        for row in range(1200 // passes):
            at = row * stride + number * step
            log.call(f'{verb}(3, ""..., {size}, {at})', str(size), 300)
    return diagnosed(log.imported(folder))


@pytest.mark.parametrize("verb", ["pread64", "pwrite64"])
def test_columns_of_a_matrix_stored_by_rows_are_random_access(tmp_path: Path, verb: str) -> None:
    diagnosis = columns(tmp_path, verb=verb)
    (found,) = of_rule(diagnosis, "random-access")
    assert (found.evidence["count"], found.evidence["jumps"]) == (1200, 1199)
    assert found.cost_seconds == pytest.approx(0.36, rel=0.01)
    assert not of_rule(diagnosis, "small-requests")


@pytest.mark.parametrize(
    "given",
    [
        {"passes": 1},
        {"passes": 8, "stride": 40_000},
        {"stride": 400},
        {"size": 65536, "stride": 131072, "step": 0},
    ],
    ids=["one pass", "few passes", "pieces of one page", "large pieces"],
)
def test_passes_that_cost_no_new_page_for_each_piece(tmp_path: Path, given: dict[str, int]) -> None:
    assert not of_rule(columns(tmp_path, **given), "random-access")


def test_a_footer_of_each_of_many_files_makes_no_passes(tmp_path: Path) -> None:
    log = Trace()
    for number in range(600):
        log.open(f"/data/part-{number:04}.parquet")
        for at in (901_120, *(98_304 * piece + 8192 * (piece * piece % 7) for piece in range(9))):
            log.call(f'pread64(3, ""..., 8192, {at})', "8192", 300)
        log.close()
    assert not of_rule(diagnosed(log.imported(tmp_path)), "random-access")


def test_passes_over_the_same_pieces_read_them_again(tmp_path: Path) -> None:
    diagnosis = columns(tmp_path, size=4096, step=0)
    (found,) = of_rule(diagnosis, "redundant-reads")
    assert found.evidence["factor"] == 40
    assert not of_rule(diagnosis, "random-access")


def test_a_pass_backward_is_no_pass_forward(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/records.bin")
    for number in range(1200, 0, -1):
        log.call(f'pread64(3, ""..., 80, {number * 8000})', "80", 300)
    diagnosis = diagnosed(log.imported(tmp_path))
    assert of_rule(diagnosis, "backward-access")
    assert not of_rule(diagnosis, "random-access")


def listed_in_sub_shells(folder: Path, listed: str) -> Diagnosis:
    """`n=$(ls LISTED | wc -l)` sixty times."""
    log = Trace()
    log.call('execve("/usr/bin/dash", ["dash"], 0x7f /* 9 vars */)')
    for number in range(60):
        shell, ls = FIRST + 1 + 2 * number, FIRST + 2 + 2 * number
        log.start(shell)
        log.start(ls, "/usr/bin/ls", parent=shell)
        log.open(listed, flags="O_RDONLY|O_DIRECTORY", took_us=50, pid=ls)
        log.call("getdents64(3, 0x7f /* 900 entries */, 32768)", "32768", 3000, ls)
        log.call("getdents64(3, 0x7f /* 0 entries */, 32768)", "0", 5, ls)
        log.close(pid=ls)
        log.pause(2000, ls)
        log.end(ls)
        log.clocks[shell] = log.clocks[ls]
        log.end(shell)
        log.clocks[FIRST] = log.clocks[shell]
    return diagnosed(log.imported(folder))


def test_a_folder_is_listed_again_by_commands_of_sub_shells(tmp_path: Path) -> None:
    diagnosis = listed_in_sub_shells(tmp_path, "/data/in")
    (found,) = of_rule(diagnosis, "directory-scan-storm")
    assert found.evidence["scans"] == 60
    assert found.cost_seconds == pytest.approx(59 * 0.003055, rel=0.01)
    assert of_rule(diagnosis, "process-storm")


def test_commands_may_list_the_folder_that_their_modules_lie_in(tmp_path: Path) -> None:
    diagnosis = listed_in_sub_shells(tmp_path, "/data/tools/lib/site-packages")
    assert not of_rule(diagnosis, "directory-scan-storm")


@pytest.mark.parametrize(("into", "found"), [("/usr/bin/grep", True), ("/usr/bin/dash", False)])
def test_a_table_goes_through_a_pipe_in_each_sub_shell(tmp_path: Path, into: str, found: bool) -> None:
    log = Trace()
    log.call('execve("/usr/bin/python3", ["python3"], 0x7f /* 9 vars */)')
    for number in range(30):
        shell, cat, asks = (FIRST + 1 + 3 * number + at for at in range(3))
        log.start(shell, "/usr/bin/sh")
        log.call("pipe2([8, 9], 0)", pid=shell)
        log.start(cat, "/usr/bin/cat", parent=shell)
        log.start(asks, into, parent=shell)
        log.call('openat(AT_FDCWD, "/data/table.txt", O_RDONLY)', "3", 1, cat)
        log.call("dup2(9, 1)", "1", 0, cat)
        log.call("dup2(8, 0)", "0", 0, asks)
        for _ in range(8):
            log.read(131072, 20, pid=cat)
            log.write(131072, 20, fd=1, pid=cat)
            log.read(131072, 2000, fd=0, pid=asks)
        for pid in (cat, asks, shell):
            log.clocks[pid] = max(log.clocks.values())
            log.end(pid)
        log.clocks[FIRST] = max(log.clocks.values())
    assert bool(of_rule(diagnosed(log.imported(tmp_path)), "whole-file-for-a-few-bytes")) == found


@pytest.mark.parametrize(
    ("each", "size", "found"),
    [(600, 60, True), (150, 60, False), (600, 100_000, False)],
    ids=["each rank writes many", "ranks are many", "large files"],
)
def test_ranks_that_each_flood_with_tiny_files(tmp_path: Path, each: int, size: int, found: bool) -> None:
    log = Trace(clocks={FIRST + number: 0 for number in range(4)})
    for number in range(4):
        pid = FIRST + number
        for step in range(each):
            log.open(f"/data/cell{step:04d}.{number}", flags="O_WRONLY|O_CREAT", took_us=200, pid=pid)
            log.write(size, 20, pid=pid)
            log.close(100, pid=pid)
        log.end(pid)
    diagnosis = diagnosed(log.imported(tmp_path, ranks=4))
    assert bool(of_rule(diagnosis, "tiny-file-flood")) == found
    assert of_rule(diagnosis, "file-per-process")


@pytest.mark.parametrize(("name", "seconds"), [("stage.csv", 0.00204 + 0.02), ("stage.bin", 0.00204)])
def test_text_that_a_program_wrote_itself_is_parsed_for_nothing(
    tmp_path: Path, name: str, seconds: float
) -> None:
    log = Trace()
    log.open(f"/data/{name}", flags="O_RDWR|O_CREAT", took_us=10)
    for _ in range(4):
        log.write(1_000_000, 1000)
        log.pause(20_000)
    log.call("lseek(3, 0, SEEK_SET)")
    for _ in range(4):
        log.read(1_000_000, 510)
        log.pause(20_000)
    path = log.imported(tmp_path)
    table = path / "processes.parquet"
    rows = pq.read_table(table)
    at = rows.column_names.index("cpu_user_ns")
    pq.write_table(rows.set_column(at, "cpu_user_ns", pa.array([160_000_000], pa.int64())), table)
    without_checksums(table.parent)
    (found,) = of_rule(diagnosed(path), "read-after-write")
    assert found.cost_seconds == pytest.approx(seconds, rel=0.01)


@pytest.mark.parametrize(("program", "found"), [("/usr/local/go/bin/go", False), ("/home/a/model", True)])
def test_build_tools_may_read_what_they_made_again(tmp_path: Path, program: str, found: bool) -> None:
    log = Trace()
    log.call(f'execve("{program}", ["{program}"], 0x7f /* 9 vars */)')
    for _ in range(4):
        log.open("/data/b010/package.a", flags="O_RDONLY")
        for _ in range(16):
            log.read(65536, 2000)
        log.close()
    assert bool(of_rule(diagnosed(log.imported(tmp_path)), "redundant-reads")) == found
