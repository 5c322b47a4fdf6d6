"""Tables made of events at import are what SQL makes of the same events."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path

import pytest

from iodock import capture
from iodock.relations.profile import Profile
from iodock.store import Store
from iodock.store.anonymous import anonymous_copy

FOLDED = {"durations": "stored_durations", "opens": "stored_openings", "slow_calls": "stored_slow_calls"}
MANY = 280_000
"""More lines than a run may have without such tables."""


def lines(count: int, files: int) -> Iterator[str]:
    """A log with every kind of call that the tables tell apart, most of them reads."""
    rare = cycle(
        (
            'openat(AT_FDCWD, "/w/log{n}", O_WRONLY|O_CREAT|O_APPEND, 0666) = 4 <0.000021>',
            'openat(AT_FDCWD, "/w/log{n}", O_WRONLY|O_DSYNC) = -1 ENOENT (None) <0.000017>',
            'openat(AT_FDCWD, "/w/in{n}", O_RDONLY) = 5 <0.000012>',
            'write(4, "..."..., 700) = 700 <0.031>',
            "sendfile(4, 5, NULL, 4096) = 4096 <0.5>",
            'rename("/w/a{n}", "/w/b{n}") = 0 <0.025>',
            "fcntl(4, F_SETFL, O_RDONLY|O_APPEND) = 0 <0.000002>",
            "close(5) = 0 <0.000001>",
            "close(4) = 0 <0.0>",
        )
    )
    for number in range(count):
        call = (
            next(rare).format(n=number // 63 % files)
            if number % 7 == 0
            else f'read(3, "..."..., 4096) = {number % 4097} <0.{number % 1000:06}>'
        )
        yield f"{100 + number % 3} 1700000{number // 1000:03}.{number % 1000:03}000 {call}\n"


def imported(folder: Path, log: Iterator[str]) -> Path:
    path = folder / "log"
    path.write_text("".join(log))
    store = folder / "run.iodock"
    capture.import_logs([str(path)], store)
    return store


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("folds"), lines(MANY, 500))


def table_of(store: Path, name: str) -> list[tuple[object, ...]]:
    with Store.open(store) as opened:
        Profile(opened).need([name])
        rows = opened.rows(f"SELECT * FROM {name} ORDER BY ALL")
    return [tuple(row.items()) for row in rows]


@pytest.mark.parametrize(("name", "stored"), FOLDED.items())
def test_a_table_made_at_import_is_what_the_events_say(
    large: Path, tmp_path: Path, name: str, stored: str
) -> None:
    bare = tmp_path / "bare.iodock"
    shutil.copytree(large, bare, ignore=shutil.ignore_patterns("folds"))
    assert (large / "folds" / f"{stored}.parquet").exists()
    made = table_of(bare, name)
    assert len(made) > 10
    assert table_of(large, name) == made


def test_an_anonymous_copy_has_them_too(large: Path, tmp_path: Path) -> None:
    copy = anonymous_copy(large, tmp_path / "copy.iodock")
    assert table_of(copy, "opens") == table_of(large, "opens")


def test_a_short_run_has_none(tmp_path: Path) -> None:
    store = imported(tmp_path, islice(lines(MANY, 500), 1000))
    assert not (store / "folds").exists()
    assert len(table_of(store, "opens")) > 10


def test_a_table_that_would_be_large_is_left_out(tmp_path: Path) -> None:
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
