"""Compares stores of Darshan logs with PyDarshan's sums, and tests that analyses that need single calls
refuse them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from in_process import asked, printed, shown
from iodock._native import known_losses
from iodock.program import analyses
from iodock.program.capture import import_logs
from iodock.program.findings import HIDES_CALLS
from iodock.program.store import Store
from iodock.shared.errors import IodockError, RequestError
from places import FIXTURES

DARSHAN = FIXTURES / "darshan"
LOGS = sorted(DARSHAN.glob("*.darshan"))
INTERFACES = {
    "POSIX": "posix",
    "MPI-IO": "mpi-io",
    "STDIO": "stdio",
    "H5F": "hdf5",
    "H5D": "hdf5-dataset",
    "PNETCDF_FILE": "pnetcdf",
    "PNETCDF_VAR": "pnetcdf-variable",
}
WAYS = ("INDEP", "COLL", "SPLIT", "NB")
# Columns that are the sum of several counters. Every other column is the counter {PREFIX}_{COLUMN}.
PARTS = {
    ("posix", "syncs"): ("POSIX_FSYNCS", "POSIX_FDSYNCS"),
    ("stdio", "syncs"): ("STDIO_FLUSHES",),
    ("hdf5", "syncs"): ("H5F_FLUSHES",),
    ("hdf5-dataset", "syncs"): ("H5D_FLUSHES",),
    ("mpi-io", "opens"): ("MPIIO_INDEP_OPENS", "MPIIO_COLL_OPENS"),
    ("mpi-io", "reads"): tuple(f"MPIIO_{way}_READS" for way in WAYS),
    ("mpi-io", "writes"): tuple(f"MPIIO_{way}_WRITES" for way in WAYS),
    ("pnetcdf", "opens"): ("PNETCDF_FILE_CREATES", "PNETCDF_FILE_OPENS"),
    ("pnetcdf-variable", "reads"): tuple(f"PNETCDF_VAR_{way}_READS" for way in ("INDEP", "COLL", "NB")),
    ("pnetcdf-variable", "writes"): tuple(f"PNETCDF_VAR_{way}_WRITES" for way in ("INDEP", "COLL", "NB")),
}
NAMES = {
    "opens": "OPENS",
    "reads": "READS",
    "writes": "WRITES",
    "seeks": "SEEKS",
    "stats": "STATS",
    "syncs": "SYNCS",
    "read_bytes": "BYTES_READ",
    "written_bytes": "BYTES_WRITTEN",
    "read_time_ns": "F_READ_TIME",
    "write_time_ns": "F_WRITE_TIME",
    "meta_time_ns": "F_META_TIME",
}
BINS = {
    "0_100": 0,
    "100_1K": 101,
    "1K_10K": 1_025,
    "10K_100K": 10_241,
    "100K_1M": 102_401,
    "1M_4M": 2**20 + 1,
    "4M_10M": 2**22 + 1,
    "10M_100M": 10 * 2**20 + 1,
    "100M_1G": 100 * 2**20 + 1,
    "1G_PLUS": 2**30 + 1,
}
TABLES = (
    "profiles",
    "profile_counters",
    "histograms",
    "layouts",
    "profile_accesses",
    "heatmaps",
    "profile_fields",
)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("darshan")
    return [import_logs([str(log)], folder / f"{log.name}.iodock").store for log in LOGS]


@pytest.fixture(scope="module")
def tables(stores: list[Path]) -> duckdb.DuckDBPyConnection:
    """Loads the tables of all stores; the column `log` contains the name of each row's log."""
    connection = duckdb.connect()
    for name in TABLES:
        connection.execute(
            f"""CREATE TABLE {name} AS SELECT *,
  regexp_extract(filename, '([^/]*)[.]iodock/[^/]*$', 1) AS log
FROM read_parquet('{stores[0].parent}/*/{name}.parquet', filename = true)"""
        )
    return connection


def expected() -> Iterator[list[str]]:
    for line in (DARSHAN / "sums.tsv").read_text().splitlines():
        yield line.split("\t")


def expected_sums() -> dict[tuple[str, str], float]:
    """Returns PyDarshan's sums over all logs, by interface and counter."""
    return {
        (INTERFACES[module], name): float(value) for log, module, name, value, *_ in expected() if log == "*"
    }


def rows(tables: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    return tables.sql(sql).to_arrow_table().to_pylist()


def added(tables: duckdb.DuckDBPyConnection, sql: str) -> dict[tuple[str, str], float]:
    """Runs a query with the columns interface, name and value, and returns value by interface and name."""
    return {(row["interface"], str(row["name"])): float(row["value"]) for row in rows(tables, sql)}


def parts(interface: str, column: str) -> tuple[str, ...]:
    prefix = next(module for module, name in INTERFACES.items() if name == interface)
    return PARTS.get((interface, column), (f"{prefix.replace('MPI-IO', 'MPIIO')}_{NAMES[column]}",))


def test_every_log_and_interface_has_its_records(
    stores: list[Path], tables: duckdb.DuckDBPyConnection
) -> None:
    assert len(stores) == 47
    found = {
        (row["log"], row["interface"]): [row["n"], row["read"], row["written"]]
        for row in rows(
            tables,
            """SELECT log, interface, count(*) AS n, CAST(coalesce(sum(read_bytes), 0) AS BIGINT) AS read,
  CAST(coalesce(sum(written_bytes), 0) AS BIGINT) AS written FROM profiles GROUP BY ALL""",
        )
    }
    known = {
        (log, INTERFACES[module]): [int(one) for one in told]
        for log, module, *told in expected()
        if log != "*"
    }
    assert found == known
    assert sum(count for count, _, _ in known.values()) > 4_000


@pytest.mark.parametrize("column", NAMES)
def test_each_column_adds_up_to_the_counters_of_pydarshan(
    tables: duckdb.DuckDBPyConnection, column: str
) -> None:
    known = expected_sums()
    found = added(
        tables,
        f"SELECT interface, '{column}' AS name, sum({column}) AS value FROM profiles GROUP BY 1 "
        f"HAVING count({column}) > 0",
    )
    scale = 1e9 if column.endswith("_ns") else 1
    for interface in INTERFACES.values():
        wanted = [known[interface, name] for name in parts(interface, column) if (interface, name) in known]
        value = found.get((interface, column))
        if not wanted:
            assert value is None, interface
        else:
            assert value is not None, interface
            # Times are rounded to ns, and each is a sum over thousands of records.
            assert value / scale == pytest.approx(sum(wanted), rel=1e-9, abs=1e-5), interface


def test_all_other_counters_add_up_too(tables: duckdb.DuckDBPyConnection) -> None:
    sql = """SELECT p.interface, c.counter AS name, sum(coalesce(c.value, c.fraction)) AS value
FROM profile_counters c JOIN profiles p USING (log, profile_id) GROUP BY ALL"""
    found = added(tables, sql)
    known = expected_sums()
    compared = 0
    for (interface, name), value in known.items():
        is_column = any(parts(interface, column) == (name,) for column in NAMES)
        # In records that Darshan merged over all ranks, these counters become columns. PyDarshan sets the
        # variances of early log versions to zero.
        of_ranks = any(word in name for word in ("FASTEST", "SLOWEST", "VARIANCE"))
        if is_column or of_ranks or ("_SIZE_" in name and "TIME_SIZE" not in name) or _is_common(name):
            continue
        assert found.pop((interface, name), 0.0) == pytest.approx(value, rel=1e-9), name
        compared += 1
    assert compared > 150
    left = {name for _, name in found if not any(word in name for word in ("FASTEST", "SLOWEST", "VARIANCE"))}
    assert not left


def _is_common(name: str) -> bool:
    return any(f"_{what}{at}_{end}" in name for what in ("ACCESS", "STRIDE") for at in range(1, 5)
               for end in (what, "COUNT"))  # fmt: skip


def test_the_fastest_and_slowest_ranks_are_kept(tables: duckdb.DuckDBPyConnection) -> None:
    known = expected_sums()
    for which in ("fastest", "slowest"):
        sql = (
            f"SELECT interface, '' AS name, coalesce(sum({which}_bytes), 0) AS value FROM profiles GROUP BY 1"
        )
        found = added(tables, sql)
        assert found["posix", ""] == known["posix", f"POSIX_{which.upper()}_RANK_BYTES"] > 0
        assert found["mpi-io", ""] == known["mpi-io", f"MPIIO_{which.upper()}_RANK_BYTES"] > 0


def test_records_of_all_ranks_are_never_split(tables: duckdb.DuckDBPyConnection) -> None:
    (row,) = rows(
        tables,
        """SELECT count(*) FILTER (WHERE rank IS NULL) AS shared, count(*) FILTER (WHERE ranks = 1) AS single,
  count(*) AS n, count(fastest_rank) FILTER (WHERE rank IS NOT NULL) AS wrong FROM profiles
WHERE log IN ('imbalanced-io.darshan', 'mpi-io-test-x86_64-3.5.0.darshan')""",
    )
    assert row["shared"] > 0
    assert row["shared"] + row["single"] == row["n"]
    assert row["wrong"] == 0


@pytest.mark.parametrize("way", ["read", "write"])
def test_size_bins_add_up_to_the_counters(tables: duckdb.DuckDBPyConnection, way: str) -> None:
    sql = f"""SELECT p.interface, h.low AS name, sum(h.count) AS value FROM histograms h
JOIN profiles p USING (log, profile_id) WHERE quantity = '{way}-size' GROUP BY ALL"""
    found = added(tables, sql)
    known = expected_sums()
    for (interface, name), value in known.items():
        head, _, end = name.partition(f"_SIZE_{way.upper()}_")
        if end:
            low = BINS[end.removeprefix("AGG_")]
            assert found.pop((interface, str(low)), 0.0) == value, (head, name)
    assert not found


def test_common_sizes_and_strides_are_kept(tables: duckdb.DuckDBPyConnection) -> None:
    for quantity, what in (("common-read-or-write-size", "ACCESS"), ("common-stride", "STRIDE")):
        sql = f"""SELECT p.interface, '' AS name, sum(h.count) AS value FROM histograms h
JOIN profiles p USING (log, profile_id) WHERE quantity = '{quantity}' GROUP BY ALL"""
        found = added(tables, sql)
        known = expected_sums()
        wanted = sum(known["posix", f"POSIX_{what}{at}_COUNT"] for at in range(1, 5))
        assert found["posix", ""] == wanted > 0


def test_a_counter_missing_from_a_version_is_unknown(tables: duckdb.DuckDBPyConnection) -> None:
    """Darshan 3.0.0 did not count renames. Zeros of the counters that it had are real zeros."""
    early = "log = 'mpi-io-test-x86_64-3.0.0.darshan'"
    fields = {row["counter"] for row in rows(tables, f"SELECT counter FROM profile_fields WHERE {early}")}
    assert "POSIX_MMAPS" in fields
    assert "POSIX_RENAMED_FROM" not in fields
    sql = f"SELECT count(*) AS n FROM profile_counters WHERE counter = 'POSIX_RENAMED_FROM' AND {early}"
    assert rows(tables, sql) == [{"n": 0}]


def test_counters_that_early_versions_got_wrong_are_estimates(tables: duckdb.DuckDBPyConnection) -> None:
    sql = """SELECT regexp_extract(log, '3[.][0-9]+[.][0-9]+') AS version, bool_or(len(estimated) > 0) AS told
FROM profiles WHERE interface = 'mpi-io' AND log LIKE 'mpi-io-test-x86%' GROUP BY 1"""
    told = {row["version"]: row["told"] for row in rows(tables, sql)}
    # Darshan 3.1.1 corrected the time of the first write, so this value is an estimate in older logs only.
    assert {version for version, is_told in told.items() if is_told} == {"3.0.0", "3.0.1", "3.1.0"}
    assert "3.5.0" in told


def test_single_accesses_add_up_to_the_counters(tables: duckdb.DuckDBPyConnection) -> None:
    dxt = "log = 'mpi-io-test-dxt.darshan' AND interface IN ('posix', 'mpi-io')"
    traced = f"""SELECT interface, sum(bytes) FILTER (WHERE NOT is_write) AS read,
  sum(bytes) FILTER (WHERE is_write) AS written, count(*) FILTER (WHERE is_write) AS writes
FROM profile_accesses WHERE {dxt} GROUP BY 1 ORDER BY 1"""
    counted = f"""SELECT interface, sum(read_bytes) AS read, sum(written_bytes) AS written,
  CAST(sum(writes) AS BIGINT) AS writes FROM profiles WHERE {dxt} GROUP BY 1 ORDER BY 1"""
    assert rows(tables, traced) == rows(tables, counted) != []
    (moments,) = rows(
        tables,
        f"""SELECT bool_and(ts BETWEEN first AND last) AS inside FROM profile_accesses,
  (SELECT min(first_ts) AS first, max(last_ts) AS last FROM profiles WHERE {dxt}) WHERE {dxt}""",
    )
    assert moments["inside"]


def test_layouts_and_heatmaps_are_read(tables: duckdb.DuckDBPyConnection) -> None:
    striped = rows(tables, "SELECT stripe_count, len(targets) AS targets, stripe_bytes FROM layouts")
    assert striped
    assert all(row["stripe_count"] == row["targets"] and row["stripe_bytes"] >= 65_536 for row in striped)
    hot = rows(tables, "SELECT interface, sum(written_bytes) AS written FROM heatmaps GROUP BY 1")
    assert {row["interface"] for row in hot} >= {"posix", "stdio", "mpi-io"}
    assert all(row["interface"] for row in hot)
    log = "log = 'mpi-io-test-x86_64-3.5.0.darshan' AND interface = 'posix'"
    told = [
        rows(tables, f"SELECT sum(written_bytes) AS n FROM {name} WHERE {log}")
        for name in ("heatmaps", "profiles")
    ]
    assert told[0] == told[1]


def test_the_text_form_gives_the_same_values_as_the_log(tmp_path: Path) -> None:
    log = import_logs([str(DARSHAN / "ior-hdf5.darshan")], tmp_path / "log.iodock").store
    text = import_logs([str(DARSHAN / "text" / "ior-hdf5.txt")], tmp_path / "text.iodock").store
    exact = (
        "SELECT interface, opens, reads, writes, syncs, read_bytes, written_bytes FROM profiles ORDER BY ALL"
    )
    said = """SELECT coalesce(bool_and(list_contains(estimated, 'read_time_ns')), false) AS rounded,
  max(len(estimated)) AS names FROM profiles"""
    with Store.open(log) as ours, Store.open(text) as theirs:
        assert ours.rows(exact) == theirs.rows(exact) != []
        assert ours.rows(said) == [{"rounded": False, "names": 0}]
        assert theirs.rows(said) == [{"rounded": True, "names": 5}]


def test_show_profiles_sums_by_interface_and_file(stores: list[Path]) -> None:
    store = stores[[log.name for log in LOGS].index("imbalanced-io.darshan")]
    found = shown(store, "profiles")
    by_interface = {row["interface"]: row for row in found["rows"]}
    assert {name: row["profiles"] for name, row in by_interface.items()} == {
        "mpi-io": 3,
        "posix": 2_014,
        "stdio": 12,
    }
    # MPI-IO has no seeks, so their number is null and not 0.
    assert by_interface["mpi-io"]["seeks"] is None
    by_file = shown(store, "profiles", "--by", "file")["rows"]
    for name, row in by_interface.items():
        written = [one["written_bytes"] for one in by_file if one["interface"] == name]
        assert sum(written) == row["written_bytes"] > 0
    assert [loss["name"] for loss in found["losses"]] == ["darshan-partial-module"]


def test_profiles_can_be_filtered_by_file_and_rank(stores: list[Path]) -> None:
    store = stores[[log.name for log in LOGS].index("imbalanced-io.darshan")]
    all_files = shown(store, "profiles", "--by", "file")["rows"]
    one = next(row for row in all_files if row["interface"] == "mpi-io")
    named = shown(store, "profiles", "--by", "file", "--file", one["file"])["rows"]
    assert [row for row in named if row["interface"] == "mpi-io"] == [one]
    folder = one["file"].rsplit("/", 1)[0]
    globbed = shown(store, "profiles", "--by", "file", "--file", f"{folder}/*")["rows"]
    assert globbed == [row for row in all_files if row["file"].rsplit("/", 1)[0] == folder] != []
    by_rank = {row["rank"]: row for row in shown(store, "profiles", "--by", "rank")["rows"]
               if row["interface"] == "posix"}  # fmt: skip
    found = shown(store, "profiles", "--by", "rank", "--rank", "7")
    assert [row for row in found["rows"] if row["interface"] == "posix"] == [by_rank[7]]
    assert any("all ranks together" in note and "not shown" in note for note in found["notes"])


@pytest.mark.parametrize("options", [("--call", "read"), ("--failed",), ("--pid", "3")])
def test_other_filters_are_refused(stores: list[Path], options: tuple[str, ...]) -> None:
    status, _, said = asked("show", "profiles", stores[0], *options)
    assert status == 2
    assert "can't be filtered" in said


def test_analyses_that_need_calls_refuse_counters(stores: list[Path], tmp_path: Path) -> None:
    store = stores[[log.name for log in LOGS].index("imbalanced-io.darshan")]
    for name in analyses.names():
        if not analyses.find(name).profiles:
            with pytest.raises(RequestError, match="no calls"), Store.open(store) as opened:
                found = analyses.find(name)
                found.run(opened, analyses.base.request(found, {}))
    for command in (("bundle", store, "-o", tmp_path / "bundle.tar.gz"),):
        status, out, said = asked(*command)
        assert status != 0, command
        assert "can't report on the run's I/O" in said
        assert not out


def test_profiles_are_refused_for_a_store_of_calls(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text('1 1700000000.000000 openat(AT_FDCWD, "/a", O_RDONLY) = 3 <0.000010>\n')
    store = import_logs([str(log)], tmp_path / "run.iodock").store
    status, _, said = asked("show", "profiles", store)
    assert status == 2
    assert "contains no profiles" in said


def test_a_job_without_records_is_not_called_efficient(stores: list[Path]) -> None:
    store = stores[[log.name for log in LOGS].index("empty.darshan")]
    found = shown(store, "profiles")
    assert found["rows"] == []
    assert any("job may have done I/O nevertheless" in note for note in found["notes"])
    assert "job may have done I/O nevertheless" in " ".join(printed("diagnose", store).split())


def test_several_logs_give_a_store_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    broken = tmp_path / "broken.darshan"
    broken.write_bytes(b"")
    logs = [DARSHAN / "skew-app.darshan", broken, DARSHAN / "ior-dfs.darshan"]
    status, out, said = asked("import", *logs)
    assert status == 1
    assert out.split() == ["skew-app.iodock", "ior-dfs.iodock"]
    assert "broken.darshan: is empty" in said
    assert "1 of 3 logs could not be imported" in said
    assert "diagnoses the counters" in said
    status, _, said = asked("import", logs[0], logs[2], "-o", "one.iodock")
    assert status == 2
    assert "-o names one store" in said
    assert not (tmp_path / "one.iodock").exists()
    other = tmp_path / "run.log"
    other.write_text("1 1700000000.000000 close(3) = 0 <0.000010>\n")
    status, _, said = asked("import", logs[0], other)
    assert status == 2
    assert "run.log is not a log of Darshan" in said
    status, _, said = asked("import", logs[0], "--cwd", tmp_path, "-o", "two.iodock")
    assert status == 2
    assert "are for logs of calls" in said


def test_a_truncated_log_reports_its_loss(tmp_path: Path) -> None:
    whole = (DARSHAN / "imbalanced-io.darshan").read_bytes()
    cut = tmp_path / "cut.darshan"
    cut.write_bytes(whole[: len(whole) // 2])
    found = import_logs([str(cut)], tmp_path / "cut.iodock")
    names = {loss.name for loss in found.losses}
    assert "darshan-cut-region" in names
    assert found.profiles
    manifest = json.loads((found.store / "manifest.json").read_text())
    assert {loss["name"] for loss in manifest["losses"]} == names


def test_losses_of_darshan_are_explained() -> None:
    losses = {name: cure for name, cure in known_losses() if name.startswith("darshan-")}
    assert len(losses) == 18
    assert {name for name in HIDES_CALLS if name.startswith("darshan-")} <= set(losses)
    for name, cure in losses.items():
        assert cure[:40] in " ".join(printed("explain", name).split())


def _sums(store: Path) -> dict[str, Any]:
    with Store.open(store) as opened:
        return opened.rows(
            "SELECT count(*) AS n, sum(opens) AS opens, sum(read_bytes) AS read, "
            "sum(written_bytes) AS written FROM profiles"
        )[0]


def test_damage_never_changes_numbers_without_a_reported_loss(tmp_path: Path) -> None:
    """iodock must refuse a damaged log, give the same numbers, or report a loss that the undamaged log
    lacks."""
    chance = random.Random(41)
    whole: dict[Path, tuple[dict[str, Any], set[tuple[str, int]]]] = {}
    outcomes = {"refused": 0, "the same": 0, "a loss": 0}
    damaged = tmp_path / "damaged.darshan"
    for _ in range(24):
        log = chance.choice(LOGS)
        if log not in whole:
            told = import_logs([str(log)], tmp_path / "whole.iodock", force=True)
            whole[log] = _sums(told.store), {(loss.name, loss.count) for loss in told.losses}
        content = bytearray(log.read_bytes())
        if chance.random() < 0.4:
            del content[chance.randrange(len(content)) :]
        for _ in range(min(4, len(content))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        damaged.write_bytes(content)
        try:
            told = import_logs([str(damaged)], tmp_path / "damaged.iodock", force=True)
        except IodockError:
            outcomes["refused"] += 1
            continue
        sums, losses = whole[log]
        is_same = _sums(told.store) == sums
        more = {(loss.name, loss.count) for loss in told.losses} - losses
        assert is_same or more, log.name
        outcomes["the same" if is_same else "a loss"] += 1
    assert all(outcomes.values()), outcomes
