"""Tests step 2, which compares the kernel's counters with the known I/O of a program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from iodock.cli.run import run as run_command
from iodock.program.run import Run
from iodock.program.views.volume_text import volume_text
from iodock.program.volume.measure import Volume, run, watch
from iodock.program.volume.reading import Step, read_volume
from iodock.program.volume.sources import (
    MountIo,
    ProcessIo,
    mounts,
    parse_llite,
    parse_mountstats,
    parse_process_io,
)
from iodock.program.volume.tree import descendants
from iodock.shared.errors import IodockError, RequestError
from iodock.shared.language import language_in
from iodock.shared.settings import FileSystem, Ratio, Settings
from iodock.shared.text import cells

MOUNTSTATS = """device /dev/sda1 mounted on / with fstype ext4
device server:/export mounted on /home with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=32768
\tbytes:\t72600870912 137520414720 1000 2000 72600870900 137520414700 17724968 33573840
\tper-op statistics
\t\tREAD: 2215621 2215621 0 0 0 0 0 0
device proc mounted on /proc with fstype proc
"""
LLITE = """snapshot_time 1700000000.123 secs.usecs
read_bytes 1000 samples [bytes] 4096 1048576 {read}
write_bytes 262144 samples [bytes] 1048576 1048576 {written} 288230376151711744
open 3 samples [regs]
"""


def python(code: str) -> Sequence[str]:
    return [sys.executable, "-S", "-c", code]


def test_a_program_s_own_bytes_are_counted(tmp_path: Path) -> None:
    target = tmp_path / "data"
    target.write_bytes(b"x" * 3_000_000)
    code = f"""
import os, time
fd = os.open({str(target)!r}, os.O_RDONLY)
time.sleep(0.5)
for at in range(5):
    os.lseek(fd, 0, 0)
    while os.read(fd, 1 << 20): pass
"""
    found = run(python(code))
    assert found.exit_code == 0
    # The interpreter itself reads about 100 kB when it starts.
    assert 15_000_000 <= found.io.rchar < 16_000_000
    assert found.file_bytes >= 3_000_000
    reading = read_volume(found, Settings(ratio=Ratio(compute_above=2)), expected_bytes=3_000_000)
    assert reading.factor == pytest.approx(5, rel=0.1)
    assert reading.step is Step.TRACE_REDUNDANT


def test_child_processes_are_counted_and_the_exit_status_is_passed_on(tmp_path: Path) -> None:
    target = tmp_path / "out"
    found = run(["sh", "-c", f"head -c 2000000 /dev/zero > {target}; exit 7"])
    assert found.exit_code == 7
    assert found.io.wchar >= 2_000_000


def test_death_by_a_signal_is_reported() -> None:
    assert run(["sh", "-c", "kill -9 $$"]).exit_signal == 9


def test_a_missing_program_gives_an_error() -> None:
    with pytest.raises(RequestError, match="no-such-program"):
        run(["./no-such-program"])


def test_the_volume_of_a_running_process_is_measured() -> None:
    code = "import os, time\nfor _ in range(8): os.write(1, b'x' * 1000); time.sleep(0.1)"
    child = subprocess.Popen(python(code), stdout=subprocess.DEVNULL)

    def pause(seconds: float) -> None:
        time.sleep(seconds)
        child.poll()

    seen = list(watch(child.pid, 0.3, pause=pause))
    child.wait()
    assert seen and sum(one.io.wchar for one in seen) >= 1000


def test_watching_a_missing_process_gives_an_error() -> None:
    with pytest.raises(IodockError, match="no process"):
        next(iter(watch(2**22 - 1, 1)))


def test_nfs_volumes_are_read_from_mountstats() -> None:
    (found,) = parse_mountstats(MOUNTSTATS)
    assert (found.mount, found.kind) == ("/home", "nfs")
    assert (found.read_bytes, found.written_bytes) == (72600870912 + 1000, 137520414720 + 2000)
    assert (found.server_read_bytes, found.server_written_bytes) == (72600870900, 137520414700)


def test_the_lustre_difference_equals_the_published_one() -> None:
    """The report's example is exactly 256 GiB, which iodock must reproduce."""
    before = parse_llite("lustre-ffff8800", LLITE.format(read=5, written=1_000_000))
    after = parse_llite("lustre-ffff8800", LLITE.format(read=5, written=1_000_000 + 274_877_906_944))
    grown = after.since(before)
    assert (grown.mount, grown.read_bytes, grown.written_bytes) == ("lustre", 0, 256 << 30)


def test_counters_are_read_below_another_root(tmp_path: Path) -> None:
    folder = tmp_path / "proc/fs/lustre/llite/work-ffff"
    folder.mkdir(parents=True)
    (folder / "stats").write_text(LLITE.format(read=10, written=20))
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "proc/self/mountstats").write_text(MOUNTSTATS)
    assert [(one.mount, one.kind) for one in mounts(tmp_path).values()] == [
        ("/home", "nfs"),
        ("work", "lustre"),
    ]


@pytest.mark.parametrize("text", ["", "rchar", "rchar: x\n", "\x00\x00", "rchar: 5\nnew_counter: 3\n"])
def test_unusual_process_counters_are_read(text: str) -> None:
    assert parse_process_io(text).rchar in (0, 5)


def test_process_names_may_contain_brackets_and_blanks(tmp_path: Path) -> None:
    for pid, parent in ((10, 1), (11, 10), (12, 11), (13, 1)):
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "stat").write_text(f"{pid} (a) b (c)) S {parent} 0 0 0")
    assert descendants(10, tmp_path) == [10, 11, 12]


def volume(**changes: object) -> Volume:
    base = Volume(100.0, 5.0, 1.0, ProcessIo(rchar=1000, wchar=0), (), 0, 0, 1, 1000)
    return replace(base, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "step"),
    [
        (volume(user_seconds=95.0), Step.NOTHING),
        (volume(io=ProcessIo(rchar=50_000)), Step.TRACE_REDUNDANT),
        # The program reads the data once and writes them to a pipe.
        (volume(user_seconds=40.0, io=ProcessIo(rchar=1500, wchar=1500)), Step.TRACE),
        (volume(), Step.TRACE_METADATA),
        # There is no file whose size could be compared with the volume.
        (volume(files=0, file_bytes=0), Step.TRACE),
        (volume(user_seconds=40.0), Step.TRACE),
        (volume(mounts=(MountIo("/home", "nfs", 2_000, 0),)), Step.ADMINISTRATOR),
        (
            volume(mounts=(MountIo("/home", "nfs", 2_000, 0),), command="/usr/bin/sqlite3"),
            Step.TRACE_METADATA,
        ),
        (volume(mounts=(MountIo("/home", "nfs", 9_000, 0),)), Step.TRACE_METADATA),
    ],
)
def test_the_next_step_follows_from_the_measured_volume(found: Volume, step: Step) -> None:
    settings = Settings(file_systems={"/home": FileSystem(read_bytes_per_s=100)})
    assert read_volume(found, settings).step is step


def test_the_command_prints_and_writes_the_volume(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "answer.json"
    status = run_command(
        [
            "volume",
            "--expect",
            "1K",
            "--format",
            "json",
            "-o",
            str(target),
            "--",
            "sh",
            "-c",
            "echo hi; exit 4",
        ]
    )
    assert status == 4
    assert capfd.readouterr().out == "hi\n"
    answer = json.loads(target.read_text())
    assert answer["expected_bytes"] == 1024 and answer["process_io"]["wchar"] >= 3


@pytest.mark.parametrize(
    "arguments",
    [[], ["-p", "1", "--", "true"], ["--expect", "much", "--", "true"], ["-p", "1", "--format", "json"]],
)
def test_invalid_arguments_are_refused(arguments: list[str]) -> None:
    assert run_command(["volume", *arguments]) == 2


def test_the_volume_of_a_store_is_shown(mixed: Run) -> None:
    table = mixed.show("volume").to_arrow().to_pylist()
    summary = {row["file"]: row for row in mixed.show("summary", by=["file"]).to_arrow().to_pylist()}
    assert table
    for row in table:
        assert row["read_bytes"] == (summary[row["file"]]["read_bytes"] or 0)
        if row["size_bytes"]:
            assert row["read_factor"] == pytest.approx(row["read_bytes"] / row["size_bytes"])


def test_the_text_is_written_in_both_languages() -> None:

    found = volume(mounts=(MountIo("/home", "nfs", 1, 2, 3, 4),))
    for code in ("en", "ja"):
        said = volume_text(found, read_volume(found, Settings()), language_in(code))
        assert "/home" in said and "{" not in said


@pytest.mark.parametrize("size", ["0", "-5G", "1e400", "nan", "abc"])
def test_an_expected_volume_is_a_size_above_0(size: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["volume", "--expect", size, "--", "echo", "ran"]) == 2
    shown = capfd.readouterr()
    assert size in shown.err and "bug" not in shown.err and not shown.out


def test_unwritable_output_is_refused_before_the_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["volume", "-o", str(tmp_path / "none" / "x"), "--", "echo", "ran"]) == 1
    shown = capfd.readouterr()
    assert "no such folder" in shown.err and not shown.out


def test_a_result_that_cannot_be_written_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_command(["volume", "-o", "/dev/full", "--", "echo", "ran"]) == 1
    assert "No space left" in (said := capfd.readouterr().err) and "/proc/PID/io" in said


@pytest.mark.parametrize("code", ["en", "ja"])
@pytest.mark.parametrize("width", [40, 100])
def test_sentences_are_wrapped_at_the_width_of_the_terminal(code: str, width: int) -> None:
    found = volume()
    text = language_in(code)
    lines = volume_text(found, read_volume(found, Settings()), text, width).splitlines()
    whole = volume_text(found, read_volume(found, Settings()), text, 10_000).splitlines()
    assert max(map(cells, lines)) <= width and len(lines) > len(whole)
    assert "".join("".join(lines).split()) == "".join("".join(whole).split())


def test_columns_are_aligned_in_japanese() -> None:
    found = volume()
    lines = volume_text(found, read_volume(found, Settings()), language_in("ja"), 500).splitlines()
    assert len({cells(line) for line in lines[2:6]}) == 1


def test_bytes_to_pipes_and_null_devices_are_not_compared_with_files(tmp_path: Path) -> None:
    target = tmp_path / "data"
    target.write_bytes(b"x" * 8_000_000)
    # Each process keeps its descriptors open long enough for iodock to observe them.
    script = f"(cat {target}; sleep 0.5) | (cat; sleep 0.5) | (cat; sleep 0.5) > /dev/null"
    found = run(["sh", "-c", script])
    assert found.io.rchar + found.io.wchar > 6 * 8_000_000
    reading = read_volume(found, Settings(), expected_bytes=8_000_000)
    assert reading.factor is None and reading.step is Step.TRACE
    (told,) = [one for one in reading.remarks if "moved_bytes" in one.values]
    assert "not compared" in told.text


def test_repeated_reads_are_reported_if_output_goes_to_a_pipe(tmp_path: Path) -> None:
    """Only data that the program reads from a pipe are uncertain, and it reads none."""
    target = tmp_path / "data"
    target.write_bytes(b"x" * 1_000_000)
    code = (
        f"import os, sys, time\nfd = os.open({str(target)!r}, os.O_RDONLY)\ntime.sleep(0.5)\n"
        "for at in range(4):\n  os.pread(fd, 1 << 20, 0)\n  os.write(1, b'x' * 1000000)\n"
    )
    with (tmp_path / "null").open("wb") as rest:
        sink = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=rest)
        assert sink.stdin is not None
        saved = os.dup(1)
        try:
            os.dup2(sink.stdin.fileno(), 1)
            found = run(python(code))
        finally:
            os.dup2(saved, 1)
            os.close(saved)
            sink.stdin.close()
            sink.wait()
    reading = read_volume(found, Settings(ratio=Ratio(compute_above=2)), expected_bytes=1_000_000)
    assert found.file_read is not None and found.file_read >= 4_000_000
    assert found.file_written == 0 and found.io.wchar >= 4_000_000
    assert reading.factor is None and reading.step is Step.TRACE_REDUNDANT
