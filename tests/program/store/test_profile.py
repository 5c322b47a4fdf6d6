"""Tests that the derived tables that rules read contain every event once."""

from __future__ import annotations

import re

import pytest

from iodock.program.relations.derived import DERIVED
from iodock.program.relations.profile import Profile, tables_in
from iodock.program.run import Run
from iodock.program.store import Store


def one(run: Run, sql: str) -> list[int]:
    (row,) = run.query(sql).to_pylist()
    return list(row.values())


def test_the_view_uses_adds_up_to_the_events(mixed: Run) -> None:
    sums = "CAST(sum(bytes) AS BIGINT)"
    events = one(mixed, f"SELECT count(*), {sums}, CAST(sum(dur) AS BIGINT), max(dur) FROM events")
    folded = "CAST(sum(count) AS BIGINT), CAST(sum(bytes) AS BIGINT), CAST(sum(time_ns) AS BIGINT)"
    assert one(mixed, f"SELECT {folded}, max(longest_ns) FROM uses") == events


def test_the_view_transfers_adds_up_to_reads_and_writes(mixed: Run) -> None:
    where = "WHERE direction IN (1, 2) AND bytes IS NOT NULL"
    events = one(mixed, f"SELECT count(*), CAST(sum(bytes) AS BIGINT) FROM events {where}")
    assert events[0] > 0
    folded = "SELECT CAST(sum(count) AS BIGINT), CAST(sum(bytes) AS BIGINT) FROM transfers"
    assert one(mixed, folded) == events


def test_every_file_has_one_mount_and_every_mount_a_name(mixed: Run) -> None:
    assert one(mixed, "SELECT count(*), count(DISTINCT file_id) FROM places") == one(
        mixed, "SELECT count(*), count(DISTINCT file_id) FROM files"
    )
    assert one(mixed, "SELECT count(*) FROM place_names WHERE name IS NULL") == [0]
    assert one(mixed, "SELECT CAST(sum(file_count) AS BIGINT) FROM place_names") == one(
        mixed, "SELECT count(*) FROM files"
    )


def test_size_bins_contain_their_sizes(mixed: Run) -> None:
    rows = mixed.query(
        "SELECT size_bin, CAST(sum(bytes) AS BIGINT) AS bytes, CAST(sum(count) AS BIGINT) AS count "
        "FROM transfers GROUP BY 1"
    ).to_pylist()
    for row in rows:
        mean = row["bytes"] / row["count"]
        assert mean == 0 if row["size_bin"] < 0 else mean <= 2 ** row["size_bin"]
        assert row["size_bin"] <= 0 or mean > 2 ** (row["size_bin"] - 1)


@pytest.mark.parametrize("name", sorted(DERIVED))
def test_views_have_their_documented_columns(mixed: Run, name: str) -> None:
    Profile(mixed.store).need([name])
    assert mixed.store.table(f"SELECT * FROM {name}").column_names == list(DERIVED[name].columns)


def test_tables_of_a_query_are_found() -> None:
    assert tables_in("select * from USES u join places p using (file_id)") == ("places", "uses")
    assert tables_in("select 'transfers_of' from events") == ()


@pytest.mark.parametrize("name", sorted(DERIVED))
def test_every_view_documents_its_rows_and_columns(name: str) -> None:
    view = DERIVED[name]
    assert view.doc.endswith(".") and view.doc[0].isupper()
    assert view.columns and all(view.columns.values())


@pytest.mark.parametrize("name", sorted(DERIVED))
def test_no_subquery_of_a_view_hides_another_view(name: str) -> None:
    own = set(re.findall(r"(\w+) AS \(", DERIVED[name].body))
    assert own & set(DERIVED) == set()


def test_the_tables_that_a_view_reads_are_found_in_its_text() -> None:
    assert DERIVED["authors"].reads == ("image_libraries", "images", "written_in")
    # In this query `opens` is a column, not the table.
    assert DERIVED["file_work"].reads == ("uses",)


def test_a_view_is_created_when_a_query_reads_it(mixed: Run) -> None:
    with Store.open(mixed.store.path) as store:
        profile = Profile(store)
        profile.need_for("SELECT count(*) AS places FROM uses u JOIN files f ON f.file_id = u.file_id")
        assert store.rows("SELECT table_name FROM duckdb_tables() ORDER BY 1") == [{"table_name": "uses"}]
