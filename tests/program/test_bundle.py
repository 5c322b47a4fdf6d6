"""Tests the archive for an administrator: it is complete, readable, and without names if requested."""

from __future__ import annotations

import csv
import io
import json
import re
import tarfile
from pathlib import Path

import pytest

from iodock.cli.run import run as run_command
from iodock.program.run import Run
from iodock.program.store import Store
from iodock.program.store.anonymous import Anonymiser, anonymous_copy
from made_up import mixed_store
from synthetic import event_row, file_row, process_row, write_store

SECRETS = ("secret-project", "alice", "topsecret", "node-of-mine", "s3cret-token")


def secret_store(folder: Path) -> Path:
    files = [
        file_row(0, "/home/alice/secret-project/topsecret7.dat", size_bytes=10, mount_point="/home"),
        file_row(1, "/usr/lib/libc.so.6"),
        file_row(2, "relative/topsecret.txt", relative=True),
    ]
    events = [event_row("openat", ts=1_000, dur=100, file_id=number, result=3) for number in range(3)] + [
        event_row("read", ts=2_000, dur=50_000_000, file_id=0, bytes=10, direction=1, result=10)
    ]
    commands = [
        {"utid": 0, "ts": 1, "path": "/home/alice/topsecret", "argv": ["topsecret", "--key=s3cret-token"]}
    ]
    captured = {"how": "strace", "command": ["/home/alice/topsecret", "s3cret-token"], "wall_ns": 10**9,
                "working_directory": "/home/alice", "logs": ["/home/alice/topsecret.log"]}  # fmt: skip
    return write_store(
        folder / "run.iodock", events, files, [process_row(0, 7, host="node-of-mine")], commands,
        captured=captured, host={"name": "node-of-mine", "kernel": "6.1", "cpus": 2},
        hosts=[{"name": "node-of-mine", "clock_offset_ns": 0}],
        losses=[{"name": "bad-lines", "count": 1, "cure": "", "first": {"file": "/home/alice/topsecret"}}],
    )  # fmt: skip


def members(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as opened:
        return {
            name.split("/", 1)[1]: opened.extractfile(name).read().decode()  # type: ignore[union-attr]
            for name in opened.getnames()
        }


def test_a_bundle_contains_all_its_parts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = mixed_store(tmp_path / "mixed.iodock")
    target = tmp_path / "b.tar.gz"
    assert run_command(["bundle", str(store), "-o", str(target)]) == 0
    assert capsys.readouterr().out.strip() == str(target)
    found = members(target)
    assert json.loads(found["findings.json"])["verdict"]["wall_seconds"] is not None
    assert json.loads(found["environment.json"])["file_systems"] is not None
    assert "<html" in found["report.html"]
    with Run(Store.open(store)) as run:
        wanted = run.show("summary", kind="all").to_arrow().to_pylist()
    rows = list(csv.DictReader(io.StringIO(found["summary.csv"])))
    assert [(row["call"], int(row["count"])) for row in rows] == [
        (row["call"], row["count"]) for row in wanted
    ]
    listed = {
        line.split(":")[0] for line in found["READ-ME.txt"].splitlines() if ".csv" in line or ".json" in line
    }
    assert all(name in " ".join(listed) for name in found if name.endswith(".csv"))


def test_an_anonymous_bundle_contains_no_name(tmp_path: Path) -> None:
    target = tmp_path / "b.tar.gz"
    assert run_command(["bundle", str(secret_store(tmp_path)), "--anonymous", "-o", str(target)]) == 0
    for name, content in members(target).items():
        for secret in SECRETS:
            assert secret not in content, f"{secret} in {name}"
    files = members(target)["files.csv"]
    assert "/usr/lib/libc.so.6" in files and "/home/" in files and ".dat" in files


@pytest.mark.usefixtures("few_rules")
def test_a_bundle_with_names_contains_them(tmp_path: Path) -> None:
    target = tmp_path / "b.tar.gz"
    assert run_command(["bundle", str(secret_store(tmp_path)), "-o", str(target)]) == 0
    assert "topsecret7.dat" in members(target)["files.csv"]


def test_numbers_stay_in_an_anonymous_copy(tmp_path: Path) -> None:
    store = mixed_store(tmp_path / "mixed.iodock")
    copy = anonymous_copy(store, tmp_path / "copy.iodock")
    for keys in (["call"], ["kind", "class"], ["errno"]):
        with Run(Store.open(store)) as before, Run(Store.open(copy)) as after:
            first = before.show("summary", by=keys, kind="all").to_arrow()
            assert after.show("summary", by=keys, kind="all").to_arrow().equals(first)


def test_anonymous_names_are_the_same_in_all_parts() -> None:
    names = Anonymiser(["/scratch"])
    one, other = names.path("/scratch/alice/run1/a.dat"), names.path("/scratch/alice/run1/b.dat")
    assert one.rsplit("/", 1)[0] == other.rsplit("/", 1)[0] and one != other
    assert one.startswith("/scratch/") and one.endswith(".dat") and "alice" not in one
    assert Anonymiser(["/scratch"]).path("/scratch/alice/run1/a.dat") != one
    assert names.path("pipe:[17]") == "pipe:[17]" and names.path("stdin") == "stdin"
    assert names.path("/etcetera/x") != "/etcetera/x"
    assert names.path("/data/run*/x.dat").count("*") == 1


KEPT = (
    "/usr/lib/libc.so.6", "/usr/lib64/python3.11/os.py", "/usr/bin/python3", "/lib/a/libm.so.6",
    "/proc/self/status", "/proc/12/fd/3", "/sys/devices/system/cpu/online", "/dev/null", "/dev/pts/3",
    "/etc/ld.so.cache", "/usr/share/zoneinfo/UTC", "stdin", "fd:7", "pipe", "pipe:[17]", "socket:[4711]",
    "anon_inode:[eventpoll]", "io_uring",
)  # fmt: skip
MADE_UP = (
    "alice", "pipe:alice", "alice:[17]", "memfd:alice", "anon_inode:[alice]", "/usr/people/alice/x",
    "/usr/local/alice", "/usr/lib/../people/alice", "/usr/lib/./../people/alice", "/proc/self/root/alice",
    "/proc/1/cwd/alice", "/proc/1/task/1/root/alice", "/dev/shm/alice", "/dev/alice", "/dev/mapper/vg-alice",
    "/etc/alice.conf", "/sys/fs/cgroup/alice", "/boot/alice", "x.alice", "/data/x.alice", "/data/x.Alice",
    "/data/libalice.so", "/data/libc.so.alice", "/data/libm.so-alice", "/data/python3-alice",
    "/data/libmpialice.so", "/data/libhdf5_alice.so",
)  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_anonymous_bundles_keep_generated_names(name: str) -> None:
    assert Anonymiser().path(name) == name


@pytest.mark.parametrize("name", MADE_UP)
def test_only_known_names_are_kept(name: str) -> None:
    assert "alice" not in Anonymiser().path(name).lower()


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("/usr/people/a/b.TXT", "/usr/*/*/*.TXT"), ("/dev/shm/b", "/dev/*/*"), ("/data/.txt", "/*/*"),
        ("/usr/local/bin/b", "/usr/local/*/*"),
        ("/data/b.h5", "/*/*.h5"), ("/data/libhdf5-103.so.1", "/*/libhdf5-103.so.1"),
        ("/opt/lib/libmpi_cxx.so.40.1", "/*/*/libmpi_cxx.so.40.1"),
        ("/opt/bin/python3.11", "/*/*/python3.11"),
    ],
)  # fmt: skip
def test_well_known_endings_programs_and_libraries_stay(name: str, form: str) -> None:
    assert re.fullmatch(re.escape(form).replace(r"\*", "[0-9a-f]{8}"), Anonymiser().path(name))


@pytest.mark.usefixtures("few_rules")
def test_a_file_that_is_not_a_bundle_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "b.tar.gz"
    target.write_text("mine")
    assert run_command(["bundle", str(secret_store(tmp_path)), "-o", str(target)]) == 1
    assert target.read_text() == "mine" and "--force" in capsys.readouterr().err
    again = ["bundle", str(tmp_path / "run.iodock"), "-o", str(target), "--force"]
    assert run_command(again) == 1 and target.read_text() == "mine"
    target.unlink()
    assert run_command(again) == 0 and run_command(again) == 0
    assert "READ-ME.txt" in members(target)


def test_a_missing_store_gives_an_error_and_no_bundle(tmp_path: Path) -> None:
    assert run_command(["bundle", str(tmp_path / "none.iodock"), "-o", str(tmp_path / "b.tar.gz")]) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("few_rules")
def test_damage_is_reported_with_the_original_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = secret_store(tmp_path)
    (store / "files.parquet").unlink()
    assert run_command(["bundle", "--anonymous", str(store), "-o", str(tmp_path / "b.tar.gz")]) == 1
    assert f"{store / 'files.parquet'}: is missing" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["b.tar.gz", "b.tgz", "b.TGZ", "b.tar", "b.gz", "b"])
@pytest.mark.usefixtures("few_rules")
def test_the_folder_in_a_bundle_has_the_archives_name(tmp_path: Path, name: str) -> None:
    store = mixed_store(tmp_path / "mixed.iodock")
    assert run_command(["bundle", str(store), "-o", str(tmp_path / name)]) == 0
    with tarfile.open(tmp_path / name) as opened:
        assert {one.split("/")[0] for one in opened.getnames()} == {"b"}
