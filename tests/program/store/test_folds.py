"""Compares the tables that import derives from events with the results of SQL."""

from __future__ import annotations

import shutil
from itertools import islice
from pathlib import Path

import pytest

from fold_log import imported, lines
from iodock.program.relations.profile import Profile
from iodock.program.store import Store
from iodock.program.store.anonymous import anonymous_copy

FOLDED = {"durations": "stored_durations", "opens": "stored_openings", "slow_calls": "stored_slow_calls"}
MANY = 280_000
"""More lines than a run without such tables may have."""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("folds"), lines(MANY, 500))


def table_of(store: Path, name: str) -> list[tuple[object, ...]]:
    with Store.open(store) as opened:
        Profile(opened).need([name])
        rows = opened.rows(f"SELECT * FROM {name} ORDER BY ALL")
    return [tuple(row.items()) for row in rows]


@pytest.mark.parametrize(("name", "stored"), FOLDED.items())
def test_a_table_made_at_import_equals_one_made_from_the_events(
    large: Path, tmp_path: Path, name: str, stored: str
) -> None:
    bare = tmp_path / "bare.iodock"
    shutil.copytree(large, bare, ignore=shutil.ignore_patterns("folds"))
    assert (large / "folds" / f"{stored}.parquet").exists()
    made = table_of(bare, name)
    assert len(made) > 10
    assert table_of(large, name) == made


def test_an_anonymous_copy_has_the_prepared_tables_too(large: Path, tmp_path: Path) -> None:
    copy = anonymous_copy(large, tmp_path / "copy.iodock")
    assert table_of(copy, "opens") == table_of(large, "opens")


def test_a_short_run_has_no_prepared_tables(tmp_path: Path) -> None:
    store = imported(tmp_path, islice(lines(MANY, 500), 1000))
    assert not (store / "folds").exists()
    assert len(table_of(store, "opens")) > 10


def test_an_oversized_table_is_not_prepared(tmp_path: Path) -> None:
    opens = (
        f'7 17000{number:06}.5 openat(AT_FDCWD, "/w/{number}", O_WRONLY|O_APPEND) = 3 <0.00002>\n'
        for number in range(MANY)
    )
    store = imported(tmp_path, opens)
    assert sorted(path.stem for path in (store / "folds").iterdir()) == [
        "stored_durations",
        "stored_slow_calls",
    ]
    assert len(table_of(store, "opens")) == MANY
