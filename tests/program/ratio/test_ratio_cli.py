"""Tests the command line of `iodock ratio`: tables, data, charts, messages and exit statuses."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from in_process import printed
from iodock.cli.run import run as run_command
from iodock.cli.sizes import size_bytes
from iodock.program.ratio.record import CURES
from iodock.program.ratio.tables import COLUMNS, HISTORY_COLUMNS
from places import ROOT
from synthetic import process_row, write_store

FIXTURES = ROOT / "fixtures" / "ratio"


def ratio(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "iodock", "ratio", *map(str, arguments)]
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment | options.pop("environment", {}),
        **options,
    )


def good(*arguments: object, **options: Any) -> str:
    done = ratio(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def failed(status: int, *arguments: object, **options: Any) -> str:
    done = ratio(*arguments, **options)
    assert (done.returncode, done.stdout) == (status, "")
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    return done.stderr


def rows(*arguments: object, **options: Any) -> list[dict[str, Any]]:
    answer: dict[str, Any] = json.loads(good(*arguments, "--format", "json", **options))
    return answer["rows"]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = ["JobID|User|ElapsedRaw|AllocCPUS|UserCPU|SystemCPU|State"]
    for number in range(400):
        share = 0.02 + number % 5 * 0.01 if number < 80 else 0.8 + number % 15 * 0.01
        seconds = round(3600 * 4 * share)
        clock = f"{seconds // 3600:02}:{seconds % 3600 // 60:02}:{seconds % 60:02}"
        lines.append(f"{number + 1}|u{number % 3}|3600|4|{clock}|00:00:10|COMPLETED")
    lines.append("401|u1|5|4|00:00:01|00:00:00|COMPLETED")
    path = tmp_path_factory.mktemp("year") / "year.sacct"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_table_names_the_next_step() -> None:
    done = ratio(FIXTURES / "report-time.log")
    assert "0.000479  I/O-heavy" in done.stdout
    assert "next: step 2: iodock volume -- CMD" in done.stdout
    assert "low CPU use does not prove I/O" in done.stderr
    assert ratio(FIXTURES / "report-time.log", "-q").stderr == ""


def test_system_time_has_its_own_column() -> None:
    [row] = rows(FIXTURES / "pjm-ior.txt")
    assert row["utilisation"] == pytest.approx(51.023 / 1100)
    assert row["system_seconds"] == 805.152
    assert row["system_share"] == pytest.approx(0.732, abs=5e-4)
    assert row["basis"] == "user"


@pytest.mark.parametrize("columns", [80, 56, 40])
def test_the_table_fits_narrow_terminals(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setattr("iodock.shared.tables.table.terminal_width", lambda: columns)
    table = printed("ratio", FIXTURES / "sacct.txt", FIXTURES / "gnu-verbose.log")
    assert max(map(len, table.splitlines())) <= columns
    assert "I/O-heavy" in table and "0.917" in table
    assert ("system" in table) == (columns == 80)


def test_wide_and_unprintable_names_keep_columns_aligned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("iodock.shared.tables.table.terminal_width", lambda: 60)
    rows = "1|流体計算の長い名前のジョブ|100|00:01|1\n2|a\x1b[31m|100|00:01|1\n"
    (tmp_path / "sacct").write_text(f"JobID|JobName|ElapsedRaw|UserCPU|AllocCPUS\n{rows}")
    table = printed("ratio", tmp_path / "sacct").splitlines()
    assert {cell_len(line) for line in table[2:4]} == {cell_len(table[1].replace("reading", "I/O-heavy"))}
    assert "\x1b" not in table[3] and max(map(cell_len, table)) <= 60


def test_every_column_is_documented() -> None:
    page = (FIXTURES.parent.parent / "docs" / "how-to" / "ratio.md").read_text()
    for column in (*COLUMNS, *HISTORY_COLUMNS):
        assert f"| `{column.name}` | {column.unit or ''} | {column.doc} |" in page, column.name


def test_process_accounting_is_grouped_by_command() -> None:
    nodes = FIXTURES / "node1" / "pacct", FIXTURES / "node2" / "pacct"
    assert {row["name"]: row["count"] for row in rows(*nodes)}["solver"] == 4
    assert len(rows(*nodes, "--by", "record")) == 14
    assert [row["name"] for row in rows(*nodes, "--by", "node")] == ["node1", "node2"]
    [writer] = rows(*nodes, "--name", "wri*")
    assert (writer["name"], writer["count"], writer["reading"]) == ("writer", 2, "I/O-heavy")
    assert {row["name"] for row in rows(*nodes, "--user", 65534)} == {"solver"}
    assert "no record matches --name nothing" in failed(2, *nodes, "--name", "nothing")


def test_cores_and_thresholds_can_be_given(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("real 10.00\nuser 15.00\nsys 0.00\n")
    [row] = rows(log)
    assert (row["reading"], row["cores_known"]) == ("unknown", False) and "--cores" in row["next"]
    [row] = rows(log, "--cores", 16)
    assert (row["reading"], row["cores"], row["cores_known"]) == ("I/O-heavy", 16, True)
    [row] = rows(log, "--cores", 16, "--threshold", 0.05)
    assert row["reading"] == "between"
    settings = tmp_path / "site.toml"
    settings.write_text("[ratio]\nio_below = 0.05\n")
    assert rows(log, "--cores", 16, "--settings", settings)[0]["reading"] == "between"
    by_variable = rows(log, "--cores", 16, environment={"IODOCK_SETTINGS": str(settings)})
    assert by_variable[0]["reading"] == "between"


def test_standard_input_and_pipes_are_read() -> None:
    text = (FIXTURES / "sacct.txt").read_text()
    assert len(rows("-", input=text)) == 6
    command = f"{sys.executable} -m iodock ratio <(cat {FIXTURES}/bash.log) --format csv -q"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True, timeout=60)
    assert len(list(csv.DictReader(io.StringIO(done.stdout)))) == 2


def test_a_recorded_store_gives_its_ratio(tmp_path: Path) -> None:
    tasks = [
        process_row(0, 10, cpu_user_ns=300_000_000, cpu_system_ns=1_000_000_000),
        process_row(1, 11, cpu_user_ns=200_000_000, cpu_system_ns=500_000_000),
    ]
    captured = {"how": "ptrace", "command": ["./a.out", "x y"], "wall_ns": 10_000_000_000}
    store = write_store(tmp_path / "run.iodock", [], [], tasks, captured=captured)
    [row] = rows(store)
    assert (row["name"], row["real_seconds"]) == ("./a.out 'x y'", 10.0)
    assert row["utilisation"] == pytest.approx(0.05)
    assert row["system_seconds"] == pytest.approx(1.5)
    bare = write_store(tmp_path / "log.iodock", [], [], [process_row(0, 10)], captured={"how": "strace"})
    assert "has no CPU times" in failed(1, bare)


@pytest.mark.parametrize(
    ("file_ns", "reading", "following"),
    [
        (10_000_000, "between", "I/O is not the problem here"),
        (600_000_000, "between", "iodock diagnose"),
        (4_000_000_000, "I/O-heavy", "iodock diagnose"),
        (None, "I/O-heavy", "step 2"),
    ],
)
def test_the_recorded_io_volume_of_a_store_is_used(
    tmp_path: Path, file_ns: int | None, reading: str, following: str
) -> None:
    captured = {"how": "ptrace", "command": ["true"], "wall_ns": 10_000_000_000}
    store = Path(
        write_store(
            tmp_path / "run.iodock", [], [], [process_row(0, 10, cpu_user_ns=9_000_000)], captured=captured
        )
    )
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["io"] = None if file_ns is None else {"any_ns": file_ns, "file_ns": file_ns}
    (store / "manifest.json").write_text(json.dumps(manifest))
    [row] = rows(store)
    assert row["reading"] == reading and row["next"].startswith(following)


def test_a_closed_standard_input_is_empty() -> None:
    command = 'exec "$0" -m iodock ratio - <&-'
    done = subprocess.run(["sh", "-c", command, sys.executable], capture_output=True, text=True, check=False)
    assert "is empty" in done.stderr and "bug" not in done.stderr


def test_messages_name_the_file_and_the_remedy(tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    junk.write_text("nothing here\n")
    said = failed(1, junk)
    assert f"{junk}: contains no recognised times" in said and "--from" in said
    assert "no such format: csv" in failed(2, junk, "--from", "csv")
    for cores in ("0", "nan", "inf"):
        assert "--cores must be a number above 0" in failed(2, junk, "--cores", cores)
    assert "--history" in failed(2, FIXTURES / "bash.log", "-o", tmp_path / "x.png")
    assert "can't be combined with" in failed(2, junk, "--history", "--by", "user")
    assert "can't be combined with" in failed(2, junk, "--from", "acct", "--time-format", "%e %U")
    assert not (tmp_path / "x.png").exists()
    failed(2)


def test_a_history_prints_the_distribution(year: Path) -> None:
    done = ratio("--history", year)
    assert done.returncode == 0, done.stderr
    assert "400 jobs, 1,600 core-hours" in done.stdout
    assert "bimodal" in done.stdout and "[ratio]\n  io_below = 0." in done.stdout
    assert "in use: I/O-heavy below 0.1: 20.0% of the jobs" in done.stdout
    assert "jobs shorter than 60 s are left out: 1" in done.stderr


def test_a_history_can_be_written_as_json(year: Path) -> None:
    answer = json.loads(good("--history", year, "--format", "json"))
    total = answer["totals"]["total"]
    assert total["count"] == sum(row["count"] for row in answer["rows"]) == 400
    assert len(total["deciles"]) == 9 and total["bimodal"]
    assert total["toml"] == f"[ratio]\nio_below = {total['proposed_io_below']:.2f}\n"
    table = list(csv.DictReader(io.StringIO(good("--history", year, "--format", "csv"))))
    assert len(table) == 100 and sum(int(row["count"]) for row in table) == 400


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html"])
def test_a_history_can_be_drawn_as_a_chart(ending: str, year: Path, tmp_path: Path) -> None:
    path = tmp_path / f"chart.{ending}"
    assert good("--history", year, "-o", path, "--weight", "core-hours") == ""
    start = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}[ending]
    assert path.read_bytes().startswith(start)
    if ending == "svg":
        assert "Core-hours by CPU utilisation" in path.read_text()


def test_a_history_of_only_short_jobs_is_refused(year: Path) -> None:
    assert "--min-real 0" in failed(1, "--history", FIXTURES / "bash.log")
    assert "134 jobs" in good("--history", year, "--user", "u1", "--min-real", 0)


@pytest.mark.parametrize("loss", sorted(CURES))
def test_every_loss_is_explained(loss: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["explain", loss]) == 0
    assert CURES[loss] in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_the_minimum_job_length_must_be_a_duration(value: str, year: Path) -> None:
    done = ratio("--history", year, "--min-real", value)
    assert done.returncode == 2 and "--min-real" in done.stderr and not done.stdout


def test_expected_and_actual_volume_are_compared() -> None:
    path = FIXTURES / "pjm-two-nodes.txt"
    plain = good(path)
    assert "1 TiB" in plain and "of expected" not in plain
    done = ratio(path, "--expect", "1TiB")
    assert (
        "1 x" in done.stdout and "of the expected volume: I/O divided by the 1 TiB of --expect" in done.stdout
    )
    [row] = rows(path, "--expect", "0.25TiB")
    assert (row["io_bytes"], row["io_factor"]) == (1099513035484, pytest.approx(1099513035484 / (1 << 38)))
    assert "rows with 2 times the expected volume or more: 1" in ratio(path, "--expect", "256G").stderr
    assert rows(path)[0]["io_factor"] is None
    assert "rows without an I/O volume: 1" in ratio(FIXTURES / "report-time.log", "--expect", "1G").stderr


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ("1.5TiB", 3 << 39),
        ("500M", 500 << 20),
        ("2TB", 2 * 10**12),
        ("1e", 1 << 60),
        ("4096", 4096),
        ("10B", 10),
    ],
)
def test_sizes_with_units_are_parsed(said: str, size: int) -> None:
    assert size_bytes(said, "--expect") == size


@pytest.mark.parametrize("said", ["0", "-5G", "nan", "1e400", "9E", "1.5.5G", "", "G", "0TiB", "\uff11"])
def test_invalid_sizes_are_refused(said: str) -> None:
    done = ratio(FIXTURES / "report-time.log", "--expect", said)
    assert done.returncode == 2 and "--expect" in done.stderr and "sizes: 500M" in done.stderr


def test_a_job_with_0_cores_shows_no_ratio(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sacct"
    path.write_text("JobID|ElapsedRaw|UserCPU|SystemCPU|NCPUS\n1|100|00:50|00:01|0\n")
    done = ratio(path)
    assert "the source has 0 cores" in done.stdout and "no-cores" in done.stderr
    assert "?" not in done.stdout
    [row] = rows(path)
    assert (row["cores"], row["cores_known"], row["utilisation"], row["reading"]) == (
        None,
        False,
        None,
        "unknown",
    )


def test_file_names_that_are_not_utf8_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"b\xff.log")
    path.write_text("real 10.0\nuser 1.0\nsys 0.5\n")
    done = ratio(path)
    assert "b\\xff.log:1" in done.stdout
    [row] = rows(path)
    assert row["name"] == "b\\xff.log:1"
    missing = ratio(tmp_path / os.fsdecode(b"c\xff.log"))
    assert missing.returncode != 0 and "c\\xff.log: No such file" in missing.stderr
