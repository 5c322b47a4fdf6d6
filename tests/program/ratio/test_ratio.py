"""Tests the readers of `iodock ratio` on real outputs, and the worked examples of the method."""

from __future__ import annotations

import struct
from itertools import permutations
from pathlib import Path

import pytest

from iodock.program.ratio.files import Files
from iodock.program.ratio.grouping import added, chosen
from iodock.program.ratio.judge import judge
from iodock.program.ratio.reader import ReadOptions
from iodock.program.ratio.record import Record, system_share, utilisation
from iodock.program.ratio.registry import READERS, node_names
from iodock.shared.errors import IodockError, RequestError
from iodock.shared.settings import Ratio
from places import ROOT

FIXTURES = ROOT / "fixtures" / "ratio"
LIMITS = Ratio(io_below=0.1, compute_above=0.8)


def files(*names: str | Path, form: str | None = None, **options: object) -> Files:
    paths = [str(FIXTURES / name) for name in names]
    return Files(paths, form, ReadOptions(**options))  # type: ignore[arg-type]


def times(*names: str | Path, **options: object) -> list[tuple[float | None, float | None, float | None]]:
    """Returns (real, user, system) of every record."""
    return [(one.real, one.user, one.system) for one in files(*names, **options).records()]


def losses(read: Files) -> dict[str, int]:
    list(read.records())
    return read.losses.counts


def written(folder: Path, content: str | bytes, name: str = "times") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


# The worked examples of the SS-ken report (2015, 2.3.1), which cuts off digits instead of rounding.


def test_an_interactive_ior_run_gives_the_published_ratio() -> None:
    [record] = files("report-time.log").records()
    assert (record.real, record.user, record.system) == (26 * 60 + 27.30, 0.76, 180.39)
    assert utilisation(record) == pytest.approx(0.0004788, abs=5e-8)
    assert f"{utilisation(record):.9f}"[:8] == "0.000478"  # The report prints these digits.


def test_process_accounting_of_ior_gives_the_published_ratio() -> None:
    [record] = files("report-dump-acct.txt").records()
    assert (record.name, record.user, record.real, record.owner) == ("IOR", 0.320, 1204.94, "2057")
    assert record.system == 84.48
    assert f"{utilisation(record):.9f}"[:8] == "0.000265"


def test_a_batch_job_of_ior_gives_the_published_ratio() -> None:
    [record] = files("pjm-ior.txt").records()
    assert (record.real, record.user, record.cores) == (1100.0, 51.023, 1.0)
    # The report prints 0.0442, but its own numbers, 51.023 s over 09:49:17 - 09:30:57 = 1100 s, give 0.0464.
    assert utilisation(record) == pytest.approx(0.0464, abs=5e-5)
    assert utilisation(record) != pytest.approx(0.0442, abs=5e-4)
    # iodock shows system time separately. If it were included, the same job would seem busy.
    assert system_share(record) == pytest.approx(0.732, abs=5e-4)
    assert record.io_bytes == 549_757_061_905
    judged = judge(record, LIMITS)
    assert judged.verdict == "I/O-heavy" and "iodock volume" in judged.next and "73%" in judged.why


def test_a_batch_job_of_hpl_gives_the_published_ratio() -> None:
    [record] = files("pjm-hpl.txt").records()
    assert (record.real, record.cores) == (1000.0, 32.0)
    assert utilisation(record) == pytest.approx(0.92697, abs=5e-6)
    assert judge(record, LIMITS).verdict == "compute"


def test_assistant_cores_are_mentioned_and_can_be_configured() -> None:
    read = files("pjm-hpl.txt")
    list(read.records())
    assert any("2 assistant cores were subtracted" in note for note in read.notes)
    [record] = files("pjm-hpl.txt", assistant_cores=0).records()
    assert record.cores == 34.0


# The following tests read outputs of shells and of GNU time.


@pytest.mark.parametrize(
    ("name", "form", "expected"),
    [
        ("gnu-verbose.log", "gnu-time-verbose", [(1.18, 0.0, 0.09), (1.31, 0.81, 0.04)]),
        ("gnu-default.log", "gnu-time", [(0.13, 0.07, 0.02), (1.35, 1.33, 0.02)]),
        ("posix.log", "shell-time", [(0.14, 0.08, 0.04)]),
        ("bash.log", "shell-time", [(0.133, 0.075, 0.035), (1.355, 1.339, 0.016)]),
        ("bash-comma.log", "shell-time", [(1.838, 0.0, 0.104)]),
        ("csh.log", "csh-time", [(1.77, 0.0, 0.09), (1.31, 0.742, 0.034)]),
        ("zsh.log", "zsh-time", [(2.564, 0.0, 0.10), (1.869, 0.77, 0.03)]),
        ("report-format.log", "shell-time", [(0.12, 0.08, 0.02)]),
    ],
)
def test_times_are_recognised_among_other_output(
    name: str, form: str, expected: list[tuple[float, float, float]]
) -> None:
    read = files(name)
    found = [(one.real, one.user, one.system) for one in read.records()]
    assert found == [pytest.approx(one) for one in expected]
    assert list(read.readers) == [form]


def test_names_come_from_the_source_if_present() -> None:
    assert [one.name for one in files("gnu-verbose.log").records()] == ["writer", "solver 5"]
    assert [one.name for one in files("zsh.log").records()] == ["writer", "solver"]
    assert [one.name for one in files("bash.log").records()] == ["bash.log:3", "bash.log:8"]


def test_gnu_time_counts_blocks_of_512_bytes() -> None:
    first, _ = files("gnu-verbose.log").records()
    assert first.io_bytes is not None and first.io_bytes >= 900 << 20
    assert [one.io_bytes for one in files("gnu-default.log").records()] == [38_400 * 512, 8 * 512]


def test_a_custom_time_format_is_read() -> None:
    form = "%e;%U;%S;%I;%O;%x;%C"
    first, second = files("format.log", time_format=form).records()
    assert (first.name, first.real, first.user, first.system) == ("python3 syncer.py", 0.12, 0.07, 0.02)
    assert first.io_bytes == 38_400 * 512
    assert second.name == "python3 compute.py"


def test_a_time_format_of_several_lines_is_read() -> None:
    form = r" real %E \n user %U \n sys %S \n"  # The format string is the report's own.
    assert times("report-format.log", time_format=form) == [(0.12, 0.08, 0.02)]
    [record] = files("report-time.log", time_format=form).records()
    assert record.real == pytest.approx(1587.30)


@pytest.mark.parametrize(
    ("form", "text", "real"),
    [
        ("%E real,%U user,%S sys", "1:02:03 real,1.00 user,0.50 sys", 3723.0),
        ("%%cpu %P of %e s, %U + %S", "%cpu 97% of 12.50 s, 1.00 + 0.50", 12.5),
        (r"t=%e\tu=%U", "t=3.00\tu=1.00", 3.0),
        ("[%C] (%e) {%U}", "[./a.out -x 'b c'] (3.00) {1.00}", 3.0),
    ],
)
def test_common_time_formats_are_read(form: str, text: str, real: float, tmp_path: Path) -> None:
    path = written(tmp_path, f"before\n{text}\nafter 1 2 3\n")
    [record] = files(path, time_format=form).records()
    assert (record.real, record.user) == (real, 1.0)


@pytest.mark.parametrize("form", ["%e %S", "%U %S", "real %q %e %U", "plain", "%"])
def test_time_formats_without_the_needed_values_are_refused(form: str) -> None:
    with pytest.raises(RequestError, match="time-format"):
        list(files("format.log", time_format=form).records())


@pytest.mark.parametrize(
    "line",
    [
        "        1.00 real         0.25 user         0.50 sys",  # The line is as macOS and BSD print it.
        "0:01.00 real,0.25 user,0.50 sys",  # The line is the example in GNU time's manual.
        "0m1,00s real 0.25s user 0.50s system",
        "user=0.25, sys=0.50, elapsed=1.00",
        "real: 1.00 user: 0.25 sys: 0.50",
    ],
)
def test_times_in_one_line_are_read(line: str, tmp_path: Path) -> None:
    assert times(written(tmp_path, f"output\n{line}\n1.00 real 2 users\n")) == [(1.0, 0.25, 0.5)]


def test_lines_that_only_resemble_times_are_ignored(tmp_path: Path) -> None:
    text = "real 5\nsomething\nuser 1.0\nsys 1.0\n--\nreal 2.00\nuser 1.00\nreal 3.00\nuser 1.50\nsys 0.10\n"
    assert times(written(tmp_path, text)) == [(3.0, 1.5, 0.1)]


def test_the_order_of_time_labels_does_not_matter(tmp_path: Path) -> None:
    assert times(written(tmp_path, "user 1.00\r\nsys 0.50\r\nreal 4.00\r\n")) == [(4.0, 1.0, 0.5)]


# The following tests read process accounting of Linux.


def test_binary_accounting_equals_the_output_of_dump_acct() -> None:
    binary = list(files("node1/pacct").records())
    read = files("dump-acct.txt")
    text = list(read.records())
    assert [(one.name, one.owner) for one in binary] == [(one.name, one.owner) for one in text]
    for mine, theirs in zip(binary, text, strict=True):
        assert (mine.real, mine.user, mine.system) == pytest.approx(theirs[1:4], abs=0.005)
    assert read.losses.counts == {"zero-elapsed": 2, "damaged-line": 1}


def test_accounting_files_of_many_nodes_are_read() -> None:
    read = files("node1/pacct", "node2/pacct")
    records = list(read.records())
    assert {one.node for one in records} == {"node1", "node2"}
    by_command = {one.name: one for one in added(records, "command")}
    solver = by_command["solver"]
    assert (solver.runs, solver.user) == (4, pytest.approx(0.86 + 0.95 + 0.84 + 0.86))
    assert utilisation(solver) == pytest.approx(3.51 / (4.16 + 3.05 + 4.34 + 2.45), abs=1e-3)
    by_node = {one.name: one for one in added(records, "node")}
    assert set(by_node) == {"node1", "node2"} and by_node["node1"].runs == 7
    by_user = {one.name: one for one in added(records, "user")}
    assert by_user["65534"].runs == 2
    assert [one.name for one in chosen(records, "wr*", None)] == ["writer", "writer"]
    assert all(one.owner == "65534" for one in chosen(records, None, "65534"))
    assert read.usual_grouping() == "command"


def v3(
    command: bytes = b"app", real: float = 1000.0, user: int = 20, order: str = "<", version: int = 3
) -> bytes:
    """Packs one record in the layout of `struct acct_v3` in linux/acct.h."""
    head = struct.pack(f"{order}BBHIIIIIIf", 0, version, 0, 0, 7, 7, 1, 1, 1_700_000_000, real)
    return head + struct.pack(f"{order}8H16s", user, 5, 0, 0, 0, 0, 0, 0, command)


def v2(command: bytes = b"app", real: int = 1000, user: int = 20) -> bytes:
    """Packs one record in the layout of `struct acct` in linux/acct.h."""
    head = struct.pack("<BBHHHI9HH", 0, 2, 7, 7, 0, 1_700_000_000, user, 5, real, *[0] * 6, 100)
    return head + struct.pack("<I17sBHII", 0, command, 0, 0, 7, 7)


@pytest.mark.parametrize("order", ["<", ">"])
def test_accounting_files_of_both_byte_orders_are_read(order: str, tmp_path: Path) -> None:
    data = v3(order=order, version=3 if order == "<" else 0x83) * 3
    assert times(written(tmp_path, data)) == [(10.0, 0.2, 0.05)] * 3


def test_accounting_files_of_version_2_are_read(tmp_path: Path) -> None:
    [record, _] = files(written(tmp_path, v2() * 2)).records()
    assert record[:4] == ("app", 10.0, 0.2, 0.05) and record.owner == "7"


def test_compressed_accounting_times_are_decoded(tmp_path: Path) -> None:
    # comp_t has an exponent to the base 8 and a fraction: exponent 2 and fraction 5000 are 5000 * 64 ticks.
    [record] = files(written(tmp_path, v3(user=2 << 13 | 5000))).records()
    assert record.user == 3200.0


@pytest.mark.parametrize("version", [0, 1])
def test_old_accounting_versions_are_refused_by_name(version: int, tmp_path: Path) -> None:
    old = bytearray(v2())
    old[1] = version
    with pytest.raises(IodockError, match=f"version {version}") as caught:
        list(files(written(tmp_path, bytes(old) * 4)).records())
    assert "dump-acct" in (caught.value.hint or "")


def test_truncated_and_overwritten_accounting_files_are_read(tmp_path: Path) -> None:
    data = (FIXTURES / "node1" / "pacct").read_bytes()
    read = files(written(tmp_path, data[:-10]))
    assert len(list(read.records())) == 6
    assert read.losses.counts["cut-record"] == 1
    damaged = files(written(tmp_path, data[:128] + b"\xff" * 70 + data[128:]))
    assert len(list(damaged.records())) == 7
    assert damaged.losses.counts["damaged-record"] == 1


# The following tests read output of Slurm's sacct.


def jobs(name: str | Path = "sacct.txt") -> dict[str, Record]:
    return {one.name.split()[0]: one for one in files(name).records()}


def test_job_steps_are_not_counted_twice() -> None:
    job = jobs()["4001"]
    assert (job.real, job.cores, job.owner) == (3600.0, 64.0, "ito")
    assert job.user == 2 * 86_400 + 10 * 3600 + 40 * 60
    assert job.system == 1200.5
    assert utilisation(job) == pytest.approx(211_200 / 64 / 3600)


def test_steps_replace_a_job_without_cpu_time() -> None:
    job = jobs()["4003"]
    assert (job.real, job.user, job.system) == (1800.0, 35.25, 300.0)
    assert job.io_bytes == 2 * (500 << 20) + 2 * (1 << 30)


def test_steps_without_their_job_are_counted(tmp_path: Path) -> None:
    lines = (FIXTURES / "sacct.txt").read_text().splitlines()
    text = "\n".join([lines[0], *(line for line in lines if line.startswith("4003."))])
    assert jobs(written(tmp_path, text))["4003.batch"].user == 35.25


def test_jobs_without_times_are_counted() -> None:
    read = files("sacct.txt")
    found = {one.name.split()[0]: judge(one, LIMITS).verdict for one in read.records()}
    assert found == {
        "4001": "compute",
        "4002_7": "I/O-heavy",
        "4003": "I/O-heavy",
        "4006": "unknown",
        "4007": "unknown",
        "4008": "unknown",
    }
    assert read.losses.counts == {
        "not-ended": 2,
        "zero-elapsed": 1,
        "clock-ran-back": 1,
        "no-cpu-time": 1,
        "damaged-line": 1,
    }


def test_a_job_name_may_contain_the_delimiter() -> None:
    assert jobs()["4002_7"].name == "4002_7 untar a|b"


def test_total_cpu_is_marked_as_user_and_system_time(tmp_path: Path) -> None:
    read = files(written(tmp_path, "JobID|Elapsed|TotalCPU|NCPUS|\n7|00:01:40|00:00:50|1|\n"))
    [record] = read.records()
    assert (record.user, record.both) == (None, 50.0)
    assert any("contains system time" in note for note in read.notes)


def test_user_time_is_total_minus_system_time(tmp_path: Path) -> None:
    text = "JobID|ElapsedRaw|TotalCPU|SystemCPU|AllocCPUS\n7|100|00:50.500|00:20|1\n"
    assert times(written(tmp_path, text)) == [(100.0, 30.5, 20.0)]


def test_repeated_headers_and_dates_without_times_are_read(tmp_path: Path) -> None:
    head = "JobID|Start|End|UserCPU\n"
    row = "{}|2026-01-01T00:00:00|2026-01-02T00:00:01|00:10\n"
    read = files(written(tmp_path, head + row.format(1) + head + row.format(2)))
    assert [one.real for one in read.records()] == [86_401.0, 86_401.0]
    assert not read.losses.counts and any("AllocCPUS" in note for note in read.notes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("123|app|00:01:00|00:00:10\n124|app|00:01:00|00:00:10\n", "no header"),
        ("JobID           JobName  Elapsed\n------- -------- -------\n12 app 00:10:00\n", "fixed-width"),
        ("JobID|JobName|UserCPU\n1|a|00:10\n", "no column ElapsedRaw or Elapsed or Start"),
        ("JobID|JobName|Elapsed\n1|a|00:10\n", "no column UserCPU or TotalCPU"),
    ],
)
def test_other_output_formats_of_sacct_are_read(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(IodockError, match=message) as caught:
        list(files(written(tmp_path, text)).records())
    assert "sacct -P" in (caught.value.hint or "")


@pytest.mark.parametrize("lead", ["\t", "        ", ""])
def test_pasted_verbose_times_are_read(lead: str, tmp_path: Path) -> None:
    lines = ('Command being timed: "./a.out"', "User time (seconds): 0,76", "System time (seconds): 180,10",
             "Percent of CPU this job got: 11%",
             "Elapsed (wall clock) time (h:mm:ss or m:ss): 26:27,30", "Exit status: 0")  # fmt: skip
    text = "Warning: the program's own line\n" + "".join(f"{lead}{line}\n" for line in lines)
    read = files(written(tmp_path, text))
    assert [one[:4] for one in read.records()] == [("./a.out", 1587.3, 0.76, 180.1)]
    assert not read.losses.counts


@pytest.mark.parametrize(
    "line",
    [
        "./a.out  0,50s user 0,25s system 15% cpu 5,000 total",
        "0,50u 0,25s 0:05,00 15,0% 0+0k 0+0io 0pf+0w",
        "0,50user 0,25system 0:05,00elapsed 15%CPU (0avgtext+0avgdata 0maxresident)k",
    ],
)
def test_times_with_decimal_commas_are_read(line: str, tmp_path: Path) -> None:
    assert times(written(tmp_path, line + "\n")) == [(5.0, 0.5, 0.25)]


SACCT = "JobID|User|ElapsedRaw|UserCPU|SystemCPU|AllocCPUS|State"


def sacct_times(path: Path) -> list[tuple[str, float | None, float | None]]:
    return sorted((one.name, one.real, one.user) for one in files(path).records())


def test_rows_of_a_job_need_not_be_adjacent(tmp_path: Path) -> None:
    rows = (
        "1|bob|1000|00:00:00|00:00:00|1|COMPLETED",
        "2|bob|1000|00:10:00|00:00:00|1|COMPLETED",
        "1.batch||1000|00:15:00|00:00:00|1|COMPLETED",
        "2.batch||1000|00:10:00|00:00:00|1|COMPLETED",
        "3|bob|500|00:01:00|00:00:00|1|COMPLETED",
    )
    expected = [("1", 1000.0, 900.0), ("2", 1000.0, 600.0), ("3", 500.0, 60.0)]
    for order in permutations(rows):
        assert sacct_times(written(tmp_path, "\n".join((SACCT, *order, "")))) == expected


def test_a_requeued_job_has_several_runs(tmp_path: Path) -> None:
    text = (
        f"{SACCT}\n5|bob|1000|00:00:00|00:00:00|1|NODE_FAIL\n5.batch||1000|00:01:00|00:00:00|1|NODE_FAIL\n"
        "5|bob|2000|00:00:00|00:00:00|1|COMPLETED\n5.batch||2000|00:30:00|00:00:00|1|COMPLETED\n"
    )
    assert sacct_times(written(tmp_path, text)) == [("5", 1000.0, 60.0), ("5", 2000.0, 1800.0)]


def test_steps_belong_to_the_run_in_which_they_started(tmp_path: Path) -> None:
    rows = (
        "5|1000|00:00:00|2025-04-01T10:00:00",
        "5|2000|00:00:00|2025-04-02T10:00:00",
        "5.batch|2000|00:30:00|2025-04-02T10:00:01",
        "5.batch|1000|00:01:00|2025-04-01T10:00:01",
    )
    path = written(tmp_path, "\n".join(("JobID|ElapsedRaw|UserCPU|Start", *rows, "")))
    assert sacct_times(path) == [("5", 1000.0, 60.0), ("5", 2000.0, 1800.0)]


def test_files_that_overlap_count_a_job_once(tmp_path: Path) -> None:
    first = "JobID|ElapsedRaw|UserCPU|Start|State\n7|50|00:00:05|2025-04-01T10:00:00|RUNNING\n"
    whole = "JobID|ElapsedRaw|UserCPU|Start|State\n8|80|00:00:40|2025-04-01T11:00:00|COMPLETED\n"
    ended = "7|100|00:00:50|2025-04-01T10:00:00|COMPLETED\n"
    read = files(written(tmp_path, first + whole + whole + ended + ended))
    assert sorted((one.name, one.real) for one in read.records()) == [("7", 100.0), ("8", 80.0)]
    assert read.losses.counts == {"double-row": 2}


def test_a_byte_that_is_not_utf8_loses_one_line(tmp_path: Path) -> None:
    text = f"{SACCT}\n1|bob|100|00:00:50|00:00:10|1|COMPLETED\n2|b\0b|100|00:00:50|00:00:10|1|COMPLETED\n"
    read = files(written(tmp_path, text))
    assert [one.name for one in read.records()] == ["1"]
    assert read.losses.counts == {"damaged-line": 1}


# The following tests read job statistics of PJM.


def test_a_job_is_the_sum_of_its_nodes(tmp_path: Path) -> None:
    text = (FIXTURES / "pjm-ior.txt").read_text()
    node = (
        text[text.index("Node Information") :].replace("0xFF10000B", "0xFF10000C").replace("51023", "48977")
    )
    path = written(tmp_path, text + node + (FIXTURES / "pjm-hpl.txt").read_text())
    first, second = files(path).records()
    assert (first.user, first.cores, first.real, first.node) == (100.0, 2.0, 1100.0, "2 nodes")
    assert second.name == "30008 SS_HPL"
    apart = list(files(path, nodes_apart=True).records())
    assert [one.node for one in apart] == ["0xFF10000B", "0xFF10000C", "0xFF040001"]


def test_pjm_jobs_that_run_or_end_before_their_start_are_left_out(tmp_path: Path) -> None:
    text = (FIXTURES / "pjm-ior.txt").read_text()
    running = text.replace("2015/01/21 09:49:17", "-")
    assert losses(files(written(tmp_path, running + text))) == {"not-ended": 1}
    back = text.replace("09:49:17", "09:00:00")
    assert losses(files(written(tmp_path, back))) == {"clock-ran-back": 1}


# The following tests check errors and options that all readers share.


def test_empty_and_random_files_are_refused(tmp_path: Path) -> None:
    for content in (b"", b"hello\n", bytes(range(256)) * 40, b"\0" * 4096, b"\x1f\x8bnot gzip"):
        path = written(tmp_path, content)
        with pytest.raises(IodockError, match=str(path)):
            list(files(path).records())
    with pytest.raises(IodockError, match="No such file"):
        list(files(tmp_path / "nowhere").records())
    with pytest.raises(IodockError, match="not a store of iodock"):
        list(files(tmp_path).records())


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name)
def test_every_reader_handles_random_input(reader: object, tmp_path: Path) -> None:
    name = reader.name  # type: ignore[attr-defined]
    options = {"time_format": "%e %U"} if name == "time-format" else {}
    for content in (b"", b"|||||\n" * 5, bytes(range(256)) * 9, b"real user sys\n: : :\n", b"JOB ID : \n"):
        with pytest.raises(IodockError):
            list(files(written(tmp_path, content), form=name, **options).records())


def test_a_file_with_two_kinds_of_records_needs_a_choice(tmp_path: Path) -> None:
    path = written(tmp_path, (FIXTURES / "bash.log").read_text() + (FIXTURES / "csh.log").read_text())
    with pytest.raises(IodockError, match="several kinds: shell-time, csh-time") as caught:
        list(files(path).records())
    assert "--from shell-time" in (caught.value.hint or "")
    assert len(list(files(path, form="csh-time").records())) == 2


def test_other_times_in_a_file_are_mentioned(tmp_path: Path) -> None:
    path = written(tmp_path, (FIXTURES / "bash.log").read_text() + (FIXTURES / "gnu-verbose.log").read_text())
    read = files(path)
    assert len(list(read.records())) == 2
    assert any("--from shell-time" in note for note in read.notes)


def test_times_at_the_end_of_a_long_log_are_found(tmp_path: Path) -> None:
    path = written(
        tmp_path, "iteration done, residual 0.001\n" * 150_000 + "\nreal\t1m1.5s\nuser\t0m3s\nsys\t0m1s\n"
    )
    assert times(path) == [(61.5, 3.0, 1.0)]


@pytest.mark.parametrize("packer", ["gzip", "lzma", "bz2"])
def test_compressed_files_are_read(packer: str, tmp_path: Path) -> None:
    from importlib import import_module

    data = import_module(packer).compress((FIXTURES / "sacct.txt").read_bytes())
    path = written(tmp_path, data)
    assert len(list(files(path).records())) == 6
    with pytest.raises(IodockError, match=str(path)):
        list(files(written(tmp_path, data[: len(data) // 2]), form="sacct").records())


def test_node_names_come_from_the_differing_part_of_paths() -> None:
    assert node_names(["a/n1/pacct", "a/n2/pacct"]) == ["n1", "n2"]
    assert node_names(["n1.acct", "n2.acct"]) == ["n1.acct", "n2.acct"]
    assert node_names(["x/y"]) == ["y"]
    assert node_names(["pacct", "old/pacct"]) == ["pacct", "old"]


@pytest.mark.parametrize(
    ("record", "cores", "verdict"),
    [
        (Record("a", 10.0, 0.5, 0.0), None, "I/O-heavy"),
        (Record("a", 10.0, 1.0, 9.0), None, "between"),
        (Record("a", 10.0, 8.0, 0.0), None, "compute"),
        (Record("a", 10.0, 16.0, 0.0), None, "unknown"),
        (Record("a", 10.0, 16.0, 0.0), 2, "compute"),
        (Record("a", 10.0, 16.0, 0.0, 32.0), 2, "I/O-heavy"),
        (Record("a", 0.0, 0.0, 0.0), None, "unknown"),
        (Record("a", -5.0, 1.0, 0.0), None, "unknown"),
        (Record("a", None, 1.0, 0.0), None, "unknown"),
        (Record("a", 10.0, None, 0.0, both=0.5), None, "I/O-heavy"),
    ],
)
def test_each_verdict_follows_from_the_ratio(record: Record, cores: float | None, verdict: str) -> None:
    assert judge(record, LIMITS, cores).verdict == verdict


def test_groups_weigh_cores_by_time() -> None:
    one, two = Record("a", 10.0, 40.0, 1.0, 4.0), Record("a", 30.0, 30.0, None, 1.0)
    unknown = Record("a", 0.0, None, None)
    sum_, left = added([one, two, unknown], "command")
    assert utilisation(sum_) == pytest.approx(70 / (10 * 4 + 30 * 1))
    assert (sum_.runs, sum_.system, left) == (2, None, unknown)


# The following tests read records with unknown volumes or numbers of cores.

FIGURE_2_20 = (FIXTURES / "pjm-two-nodes.txt").read_text()


def test_pjm_volumes_exclude_truncated_nodes(tmp_path: Path) -> None:
    whole = files(written(tmp_path, FIGURE_2_20))
    [record] = whole.records()
    assert (record.io_bytes, record.user, record.cores) == (1099513035484, 100.0, 2.0)
    assert whole.losses.counts == {}
    second = FIGURE_2_20.index("Node Information", FIGURE_2_20.index("0xFF10000B"))
    for end, user in (
        (FIGURE_2_20.rindex(" FILE I/O SIZE"), 100.0),
        (FIGURE_2_20.rindex(" USER CPU TIME"), 51.023),
        (FIGURE_2_20.rindex("MB (549755973579"), 100.0),
        (second, 51.023),
    ):
        cut = files(written(tmp_path, FIGURE_2_20[:end] + "\n"))
        [record] = cut.records()
        assert (record.io_bytes, record.user) == (1099513035484, user)
        assert cut.losses.counts == ({"cut-node": 1} if user < 100 else {})


def test_pjm_volumes_with_fractions_are_read(tmp_path: Path) -> None:
    for said, size in (
        ("1099513.1 MB", 1_099_513_100_000),
        ("0.0 kB", 0),
        ("66.3 MiB", 69_520_589),
        ("-", None),
        ("nan MB (x)", None),
    ):
        job = FIGURE_2_20[: FIGURE_2_20.index("Node Information")].replace(
            "1099513.1 MB (1099513035484)", said
        )
        [record] = files(written(tmp_path, job), form="pjm").records()
        assert record.io_bytes == size, said


def test_values_unknown_to_slurm_are_unknown(tmp_path: Path) -> None:
    """Slurm writes 4294967294 (NO_VAL) and 4294967295 (INFINITE) for unknown values, and a date for a job
    without a start."""
    rows = (
        "1|4294967295|00:02:00|00:50|4",
        "2|4294967294||00:50|4",
        "3|1751892628||00:50|4",
        "4|100||00:50|4294967295",
        "5|100||00:50|4294967294",
        "6|100||00:50|4",
    )
    path = written(tmp_path, "\n".join(("JobID|ElapsedRaw|Elapsed|UserCPU|AllocCPUS", *rows, "")))
    read = files(path)
    records = list(read.records())
    assert [one.real for one in records] == [120, None, None, 100, 100, 100]
    assert [one.cores for one in records] == [4, 4, 4, 0, 0, 4]
    assert read.losses.counts == {"no-times": 2, "no-cores": 2}
    assert [judge(one, Ratio()).verdict for one in records[1:5]] == ["unknown"] * 4


def test_a_job_with_0_cores_has_no_ratio(tmp_path: Path) -> None:
    rows = (
        "JobID|ElapsedRaw|UserCPU|SystemCPU|AllocCPUS|NCPUS\n1|100|00:50|00:01|0|0\n2|100|00:50|00:01|0|4\n"
    )
    read = files(written(tmp_path, rows))
    first, second = read.records()
    assert (first.cores, second.cores) == (0, 4)
    assert read.losses.counts == {"no-cores": 1}
    assert (utilisation(first), utilisation(first, 2.0), utilisation(second)) == (None, 0.25, 0.125)
    judged = judge(first, Ratio())
    assert (judged.verdict, judged.cores) == ("unknown", None)
    assert judged.why.startswith("the source has 0 cores")
    [record] = files(
        written(tmp_path, FIGURE_2_20.replace("(USE)                     : 3", "(USE) : 0"))
    ).records()
    assert (record.cores, utilisation(record)) == (0, None)


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("zsh.log", "0.00s user 0.10s", "infs user 0.10s"),
        ("zsh.log", "2.564 total", "2.5x4 total"),
        ("csh.log", "0.034s 0:01.31", "0. 34s 0:01.31"),
        ("gnu-default.log", "0:00.13elapsed", "0:00.13mlapsed"),
        ("gnu-default.log", "0.07user", "0.xuser"),
        ("bash.log", "user\t0m0.075s", "usar\t0m0.075s"),
        ("bash.log", "sys\t", "sxs\t"),
        ("bash.log", "real\t", "r.al\t"),
        (
            "bash.log",
            "real\t0m1.355s\nuser\t0m1.339s\nsys\t0m0.016s",
            "real\t1e9m1_000s\nuser\t9m\u0663s\nsys\t0x1f",
        ),
        ("bash.log", "real\t0m1.355s\nuser\t0m1.339s", "real\t1e9m1_000s\nuser\t-1"),
    ],
)
def test_a_damaged_line_of_times_is_counted(name: str, right: str, wrong: str, tmp_path: Path) -> None:
    text = (FIXTURES / name).read_text()
    assert right in text and losses(files(name)) == {}
    form = {"bash.log": "shell-time", "gnu-default.log": "gnu-time"}.get(name, f"{name[:3]}-time")
    read = files(written(tmp_path, text.replace(right, wrong, 1)), form=form)
    assert losses(read) == {"damaged-line": 1}
