"""Tests stores in folders of any name, and stores with changed files: iodock gives correct answers or
errors."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from iodock.cli.run import run
from iodock.program import capture
from iodock.program.bundle import write_bundle
from iodock.program.relations.profile import Profile
from iodock.program.store import Store
from iodock.shared.errors import IodockError, StoreError
from iodock.shared.language import language_in
from iodock.shared.settings import Settings
from made_store import without_checksums

LINE = '100 1700000000.{n:06} read(3, "..."..., 4096) = {n} <0.000{n:03}>\n'


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "log").write_text("".join(LINE.format(n=number) for number in range(900)))
    capture.import_logs([str(folder / "log")], folder / "run.iodock")
    return folder / "run.iodock"


@pytest.fixture
def store(imported: Path, tmp_path: Path) -> Path:
    """Copies a store without its checksums, so that only the tables themselves can show damage."""
    return without_checksums(Path(shutil.copytree(imported, tmp_path / "run.iodock")))


ODD = [os.fsdecode(b"euc\xc6\xfc"), "~", "http:", "year=2026", "a[b]*?"]


@pytest.mark.parametrize("folder", ODD, ids=ascii)
@pytest.mark.parametrize(
    "command",
    [
        "show files {} -o out.json",
        "diagnose {} -o out.txt",
        "bundle {} -o out.tgz",
        "bundle {} --anonymous -o out.tgz",
        "diff {} {} -o out.html",
        "report {} -o out.html",
        "query {} FROM\u00a0events -o out.csv",
    ],
)
def test_a_store_may_have_any_path(
    imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, command: str
) -> None:
    # A name that is not UTF-8 also works for a store.
    copy = Path(folder) / f"{folder}.iodock"
    shutil.copytree(imported, tmp_path / copy)
    monkeypatch.chdir(tmp_path)
    words = [word.replace("{}", str(copy)).replace("\u00a0", " ") for word in command.split(" ")]
    assert run(words) == 0
    assert Path(words[-1]).stat().st_size > 0


def error_of(store: Path) -> StoreError:
    with pytest.raises(StoreError) as caught, Store.open(store) as opened:
        opened.rows("SELECT count(*) FROM events")
    assert caught.value.hint and "import or record again" in caught.value.hint
    return caught.value


def test_a_duplicated_part_does_not_add_events(store: Path) -> None:
    shutil.copy(store / "events/part-00000.parquet", store / "events/part-00001.parquet")
    said = str(error_of(store))
    assert (
        said == f"{store}/events/*.parquet: contains 1,800 rows, but 900 according to the manifest (events)"
    )


@pytest.mark.parametrize("table", ["events/part-00000", "files", "processes", "calls"])
def test_missing_rows_are_noticed(store: Path, table: str) -> None:
    path = store / f"{table}.parquet"
    rows = pq.read_table(path)
    pq.write_table(rows.slice(0, rows.num_rows // 2), path)
    said = str(error_of(store))
    assert (
        f"{store}/{table.split('part')[0]}" in said and f"{rows.num_rows:,} according to the manifest" in said
    )


@pytest.mark.parametrize("table", ["events/part-00000", "files"])
def test_damaged_pages_are_named(store: Path, table: str) -> None:
    path = store / f"{table}.parquet"
    content = bytearray(path.read_bytes())
    # The changed bytes are the header of the first Parquet page.
    content[4:24] = b"\xff" * 20
    path.write_bytes(content)
    with pytest.raises(IodockError) as caught, Store.open(store) as opened:
        opened.rows("SELECT * FROM files JOIN events USING (file_id)")
    assert f"{path}: is damaged: " in str(caught.value)
    assert caught.value.hint == "import or record again"


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_damage_late_in_a_long_result_is_named(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    path = store / "events/part-00000.parquet"
    rows = pq.read_table(path)
    many = pa.concat_tables([rows] * 300)
    pq.write_table(many, path, row_group_size=rows.num_rows * 30)
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["tables"]["events"] = many.num_rows
    (store / "manifest.json").write_text(json.dumps(manifest))
    group = pq.read_metadata(path).row_group(8)
    content = bytearray(path.read_bytes())
    for number in range(group.num_columns):
        column = group.column(number)
        start = column.dictionary_page_offset or column.data_page_offset
        content[start : start + 12] = b"\xff" * 12
    path.write_bytes(content)
    target = tmp_path / "out"
    assert run(["show", "accesses", str(store), "--kind", "all", "--format", form, "-o", str(target)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {path}: is damaged: ") and said.endswith("hint: import or record again\n")
    assert not target.exists()
    assert run(["bundle", str(store), "--anonymous", "-o", str(target)]) == 1
    assert f"error: {path}: is damaged: " in capsys.readouterr().err


def test_an_invalid_query_is_not_reported_as_damage(store: Path) -> None:
    with pytest.raises(IodockError) as caught, Store.open(store) as opened:
        opened.engine.user_query("SELECT CAST('x' AS INTEGER)")
    assert "damaged" not in str(caught.value)


@pytest.mark.parametrize("harm", ["truncated", "garbled", "incredible", "dangling"])
def test_a_damaged_auxiliary_file_is_not_used(store: Path, harm: str, tmp_path: Path) -> None:
    durations = "SELECT * FROM durations ORDER BY ALL"
    with Store.open(store) as opened:
        Profile(opened).need(["durations"])
        sound = opened.table(durations)
    (store / "folds").mkdir()
    fold = store / "folds/stored_durations.parquet"
    if harm == "dangling":
        fold.symlink_to(tmp_path / "nothing")
    else:
        count = sound.schema.get_field_index("count")
        negative = sound.set_column(count, "count", [[-5] * sound.num_rows])
        pq.write_table(negative if harm == "incredible" else sound, fold)
    content = b"" if harm == "dangling" else fold.read_bytes()
    if harm == "truncated":
        fold.write_bytes(content[: len(content) // 2])
    if harm == "garbled":
        fold.write_bytes(content[:4] + b"\xff" * 20 + content[24:])
    with Store.open(store) as opened:
        Profile(opened).need(["durations"])
        assert opened.table(durations).to_pylist() == sound.to_pylist()
    write_bundle(store, tmp_path / "b.tgz", language_in("en"), Settings(), True, lambda *_: None)
