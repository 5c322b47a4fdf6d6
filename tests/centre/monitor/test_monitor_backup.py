"""Tests backups of a monitor store while its collector runs, and stores restored from them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batches import BYTES, Entry, Part, frame
from iodock.centre.monitor import backup_manifest
from iodock.centre.monitor.backups import backup, restore
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.own_files import foreign
from iodock.centre.store import MonitorStore
from iodock.shared.errors import IodockError, RequestError, StoreError
from iodock.simulation.centre import Centre
from iodock.simulation.history import write_history
from iodock.simulation.scenarios import named

pytestmark = pytest.mark.whole

SECOND = 1_000_000_000
BEGIN = 1_780_000_000 * SECOND
COUNTS = """
    SELECT count(*) AS rows, sum(read_bytes)::BIGINT AS read, sum(write_bytes)::BIGINT AS written FROM job_io
"""


def counts(store: MonitorStore) -> dict[str, list[dict[str, Any]]]:
    return {
        level: store.table(COUNTS, begin=0, end=1 << 62, resolution=level).to_pylist()
        for level in ("fine", "minute", "ten_minutes")
    }


def pushed(number: int) -> bytes:
    at = BEGIN + number * 10 * SECOND
    entry = Entry("7", {("read_bytes", BYTES): number * 1000}, start=BEGIN - SECOND, updated=at)
    return frame(number + 1, [Part(at, [entry], full=number == 0)])


def read(store: MonitorStore) -> int:
    return int(counts(store)["fine"][0]["read"] or 0)


@pytest.fixture
def collector(tmp_path: Path) -> Collector:
    """Creates a store with some hours of history in files of every resolution, and with summaries."""
    made = Collector(tmp_path / "store")
    centre = Centre(named("healthy"), seed=1, begin_ns=BEGIN - 7200 * SECOND, servers=3, jobs=4)
    for _ in range(6):
        write_history(centre, made.writer, 1200, 60, lambda share: None)
        made.tend(centre.now_ns)
    return made


def test_a_restored_store_has_the_same_rows_and_accepts_more(collector: Collector, tmp_path: Path) -> None:
    for number in range(5):
        collector.push(pushed(number))
    collector.flush()
    wanted = counts(collector.store)
    # The backup includes data that only the journal contains.
    collector.push(pushed(5))
    done = backup(tmp_path / "store", tmp_path / "backup")
    again = restore(tmp_path / "backup", tmp_path / "again")
    assert (again.files, again.size_bytes, again.rows) == (done.files, done.size_bytes, done.rows)
    assert counts(MonitorStore(tmp_path / "again")) == wanted
    restored = Collector(tmp_path / "again")
    assert restored.replayed[0] >= 1
    restored.flush()
    assert read(restored.store) == int(wanted["fine"][0]["read"]) + 1000
    # The restored collector does not count a repeated batch again, and counts the next one.
    restored.push(pushed(5))
    restored.push(pushed(6))
    restored.flush()
    assert read(restored.store) == int(wanted["fine"][0]["read"]) + 2000


def test_a_backup_of_a_running_collector_is_consistent(collector: Collector, tmp_path: Path) -> None:
    before, end, sent = read(collector.store), threading.Event(), [0]

    def push() -> None:
        while not end.is_set():
            collector.push(pushed(sent[0]))
            sent[0] += 1
            if sent[0] % 3 == 0:
                collector.flush()
            if sent[0] % 10 == 0:
                collector.tend(BEGIN + sent[0] * 10 * SECOND)

    thread = threading.Thread(target=push)
    thread.start()
    try:
        for turn in range(8):
            least = sent[0]
            backup(tmp_path / "store", tmp_path / "backup")
            most = sent[0] + 1
            restore(tmp_path / "backup", tmp_path / f"again-{turn}")
            restored = Collector(tmp_path / f"again-{turn}")
            restored.flush()
            # All data acknowledged before the backup began are present exactly once.
            assert max(0, least - 1) * 1000 <= read(restored.store) - before <= most * 1000
            names = [file.name for files in restored.store.catalogue.files.values() for file in files]
            assert len(names) == len(set(names))
    finally:
        end.set()
        thread.join()


def test_a_second_backup_copies_new_files_and_removes_deleted_ones(
    collector: Collector, tmp_path: Path
) -> None:
    first = backup(tmp_path / "store", tmp_path / "backup")
    assert first.copied == first.files
    collector.push(pushed(0))
    collector.push(pushed(1))
    collector.flush()
    second = backup(tmp_path / "store", tmp_path / "backup")
    assert 0 < second.copied < second.files / 2
    collector.tend(BEGIN + 90 * 86_400 * SECOND)
    backup(tmp_path / "store", tmp_path / "backup")
    listed = {one["stored"] for one in json.loads((tmp_path / "backup/backup.json").read_text())["files"]}
    there = {
        str(path.relative_to(tmp_path / "backup"))
        for path in (tmp_path / "backup").rglob("*")
        if path.is_file()
    }
    assert there == {*listed, "backup.json", "lock"}
    restore(tmp_path / "backup", tmp_path / "again")
    assert counts(MonitorStore(tmp_path / "again")) == counts(collector.store)


def test_an_interrupted_backup_leaves_the_previous_one_intact(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from iodock.centre.monitor import backups

    backup(tmp_path / "store", tmp_path / "backup")
    wanted = counts(collector.store)
    collector.push(pushed(0))
    collector.push(pushed(1))
    collector.tend(BEGIN + 90 * 86_400 * SECOND)

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(backups.backup_manifest, "write", full)
        with pytest.raises(StoreError, match="No space left"):
            backup(tmp_path / "store", tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "again")
    assert counts(MonitorStore(tmp_path / "again")) == wanted
    backup(tmp_path / "store", tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "later")
    assert counts(MonitorStore(tmp_path / "later")) == counts(collector.store)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def notes(folder: Path) -> None:
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")


def file(folder: Path) -> None:
    folder.write_text("mine")


def link(folder: Path) -> None:
    folder.with_name("elsewhere").mkdir()
    folder.symlink_to(folder.with_name("elsewhere"))


def store_with_notes(folder: Path) -> None:
    Collector(folder).flush()
    (folder / "job_io").mkdir()
    (folder / "job_io" / "notes.parquet").write_text("mine")


def store_with_link(folder: Path) -> None:
    Collector(folder).flush()
    (folder / "events").symlink_to(folder.parent)


FOREIGN = (
    "state-of-the-cluster.md", "journal/lab-notes.txt", "catalogue.json.my-backup", "summaries/x/thesis.tex",
    "summaries/owners-b/thesis.tex", "job_io/fine/2026-05-28/1.parquet", "job_io/fine/x/00000001.parquet",
    "journal/1.frames", "state-1.bin",
)  # fmt: skip


def store_with(name: str) -> Callable[[Path], None]:
    def made(folder: Path) -> None:
        Collector(folder).flush()
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")

    return made


@pytest.mark.parametrize("name", FOREIGN)
def test_a_backup_does_not_replace_foreign_files(tmp_path: Path, name: str) -> None:
    store_with(name)(tmp_path / "target")
    assert tmp_path / "target" / name in foreign(tmp_path / "target")


def test_upkeep_does_not_remove_foreign_files(collector: Collector, tmp_path: Path) -> None:
    mine = [tmp_path / "store" / name for name in FOREIGN if name not in ("journal/1.frames", "state-1.bin")]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    collector.tend(BEGIN + 90 * 86_400 * SECOND)
    assert [path.read_text() for path in mine] == ["mine"] * len(mine)


@pytest.mark.parametrize("made", [notes, file, link])
def test_a_backup_replaces_only_another_backup(
    collector: Collector, tmp_path: Path, made: Callable[[Path], None]
) -> None:
    made(tmp_path / "target")
    before = content(tmp_path / "target")
    for force in (False, True):
        with pytest.raises(RequestError):
            backup(tmp_path / "store", tmp_path / "target", force)
    assert content(tmp_path / "target") == before and (tmp_path / "target").exists()


@pytest.mark.parametrize(
    "made", [notes, file, link, store_with_notes, store_with_link, store_with("summaries/x/thesis.tex")]
)
def test_a_restore_replaces_only_a_store(
    collector: Collector, tmp_path: Path, made: Callable[[Path], None]
) -> None:
    backup(tmp_path / "store", tmp_path / "backup")
    made(tmp_path / "target")
    before = content(tmp_path / "target")
    for force in (False, True):
        with pytest.raises(RequestError):
            restore(tmp_path / "backup", tmp_path / "target", force)
    assert content(tmp_path / "target") == before
    assert not list(tmp_path.glob(".target*"))


def test_a_restore_with_force_replaces_only_an_unused_store(collector: Collector, tmp_path: Path) -> None:
    backup(tmp_path / "store", tmp_path / "backup")
    wanted = counts(collector.store)
    other = Collector(tmp_path / "other")
    other.push(pushed(0))
    other.flush()
    with pytest.raises(RequestError, match="exists"):
        restore(tmp_path / "backup", tmp_path / "other")
    with pytest.raises(RequestError, match="in use"):
        restore(tmp_path / "backup", tmp_path / "other", force=True)
    del other
    restore(tmp_path / "backup", tmp_path / "other", force=True)
    assert counts(MonitorStore(tmp_path / "other")) == wanted
    assert {path.name for path in tmp_path.iterdir()} == {"store", "backup", "other"}


def test_without_force_a_backup_of_another_store_is_kept(collector: Collector, tmp_path: Path) -> None:
    backup(tmp_path / "store", tmp_path / "backup")
    other = Collector(tmp_path / "other")
    other.push(pushed(0))
    other.push(pushed(1))
    other.flush()
    before = content(tmp_path / "backup")
    with pytest.raises(RequestError, match="another store"):
        backup(tmp_path / "other", tmp_path / "backup")
    assert content(tmp_path / "backup") == before
    backup(tmp_path / "other", tmp_path / "backup", force=True)
    restore(tmp_path / "backup", tmp_path / "again")
    assert counts(MonitorStore(tmp_path / "again")) == counts(other.store)


def flipped(backup_folder: Path) -> None:
    path = next((backup_folder / "data").rglob("*.parquet"))
    found = bytearray(path.read_bytes())
    found[len(found) // 2] ^= 1
    path.write_bytes(found)


def cut(backup_folder: Path) -> None:
    path = next((backup_folder / "data").rglob("*.parquet"))
    path.write_bytes(path.read_bytes()[:-5])


def missing(backup_folder: Path) -> None:
    next((backup_folder / "data").rglob("*.parquet")).unlink()


def no_json(backup_folder: Path) -> None:
    (backup_folder / "backup.json").write_text("{")


def no_manifest(backup_folder: Path) -> None:
    (backup_folder / "backup.json").unlink()


def changed(**entries: object) -> Callable[[Path], None]:
    def change(backup_folder: Path) -> None:
        path = backup_folder / "backup.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))

    return change


def fewer_rows(backup_folder: Path) -> None:
    path = backup_folder / "backup.json"
    found = json.loads(path.read_text())
    catalogue = json.loads(found["catalogue"])
    catalogue["tables"]["job_io"]["fine"][0]["rows"] += 1
    path.write_text(json.dumps({**found, "catalogue": json.dumps(catalogue)}))


def outside(name: str) -> Callable[[Path], None]:
    def change(backup_folder: Path) -> None:
        path = backup_folder / "backup.json"
        found = json.loads(path.read_text())
        found["files"][0][name] = "../../" + found["files"][0][name]
        path.write_text(json.dumps(found))

    return change


DAMAGES = {
    "a flipped bit": flipped, "a cut file": cut, "a missing file": missing, "no JSON": no_json,
    "no manifest": no_manifest, "a list": lambda folder: (folder / "backup.json").write_text("[]"),
    "another format": changed(format="something"), "a newer version": changed(version=9),
    "files of text": changed(files="x"), "a catalogue that is none": changed(catalogue="{}"),
    "another number of rows": fewer_rows, "a path outside": outside("path"),
    "a source outside": outside("stored"),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_backup_gives_an_error_and_no_store(
    collector: Collector, tmp_path: Path, damage: str
) -> None:
    backup(tmp_path / "store", tmp_path / "backup")
    DAMAGES[damage](tmp_path / "backup")
    with pytest.raises(IodockError) as failed:
        restore(tmp_path / "backup", tmp_path / "again")
    assert str(tmp_path / "backup") in str(failed.value)
    assert {path.name for path in tmp_path.iterdir()} == {"store", "backup"}


def test_every_flipped_bit_of_the_manifest_is_detected(collector: Collector, tmp_path: Path) -> None:
    backup(tmp_path / "store", tmp_path / "backup")
    path = tmp_path / "backup" / "backup.json"
    written = path.read_bytes()
    key = written.rindex(b'"checksum"')
    # The changed bytes are spread over the document, and include all of its checksum.
    for place in [*range(0, len(written), len(written) // 200), *range(key, len(written))]:
        flipped = bytearray(written)
        flipped[place] ^= 1 << place % 7
        path.write_bytes(flipped)
        with pytest.raises(StoreError):
            backup_manifest.read(tmp_path / "backup")


def test_a_backup_without_a_list_checksum_is_restored_with_a_note(
    collector: Collector, tmp_path: Path
) -> None:
    assert backup(tmp_path / "store", tmp_path / "backup").notes == ()
    path = tmp_path / "backup" / "backup.json"
    found = {**json.loads(path.read_text()), "version": 1}
    del found["checksum"]
    path.write_text(json.dumps(found))
    (note,) = restore(tmp_path / "backup", tmp_path / "again").notes
    assert "without a checksum of its list" in note
    assert counts(MonitorStore(tmp_path / "again")) == counts(collector.store)
    assert backup(tmp_path / "store", tmp_path / "backup").copied == 0
    assert restore(tmp_path / "backup", tmp_path / "later").notes == ()


@pytest.mark.parametrize("damage", [flipped, cut, missing])
def test_a_second_backup_copies_damaged_files_again(
    collector: Collector, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    backup(tmp_path / "store", tmp_path / "backup")
    damage(tmp_path / "backup")
    second = backup(tmp_path / "store", tmp_path / "backup")
    assert second.copied == 1 and second.notes[0].startswith("damaged: 1 file of the backup, copied again")
    restore(tmp_path / "backup", tmp_path / "again")
    assert counts(MonitorStore(tmp_path / "again")) == counts(collector.store)


def damaged(collector: Collector, folder: Path) -> str:
    """Flips one bit in a file of rows, as a disk or a copy might. Returns the file's name."""
    (entry, *_) = collector.store.catalogue.of("job_io", "fine")
    path = folder / entry.name
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    return entry.name


def test_the_intact_copy_in_a_backup_is_kept(collector: Collector, tmp_path: Path) -> None:
    backup(tmp_path / "store", tmp_path / "backup")
    rows = counts(collector.store)
    name = damaged(collector, tmp_path / "store")
    second = backup(tmp_path / "store", tmp_path / "backup")
    assert second.copied == 0
    assert second.notes == (
        f"damaged: 1 file of the store, kept as it was in the backup, such as {name}: restore this backup",
    )
    assert restore(tmp_path / "backup", tmp_path / "again").notes == ()
    assert counts(MonitorStore(tmp_path / "again")) == rows


def test_a_damaged_file_without_an_intact_copy_gives_an_error(collector: Collector, tmp_path: Path) -> None:
    name = damaged(collector, tmp_path / "store")
    said = (f"damaged: 1 file of the store, copied unchanged, such as {name}: queries of its time will fail",)
    assert backup(tmp_path / "store", tmp_path / "backup").notes == said
    assert restore(tmp_path / "backup", tmp_path / "again").notes == said
    with pytest.raises(StoreError, match="is damaged"):
        counts(MonitorStore(tmp_path / "again"))


def test_a_file_damaged_in_store_and_backup_is_left_unchanged(collector: Collector, tmp_path: Path) -> None:
    backup(tmp_path / "store", tmp_path / "backup")
    stored = next((tmp_path / "backup" / "data").rglob("*.parquet"))
    path = tmp_path / "store" / stored.relative_to(tmp_path / "backup" / "data")
    status = path.stat()
    for one in (stored, path):
        one.write_bytes(b"x" + one.read_bytes()[1:])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    before = content(tmp_path / "backup")
    with pytest.raises(StoreError, match="damaged, and so is its copy"):
        backup(tmp_path / "store", tmp_path / "backup")
    assert content(tmp_path / "backup") == before


def test_a_folder_that_is_not_a_store_cannot_be_backed_up(collector: Collector, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not a monitor store"):
        backup(tmp_path / "nothing", tmp_path / "backup")
    assert not (tmp_path / "backup").exists()
    with pytest.raises(RequestError, match="inside the store itself"):
        backup(tmp_path / "store", tmp_path / "store" / "backup")


def test_backup_and_restore_work_from_the_command_line(collector: Collector, tmp_path: Path) -> None:
    def iodock(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "iodock", "monitor", *words],
            cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip

    # The collector in this process has the store open.
    made = iodock("backup", "kept", "--store", "store")
    assert (made.returncode, made.stdout) == (0, "") and "files copied" in made.stderr
    back = iodock("restore", "kept", "--store", "again")
    assert back.returncode == 0 and "note: again: checked; " in back.stderr
    assert counts(MonitorStore(tmp_path / "again")) == counts(collector.store)
    refused = iodock("restore", "kept", "--store", "again")
    assert refused.returncode == 2 and refused.stderr.startswith("error: again: exists\nhint: ")
    cut(tmp_path / "kept")
    damaged = iodock("restore", "kept", "--store", "third")
    assert damaged.returncode == 1 and "damaged" in damaged.stderr and "Traceback" not in damaged.stderr
