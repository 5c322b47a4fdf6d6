"""Compares recorded calls of stdio with the counts, bytes and effects that the program itself reports."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from layers import asked, counted
from recorded import IODOCK, PROGRAMS, live, needs_gcc, record, run

pytestmark = [live, needs_gcc]


def _built(folder: Path, *options: str) -> Path:
    """Compiles the program. Without -fno-builtin, gcc would replace calls, such as fputs by fwrite."""
    program = folder / "layers_stdio"
    command = ["gcc", "-w", "-fno-builtin", "-pthread", *options, "-o", program, PROGRAMS / "layers_stdio.c"]
    subprocess.run(command, check=True)
    return program


def _recorded(folder: Path, *command: object, interfaces: str = "stdio", ends: int = 0) -> Path:
    done = record(folder, "--force", "--interfaces", interfaces, "--", *command)
    assert done.returncode == ends, done.stderr
    return folder


def _told(folder: Path, also: str = "true") -> dict[str, tuple[int, int]]:
    found = asked(
        folder,
        f"""SELECT call, CAST(sum(calls) AS BIGINT) AS calls,
          CAST(coalesce(sum(requested_bytes), 0) AS BIGINT) AS bytes
        FROM interface_calls WHERE interface = 'stdio' AND {also} GROUP BY call""",
    )
    return {row["call"]: (row["calls"], row["bytes"]) for row in found}


@pytest.fixture(scope="module", params=["plain", "fortified"])
def of_stdio(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stdio")
    is_fortified = request.param == "fortified"
    options = ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2", "-fbuiltin"] if is_fortified else []
    return _recorded(folder, _built(folder, *options), folder / "s")


def test_recorded_stdio_calls_are_those_of_the_program(tmp_path: Path) -> None:
    _recorded(tmp_path, _built(tmp_path), tmp_path / "s")
    assert _told(tmp_path) == counted(tmp_path)
    failed = asked(tmp_path, "SELECT call, result FROM interface_calls WHERE result <> 0")
    assert failed == [{"call": "fopen", "result": -1}]


def _wrongly_attributed(folder: Path) -> list[dict[str, Any]]:
    """Returns system calls of the first thread that the store assigns to another stdio call than the program
    reports. The program marks each stdio call by a failing lseek before it."""
    lines = [line.split()[0] for line in (folder / "s.counted.0").read_text().splitlines()]
    made = asked(
        folder,
        """WITH own AS (SELECT min(utid) AS utid FROM events e JOIN calls c ON c.id = e.call_id
          WHERE c.name = 'lseek' AND e.fd = -1),
        seen AS (SELECT e.*, c.name, f.name AS file, count(*) FILTER (c.name = 'lseek' AND e.fd = -1)
            OVER (ORDER BY e.ts, e.dur DESC) AS number
          FROM events e JOIN own USING (utid) JOIN calls c ON c.id = e.call_id
          LEFT JOIN files f ON f.file_id = e.file_id WHERE e.side NOT IN (2, 4))
        SELECT number, s.name, s.file, k.call FROM seen s
        LEFT JOIN interface_calls k ON k.id = s.interface_call_id
        WHERE number > 0 AND NOT (s.name = 'lseek' AND s.fd = -1) AND s.file NOT LIKE '%/s.counted.0'
          AND NOT (s.name = 'openat' AND s.file LIKE '%/s.given')
          AND s.name IN ('read', 'write', 'close', 'openat', 'lseek', 'newfstatat', 'fcntl') ORDER BY s.ts""",
    )
    assert len(made) > 50
    # Headers and gcc replace these calls by others.
    called = {"getline": ("getline", "getdelim"), "fputs": ("fputs", "fwrite")}
    last = len(lines)
    return [
        row
        for row in made
        if row["call"] not in called.get(lines[row["number"] - 1], (lines[row["number"] - 1],))
        # At exit, libc writes the rest of the buffers without a stdio call.
        and not (row["number"] == last and row["call"] is None and row["file"].endswith("/s.left"))
    ]


def test_each_system_call_belongs_to_the_call_of_stdio_that_made_it(of_stdio: Path) -> None:
    assert [row for row in _wrongly_attributed(of_stdio) if row["file"] and "/s." in row["file"]] == []


def test_calls_that_only_touch_the_buffer_are_rows_together(of_stdio: Path) -> None:
    (rows,) = asked(
        of_stdio,
        """SELECT count(*) AS rows, CAST(sum(calls) AS BIGINT) AS calls,
          count(*) FILTER (calls > 1 AND dur IS NULL) AS sums
        FROM interface_calls WHERE call = 'fputc'""",
    )
    (ids,) = asked(
        of_stdio,
        "SELECT count(DISTINCT id) AS ids, max(id) + 1 AS next, count(*) AS rows FROM interface_calls",
    )
    assert ids["ids"] == ids["next"] == ids["rows"]
    assert rows["calls"] > 12_000 and rows["rows"] < 20 and rows["sums"] >= 2


def test_show_interfaces_compares_what_was_asked_with_what_was_moved(of_stdio: Path) -> None:
    show = [*IODOCK, "show", "interfaces", "run.iodock", "--file", "**/s.unbuffered", "--format", "json"]
    shown = run(show, of_stdio)
    assert "fwrite -> write: requested: fwrite 1,000 B; transferred: 1,000 B" in shown.stdout
    show = [*IODOCK, "show", "summary", "run.iodock", "--by", "interface", "--format", "csv"]
    by = run(show, of_stdio).stdout
    assert '\n"stdio",' in by and '\n"POSIX",' in by


def test_the_line_of_a_call_is_not_in_the_library_that_takes_it(of_stdio: Path) -> None:
    modules = asked(
        of_stdio,
        """SELECT DISTINCT s.module FROM events e JOIN sites s ON s.site_id = e.site_id
        JOIN interface_calls k ON k.id = e.interface_call_id WHERE NOT s.is_installed""",
    )
    assert [Path(row["module"]).name for row in modules] == ["layers_stdio"]


def test_without_the_option_nothing_is_loaded(tmp_path: Path) -> None:
    _recorded(tmp_path, _built(tmp_path), tmp_path / "s", interfaces="always")
    found = asked(tmp_path, "SELECT count(*) AS n FROM interface_calls WHERE interface = 'stdio'")
    assert found == [{"n": 0}]


def test_threads_count_exactly(tmp_path: Path) -> None:
    _recorded(tmp_path, _built(tmp_path), tmp_path / "s", "threads")
    assert _told(tmp_path) == counted(tmp_path)


def test_a_child_has_no_counts_of_its_parent(tmp_path: Path) -> None:
    program = _built(tmp_path)
    _recorded(tmp_path, program, tmp_path / "s", "fork")
    assert _told(tmp_path) == counted(tmp_path)
    # Parent and child both wrote the data that the buffer contained at the fork.
    assert (tmp_path / "s.out").stat().st_size == 2200
    files = asked(
        tmp_path,
        """SELECT count(DISTINCT p.upid) AS processes, count(DISTINCT k.file_id) AS files
        FROM interface_calls k
        JOIN processes p ON p.utid = k.utid WHERE k.call = 'fputc' AND k.file_id IS NOT NULL""",
    )
    assert files == [{"processes": 2, "files": 1}]


def test_calls_that_are_left_by_a_jump_do_not_hide_later_ones(tmp_path: Path) -> None:
    _recorded(tmp_path, _built(tmp_path), tmp_path / "s", "jump")
    told = _told(tmp_path)
    assert told == counted(tmp_path)
    left = asked(tmp_path, "SELECT call FROM interface_calls WHERE end_ts IS NULL ORDER BY ts")
    assert [row["call"] for row in left] == ["fflush", "fgetc"]
    after = asked(
        tmp_path,
        """SELECT DISTINCT k.call FROM events e JOIN interface_calls k ON k.id = e.interface_call_id
        JOIN files f ON f.file_id = e.file_id WHERE f.name LIKE '%/s.out' AND e.direction = 2""",
    )
    assert after == [{"call": "fclose"}]


def test_a_killed_program_has_what_was_counted_up_to_its_last_system_call(tmp_path: Path) -> None:
    _recorded(tmp_path, _built(tmp_path), tmp_path / "s", "killed", ends=-9)
    assert (tmp_path / "s.out").stat().st_size == 4096
    assert _told(tmp_path)["fputc"] == (4097, 4097)


def test_output_and_errors_of_a_program_are_unchanged(tmp_path: Path) -> None:
    program = tmp_path / "errors"
    (tmp_path / "errors.c").write_text(
        """#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
	char text[10];
	FILE *from = fopen("/dev/null", "r"), *full = fopen("/dev/full", "w"), *none;
	errno = 77;
	for (int i = 0; i < 3; i++)
		fgetc(from);
	printf("%d %d\\n", errno, feof(from));
	errno = 77;
	none = fopen("/nothing/here", "r");
	printf("%d %d\\n", errno, none == NULL);
	fputs("no room", full);
	errno = 77;
	int ends = fflush(full);
	printf("%d %d %d\\n", errno, ends, ferror(full));
	errno = 77;
	fputc('a', from);
	printf("%d %d\\n", errno, fread(text, 0, 0, NULL) == 0);
	printf("%s %5.2f %ld %Lf %c %d %d %d %d\\n", "text", 1.5, 1l << 40, 2.5L, 'x', 1, 2, 3, 4);
	fprintf(stderr, "%f %f %f %f %f %f %f %f %f %s\\n", 1., 2., 3., 4., 5., 6., 7., 8., 9., "end");
	return fclose(from);
}
"""
    )
    subprocess.run(["gcc", "-w", "-o", program, tmp_path / "errors.c"], check=True)
    plain = run([program], tmp_path)
    done = record(tmp_path, "--force", "--interfaces", "stdio", "--", program)
    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    failed = asked(tmp_path, "SELECT call FROM interface_calls WHERE result <> 0 ORDER BY ts")
    assert [row["call"] for row in failed] == ["fopen", "fflush", "fputc"]


def test_sort_asks_for_the_bytes_that_it_reads_and_writes(tmp_path: Path) -> None:
    if not shutil.which("sort"):
        pytest.skip("sort is not installed")
    (tmp_path / "in").write_text("".join(f"{number * 7919 % 100_003}\n" for number in range(100_003)))
    size = (tmp_path / "in").stat().st_size
    done = record(tmp_path, "--force", "--interfaces", "stdio", "--", "sort", "-n", "-o", "out", "in")
    assert done.returncode == 0, done.stderr
    moved = asked(
        tmp_path,
        """SELECT f.name LIKE '%/in' AS is_input, CAST(sum(e.bytes) AS BIGINT) AS bytes,
          bool_and(k.interface IS NOT NULL AND k.file_id = e.file_id) AS all_inside
        FROM events e JOIN files f ON f.file_id = e.file_id
        LEFT JOIN interface_calls k ON k.id = e.interface_call_id
        WHERE (f.name LIKE '%/in' OR f.name LIKE '%/out') AND e.bytes > 0 GROUP BY 1 ORDER BY 1""",
    )
    assert [(row["bytes"], row["all_inside"]) for row in moved] == [(size, True), (size, True)]
    written = _told(tmp_path, "file_id = (SELECT any_value(file_id) FROM files WHERE name LIKE '%/out')")
    assert written["fwrite"] == (100_003, size)
