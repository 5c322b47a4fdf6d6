"""Tests that a query can access its store only, and that it reports what the store lacks."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import in_process
import iodock
from iodock.cli.run import run as run_command
from iodock.program.run import Run
from iodock.shared.errors import IodockError, QueryError
from made_up import mixed_store

SECRET = "what-nobody-else-may-read"

# {file}, {table} and {database} are a text file, a Parquet file and a database outside of the store {store};
# {new} does not exist.
ATTEMPTS = [
    "SELECT * FROM read_text('{file}')",
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM read_csv('{file}')",
    "SELECT * FROM read_csv_auto('{file}', header = false)",
    "SELECT * FROM read_json('{file}')",
    "SELECT * FROM read_json_objects('{file}')",
    "SELECT * FROM read_ndjson_objects('{file}')",
    "SELECT * FROM sniff_csv('{file}')",
    "SELECT * FROM read_parquet('{table}')",
    "SELECT * FROM parquet_scan(['{table}'])",
    "SELECT * FROM parquet_metadata('{table}')",
    "SELECT * FROM parquet_schema('{table}')",
    "SELECT * FROM parquet_kv_metadata('{table}')",
    "SELECT * FROM read_duckdb('{database}')",
    "FROM '{file}'",
    "FROM '{table}'",
    'SELECT * FROM "{table}"',
    'SELECT * FROM "{file}" AS t(line)',
    "SELECT * FROM '{folder}/*'",
    "SELECT * FROM '{folder}/**/*.parquet'",
    "SELECT * FROM 'file://{file}'",
    "SELECT * FROM 'https://localhost:1/x.parquet'",
    "SELECT * FROM 's3://bucket/x.parquet'",
    "SELECT * FROM READ_TEXT('{file}')",
    "SELECT * FROM \"read_text\"('{file}')",
    "SELECT * FROM main.read_text('{file}')",
    "SELECT * FROM system.main.read_text('{file}')",
    "SELECT (SELECT content FROM read_text('{file}'))",
    "SELECT 1 WHERE EXISTS (FROM read_text('{file}'))",
    "WITH t AS (SELECT * FROM read_text('{file}')) SELECT * FROM t",
    "WITH t AS MATERIALIZED (FROM '{file}') FROM t",
    "SELECT * FROM events e, LATERAL (SELECT content FROM read_text('{file}')) l LIMIT 1",
    "SELECT * FROM query('SELECT * FROM read_text(''{file}'')')",
    "SELECT * FROM query_table('{table}')",
    "SELECT * FROM query_table(['{table}'])",
    "DESCRIBE '{table}'",
    "DESCRIBE SELECT * FROM read_parquet('{table}')",
    "SUMMARIZE '{table}'",
    "SUMMARIZE SELECT * FROM '{table}'",
    "EXPLAIN ANALYZE SELECT * FROM read_text('{file}')",
    "EXPLAIN ANALYZE COPY events TO '{new}'",
    "EXPLAIN (FORMAT json) COPY events TO '{new}'",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM json_execute_serialized_sql(json_serialize_sql('SELECT * FROM read_text(''{file}'')'))",
    "PIVOT (FROM read_csv('{file}')) ON column0 USING count(*)",
    "SELECT * FROM (PIVOT '{table}' ON secret USING count(*))",
    "COPY events TO '{new}'",
    "COPY events TO '{new}' (FORMAT csv)",
    "COPY events TO '{store}/events/part-00000.parquet' (FORMAT parquet, USE_TMP_FILE false)",
    "COPY (SELECT 1) TO '{store}/new.csv'",
    "COPY files FROM '{file}'",
    "EXPORT DATABASE '{new}'",
    "IMPORT DATABASE '{folder}'",
    "ATTACH '{new}' AS other",
    "ATTACH '{database}' AS other (READ_ONLY)",
    "ATTACH ':memory:' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "LOAD '{file}'",
    "FORCE INSTALL httpfs FROM 'http://localhost:1'",
    "SET enable_external_access = true",
    "SET GLOBAL allowed_directories = ['/']",
    "SET memory_limit = '100GB'",
    "RESET enable_external_access",
    "PRAGMA enable_external_access = true",
    "PRAGMA database_list",
    "PRAGMA enable_profiling = 'json'",
    "CALL enable_logging(storage = 'file', storage_config = {{'path': '{new}'}})",
    "SELECT * FROM enable_logging(storage = 'file', storage_config = {{'path': '{new}'}})",
    "SELECT * FROM enable_profiling(save_location = '{new}')",
    "SELECT * FROM enable_profiling('json', '{new}')",
    "SELECT * FROM duckdb_secrets()",
    "SELECT * FROM which_secret('s3://bucket', 's3')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_extensions()",
    "SELECT * FROM pg_settings",
    'SELECT name FROM "PG_Settings"',
    "SELECT * FROM system.pg_catalog.pg_settings",
    "FROM (SUMMARIZE pg_settings)",
    "WITH a AS (SELECT * FROM pg_settings), pg_settings AS (SELECT 1 AS n) SELECT * FROM a",
    "SELECT * FROM pragma_database_list",
    "SELECT * FROM duckdb_databases",
    "EXPLAIN ANALYZE (SELECT 1) UNION ALL SELECT getenv('HOME')",
    "EXPLAIN ANALYZE (SELECT * FROM read_text('{file}'))",
    "SELECT * FROM duckdb_temporary_files()",
    "SELECT current_setting('temp_directory')",
    "SELECT getenv('HOME')",
    "SELECT write_log('x')",
    "CREATE TABLE t AS SELECT * FROM read_text('{file}')",
    "CREATE OR REPLACE VIEW files AS SELECT 1 AS file_id",
    "CREATE TEMP MACRO m() AS TABLE SELECT * FROM read_text('{file}')",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "CREATE FUNCTION f() AS 1",
    "DROP VIEW events",
    "INSERT INTO kept.t VALUES (1)",
    "DELETE FROM calls",
    "UPDATE calls SET name = 'x'",
    "CHECKPOINT",
    "SELECT * FROM force_checkpoint()",
    "VACUUM",
    "BEGIN",
    "PREPARE p AS SELECT * FROM read_text('{file}')",
    "SELECT * FROM outside_table",
    "SELECT * FROM '{store}/inside.txt'",
    "SELECT * FROM read_text('{store}/inside.txt')",
    "SELECT * FROM read_text('{store}/manifest.json')",
    "SELECT * FROM read_text('{store}/../secret.txt')",
    "SELECT * FROM read_text('/proc/self/environ')",
]
WELCOME = [
    "SELECT count(*) FROM events",
    "FROM calls_seen LIMIT 1",
    "EXPLAIN SELECT count(*) FROM events",
    "EXPLAIN ANALYZE SELECT count(*) FROM events",
    "EXPLAIN (SELECT 1)",
    "EXPLAIN(SELECT count(*) FROM events)",
    "EXPLAIN ANALYZE ((SELECT 1))",
    "EXPLAIN (FORMAT json) SELECT 1",
    "EXPLAIN (FORMAT json) (SELECT 1)",
    "SELECT column_name FROM information_schema.columns",
    "DESCRIBE events",
    "SHOW TABLES",
    "SUMMARIZE files",
    'WITH "a.b" AS (SELECT 1 AS n) SELECT * FROM "a.b"',
    "SELECT * FROM range(3) r(i), unnest([1, 2]) u(j)",
    "SELECT regexp_extract(name, '[^/]*$') FROM files WHERE name LIKE '%/etc/%'",
    "PIVOT files ON kind IN ('regular', 'pipe') USING count(*)",
    "SELECT count(*) FROM uses",
    "SELECT table_name FROM information_schema.tables",
    "SELECT * FROM (VALUES (1), (2)) v(n) UNION ALL SELECT 3",
    "SELECT histogram(bytes) FROM events",
    "SELECT count(*) FROM generate_series(1, 10)",
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Creates a store, and other files next to it."""
    folder = tmp_path_factory.mktemp("guard")
    store = mixed_store(folder / "run.iodock")
    (folder / "secret.txt").write_text(f"{SECRET}\n")
    (store / "inside.txt").symlink_to(folder / "secret.txt")
    with duckdb.connect(str(folder / "other.duckdb")) as other:
        other.execute(f"CREATE TABLE t AS SELECT '{SECRET}' AS secret")
        other.execute(f"COPY t TO '{folder / 'secret.parquet'}'")
    return {
        "folder": str(folder),
        "store": str(store),
        "file": str(folder / "secret.txt"),
        "table": str(folder / "secret.parquet"),
        "database": str(folder / "other.duckdb"),
        "new": str(folder / "made.json"),
    }


@pytest.fixture
def run(places: dict[str, str]) -> Iterator[Run]:
    with iodock.open(places["store"]) as opened:
        yield opened


def contents(folder: str) -> dict[str, str]:
    """Returns the checksums of all files in a folder."""
    paths = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_query_cannot_access_files_outside_its_store(
    run: Run, places: dict[str, str], attempt: str
) -> None:
    before = contents(places["folder"])
    outside_table = [SECRET]  # noqa: F841 (a name that a query must not see)
    with pytest.raises(IodockError) as refused:
        run.query(attempt.format(**places))
    assert SECRET not in str(refused.value) and refused.value.hint
    assert contents(places["folder"]) == before
    # The store is unchanged, and its queries are still restricted.
    assert run.query("SELECT count(*) AS n FROM events").to_pylist()[0]["n"] > 0
    with pytest.raises(QueryError):
        run.query(f"SELECT * FROM read_text('{places['file']}')")


@pytest.mark.parametrize("question", WELCOME)
def test_a_query_may_read_everything_in_its_store(run: Run, question: str) -> None:
    assert run.query(question).num_rows > 0


def test_the_restricted_engine_refuses_access_missed_by_the_text_check(
    run: Run, places: dict[str, str]
) -> None:
    # This tests the engine's own restriction alone, as if the check of the query had missed a reading
    # function.
    for sql in ("FROM read_text('{file}')", "FROM '{table}'", "COPY events TO '{new}'", "ATTACH '{new}'"):
        with pytest.raises((QueryError, duckdb.Error)):
            run.store.engine.table(sql.format(**places))
    assert not Path(places["new"]).exists()


def test_a_refusal_names_the_reason_and_the_remedy(run: Run, places: dict[str, str]) -> None:
    with pytest.raises(QueryError) as refused:
        run.query("FROM '/etc/passwd'")
    assert (
        str(refused.value)
        == "a query may only read the tables of its store: the query may not open /etc/passwd"
    )
    assert refused.value.hint is not None and "--unsafe" in refused.value.hint
    with pytest.raises(QueryError, match="a COPY statement"):
        run.query("COPY events TO '{new}'".format(**places))
    with pytest.raises(QueryError, match=r"the query may not use read_text\(\)"):
        run.query("FROM read_text('{file}')".format(**places))


@pytest.mark.parametrize("question", ["", " ", ";", "; ;", "-- SELECT 1", "/* nothing */;"])
@pytest.mark.parametrize("unsafe", [False, True])
def test_an_empty_query_is_refused(run: Run, question: str, unsafe: bool) -> None:
    with pytest.raises(IodockError, match="the query is empty"):
        run.query(question, unsafe=unsafe)


def test_sums_of_integers_are_numbers_in_json(
    places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    numbers = f"sum(bytes) AS s, {2**127 - 1} AS h, 1.50 AS d, [sum(1)] AS l"
    sql = f"SELECT {numbers} FROM events"
    assert run_command(["query", places["store"], sql, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (row,) = found["rows"]
    assert [column["type"] for column in found["columns"]] == ["int", "int", "float", "list"]
    assert isinstance(row["s"], int) and row["h"] == 2**127 - 1 and row["d"] == 1.5
    assert isinstance(row["l"][0], int)


def test_column_names_cannot_control_the_terminal(
    places: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(["query", places["store"], 'SELECT 5 AS "\x1b[31mcol\u202e"']) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said and "\u202e" not in said and "31mcol" in said


def test_the_option_unsafe_permits_access_to_files(run: Run, places: dict[str, str], tmp_path: Path) -> None:
    found = run.query(f"SELECT content FROM read_text('{places['file']}')", unsafe=True)
    assert found.to_pylist() == [{"content": f"{SECRET}\n"}]
    run.query(f"COPY (SELECT count(*) FROM uses) TO '{tmp_path}/out.csv'", unsafe=True)
    assert (tmp_path / "out.csv").exists()
    # Reading files outside of the store stays blocked.
    with pytest.raises(QueryError):
        run.query(f"FROM read_text('{places['file']}')")


def test_a_deeply_nested_query_is_answered_or_refused(run: Run) -> None:
    deep = "SELECT " + "(" * 3000 + "1" + ")" * 3000
    with contextlib.suppress(QueryError):
        run.query(deep)
    assert run.query("SELECT 1 AS n").to_pylist() == [{"n": 1}]


def test_a_link_out_of_the_store_is_not_followed(tmp_path: Path) -> None:
    store = mixed_store(tmp_path / "run.iodock")
    shutil.move(store / "files.parquet", tmp_path / "elsewhere.parquet")
    (store / "files.parquet").symlink_to(tmp_path / "elsewhere.parquet")
    with pytest.raises(IodockError, match=r"files\.parquet: is a link out of the store"):
        iodock.open(store).query("SELECT * FROM files")


def test_a_store_with_an_unusual_name_behind_a_link_is_read(tmp_path: Path) -> None:
    store = mixed_store(tmp_path / "a[b]*?'.iodock")
    (tmp_path / "link.iodock").symlink_to(store)
    for name in (store, tmp_path / "link.iodock"):
        assert iodock.open(name).query("SELECT count(*) AS n FROM events").to_pylist()[0]["n"] > 0


LOSS = {"name": "cut-lines", "count": 3, "cure": "keep the whole log"}


@pytest.fixture(scope="module")
def lossy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = mixed_store(tmp_path_factory.mktemp("lossy") / "lossy.iodock")
    path = store / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"losses": [LOSS]}))
    return store


def said(folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    done = in_process.iodock(*arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done


VERBS: list[list[str]] = [
    ["query", "{}", "SELECT 1"],
    ["show", "summary", "{}"],
    ["show", "accesses", "{}"],
    ["show", "overview", "{}"],
    ["diff", "{}", "{}"],
]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: " ".join(verb[:2]))
@pytest.mark.parametrize("form", ["table", "csv", "parquet", "json"])
def test_losses_are_reported_with_every_result(
    lossy: Path, tmp_path: Path, verb: list[str], form: str
) -> None:
    if verb[0] == "diff" and form == "parquet":
        form = "html"
    arguments = [one.format(lossy) for one in verb]
    done = said(tmp_path, *arguments, "--format", form, "-o", f"out.{form}")
    if form == "json":
        text = (tmp_path / "out.json").read_text()
        assert all(json.dumps(LOSS[key], ensure_ascii=False) in text for key in ("name", "count", "cure"))
        return
    assert "cut-lines" in done.stderr and "keep the whole log" in done.stderr
    quiet = said(tmp_path, *arguments, "--format", form, "-o", f"out.{form}", "-q")
    assert "cut-lines" not in quiet.stderr


def test_losses_are_reported_with_a_chart(lossy: Path, tmp_path: Path) -> None:
    done = said(tmp_path, "show", "summary", lossy, "-o", "chart.svg")
    assert "not seen: 3 cut-lines: keep the whole log" in done.stderr


def test_losses_are_reported_with_a_table_in_python(lossy: Path) -> None:
    run = iodock.open(lossy)
    table = run.query("SELECT 1 AS one")
    assert json.loads(table.schema.metadata[b"iodock"])["losses"] == [LOSS]
    assert [loss.name for loss in run.losses] == ["cut-lines"]


@pytest.mark.usefixtures("few_rules")
def test_report_and_bundle_contain_losses(lossy: Path, tmp_path: Path) -> None:
    said(tmp_path, "report", lossy, "-o", "report.html")
    assert "cut-lines" in (tmp_path / "report.html").read_text()
    said(tmp_path, "bundle", lossy, "-o", "bundle.tar.gz", "-q")
    shutil.unpack_archive(tmp_path / "bundle.tar.gz", tmp_path / "bundle")
    found: dict[str, Any] = {}
    for path in (tmp_path / "bundle").rglob("environment.json"):
        found = json.loads(path.read_text())
    assert found["losses"] == [LOSS]
