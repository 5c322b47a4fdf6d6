"""Tests the kinds of files, such as FIFOs and devices with paths, by each way in which iodock determines
them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recorded import IODOCK, bpf_unavailable, compiled, live, needs_gcc, rows, run

FIFOS = ("fifo", "asked", "made", "node", "renamed", "waiting")


def kinds(store: Path) -> dict[str, str]:
    return {Path(row["name"]).name: row["kind"] for row in rows(store, "SELECT name, kind FROM files")}


def places(store: Path, name: str) -> set[tuple[int | None, int | None]]:
    """Returns the offsets of reads and writes together with the file's size."""
    sql = "SELECT DISTINCT e.offset_bytes, f.size_bytes FROM events e JOIN files f USING (file_id)"
    found = rows(store, f"{sql} WHERE f.name LIKE '%/{name}' AND e.bytes IS NOT NULL")
    return {(row["offset_bytes"], row["size_bytes"]) for row in found}


@pytest.mark.whole
@live
@needs_gcc
@pytest.mark.parametrize(
    ("backend", "flags"), [("rewrite", ()), ("bpf", ()), ("ptrace", ()), ("ptrace", ("-static",))]
)
def test_recorders_distinguish_fifos_from_files(tmp_path: Path, backend: str, flags: tuple[str, ...]) -> None:
    if backend == "bpf" and (reason := bpf_unavailable()):
        pytest.skip(reason)
    program = compiled(tmp_path, "special_files", *flags)
    for name in ("fifo", "asked", "waiting"):
        os.mkfifo(tmp_path / name)
    command = [*IODOCK, "record", "--backend", backend, "-q", "-o", "run.iodock", "--", program]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    store = tmp_path / "run.iodock"
    found = kinds(store)
    # The back end rewrite checks the kind of an opened file only after a slow open, so these kinds may stay
    # unknown.
    unknown = {"fifo", "zero"} if backend == "rewrite" else set()
    assert {name: found[name] for name in FIFOS if name not in unknown} == {
        name: "fifo" for name in FIFOS if name not in unknown
    }
    assert found["zero"] in ({"device", "file"} if backend == "rewrite" else {"device"})
    assert found["fifo"] in {"fifo", "file"}
    assert found["pipe"] == "pipe"
    assert found["plain"] == found["again"] == "regular"
    assert found["bound"] == found["regular"] == "file"
    # Bytes pass through a FIFO, so they have no offset.
    for name in FIFOS:
        if found[name] == "fifo":
            assert places(store, name) == {(None, None)}, name
    assert places(store, "plain") == {(0, 1), (1, 1)}
    assert places(store, "again") == {(0, 1), (1, 1)}


STRACE = """\
100 1.000000 {mknod}, {mode}) = 0
100 1.100000 openat(AT_FDCWD, "/t/f", O_RDWR) = 3
100 1.200000 write(3, "x", 1) = 1
100 1.300000 close(3) = 0
100 1.400000 +++ exited with 0 +++
"""


@pytest.mark.parametrize("mknod", ['mknod("/t/f"', 'mknodat(AT_FDCWD, "/t/f"', 'mknodat(AT_FDCWD</t>, "f"'])
@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        ("S_IFIFO|0644", "fifo"),
        ("S_IFIFO|S_ISVTX|0666", "fifo"),
        ("010644", "fifo"),
        ("010644 /* S_IFIFO|0644 */", "fifo"),
        ("S_IFCHR|0600, makedev(0x1, 0x3)", "device"),
        ("S_IFBLK|0600, makedev(0x8, 0)", "device"),
        ("S_IFREG|0600", "regular"),
        ("0600", "regular"),
        # mknod can create a socket, but open refuses it, so the opened file must be another one.
        ("S_IFSOCK|0600", "file"),
    ],
)
def test_mknod_in_a_strace_log_determines_the_file_type(
    tmp_path: Path, mknod: str, mode: str, kind: str
) -> None:
    (tmp_path / "log").write_text(STRACE.format(mknod=mknod, mode=mode))
    store = imported(tmp_path)
    assert kinds(store)["f"] == kind
    assert places(store, "f") == ({(None, None)} if kind == "fifo" else {(0, 1)})


# A log as illumos' truss prints it (cmd/truss/systable.c: the mode is octal, and xmknod has a version first).
TRUSS = """\
100:	 0.0100	{mknod} = 0
100:	 0.0200	open("/t/f", O_RDWR) = 3
100:	 0.0300	write(3, " x", 1) = 1
100:	 0.0400	close(3) = 0
"""


@pytest.mark.parametrize(
    "mknod",
    [
        'mknod("/t/f", 010644, 0x00000000)',
        'xmknod(2, "/t/f", 010644, 0x00000000)',
        'mknodat(-3041965, "/t/f", 010644, 0x00000000)',
        'mknodat(AT_FDCWD, "/t/f", 010644, 0x00000000)',
    ],
)
def test_mknod_in_a_truss_log_determines_the_file_type(tmp_path: Path, mknod: str) -> None:
    (tmp_path / "log").write_text(TRUSS.format(mknod=mknod))
    store = imported(tmp_path)
    assert kinds(store)["f"] == "fifo"
    assert places(store, "f") == {(None, None)}


def test_a_failed_mknod_does_not_determine_the_file_type(tmp_path: Path) -> None:
    log = STRACE.format(mknod='mknod("/t/f"', mode="S_IFIFO|0644")
    (tmp_path / "log").write_text(log.replace("= 0", "= -1 EEXIST (File exists)", 1))
    assert kinds(imported(tmp_path))["f"] == "file"


ASKED = """\
100 1.000000 openat(AT_FDCWD, "/t/f", O_RDONLY) = 3
100 1.000500 openat(AT_FDCWD, "/t/f", O_WRONLY) = 4
100 1.001000 {stat} = 0
100 1.002000 write(4, "x", 1) = 1
100 1.002500 read(3, "x", 1) = 1
100 1.003000 close(3) = 0
"""


@pytest.mark.parametrize(
    "stat",
    [
        "fstat(3, {st_mode=S_IFIFO|0644, st_size=0, ...})",
        'stat("/t/f", {st_mode=S_IFIFO|0644, st_size=0, ...})',
        'newfstatat(3, "", {st_mode=S_IFIFO|0644, st_size=0, ...}, AT_EMPTY_PATH)',
        'statx(3, "", AT_EMPTY_PATH, 0, {stx_mask=0, stx_mode=S_IFIFO|0644, stx_size=0, ...})',
    ],
)
def test_a_stat_of_one_end_of_a_pipe_applies_to_the_other(tmp_path: Path, stat: str) -> None:
    (tmp_path / "log").write_text(ASKED.replace("{stat}", stat))
    store = imported(tmp_path)
    assert kinds(store)["f"] == "fifo"
    assert places(store, "f") == {(None, None)}


def test_files_that_cannot_seek_have_no_offsets(tmp_path: Path) -> None:
    """If nothing else shows the kind, an lseek that fails with ESPIPE shows that the file is a FIFO or a
    terminal."""
    seek = "lseek(3, 0, SEEK_CUR) = -1 ESPIPE (Illegal seek)"
    log = ASKED.replace("{stat} = 0", seek).replace("write(4", "write(3")
    (tmp_path / "log").write_text(log)
    store = imported(tmp_path)
    assert kinds(store)["f"] == "file"
    assert places(store, "f") == {(None, None)}


def imported(folder: Path) -> Path:
    done = run([*IODOCK, "import", "-q", "log", "-o", "run.iodock"], folder)
    assert done.returncode == 0, done.stderr
    return folder / "run.iodock"
