"""Tests checksums of stores: every reader detects damage before it uses the data."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import iodock
from iodock import _native
from iodock.cli.run import run
from iodock.program import capture
from iodock.program.relations.profile import Profile
from iodock.program.store import TABLES, Store
from iodock.program.store.anonymous import anonymous_copy
from iodock.shared.engine.checksums import NONE
from iodock.shared.errors import IodockError
from made_store import without_checksums
from recorded import IODOCK, live, record, wait_until

READ = '7 1700000000.{n:06} read(3, "..."..., 4096) = {n} <0.000{d:03}>\n'
OPEN = '7 1700000000.000000 openat(AT_FDCWD, "/data/a", O_WRONLY|O_APPEND) = 3 <0.020001>\n'
TRIALS = 20
"""The checksum of each file of a store."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    done = record(folder, "--", "find", "/usr/include/linux")
    assert done.returncode == 0, done.stderr
    return folder / "run.iodock"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Imports a store, with the tables that import derives from events."""
    folder = tmp_path_factory.mktemp("imported")
    with (folder / "log").open("w") as log:
        log.write(OPEN)
        log.writelines(READ.format(n=number, d=number % 1000) for number in range(1, 270_000))
    capture.import_logs([str(folder / "log")], folder / "run.iodock")
    return folder / "run.iodock"


def files_of(store: Path) -> list[str]:
    return sorted(str(path.relative_to(store)) for path in store.rglob("*") if path.is_file())


def answers(path: Path) -> list[Any]:
    """Queries every table, including those derived at import."""
    with Store.open(path) as store:
        found = [store.rows(f'SELECT count(*), bit_xor(hash(t)) FROM "{table.name}" t') for table in TABLES]
        Profile(store).need(["durations", "opens", "slow_calls"])
        found += [
            store.rows(f"SELECT * FROM {name} ORDER BY ALL") for name in ("durations", "opens", "slow_calls")
        ]
        found.append(store.rows("SELECT call, sum(bytes) FROM calls_seen GROUP BY ALL ORDER BY ALL"))
        found.append(iodock.open(path).show("summary", by=["call", "file"]).to_arrow().to_pylist())
        return [*found, store.manifest.losses, store.manifest.wall_ns]


def flipped(store: Path, name: str, chance: random.Random) -> Iterator[tuple[int, int]]:
    """Flips one bit of the file at a time, yields its place, and restores the file."""
    path = store / name
    sound = path.read_bytes()
    for _ in range(TRIALS):
        place, bit = chance.randrange(len(sound)), chance.randrange(8)
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1 << bit]) + sound[place + 1 :])
        yield place, bit
    path.write_bytes(sound)


@pytest.mark.whole
@live
@pytest.mark.parametrize("source", ["recorded", "imported"])
def test_a_flipped_bit_is_detected_or_has_no_effect(
    source: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store = Path(shutil.copytree(request.getfixturevalue(source), tmp_path / "run.iodock"))
    sound, chance, named = answers(store), random.Random(5), 0
    names = files_of(store)
    assert {"manifest.json", "events/part-00000.parquet", "files.parquet"} < set(names)
    assert (source == "imported") == ("folds/stored_durations.parquet" in names)
    for name in names:
        for place in flipped(store, name, chance):
            try:
                found = answers(store)
            except IodockError as error:
                assert f"{store / name}:" in str(error), (name, place)
                assert error.hint and "import or record again" in error.hint
                named += 1
            else:
                assert found == sound, (name, place)
                assert name.startswith("folds/") or name == "manifest.json", (name, place)
    assert answers(store) == sound
    assert named >= 150 - TRIALS * 3


def damage(path: Path) -> None:
    """Changes one bit in the rows of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)


COMMANDS = [
    "show summary {}", "show files {} --format json", "show accesses {} --format parquet -o {out}",
    "diagnose {}", "report {} -o {out}", "query {} SELECT\u00a0count(*)\u00a0FROM\u00a0calls_seen",
    "query --unsafe {} SELECT\u00a0count(*)\u00a0FROM\u00a0query_table('eve'||'nts')",
    "diff {} {} -o {out}", "bundle {} -o {out}", "bundle --anonymous {} -o {out}",
]  # fmt: skip


@live
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_damaged_events(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    store = Path(shutil.copytree(recorded, tmp_path / "run.iodock"))
    out = tmp_path / "out"
    named = {"{}": str(store), "{out}": str(out)}
    words = [named.get(word, word).replace("\u00a0", " ") for word in command.split(" ")]
    assert run(words) == 0
    out.unlink(missing_ok=True)
    damage(store / "events/part-00000.parquet")
    capsys.readouterr()
    assert run(words) == 1
    said = capsys.readouterr().err
    assert f"error: {store}/events/part-00000.parquet: is damaged: " in said
    assert "hint: copy it again from a complete store, or import or record again" in said
    assert not out.exists()


@live
def test_tables_that_a_query_does_not_use_are_not_read(recorded: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(recorded, tmp_path / "run.iodock"))
    with Store.open(store) as opened:
        files = opened.rows("SELECT count(*) FROM files")
    damage(store / "events/part-00000.parquet")
    with Store.open(store) as opened:
        assert opened.rows("SELECT count(*) FROM files") == files
        with pytest.raises(IodockError, match=r"part-00000.parquet: is damaged"):
            opened.rows('SELECT count(*) FROM files JOIN "Call_Ends" ON file = name')
        # The file counts as damaged for the next query as well.
        with pytest.raises(IodockError, match=r"part-00000.parquet: is damaged"):
            opened.rows("SELECT 1 FROM events")


@live
def test_missing_and_added_files_are_named(recorded: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(recorded, tmp_path / "run.iodock"))
    part = store / "samples/part-00000.parquet"
    shutil.copy(part, part.with_name("part-00001.parquet"))
    with pytest.raises(IodockError, match=r"part-00001.parquet: is not part of this store"):
        answers(store)
    part.with_name("part-00001.parquet").rename(part)
    answers(store)
    part.unlink()
    with pytest.raises(IodockError, match=r"part-00000.parquet: is missing"):
        answers(store)


def test_an_older_store_without_checksums_is_read_with_a_note(
    imported: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Path(shutil.copytree(imported, tmp_path / "run.iodock"))
    assert run(["show", "summary", str(store)]) == 0
    assert NONE not in capsys.readouterr().err
    sound = answers(store)
    without_checksums(store)
    assert run(["show", "summary", str(store)]) == 0
    assert f"note: {NONE}\n" in capsys.readouterr().err
    assert answers(store) == sound


def test_a_manifest_changed_by_hand_is_read_without_its_own_checksum(imported: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(imported, tmp_path / "run.iodock"))
    path = store / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "losses": []}, indent=1))
    with pytest.raises(IodockError) as caught:
        Store.open(store)
    assert f"{path}: is damaged: " in str(caught.value)
    assert caught.value.hint and 'remove the line "checksum"' in caught.value.hint
    del manifest["checksum"]
    path.write_text(json.dumps(manifest, indent=1))
    answers(store)
    damage(store / "events/part-00000.parquet")
    with pytest.raises(IodockError, match=r"part-00000.parquet: is damaged"):
        answers(store)


def is_whole(store: Path) -> bool:
    """Returns whether every table has a checksum and all checksums are correct."""
    document = (store / "manifest.json").read_bytes()
    tables = {name for name in files_of(store) if name.endswith(".parquet")}
    checksums = json.loads(document)["checksums"]
    right = (_native.file_checksum(store / name) == sum_ for name, sum_ in checksums.items())
    return _native.is_whole_document(document) is True and checksums.keys() == tables and all(right)


@pytest.mark.whole
@live
def test_every_way_of_creating_a_store_writes_correct_checksums(
    recorded: Path, imported: Path, tmp_path: Path
) -> None:
    assert is_whole(recorded) and is_whole(imported)
    assert is_whole(anonymous_copy(imported, tmp_path / "anonymous.iodock"))
    # A forced import replaces a store.
    store = Path(shutil.copytree(imported, tmp_path / "run.iodock"))
    (tmp_path / "log").write_text(OPEN)
    capture.import_logs([str(tmp_path / "log")], store, force=True)
    assert is_whole(store)


@pytest.mark.whole
@live
def test_an_interrupted_recording_gets_correct_checksums(tmp_path: Path) -> None:
    program = "import os\nf = os.open('out', os.O_WRONLY | os.O_CREAT)\n"
    program += "while os.write(f, b'x') and not os.path.exists('stop'): pass\nos.rename('out', 'all')\n"
    command = [*IODOCK, "record", "--backend", "ptrace", "-q", "-o", "run.iodock", "--"]
    with subprocess.Popen([*command, sys.executable, "-S", "-c", program], cwd=tmp_path) as recorder:
        wait_until((tmp_path / "out").exists)
        time.sleep(2.5)
        recorder.kill()
    (tmp_path / "stop").touch()
    wait_until((tmp_path / "all").exists)
    store = tmp_path / "run.iodock"
    assert not (store / "files.parquet").exists()
    with Store.open(store) as opened:
        assert opened.rows("SELECT count(*) > 0 AS any FROM calls_seen WHERE call = 'write'")[0]["any"]
        assert opened.manifest.state == "cut"
    assert is_whole(store)


@live
def test_a_file_is_read_once_for_its_checksum(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Path(shutil.copytree(recorded, tmp_path / "run.iodock"))
    read: list[str] = []
    compute = _native.file_checksum

    def counted(path: os.PathLike[str]) -> str:
        read.append(os.fspath(path))
        return compute(path)

    monkeypatch.setattr(_native, "file_checksum", counted)
    for _ in range(3):
        answers(store)
    names = [name for name in files_of(store) if name.endswith(".parquet")]
    assert sorted(read) == [str(store / name) for name in names]
