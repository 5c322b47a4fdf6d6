"""Compares analyses, report and diff of Darshan logs with PyDarshan's sums and with the content of the
tables."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import duckdb
import pytest

from in_process import asked, printed, shown
from iodock.program.capture import import_logs
from iodock.program.store import Store
from places import FIXTURES

DARSHAN = FIXTURES / "darshan"
UNEVEN = "imbalanced-io"
TRACED = "mpi-io-test-dxt"
HEATED = "mpi-io-test-x86_64-3.5.0"
LOGS = (UNEVEN, TRACED, HEATED, "ior-hdf5", "stdio-no-posix", "empty")
INTERFACES = {"POSIX": "posix", "MPI-IO": "mpi-io", "STDIO": "stdio", "H5F": "hdf5", "H5D": "hdf5-dataset"}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("stores")
    logs = {name: str(DARSHAN / f"{name}.darshan") for name in LOGS}
    return {name: import_logs([log], folder / f"{name}.iodock").store for name, log in logs.items()}


def rows(store: Path, sql: str) -> list[dict[str, Any]]:
    """Queries the Parquet files of a store without iodock."""
    found: list[dict[str, Any]] = duckdb.sql(sql.replace("@", str(store))).to_arrow_table().to_pylist()
    return found


@pytest.mark.parametrize("name", LOGS[:-1])
def test_bytes_of_interfaces_equal_those_of_pydarshan(stores: dict[str, Path], name: str) -> None:
    lines = [line.split("\t") for line in (DARSHAN / "sums.tsv").read_text().splitlines()]
    told = {
        INTERFACES[module]: (int(read), int(written))
        for log, module, _, read, written, *_ in (line for line in lines if line[0] != "*")
        if log == f"{name}.darshan" and module in INTERFACES
    }
    found = shown(stores[name], "summary", "--by", "interface")["rows"]
    moved = {row["interface"]: (row["read_bytes"] or 0, row["written_bytes"] or 0) for row in found}
    assert told
    assert moved == told


def test_reads_and_writes_have_separate_times_and_metadata_one_time(stores: dict[str, Path]) -> None:
    found = {
        row["family"]: row for row in shown(stores[UNEVEN], "summary")["rows"] if row["interface"] == "posix"
    }
    (told,) = rows(
        stores[UNEVEN],
        """SELECT sum(opens) AS opens, sum(reads) AS reads, sum(read_time_ns) AS read_ns,
  sum(meta_time_ns) AS meta_ns
FROM '@/profiles.parquet' WHERE interface = 'posix'""",
    )
    assert found["read"]["count"] == told["reads"]
    assert found["read"]["total_time_ns"] == told["read_ns"]
    assert found["open"]["count"] == told["opens"]
    assert found["open"]["total_time_ns"] is None
    assert found["all metadata"]["total_time_ns"] == told["meta_ns"]
    assert found["all metadata"]["count"] is None
    assert found["read"]["failed"] is None


def test_totals_count_bytes_of_several_interfaces_once(stores: dict[str, Path]) -> None:
    found = shown(stores[UNEVEN], "summary", "--by", "interface")
    total = found["totals"]["total"]
    of = {row["interface"]: row for row in found["rows"]}
    assert total["read_bytes"] == of["posix"]["read_bytes"] + of["stdio"]["read_bytes"]
    assert total["read_bytes"] < sum(row["read_bytes"] for row in found["rows"])
    cut = shown(stores[UNEVEN], "summary", "--by", "folder", "--top", "2")["totals"]
    assert cut["shown"] == 2 < cut["of"]
    assert cut["other"]["count"] < cut["total"]["count"]


def test_an_unknown_number_does_not_count_as_zero(stores: dict[str, Path]) -> None:
    with Store.open(stores[UNEVEN]) as store:
        assert store.manifest.profiles_only
        known = store.rows("SELECT profile_id FROM profiles WHERE interface = 'posix' LIMIT 1")
        changed = f"CASE WHEN profile_id = {known[0]['profile_id']} THEN NULL ELSE reads END"
        store.keep("profiles", f"SELECT * REPLACE ({changed} AS reads) FROM profiles")
        from iodock.program import analyses
        from iodock.program.analyses.base import request

        summary = analyses.find("summary")
        answer = summary.run(store, request(summary, {"by": "interface"}))
    found = {row["interface"]: row for row in answer.table.to_pylist()}
    assert found["posix"]["count"] is None
    assert found["posix"]["io_count"] is None
    assert found["stdio"]["count"] > 0


@pytest.mark.parametrize(
    "key", ["file", "pattern", "folder", "rank", "fs_type", "host", "pid", "family", "class"]
)
def test_rows_of_a_key_add_up_to_their_interface(stores: dict[str, Path], key: str) -> None:
    whole = {row["interface"]: row for row in shown(stores[UNEVEN], "summary", "--by", "interface")["rows"]}
    parts = shown(stores[UNEVEN], "summary", "--by", key)["rows"]
    for name, one in whole.items():
        own = [row for row in parts if row["interface"] == name]
        assert own
        assert sum(row["count"] or 0 for row in own) == one["count"]
        assert sum(row["total_time_ns"] or 0 for row in own) == one["total_time_ns"]


@pytest.mark.parametrize("by", ["call", "errno", "call,file", "tid"])
def test_keys_that_counters_do_not_have_are_refused(stores: dict[str, Path], by: str) -> None:
    # `--by call` is the default for other stores, so iodock accepts it, and groups counters by operation.
    status, _, said = asked("show", "summary", stores[UNEVEN], "--by", by)
    assert (status == 0) == (by == "call")
    assert by == "call" or said.startswith("error: counters do")


def test_shared_files_keep_their_fastest_and_slowest_rank(stores: dict[str, Path]) -> None:
    found = shown(stores[UNEVEN], "files", "--sort", "slowest_time_ns", "--top", "3")["rows"]
    told = rows(
        stores[UNEVEN],
        """SELECT slowest_rank, slowest_time_ns, fastest_rank, variance_time_s2 FROM '@/profiles.parquet'
WHERE rank IS NULL ORDER BY slowest_time_ns DESC LIMIT 3""",
    )
    assert [{name: row[name] for name in told[0]} for row in found] == told
    ranks = shown(stores[UNEVEN], "processes")
    together = [row for row in ranks["rows"] if row["rank"] is None]
    assert {row["ranks"] for row in together} == {496}
    of_ranks = sum(row["read_bytes"] or 0 for row in ranks["rows"] if row["rank"] is not None)
    assert 0 < of_ranks < sum(row["read_bytes"] for row in together)
    assert any("not divided among ranks" in note for note in ranks["notes"])
    one = shown(stores[UNEVEN], "summary", "--by", "interface", "--rank", "3")
    assert sum(row["read_bytes"] or 0 for row in one["rows"]) == 0
    assert any("belong to no single rank" in note for note in one["notes"])


def test_sizes_have_the_bins_of_darshan(stores: dict[str, Path]) -> None:
    found = shown(stores[UNEVEN], "sizes")
    told = rows(
        stores[UNEVEN],
        """SELECT sum(count) AS n, min(low) AS low, max(high) AS high FROM '@/histograms.parquet'
WHERE quantity IN ('read-size', 'write-size')""",
    )
    assert sum(row["count"] for row in found["rows"]) == told[0]["n"]
    first = next(row for row in found["rows"] if row["interface"] == "posix" and row["lower_bytes"] == 101)
    assert first["upper_bytes"] == 1024
    assert first["bytes"] is None
    assert any("the sizes of stdio are unknown" in note for note in found["notes"])
    common = shown(stores[UNEVEN], "sizes", "--exact")
    assert all(row["lower_bytes"] == row["upper_bytes"] for row in common["rows"])
    assert any("only the most frequent sizes" in note for note in common["notes"])
    status, _, said = asked("show", "sizes", stores[UNEVEN], "--requested")
    assert status == 2
    assert "requested sizes" in said


def test_the_overview_of_counters_has_the_mean_time_of_ranks(stores: dict[str, Path]) -> None:
    total = shown(stores[UNEVEN], "overview")["totals"]["total"]
    assert total["io_time_ns"] is None
    assert total["io_share"] is None
    # Ranks mostly wait in MPI-IO, and the times of POSIX and stdio do not include this waiting.
    assert total["mean_rank_time_ns"] > total["total_time_ns"] / 496
    assert total["mean_rank_share"] == pytest.approx(total["mean_rank_time_ns"] / total["wall_time_ns"])
    assert 0.5 < total["mean_rank_share"] < 1
    assert total["largest"][0]["total_time_ns"] >= total["largest"][1]["total_time_ns"] > 0


def test_a_timeline_uses_the_bins_of_the_heatmap(stores: dict[str, Path]) -> None:
    found = shown(stores[HEATED], "timeline")
    assert all(row["end_ts"] - row["ts"] == 100_000_000 for row in found["rows"])
    assert any("bins of 100 ms" in note for note in found["notes"])
    (told,) = rows(
        stores[HEATED],
        "SELECT sum(written_bytes) AS written FROM '@/heatmaps.parquet' WHERE interface = 'posix'",
    )
    assert (
        sum(row["written_bytes"] for row in found["rows"] if row["interface"] == "posix") == told["written"]
    )
    assert found["rows"][0]["count"] is None
    status, _, said = asked("show", "timeline", stores[HEATED], "--every", "0.15")
    assert status == 2
    assert "multiple of the heatmaps' bins" in said
    status, _, said = asked("show", "timeline", stores[UNEVEN])
    assert status == 2
    assert "no heatmap" in said
    assert "Darshan 3.4.0" in said


def test_single_accesses_are_read_from_dxt(stores: dict[str, Path]) -> None:
    found = shown(stores[TRACED], "accesses")["rows"]
    (told,) = rows(
        stores[TRACED], "SELECT count(*) AS n, sum(bytes) AS bytes FROM '@/profile_accesses.parquet'"
    )
    assert len(found) == told["n"]
    assert sum(row["bytes"] for row in found) == told["bytes"]
    assert {row["interface"] for row in found} == {"posix", "mpi-io"}
    reads = shown(stores[TRACED], "accesses", "--direction", "read", "--rank", "3")["rows"]
    assert {(row["call"], row["rank"]) for row in reads} == {("read", 3)}
    cells = shown(stores[TRACED], "offsets", "--time-cells", "5", "--offset-cells", "5")
    (posix,) = rows(
        stores[TRACED], "SELECT count(*) AS n FROM '@/profile_accesses.parquet' WHERE interface = 'posix'"
    )
    assert sum(row["count"] for row in cells["rows"]) == posix["n"]
    assert any("without those of mpi-io" in note for note in cells["notes"])
    for analysis in ("accesses", "offsets"):
        status, _, said = asked("show", analysis, stores[UNEVEN])
        assert status == 2
        assert "no single accesses" in said
        assert "DXT" in said


@pytest.mark.parametrize("option", [("--since", "1"), ("--failed",), ("--pid", "3"), ("--host", "a")])
def test_unsupported_filters_of_counters_are_named(stores: dict[str, Path], option: tuple[str, ...]) -> None:
    for analysis in ("summary", "files", "sizes", "processes", "overview"):
        status, out, said = asked("show", analysis, stores[UNEVEN], *option)
        assert status == 2, analysis
        assert "can't be filtered" in said
        assert not out


def test_a_job_without_records_gives_no_rows_and_a_note(stores: dict[str, Path]) -> None:
    for analysis in ("summary", "files", "sizes", "processes", "overview"):
        found = shown(stores["empty"], analysis)
        assert found["rows"] == []
        assert any("job may have done I/O nevertheless" in note for note in found["notes"])
    total = shown(stores["empty"], "overview")["totals"]["total"]
    assert total["read_bytes"] is None


@pytest.mark.parametrize("name", [UNEVEN, HEATED, "empty"])
@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_report_loads_no_other_resource(
    stores: dict[str, Path], tmp_path: Path, name: str, language: str
) -> None:
    page = tmp_path / "page.html"
    printed("report", stores[name], "-o", page, "--lang", language)
    text = page.read_text()
    assert f'lang="{language}"' in text
    assert text.count("<section") == 8
    assert ('class="heat"' in text) == (name == HEATED)
    assert ("darshan-partial-module" in text) == (name == UNEVEN)
    assert not re.search(r"(?:src|href)=\"(?!#)", text)
    assert " style=" not in text


def test_two_darshan_stores_can_be_compared(stores: dict[str, Path], tmp_path: Path) -> None:
    import json

    found = json.loads(printed("diff", stores[HEATED], stores["ior-hdf5"], "--json"))
    whole = {row["interface"]: row for row in found["rows"] if row["pattern"] is None}
    posix = whole["posix"]
    assert posix["change_time_ns"] == posix["after_total_time_ns"] - posix["before_total_time_ns"]
    assert whole["hdf5"]["where"] == "after"
    assert whole["hdf5"]["before_count"] is None
    same = json.loads(printed("diff", stores[UNEVEN], stores[UNEVEN], "--json", "--by", "file"))
    assert all(row["file"] is None for row in same["rows"])
    log = tmp_path / "run.log"
    log.write_text('1 1700000000.000000 openat(AT_FDCWD, "/a", O_RDONLY) = 3 <0.000010>\n')
    calls = import_logs([str(log)], tmp_path / "run.iodock").store
    status, out, said = asked("diff", stores[HEATED], calls)
    assert status == 2
    assert "contains counters" in said
    assert "record both runs" in said
    assert not out
    for more in (("--per", "bytes"), ("--format", "html", "-o", tmp_path / "diff.html")):
        status, _, said = asked("diff", stores[HEATED], stores[UNEVEN], *more)
        assert status == 2
        assert "counters" in said
