"""Tests that a check-up that is interrupted at a random moment leaves nothing behind. Needs root to mount
file systems; `IODOCK_TRIALS=200` makes many trials."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from health_places import (
    btrfs_with_quota,
    contents,
    health,
    loop_ext4,
    others_files,
    small_tmpfs,
    started,
)

pytestmark = pytest.mark.whole

TRIALS = int(os.environ.get("IODOCK_TRIALS", "8"))
INODES = 20_000


@pytest.fixture(scope="module", params=["tmpfs", "ext4"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("trials") / str(request.param)
    with ExitStack() as stack:
        mounting = small_tmpfs(folder, "256m", INODES) if request.param == "tmpfs" else loop_ext4(folder, 320)
        made = stack.enter_context(mounting)
        others_files(made)
        yield made


def wait_for_tree(process: subprocess.Popen[str], place: Path) -> None:
    """Waits until the check-up has begun. Its first tree of files belongs to the trial before the estimate,
    the second to the check-up."""
    while process.poll() is None and len(list(place.glob(".iodock-load-*"))) < 2:
        time.sleep(0.002)


def interrupted(process: subprocess.Popen[str], place: Path) -> tuple[int, str]:
    """Sends SIGINT to the whole process group, as a terminal does."""
    os.killpg(process.pid, signal.SIGINT)
    return 130, "error: interrupted"


def terminated(process: subprocess.Popen[str], place: Path) -> tuple[int, str]:
    process.terminate()
    return 143, ""


def without_bytes(process: subprocess.Popen[str], place: Path) -> tuple[int, str]:
    """Fills the disk, as another program might."""
    with (place / "filler").open("wb", buffering=0) as out:
        try:
            while process.poll() is None:
                out.write(bytes(1 << 20))
        except OSError:
            pass
    return 1, "error: "


def without_inodes(process: subprocess.Popen[str], place: Path) -> tuple[int, str]:
    """Creates files until the file system has no inodes left, as another program might."""
    folder = place / "filler"
    folder.mkdir()
    try:
        for number in range(INODES):
            os.close(os.open(folder / str(number), os.O_CREAT | os.O_WRONLY))
    except OSError:
        pass
    return 1, "error: "


def remove_filler(place: Path) -> None:
    filler = place / "filler"
    if filler.is_dir():
        for path in filler.iterdir():
            path.unlink()
        filler.rmdir()
    filler.unlink(missing_ok=True)


@pytest.mark.parametrize("how", [interrupted, terminated, without_bytes, without_inodes])
def test_an_interrupted_check_up_leaves_no_files(
    place: Path, how: Callable[[subprocess.Popen[str], Path], tuple[int, str]]
) -> None:
    before = contents(place)
    chance = random.Random(f"{how.__name__} {place.name}")
    for trial in range(max(TRIALS // 8, 1)):
        process = started(place)
        wait_for_tree(process, place)
        time.sleep(chance.uniform(0, 1.2))
        status, words = how(process, place)
        said = process.communicate(timeout=120)[1]
        remove_filler(place)
        where = f"trial {trial}: {process.returncode}: {said}"
        assert contents(place) == before, where
        assert words in said and "Traceback" not in said, where
        # If the signal arrives while Python creates a dataclass, Python itself dies of it. A shell also
        # reports 130 then.
        assert process.returncode in (status, 128 - status if status == 130 else status), where


def test_after_sigkill_clean_removes_only_test_files(place: Path) -> None:
    before = contents(place)
    chance = random.Random(place.name)
    left = 0
    for trial in range(max(TRIALS // 8, 2)):
        process = started(place)
        wait_for_tree(process, place)
        time.sleep(chance.uniform(0, 1.2))
        # The engine and the workers are killed, too, so that no process can clean up.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        left += contents(place) != before
        done = health("clean", place)
        assert done.returncode == 0, done.stderr
        assert contents(place) == before, f"trial {trial}: {done.stdout} {done.stderr}"
    assert left > 0, "no trial left anything, so nothing was shown"


def test_if_the_command_is_killed_the_engine_removes_the_files(place: Path) -> None:
    before = contents(place)
    process = started(place)
    while not list(place.glob(".iodock-load-*/w*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate(timeout=60)
    end = time.monotonic() + 30
    while contents(place) != before and time.monotonic() < end:
        time.sleep(0.05)
    assert contents(place) == before


def test_a_killed_worker_is_reported(place: Path) -> None:
    before = contents(place)
    process = started(place)
    while not list(place.glob(".iodock-load-*/w*")):
        time.sleep(0.01)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    engine = int(children.read_text().split()[0])
    workers: list[int] = []
    while not workers:
        workers = [int(one) for one in Path(f"/proc/{engine}/task/{engine}/children").read_text().split()]
    os.kill(workers[0], signal.SIGKILL)
    said = process.communicate(timeout=60)[1]
    assert contents(place) == before
    # The process may also have ended just before the signal.
    assert process.returncode == 1 and "was killed by signal 9" in said, said


def test_an_exhausted_quota_is_reported_and_files_are_removed(tmp_path: Path) -> None:
    with btrfs_with_quota(tmp_path / "limited", 40) as place:
        others_files(place)
        before = contents(place)
        said = started(place, "--tests", "large-transfer").communicate(timeout=120)[1]
        assert contents(place) == before
        assert "your quota is used up" in said and "hint: " in said
