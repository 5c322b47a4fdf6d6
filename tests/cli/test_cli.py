"""Tests the command line: formats, messages, exit statuses."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from in_process import iodock, printed
from synthetic import event_row, file_row, process_row, write_store

LOG = """\
100 1700000000.000100 execve("/bin/x", ["x"], 0x7ffc /* 1 vars */) = 0 <0.000005>
100 1700000000.001000 openat(AT_FDCWD, "a.txt", O_RDONLY) = 3 <0.000100>
100 1700000000.002000 read(3, "..."..., 4096) = 100 <0.000200>
100 1700000000.003000 read(3, "", 4096) = 0 <0.000050>
100 1700000000.004000 openat(AT_FDCWD, "/no", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000010>
100 1700000000.005000 close(3) = 0 <0.000010>
100 1700000000.006000 exit_group(0) = ?
100 1700000000.006100 +++ exited with 0 +++
"""


def piped(text: str, *arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "iodock", *map(str, arguments)]
    return subprocess.run(
        command, input=text, cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )


def good(*arguments: object, **options: Any) -> str:
    done = iodock(*arguments, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    (folder / "run.log").write_text(LOG)
    assert good("import", "run.log", "--cwd", "/work", cwd=folder) == "run.iodock\n"
    return folder / "run.iodock"


def test_import_chooses_the_store_name_and_refuses_an_existing_one(imported: Path) -> None:
    folder = imported.parent
    assert good("import", "run.log", "-q", cwd=folder) == "run-2.iodock\n"
    again = iodock("import", "run.log", "-o", "run.iodock", cwd=folder)
    assert again.returncode == 1 and again.stdout == ""
    assert (
        again.stderr.startswith("error: ")
        and "run.iodock: exists already" in again.stderr
        and "--force" in again.stderr
    )
    assert good("import", "run.log", "-o", "run-2.iodock", "--force", cwd=folder) == "run-2.iodock\n"


def test_import_reads_a_log_given_twice_once(imported: Path, tmp_path: Path) -> None:
    log = imported.parent / "run.log"
    (tmp_path / "link.log").symlink_to(log)
    done = iodock("import", log, "link.log", cwd=tmp_path)
    assert done.returncode == 2 and "link.log is the same log as" in done.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "link.log"]


def test_a_byte_order_mark_loses_no_line(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(LOG, encoding="utf-8-sig")
    done = iodock("import", "run.log", "--cwd", "/work", cwd=tmp_path)
    assert "strace: 7 calls" in done.stderr and "note:" not in done.stderr


def test_import_asks_which_of_several_logs_to_read(tmp_path: Path) -> None:
    bare = "".join(line.partition(" ")[2] for line in LOG.splitlines(keepends=True))
    (tmp_path / "run.log").write_text(bare * 2)
    done = iodock("import", "run.log", cwd=tmp_path)
    assert done.returncode == 1 and "run.log:9: holds 2 logs: another one begins at line 9" in done.stderr
    assert "--lines 1-8, --lines 9-;" in done.stderr and list(tmp_path.glob("*.iodock")) == []
    for lines, calls in [("1-8", 7), ("9-", 7), ("1-", 14), ("9-10", 2)]:
        done = iodock("import", "run.log", "--lines", lines, cwd=tmp_path)
        assert done.returncode == 0 and f"strace: {calls} calls" in done.stderr, done.stderr
    done = piped(bare * 2, "import", "-", "--lines", "9-", "-o", "p.iodock", cwd=tmp_path)
    assert done.returncode == 0 and "strace: 7 calls" in done.stderr
    for lines in ["", "9", "9-8", "0-", "a-b", "-", "1-" + "9" * 5000, "9" * 24 + "-", "\u0663-"]:
        refused = iodock("import", "run.log", "--lines", lines, cwd=tmp_path)
        assert refused.returncode == 2 and "write 120-260" in refused.stderr, lines
    (tmp_path / "other.log").write_text(LOG)
    several = iodock("import", "run.log", "other.log", "--lines", "1-", cwd=tmp_path)
    assert several.returncode == 2 and "--lines is for one log" in several.stderr


def test_import_reads_from_a_pipe(tmp_path: Path) -> None:
    assert piped(LOG, "import", "-", "-q", cwd=tmp_path).stdout == "stdin.iodock\n"


def test_show_summary_prints_a_table(imported: Path) -> None:
    done = iodock("show", "summary", imported)
    assert done.returncode == 0
    assert "openat" in done.stdout and "ENOENT 1" in done.stdout and "total" in done.stdout


def test_a_table_fits_the_width_of_a_terminal(imported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iodock.shared.tables.table.terminal_width", lambda: 100)
    text = printed("show", "summary", imported)
    assert all(len(line) <= 100 for line in text.splitlines())


@pytest.mark.parametrize("width", [30, 40, 60, 80, 200])
def test_tables_fit_any_terminal(mixed_path: Path, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    from rich.cells import cell_len

    monkeypatch.setattr("iodock.shared.tables.table.terminal_width", lambda: width)
    for analysis in ("summary --by file,call", "files", "processes", "sizes", "accesses", "overview"):
        name, *options = analysis.split()
        text = printed("show", name, mixed_path, *options)
        assert max(cell_len(line) for line in text.splitlines() if not line.startswith("the first")) <= max(
            width, 40
        )


def test_show_summary_gives_the_documented_json(imported: Path) -> None:
    answer = json.loads(good("show", "summary", imported, "--format", "json", "--top", "1"))
    assert list(answer) == [
        "analysis",
        "clock",
        "columns",
        "rows",
        "source",
        "totals",
        "losses",
        "notes",
        "options",
    ]
    assert answer["analysis"] == "summary" and answer["clock"] == "epoch"
    assert {"name", "type", "unit", "doc"} == set(answer["columns"][0])
    first, other = answer["rows"]
    assert (first["call"], other["call"]) == ("read", "other")
    assert (first["count"], first["errnos"], first["total_time_ns"]) == (2, {}, 250_000)
    assert other["errnos"] == {"ENOENT": 1}
    assert (answer["totals"]["shown"], answer["totals"]["of"], answer["totals"]["total"]["count"]) == (
        1,
        4,
        6,
    )
    assert answer["source"]["calls"] == 7 and answer["source"]["durations"] is True


def test_csv_and_parquet_contain_the_same_values(mixed_path: Path, tmp_path: Path) -> None:
    rows = list(
        csv.DictReader(io.StringIO(good("show", "accesses", mixed_path, "--kind", "all", "--format", "csv")))
    )
    good("show", "accesses", mixed_path, "--kind", "all", "-o", tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    answer = json.loads(good("show", "accesses", mixed_path, "--kind", "all", "--format", "json"))
    assert table.to_pylist() == answer["rows"]
    assert len(rows) == table.num_rows > 600
    for mine, row in zip(rows, answer["rows"], strict=True):
        assert {name: value or None for name, value in mine.items()} == {
            name: None if value is None else str(value) for name, value in row.items()
        }


def test_hostile_names_survive_every_format(tmp_path: Path) -> None:
    names = ['/a"b\\c', "/new\nline", "/tab\t,comma", "/\u202ereversed", "/\x1b[31mred", "/\\xff", "/日本語"]
    files = [file_row(number, name) for number, name in enumerate(names)]
    events = [
        event_row("read", ts=n, dur=1, result=1, bytes=1, direction=1, file_id=n) for n in range(len(names))
    ]
    store = write_store(tmp_path / "s.iodock", events, files, [process_row(0, 1)])
    answer = json.loads(good("show", "summary", store, "--by", "file", "--format", "json"))
    assert {row["file"] for row in answer["rows"]} == set(names)
    stream = json.loads(good("show", "accesses", store, "--format", "json"))
    assert [row["file"] for row in stream["rows"]] == names
    text = good("show", "summary", store, "--by", "file", "--format", "csv")
    assert {row["file"] for row in csv.DictReader(io.StringIO(text, newline=""))} == set(names)
    table = good("show", "summary", store, "--by", "file")
    assert "\x1b" not in table and "\u202e" not in table


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["show", "summary", "none.iodock"], 1, ["none.iodock: no such store", "hint: "]),
        (["show", "summery", "x"], 2, ["no such analysis: summery", "hint: did you mean summary"]),
        (["show", "summary", "{store}", "--by", "cal"], 2, ["no such key: cal", "hint: did you mean call"]),
        (["show", "summary", "{store}", "--kind", "pipes"], 2, ["no such kind of file: pipes"]),
        (["show", "summary", "{store}", "--top", "0"], 2, ["top must be 1 or more"]),
        (["show", "summary", "{store}", "--pid", "x"], 2, ["pid must be a number"]),
        (["show", "summary", "{store}", "--failed", "--succeeded"], 2, ["exclude each other"]),
        (["show", "summary", "{store}", "--since", "noon"], 2, ["not a time: noon"]),
        (["show", "summary", "{store}", "--min-time", "1 week"], 2, ["not a length of time"]),
        (["show", "timeline", "{store}", "--every", "0"], 2, ["longer than 0"]),
        (["show", "timeline", "{store}", "--every", "1ns"], 2, []),
        (["show", "summary", "{store}", "--file", "[z-a]"], 2, ["not a pattern of names", "hint: "]),
        (["show", "summary", "{store}", "--file", "[!]"], 2, ["not a pattern of names"]),
        (["show", "summary", "{store}", "--since", "99:99:99"], 2, ["not a time of the day"]),
        (["show", "summary", "{store}", "--job", "7"], 2, ["does not say which job it belongs to"]),
        (["show", "summary"], 2, ["Missing argument", "hint: iodock show summary --help"]),
        (["shw"], 2, ["no such command", "hint: did you mean show"]),
        (["monitor", "heavy"], 2, ["Missing option '--store'", "hint: iodock monitor heavy --help"]),
        (["query", "{store}", " "], 2, ["the query is empty", "hint: "]),
        (["query", "{store}", "SELECT 1; SELECT 2"], 2, ["several statements", "one query at a time"]),
        (["import", "-", "-"], 2, ["- is given twice"]),
        (["query", "{store}", "SELEC 1"], 1, ["hint: tables: events"]),
        (["query", "{store}", "SELECT nothing FROM events"], 1, ["nothing"]),
        (["explain", "total_tim_ns"], 2, ["did you mean total_time_ns"]),
        (["import", "none.log"], 1, ["none.log"]),
        (
            ["import", "none.log", "--format", "word"],
            2,
            ["no such value of --format: word", "hint: choose one of auto, strace, truss"],
        ),
        (["show", "summary", "{store}", "-o", "/nowhere/at/all.csv"], 1, ["no such folder"]),
        (["show", "summary", "{store}", "--chart", "pie", "--format", "svg"], 2, ["pie"]),
    ],
)
def test_errors_name_the_cause_and_the_remedy(
    imported: Path, arguments: list[str], status: int, words: list[str]
) -> None:
    done = iodock(*(argument.format(store=imported) for argument in arguments))
    if words:
        assert done.returncode == status, done.stderr
        assert done.stdout == "" and done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr
        assert not done.stderr.splitlines()[0].endswith(".")
    for word in words:
        assert word in done.stderr


def test_a_folder_that_is_not_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "log.txt").write_text(LOG)
    assert "is not a store" in iodock("show", "summary", tmp_path / "empty").stderr
    assert "is a file, not a store" in iodock("show", "summary", tmp_path / "log.txt").stderr
    broken = tmp_path / "broken.iodock"
    broken.mkdir()
    (broken / "manifest.json").write_text("{")
    assert "can't be read" in iodock("show", "summary", broken).stderr
    (broken / "manifest.json").write_text('{"schema": 99, "writer": "iodock 9"}')
    assert "written by a newer iodock" in iodock("show", "summary", broken).stderr


def test_a_damaged_table_gives_an_error_with_a_hint(mixed_path: Path, tmp_path: Path) -> None:
    import shutil

    store = tmp_path / "s.iodock"
    shutil.copytree(mixed_path, store)
    (store / "events" / "part-00000.parquet").write_bytes(b"PAR1 no")
    done = iodock("show", "summary", store)
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "hint: " in done.stderr


def test_folder_names_may_contain_wildcards(mixed_path: Path, tmp_path: Path) -> None:
    import shutil

    store = tmp_path / "a*b[c]?'q.iodock"
    shutil.copytree(mixed_path, store)
    assert "total" in good("show", "summary", store)


def test_a_closed_output_pipe_is_not_an_error(mixed_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "iodock",
        "show",
        "accesses",
        str(mixed_path),
        "--kind",
        "all",
        "--format",
        "csv",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


def test_an_interrupted_query_is_not_reported_as_a_bug(tmp_path: Path) -> None:
    events = [event_row("read", ts=1, dur=1, file_id=0)]
    store = write_store(tmp_path / "run.iodock", events, [file_row(0, "/d")], [process_row(0, 1)])
    question = "SELECT count(*) FROM range(1000000) a, range(1000000) b WHERE a.range * b.range % 7 = 3"
    command = [sys.executable, "-m", "iodock", "query", str(store), question]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert said == b"error: interrupted\n"
        assert process.returncode == 130


def test_an_interrupted_import_leaves_no_files(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "iodock", "import", "-", "-o", "s.iodock"]
    with subprocess.Popen(command, stdin=reading, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        os.close(reading)
        os.write(writing, LOG.encode() * 1000)
        import time

        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        os.close(writing)
        assert process.stderr is not None
        assert process.stderr.read() == b"error: interrupted\n"
        assert process.wait(60) == 130
    assert not (tmp_path / "s.iodock").exists()


def test_a_query_prints_its_rows(imported: Path) -> None:
    sql = "SELECT call, count(*) AS n FROM calls_seen GROUP BY call ORDER BY n DESC, call LIMIT 2"
    answer = json.loads(good("query", imported, sql, "--format", "json"))
    assert answer["rows"] == [{"call": "openat", "n": 2}, {"call": "read", "n": 2}]
    assert "openat" in good("query", imported, sql)


def test_help_does_not_load_the_query_engine() -> None:
    code = (
        "import sys; from iodock.cli.run import run; run(['--help']);"
        "heavy = {'duckdb', 'pyarrow', 'altair', 'pandas', 'rich', 'numpy', 'vl_convert'} & set(sys.modules);"
        "print(sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n" and "record" in done.stdout


@pytest.mark.parametrize("verb", ["record", "import", "show", "report", "query", "explain", "doctor"])
def test_every_verb_has_help_with_examples(verb: str) -> None:
    text = good(verb, "--help")
    assert f"iodock {verb}" in text and "Examples:" in text


def test_doctor_reports_all_topics() -> None:
    done = iodock("doctor", "--format", "json")
    findings = {finding["topic"]: finding for finding in json.loads(done.stdout)}
    assert {"kernel", "ptrace", "perf events", "BPF", "file systems", "space"} <= set(findings)
    assert done.returncode == (1 if any(one["state"] == "blocked" for one in findings.values()) else 0)


@pytest.mark.parametrize("form", ["png", "svg", "pdf", "html"])
def test_show_writes_charts_in_every_format(mixed_path: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / f"chart.{form}"
    good("show", "summary", mixed_path, "-o", out, "--title", "A <title>")
    head = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!"}[form]
    assert out.read_bytes().lstrip()[:4].lower().startswith(head[:4].lower())


def test_query_columns_keep_their_names(imported: Path) -> None:
    shown = good("query", imported, "SELECT count(*) AS my_calls, 1 AS dur FROM events")
    assert shown.splitlines()[1].split() == ["my_calls", "dur"]


def test_columns_with_equal_names_are_distinguished(imported: Path) -> None:
    shown = good("query", imported, "SELECT 1 AS n, 2 AS n_2, 3 AS n, 4 AS n")
    assert shown.splitlines()[1].split() == ["n", "n_2", "n_3", "n_4"]


DAMAGE = {
    "source": '{"schema": 1, "source": [1]}',
    "losses": '{"schema": 1, "losses": 5}',
    "loss": '{"schema": 1, "losses": [{"count": 1}]}',
    "times": '{"schema": 1, "first_ts": "noon"}',
    "captured": '{"schema": 1, "captured": ["x"]}',
    "tables": '{"schema": 1, "tables": {"events": "many"}}',
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_manifest_gives_an_error_with_a_hint(mixed_path: Path, tmp_path: Path, what: str) -> None:
    store = Path(shutil.copytree(mixed_path, tmp_path / "s.iodock"))
    (store / "manifest.json").write_text(DAMAGE[what])
    done = iodock("show", "summary", store)
    assert done.returncode == 1 and done.stderr.startswith(f"error: {store}/manifest.json: is damaged")
    assert "hint: " in done.stderr and "bug" not in done.stderr


@pytest.mark.parametrize("table", ["events/part-00000", "files", "processes", "calls", "errnos"])
def test_a_missing_table_is_not_read_as_empty(imported: Path, tmp_path: Path, table: str) -> None:
    store = Path(shutil.copytree(imported, tmp_path / "s.iodock"))
    (store / f"{table}.parquet").unlink()
    done = iodock("show", "summary", store)
    assert done.returncode == 1 and "is missing" in done.stderr and done.stdout == ""


def test_a_data_page_that_cannot_be_decompressed_gives_an_error(imported: Path, tmp_path: Path) -> None:
    store = Path(shutil.copytree(imported, tmp_path / "s.iodock"))
    events = store / "events" / "part-00000.parquet"
    content = bytearray(events.read_bytes())
    content[60 : len(content) // 2] = b"\xff" * (len(content) // 2 - 60)
    events.write_bytes(content)
    done = iodock("show", "accesses", store, "--kind", "all")
    assert done.returncode == 1 and "can't be read" in done.stderr and "record again" in done.stderr


@pytest.mark.parametrize("form", ["table", "csv", "json", "parquet"])
def test_a_query_may_return_any_type(imported: Path, tmp_path: Path, form: str) -> None:
    sql = "SELECT DATE '2020-01-02' AS d, INTERVAL 1 DAY AS i, 1.5::DECIMAL(9, 2) AS n, 'x'::BLOB AS b"
    out = tmp_path / "out"
    good("query", imported, sql, "--format", form, "-o", out)
    assert form == "parquet" or "2020-01-02" in out.read_text()


@pytest.mark.usefixtures("few_rules")
def test_a_report_replaces_an_earlier_one_but_no_other_file(imported: Path, tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    page.write_text("<html>mine</html>")
    refused = iodock("report", imported, cwd=tmp_path)
    assert refused.returncode == 1 and refused.stdout == ""
    assert "run.html: exists and is not an iodock report" in refused.stderr
    assert "hint: choose another name" in refused.stderr
    assert iodock("report", imported, "--force", cwd=tmp_path).returncode == 1
    assert page.read_text() == "<html>mine</html>"
    page.unlink()
    assert good("report", imported, "--force", cwd=tmp_path) == "run.html\n"
    written = page.read_bytes()
    assert len(written) > 10_000
    page.write_bytes(written + b"<!-- older -->")
    assert good("report", imported, "-o", "run.html", cwd=tmp_path) == "run.html\n"
    assert b"<!-- older -->" not in page.read_bytes()[-100:]
    (tmp_path / "empty.html").touch()
    good("report", imported, "-o", "empty.html", cwd=tmp_path)
