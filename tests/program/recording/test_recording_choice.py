"""Tests which back end `--backend auto` chooses for a program, and what it prints about the choice."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from places import FIXTURES
from recorded import bpf_unavailable

IODOCK = [sys.executable, "-m", "iodock"]
HELLO = FIXTURES / "programs" / "hello.c"

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or os.uname().machine != "x86_64", reason="live recording is for x86-64 Linux"
    ),
    pytest.mark.skipif(not shutil.which("gcc"), reason="gcc is not installed"),
]


def compiled(folder: Path, *flags: str) -> Path:
    program = folder / "hello"
    if subprocess.run(["gcc", *flags, "-o", program, HELLO], capture_output=True, check=False).returncode:
        pytest.skip(f"gcc makes no such programs here: {' '.join(flags)}")
    return program


def recorded(folder: Path, *arguments: object, limit: str = "") -> tuple[dict[str, Any], str]:
    """Records a program and returns `captured` of the manifest, and stderr."""
    store = folder / "run.iodock"
    command = [*IODOCK, "record", "--force", "-o", store, *arguments]
    shell = ["bash", "-c", f'{limit}; exec "$@"', "bash"] if limit else []
    done = subprocess.run(
        [str(part) for part in (*shell, *command)],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads((store / "manifest.json").read_text())["captured"], done.stderr


def from_outside() -> str:
    """Returns the back end that `auto` chooses on this machine for programs that load no library."""
    return "ptrace" if bpf_unavailable() else "bpf"


def test_a_dynamic_program_is_recorded_by_rewrite(tmp_path: Path) -> None:
    captured, said = recorded(tmp_path, "true")
    assert (captured["how"], captured["why"]) == ("rewrite", "cheapest")
    assert "note: recorded by rewrite: the cheapest back end that sees this program's calls\n" in said


def test_a_static_program_is_recorded_by_ptrace_or_bpf(tmp_path: Path) -> None:
    program = compiled(tmp_path, "-static")
    way = from_outside()
    for backend in ("auto", "rewrite"):
        captured, said = recorded(tmp_path, "--backend", backend, program)
        assert (captured["how"], captured["why"]) == (way, "static")
        assert f"note: recorded by {way}: the program is static" in said


@pytest.mark.whole
def test_the_reason_of_the_choice_is_translated(tmp_path: Path) -> None:
    _, said = recorded(tmp_path, "--lang", "ja", "true")
    assert "注意: rewrite で記録しました" in said
    _, said = recorded(tmp_path, "--quiet", "true")
    assert said == ""
    captured, said = recorded(tmp_path, "--backend", "ptrace", "true")
    assert "recorded by" not in said and captured["why"] == "asked"


@pytest.mark.whole
def test_the_back_end_of_a_script_follows_from_its_interpreter(tmp_path: Path) -> None:
    program, script = compiled(tmp_path, "-static"), tmp_path / "script"
    for interpreter, why in ((program, "static"), ("/bin/sh", "cheapest")):
        script.write_text(f"#!{interpreter}\n")
        script.chmod(0o755)
        assert recorded(tmp_path, script)[0]["why"] == why


@pytest.mark.whole
def test_the_choice_handles_another_dynamic_linker(tmp_path: Path) -> None:
    ours = Path("/lib64/ld-linux-x86-64.so.2")
    if not ours.exists():
        pytest.skip("another C library than glibc")
    shutil.copy(ours, tmp_path / "ld.so")
    program = compiled(tmp_path, f"-Wl,--dynamic-linker={tmp_path / 'ld.so'}")
    assert recorded(tmp_path, program)[0]["why"] == "other-libc"


@pytest.mark.whole
def test_the_choice_handles_a_32_bit_program(tmp_path: Path) -> None:
    assert recorded(tmp_path, compiled(tmp_path, "-m32"))[0]["why"] == "foreign"


@pytest.mark.whole
@pytest.mark.skipif(not shutil.which("go"), reason="go is not installed")
def test_the_choice_knows_that_go_programs_bypass_libc(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text('package main\nimport "C"\nfunc main() { println("go") }\n')
    environment = {**os.environ, "GO111MODULE": "off", "CGO_ENABLED": "1"}
    for flags, why in (((), "go"), (("-ldflags=-linkmode=external -extldflags=-static",), "static")):
        build = ["go", "build", *flags, "-o", "program", "main.go"]
        subprocess.run(build, cwd=tmp_path, env=environment, check=True, timeout=300)
        assert recorded(tmp_path, tmp_path / "program")[0]["why"] == why


@pytest.mark.whole
def test_without_space_for_buffers_another_back_end_is_chosen(tmp_path: Path) -> None:
    captured, _ = recorded(tmp_path, "true", limit="ulimit -f 1000000")
    assert (captured["how"], captured["why"]) == (from_outside(), "machine")


@pytest.mark.whole
def test_with_few_open_files_another_back_end_is_chosen(tmp_path: Path) -> None:
    captured, _ = recorded(tmp_path, "true", limit="ulimit -n 14")
    assert (captured["how"], captured["why"]) == ("ptrace", "machine")


APPENDS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>
int main(void)
{
	char bytes[100] = "";
	struct iovec some = {bytes, 11};
	int file = open("appended", O_RDWR | O_CREAT | O_TRUNC, 0666);
	write(file, bytes, 50);
	lseek(file, 5, SEEK_SET);
	return pwritev2(file, &some, 1, -1, RWF_APPEND) != 11 || write(file, bytes, 4) != 4;
}
"""


@pytest.mark.whole
@pytest.mark.parametrize("way", ["ptrace", "rewrite", "outside"])
def test_a_write_with_the_append_flag_has_no_offset(tmp_path: Path, way: str) -> None:
    (tmp_path / "append.c").write_text(APPENDS)
    subprocess.run(["gcc", "-o", tmp_path / "append", tmp_path / "append.c"], check=True, timeout=60)
    recorded(tmp_path, "--backend", from_outside() if way == "outside" else way, tmp_path / "append")
    sql = (
        "SELECT call, offset_bytes, bytes FROM calls_seen WHERE file LIKE '%/appended' AND bytes > 0 "
        "ORDER BY ts"
    )
    command = [*IODOCK, "query", str(tmp_path / "run.iodock"), sql, "--format", "json"]
    found = json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)["rows"]
    assert [(row["call"], row["offset_bytes"], row["bytes"]) for row in found] == [
        ("write", 0, 50), ("pwritev2", None, 11), ("write", None, 4),
    ]  # fmt: skip


@pytest.mark.whole
def test_the_program_has_the_same_environment_as_without_recording(tmp_path: Path) -> None:
    given = {"PATH": os.environ["PATH"], "B": "2", "A": "1"}
    command = [*IODOCK, "record", "--quiet", "--backend", "ptrace", "-o", "e.iodock", "--", "env"]
    done = subprocess.run(
        command, env=given, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    # Python sets LC_CTYPE if there is no locale. The recorder must not pass it on.
    assert done.stdout.splitlines() == [f"{name}={value}" for name, value in given.items()]


def test_the_exit_status_is_kept_if_the_check_up_fails(tmp_path: Path) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError('of another Python')\n")
    surroundings = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [*IODOCK, "record", "-o", "s.iodock", "--", "sh", "-c", "exit 4"]
    done = subprocess.run(
        command, env=surroundings, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 4
    assert "a Python package can't be loaded: of another Python" in done.stderr


OWN_CALLS = """
#include <fcntl.h>
#include <unistd.h>
static long own(long number, long a, long b, long c)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
    return result;
}
int own_reads(void)
{
    char byte;
    int zero = open("/dev/zero", O_RDONLY), got = 0;
    for (int i = 0; i < 1000; i++)
        got += own(NUMBER, zero, (long)&byte, 1);
    return got != EXPECTED;
}
#ifndef LIBRARY
int main(void) { return own_reads(); }
#endif
"""


def with_own_calls(folder: Path, *flags: str) -> Path:
    (folder / "own.c").write_text(OWN_CALLS)
    program = folder / "own"
    subprocess.run(["gcc", "-O2", "-w", "-o", program, folder / "own.c", *flags], check=True, timeout=120)
    return program


@pytest.mark.whole
def test_a_program_with_inline_reads_is_not_recorded_by_rewrite(tmp_path: Path) -> None:
    program, way = with_own_calls(tmp_path, "-DNUMBER=0", "-DEXPECTED=1000"), from_outside()
    captured, said = recorded(tmp_path, program)
    assert (captured["how"], captured["why"]) == (way, "own-calls")
    assert f"note: recorded by {way}: the program makes system calls without the C library" in said
    # With an explicit `--backend rewrite`, the recorder uses rewrite nevertheless.
    captured, _ = recorded(tmp_path, "--backend", "rewrite", program)
    assert (captured["how"], captured["why"]) == ("rewrite", "asked")


@pytest.mark.whole
def test_a_library_with_inline_reads_is_found_on_the_search_path(tmp_path: Path) -> None:
    library = with_own_calls(tmp_path, "-DNUMBER=0", "-DEXPECTED=1000", "-DLIBRARY", "-shared", "-fPIC")
    library = library.rename(tmp_path / "libown.so")
    (tmp_path / "main.c").write_text("int own_reads(void); int main(void) { return own_reads(); }")
    build = [
        "gcc",
        "-o",
        tmp_path / "main",
        tmp_path / "main.c",
        f"-L{tmp_path}",
        "-lown",
        "-Wl,-rpath,$ORIGIN",
    ]
    subprocess.run(build, check=True, timeout=120)
    captured, _ = recorded(tmp_path, tmp_path / "main")
    assert captured["why"] == "own-calls"


@pytest.mark.whole
def test_inline_calls_other_than_io_do_not_change_the_choice(tmp_path: Path) -> None:
    # The program calls getpid (39), whose result is not a number of bytes.
    program = with_own_calls(tmp_path, "-DNUMBER=39", "-DEXPECTED=got")
    captured, _ = recorded(tmp_path, program)
    assert (captured["how"], captured["why"]) == ("rewrite", "cheapest")


@pytest.mark.whole
def test_a_program_without_libc_is_not_recorded_by_rewrite(tmp_path: Path) -> None:
    (tmp_path / "bare.c").write_text(
        'void _start(void) { __asm__ volatile("mov $60,%eax; xor %edi,%edi; syscall"); }'
    )
    build = ["gcc", "-O1", "-nostdlib", "-pie", "-fPIE", "-o", tmp_path / "bare", tmp_path / "bare.c"]
    subprocess.run(build, check=True, timeout=120)
    captured, said = recorded(tmp_path, tmp_path / "bare")
    assert captured["why"] == "no-libc" and "has no C library" in said


@pytest.mark.whole
@pytest.mark.parametrize(
    "name", ["python3", "bash", "git", "node", "sqlite3", "perl", "java", "mpirun", "make"]
)
def test_ordinary_programs_are_recorded_by_rewrite(tmp_path: Path, name: str) -> None:
    if not shutil.which(name):
        pytest.skip(f"{name} is not installed")
    captured, _ = recorded(tmp_path, name, "--version")
    assert captured["why"] == "cheapest"
