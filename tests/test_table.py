"""Tables for the terminal: what is not known stays empty, and what does not fit is named."""

from __future__ import annotations

from pathlib import Path

import pytest

import iodock
from in_process import printed
from iodock.capture import import_logs

LOG = """\
1 1700000000.000000 openat(AT_FDCWD, "/d/a", O_RDONLY) = 3 <0.000010>
1 1700000000.000100 fstat(3, {st_mode=S_IFREG|0644, st_size=8192, ...}) = 0 <0.000010>
1 1700000000.000200 mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, 3, 0) = 0x7f0000000000 <0.000010>
1 1700000000.000300 close(3) = 0 <0.000010>
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    log = tmp_path / "log"
    log.write_text(LOG)
    import_logs([str(log)], str(tmp_path / "s.iodock"))
    return tmp_path / "s.iodock"


def test_a_map_of_which_no_touch_is_known_has_no_share(store: Path) -> None:
    rows = iodock.open(str(store)).show("maps").to_arrow().to_pylist()
    assert [row["touched_share"] for row in rows] == [None]
    assert "touched" not in printed("show", "maps", store)


def test_a_query_shows_the_columns_that_it_names(store: Path) -> None:
    asked = printed("query", store, "SELECT call, bytes, 0 AS none, by_path FROM calls_seen LIMIT 1")
    heading, row = asked.splitlines()[1:3]
    assert heading.split() == ["call", "bytes", "none", "by_path"]
    assert row.split() == ["openat", "0", "true"]


def test_columns_that_do_not_fit_are_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    narrow = printed("show", "files", store)
    assert "columns do not fit, " in narrow
    monkeypatch.setenv("COLUMNS", "300")
    assert "not fit" not in printed("show", "files", store)
