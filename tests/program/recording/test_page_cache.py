"""Compares the pages that enter the page cache, as recorded by `--backend bpf`, with the kernel's own
information on the file (mincore, /proc/PID/io).

Needs root, BPF, and a temporary folder on a disk. Otherwise the tests are skipped with the reason."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import iodock
from iodock.program.capture import import_logs
from iodock.program.store import Store
from iodock.program.store.anonymous import anonymous_copy
from iodock.program.views.report.run import report_html
from recorded import IODOCK, bpf_unavailable, compiled, losses, needs_gcc, record, wait_until

MIB = 1 << 20
SIZE = 24 * MIB
PAGE = 4096

pytestmark = [pytest.mark.whole, needs_gcc]


@dataclass(frozen=True)
class Said:
    """The program's own output: bytes that came from a device, and pages that entered the cache."""

    resident: int
    device_bytes: int
    pages: frozenset[int]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if reason := bpf_unavailable():
        pytest.skip(reason)
    return compiled(tmp_path_factory.mktemp("program"), "read_cold")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("data") / "data"
    kind = ["stat", "-f", "-c", "%T", path.parent]
    fs_type = subprocess.run(kind, capture_output=True, text=True, check=True).stdout.strip()
    if fs_type in ("tmpfs", "overlayfs"):
        pytest.skip(f"the temporary folder is on {fs_type}, whose files have no page cache of their own")
    with path.open("wb") as out:
        out.write(os.urandom(SIZE))
        out.flush()
        os.fsync(out.fileno())
    yield path
    path.unlink()


def said(text: str) -> Said:
    (_, resident), (_, device), *runs = (line.split() for line in text.splitlines())
    pages = {page for first, end in runs for page in range(int(first), int(end))}
    return Said(int(resident), int(device), frozenset(pages))


def recorded(folder: Path, *command: object) -> tuple[Path, Said]:
    """Returns the store and the program's output. Skips the test if the file cannot be dropped from
    memory."""
    done = record(folder, "--force", "--backend", "bpf", "--", *command)
    assert done.returncode == 0, done.stderr
    store = folder / "run.iodock"
    captured = json.loads((store / "manifest.json").read_text())["captured"]
    if captured["page_cache"] == "not-shown":
        pytest.skip("this kernel's page cache is not understood")
    assert "dropped-records" not in losses(store)
    found = said(done.stdout)
    if found.resident and "warm" not in str(command[-1]):
        pytest.skip("the file could not be dropped from memory here")
    return store, found


def shown(store: Path, file: Path, **options: Any) -> list[dict[str, Any]]:
    answer = iodock.open(store).show("cache", file=str(file), **options)
    found: list[dict[str, Any]] = answer.to_arrow().to_pylist()
    return found


def pages_of(store: Path, file: Path) -> set[int]:
    return {
        page
        for row in shown(store, file, ranges=True)
        for page in range(row["offset_bytes"] // PAGE, row["end_bytes"] // PAGE)
    }


def recorded_alike(folder: Path, file: Path, *command: object) -> tuple[Path, Said]:
    """Repeats a recording until the program's mincore agrees with the recorded pages, at most three times.
    They can differ when pages are still being read, or have been dropped again."""
    for _ in range(3):
        store, found = recorded(folder, *command)
        if pages_of(store, file) == found.pages:
            break
    return store, found


def test_the_pages_of_a_cold_random_map_are_known_exactly(program: Path, data: Path, tmp_path: Path) -> None:
    store, found = recorded_alike(tmp_path, data, program, "touched", data, 1500)
    assert 1000 < len(found.pages) <= 1500
    assert pages_of(store, data) == found.pages
    (row,) = shown(store, data)
    assert row["pages"] == len(found.pages) and row["different_bytes"] == row["brought_bytes"]
    assert row["processes"] == 1 and row["written_bytes"] == row["unclear_bytes"] == 0
    assert found.device_bytes == pytest.approx(row["brought_bytes"], rel=0.02)
    (mapped,) = iodock.open(store).show("maps", file=str(data)).to_arrow().to_pylist()
    assert mapped["brought_bytes"] == row["brought_bytes"]


def test_pages_read_around_a_random_access_count_as_amplification(
    program: Path, data: Path, tmp_path: Path
) -> None:
    store, found = recorded_alike(tmp_path, data, program, "around", data, 100)
    assert pages_of(store, data) == found.pages and len(found.pages) > 200
    (row,) = shown(store, data)
    assert row["touched_bytes"] is None or row["amplification"] == pytest.approx(
        row["brought_bytes"] / row["touched_bytes"]
    )


@pytest.mark.parametrize("how", ["sequential", "mapped"])
def test_bytes_of_a_sequential_reader_are_exact(program: Path, data: Path, tmp_path: Path, how: str) -> None:
    store, found = recorded_alike(tmp_path, data, program, how, data)
    assert pages_of(store, data) == found.pages
    (row,) = shown(store, data)
    assert row["brought_bytes"] == pytest.approx(SIZE, rel=0.02)
    assert row["brought_bytes"] == pytest.approx(found.device_bytes, rel=0.02)
    if how == "sequential":
        assert row["read_bytes"] == SIZE and row["amplification"] == pytest.approx(1, rel=0.02)
    # The recorder must combine pages: one record for each page would make thousands.
    with Store.open(store) as opened:
        assert opened.rows("SELECT count(*) AS n FROM pages")[0]["n"] < SIZE / PAGE / 10


def test_half_pages_read_at_random_are_amplified(program: Path, data: Path, tmp_path: Path) -> None:
    store, found = recorded_alike(tmp_path, data, program, "random", data, 500)
    assert pages_of(store, data) == found.pages
    (row,) = shown(store, data)
    assert row["amplification"] == pytest.approx(row["brought_bytes"] / row["read_bytes"])
    assert row["amplification"] > 1.5
    assert found.device_bytes == pytest.approx(row["brought_bytes"], rel=0.02)
    with Store.open(store) as opened:
        page, japanese = report_html(opened), report_html(opened, "ja")
    section = page.split("Loaded into the page cache")[1].split("</table>")[0]
    assert str(data) in section and f"{row['amplification']:.2f}" in section
    assert "読み込みの増幅" in japanese


def test_a_cached_file_adds_no_pages(program: Path, data: Path, tmp_path: Path) -> None:
    data.read_bytes()
    store, found = recorded(tmp_path, program, "sequential", f"warm:{data}")
    if found.resident < SIZE // PAGE:
        pytest.skip("the file does not stay in memory here")
    (row,) = shown(store, data)
    assert (row["pages"], row["brought_bytes"], row["read_bytes"]) == (0, 0, SIZE)
    assert row["amplification"] == 0 and not found.pages


def test_pages_created_by_writes_are_distinguished(program: Path, data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    store, found = recorded_alike(tmp_path, data, program, "copied", data, copy)
    assert pages_of(store, data) == found.pages and len(found.pages) == SIZE // PAGE
    (source,), (target,) = shown(store, data), shown(store, copy)
    if not target["written_bytes"]:
        pytest.skip("this file system copies without the page cache")
    assert (source["brought_bytes"], source["written_bytes"]) == (SIZE, 0)
    assert (target["brought_bytes"], target["written_bytes"]) == (0, SIZE)
    new = tmp_path / "new"
    write = ["dd", "if=/dev/zero", f"of={new}", "bs=64k", "count=16", "status=none"]
    done = record(tmp_path, "--force", "--backend", "bpf", "--", *write)
    assert done.returncode == 0, done.stderr
    (made,) = shown(tmp_path / "run.iodock", new)
    assert (made["brought_bytes"], made["written_bytes"]) == (0, MIB)


def test_an_uncached_program_file_is_named(program: Path, tmp_path: Path) -> None:
    own = Path(shutil.copy(program, tmp_path / "own"))
    with own.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    done = record(tmp_path, "--force", "--backend", "bpf", "--", "./own")
    assert done.returncode == 1
    (row,) = shown(tmp_path / "run.iodock", own)
    assert row["brought_bytes"] > 0


def answered(running: subprocess.Popen[str], line: str) -> bool:
    assert running.stdin and running.stdout
    running.stdin.write(f"{line}\n")
    running.stdin.flush()
    return running.stdout.readline() == "ready\n"


def calls_bytes(store: Path) -> int:
    return sum(path.stat().st_size for path in (store / "journal").glob("*.calls"))


def test_a_file_mapped_before_the_recording_is_named(program: Path, data: Path, tmp_path: Path) -> None:
    with data.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    store = tmp_path / "run.iodock"
    running = subprocess.Popen(
        [program, "later", data], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert running.stdin and running.stdout and running.stdout.readline() == "ready\n"
    recorder = subprocess.Popen(
        [*IODOCK, "record", "--quiet", "--backend", "bpf", "-o", store, "-p", str(running.pid)],
        start_new_session=True,
    )
    try:
        # While the program waits, the recorder only creates the file of calls and writes the program's state.
        # The recorder is ready when activity of the program makes this file grow.
        for _ in range(3):
            before = calls_bytes(store)
            wait_until(lambda known=before: answered(running, "on") and calls_bytes(store) > known, 60)
        assert answered(running, "touch")
        running.stdin.close()
        assert running.wait(60) == 0 and recorder.wait(60) == 0
    finally:
        running.kill()
        recorder.kill()
    (row,) = shown(store, data)
    assert row["brought_bytes"] == pytest.approx(SIZE, rel=0.02)


def test_an_anonymous_copy_keeps_page_cache_counts(program: Path, data: Path, tmp_path: Path) -> None:
    store, found = recorded_alike(tmp_path, data, program, "touched", data, 100)
    copy = iodock.open(anonymous_copy(store, tmp_path / "copy.iodock"))
    rows = copy.show("cache").to_arrow().to_pylist()
    assert rows[0]["pages"] == len(found.pages) and "data" not in rows[0]["file"]


def test_other_back_ends_report_page_cache_counts_as_unknown(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        '7 0.000000 openat(AT_FDCWD, "/data/a", O_RDONLY) = 3 <0.000010>\n'
        '7 0.000100 read(3, ""..., 4096) = 4096 <0.000010>\n'
    )
    import_logs([str(log)], tmp_path / "made.iodock")
    answer = iodock.open(tmp_path / "made.iodock").show("cache")
    assert answer.to_arrow().num_rows == 0
    assert any("bpf" in note for note in answer.notes)
