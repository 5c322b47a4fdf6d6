"""Tests quotas as file systems' tools print them for ordinary users. No Lustre, GPFS or NFS server with
quotas is available here, so shell scripts replace the tools, with output formats from their sources and
manuals."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from health_places import ALONE, COMMAND, contents
from iodock.file_system.health import quota_tools
from iodock.file_system.health.mounts import Mount
from iodock.file_system.health.quota_tools import (
    Owner,
    fileset_in,
    gpfs_rows,
    project_in,
    quotas_in,
    quotas_of,
)
from iodock.file_system.health.quotas import Allowance, Grace, Quota, Quotas, check_room, shares_used
from iodock.file_system.views.card_json import _quota
from iodock.file_system.views.card_text import quota_words
from iodock.shared.errors import IodockError
from iodock.shared.language import language_in

ME, STAFF = 1000, 50
OWNER = Owner(ME, STAFF)
KIB = 1024
DAY = 86400
LUSTRE = Mount("/scratch", "lustre", "10.1.0.1@o2ib:/scratch", "0:50", ())
GPFS = Mount("/gpfs/fs1", "gpfs", "/dev/fs1", "0:51", ())
NFS = Mount("/home", "nfs4", "fs1:/export/home", "0:52", ())
LOCAL = Mount("/", "ext4", "/dev/sda2", "8:2", ())
LOCAL_WITH_QUOTA = Mount("/", "ext4", "/dev/sda2", "8:2", (("usrquota", None),))

HEADING = """Disk quotas for usr bob (uid 1000):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
"""
DEFAULTS = """uid 1000 is using default block quota setting
uid 1000 is using default file quota setting
"""
INACCURATE = (
    "Some errors happened when getting quota info. Some devices may be not working or deactivated. The data "
    'in "[]" is inaccurate.\n'
)


def kib(
    used: int, soft: int | None, hard: int | None, grace: Grace = Grace.NONE, exact: bool = True
) -> Allowance:
    of = [None if one is None else one * KIB for one in (soft, hard)]
    return Allowance(used * KIB, of[0], of[1], grace, exact)


@pytest.mark.parametrize(
    ("row", "of_bytes", "of_files"),
    [
        (
            "          /scratch   26448  102400  204800       -     105    1000    2000       -",
            kib(26448, 102400, 204800), Allowance(105, 1000, 2000),
        ),
        ("/a/very/long/mount/point\n                  26448  0  0  -     105       0       0       -",
            kib(26448, None, None), Allowance(105, None, None)),
        ("          /scratch  150000* 102400  204800 6d23h59m57s 105 0 0 -",
            kib(150000, 102400, 204800, Grace.RUNNING), Allowance(105, None, None)),
        ("          /scratch  150000* 102400  204800    none  105*  100  200    none",
            kib(150000, 102400, 204800, Grace.OVER), Allowance(105, 100, 200, Grace.OVER)),
        ("          /scratch  204800*      0  204800       -  105  0  0  -",
            kib(204800, None, 204800), Allowance(105, None, None)),
        ("          /scratch [26448]  102400  204800       -  105  0  0  -",
            kib(26448, 102400, 204800, exact=False), Allowance(105, None, None)),
        ("          /scratch   26448*  102400  204800       -  [0]  [0]  [0]  -",
            kib(26448, 102400, 204800), Allowance(None, None, None, is_exact=False)),
        ("          /scratch       -  102400  204800       -  -  0  0  -",
            Allowance(None, 102400 * KIB, 204800 * KIB, is_exact=False),
            Allowance(None, None, None, is_exact=False)),
        ("          /scratch   26448**  0  204800       -  105  0  0  -",
            kib(26448, None, 204800, exact=False), Allowance(105, None, None)),
        ("          /scratch   1.5G      8T     10T       -      0k  3M  36000000       -",
            Allowance(3 << 29, 8 << 40, 10 << 40), Allowance(0, 3 << 20, 36000000)),
        ("          /scratch   26448       -       -       -  105  -  -  -",
            kib(26448, None, None, exact=False), Allowance(105, None, None, is_exact=False)),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("before", "after"), [(HEADING, ""), ("", ""), (HEADING, DEFAULTS + INACCURATE)])
def test_every_output_format_of_lfs_quota_is_read(
    row: str, of_bytes: Allowance, of_files: Allowance, before: str, after: str
) -> None:
    owner = "bob" if before else "1000"
    found = list(quotas_in(f"{before}{row}\n{after}", "user", "1000"))
    assert found == [Quota("user", owner, of_bytes, of_files)]


def test_other_lines_are_not_read_as_quotas() -> None:
    assert not list(quotas_in(DEFAULTS + INACCURATE + HEADING + "/scratch/long/name\n", "user", "1000"))
    assert not list(quotas_in("Disk quotas for user bob (uid 1000): none\n", "user", "1000"))


def test_the_grace_time_of_quota_is_a_point_in_time() -> None:
    now = int(time.time())
    said = f"""Disk quotas for user bob (uid 1000):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
fs1:/export/my home 150* 100 200 {now + DAY} 7* 5 9 {now - DAY}
"""
    assert list(quotas_in(said, "user", "1000")) == [
        Quota("user", "bob", kib(150, 100, 200, Grace.RUNNING), Allowance(7, 5, 9, Grace.OVER))
    ]
    unused = "fs1:/home       0       0       0       0       0       0       0       0\n"
    assert list(quotas_in(unused, "user", "1000")) == [
        Quota("user", "1000", kib(0, None, None), Allowance(0, None, None))
    ]


def test_projects_and_filesets_are_read() -> None:
    assert project_in(" 1001 P /scratch/shared\n") == 1001
    assert project_in(" 1001 - /scratch/shared\n") is None and project_in("    0 P /scratch\n") is None
    assert project_in("lfs: no such command") is None
    assert fileset_in("file name:   /gpfs/x\nfileset name:         scratch\nflags:\n") == "scratch"
    assert fileset_in("file name: /gpfs/x\n") is None


GPFS_HEADER = (
    "mmlsquota:user:HEADER:version:reserved:reserved:filesystemName:quotaType:id:name:blockUsage:blockQuota:"
    "blockLimit:blockInDoubt:blockGrace:filesUsage:filesQuota:filesLimit:filesInDoubt:filesGrace:remarks:fid:"
    "filesetname:\n"
)


def gpfs(kind: str, number: int, name: str, blocks: str, files: str, fileset: str = "") -> str:
    return f"mmlsquota:user:0:1:::fs1:{kind}:{number}:{name}:{blocks}:{files}::0:{fileset}:\n"


def test_rows_of_mmlsquota_are_read() -> None:
    said = (
        GPFS_HEADER
        + gpfs("USR", ME, "b%3Aob", "2048:4096:8192:100:7 days", "12:0:0:3:none")
        + gpfs("GRP", STAFF, "staff", "9:5:20:0:expired", "12:10:20:0:1 hour", "root")
        + "mmlsquota:user:0:1:::fs1:USR:1000:cut\n"
        + gpfs("USR", ME, "bob", "many:1:1:0:none", "1:1:1:0:none")
    )
    assert [(one.kind, one.number, one.fileset, one.quota) for one in gpfs_rows(said)] == [
        ("user", "1000", "",
         Quota("user", "b:ob", kib(2148, 4096, 8192, Grace.RUNNING), Allowance(15, None, None))),
        ("group", "50", "root",
         Quota("group", "staff", kib(9, 5, 20, Grace.OVER), Allowance(12, 10, 20, Grace.RUNNING))),
    ]  # fmt: skip


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a folder with simulated tools, and sets PATH to this folder and the folders of basic
    programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(quota_tools, "GPFS_PROGRAMS", str(tmp_path / "mmfs"))
    for name in ("quota", "lfs", "mmlsquota"):
        # By default the scripts fail, so that an installed tool does not answer instead.
        script(folder, name, "exit 127")
    return folder


def script(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\necho "$*" >> "$0.asked"\n{text}\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def was_asked(folder: Path, name: str) -> list[str]:
    path = folder / f"{name}.asked"
    return path.read_text().splitlines() if path.exists() else []


def why(found: Quotas) -> list[str]:
    return [one.text.format(**one.values) for one in found.unknown]


def test_lustre_quotas_are_read_for_user_group_and_project(tools: Path) -> None:
    script(tools, "lfs", """case "$1 $2" in
"project -d") echo " 1001 P /scratch/x";;
"quota -u") echo "Disk quotas for usr bob (uid 1000):"; echo "/scratch 5 0 9 - 1 0 0 -";;
"quota -g") echo "/scratch [6] 0 9 - 1 0 0 -"; exit 5;;
"quota -p") echo "/scratch 7 0 9 - 1 0 0 -"; echo "  /scratch/pool 1 0 0 - 1 0 0 -";;
esac""")  # fmt: skip
    found = quotas_of(LUSTRE, "/scratch/x", OWNER)
    assert [(one.kind, one.owner, one.bytes.used, one.bytes.left) for one in found.known] == [
        ("user", "bob", 5 * KIB, 4 * KIB),
        ("group", "50", 6 * KIB, None),
        ("project", "1001", 7 * KIB, 2 * KIB),
    ]
    assert not found.unknown
    assert was_asked(tools, "lfs") == [
        "project -d /scratch/x",
        "quota -u 1000 /scratch",
        "quota -g 50 /scratch",
        "quota -p 1001 /scratch",
    ]


@pytest.mark.parametrize(
    ("mount", "name"), [(LUSTRE, "lfs"), (GPFS, "mmlsquota"), (NFS, "quota"), (LOCAL_WITH_QUOTA, "quota")]
)
def test_limits_missing_from_a_tools_output_are_unknown(
    mount: Mount, name: str, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tools, name, "echo trouble >&2; echo 'Permission denied.' >&2; exit 1")
    found = quotas_of(mount, "/x", OWNER)
    assert not found.known and "failed: Permission denied." in why(found)[0]
    script(tools, name, "echo 'nothing of it'")
    found = quotas_of(mount, "/x", OWNER)
    assert not found.known and "does not report it" in why(found)[0]
    for status in (0, 1):
        script(tools, name, f"exit {status}")
        assert "does not report it" in why(quotas_of(mount, "/x", OWNER))[0]
    (tools / name).write_bytes(b"\x7fno program")
    assert "failed: Exec format error" in why(quotas_of(mount, "/x", OWNER))[0]
    monkeypatch.setenv("PATH", "/nowhere")
    found = quotas_of(mount, "/x", OWNER)
    assert not found.known and f"{name} is not installed here" in why(found)[0]


@pytest.mark.whole
@pytest.mark.parametrize(("mount", "name"), [(LUSTRE, "lfs"), (GPFS, "mmlsquota"), (NFS, "quota")])
def test_a_hanging_tool_is_called_once(mount: Mount, name: str, tools: Path) -> None:
    script(tools, name, f"echo $$ >> {tools}/pids; sleep 1000 & echo $! >> {tools}/pids; wait")
    found = quotas_of(mount, "/x", OWNER, 3)
    (said,) = why(found)
    assert not found.known and "did not answer within" in said and len(was_asked(tools, name)) == 1
    # iodock has also ended the processes that the tool started.
    deadline = time.monotonic() + 60
    pids = (tools / "pids").read_text().split()
    while any(is_alive(int(pid)) for pid in pids):
        assert time.monotonic() < deadline, pids
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_quotas_from_the_kernel_need_no_tool(tools: Path) -> None:
    assert quotas_of(LOCAL, "/", OWNER) == Quotas() and not was_asked(tools, "quota")


def test_an_exceeded_group_quota_is_read_despite_the_exit_status(tools: Path) -> None:
    script(tools, "quota", """case $1 in
-u) echo "Disk quotas for user bob (uid 1000): "
    echo "     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace"
    echo "fs1:/export/home     150*    100     200 99999999999       7       0       0       0"; exit 1;;
-g) for one in "users:100:1" "staff:50:2"; do
      name=${one%%:*} rest=${one#*:}
      echo "Disk quotas for group $name (gid ${rest%:*}): "
      echo "fs1:/export/home ${rest#*:} 0 9 0 7 0 0 0"; done;;
esac""")  # fmt: skip
    found = quotas_of(NFS, "/home/bob", OWNER)
    assert [(one.kind, one.owner, one.bytes.used, one.bytes.grace) for one in found.known] == [
        ("user", "bob", 150 * KIB, Grace.RUNNING),
        ("group", "staff", 2 * KIB, Grace.NONE),
    ]
    assert was_asked(tools, "quota") == ["-u -v -w -p -f /home", "-g -v -w -p -f /home"]


def test_a_user_without_a_quota_is_distinguished_from_an_unknown_quota(tools: Path) -> None:
    script(tools, "quota", "echo 'Disk quotas for user bob (uid 1000): none'")
    assert quotas_of(NFS, "/home/bob", OWNER) == Quotas()


FILESETS = (
    GPFS_HEADER
    + gpfs("USR", ME, "bob", "1:0:9:0:none", "1:0:0:0:none", "home")
    + gpfs("USR", ME, "bob", "2:0:9:0:none", "1:0:0:0:none", "scratch")
    + gpfs("USR", 7, "other", "3:0:9:0:none", "1:0:0:0:none")
    + gpfs("GRP", STAFF, "staff", "4:0:9:0:none", "1:0:0:0:none")
)


def test_only_gpfs_quotas_of_the_folders_fileset_count(tools: Path, tmp_path: Path) -> None:
    mmfs = tmp_path / "mmfs"
    (tools / "mmlsquota").unlink()
    of_fileset = GPFS_HEADER + gpfs("FILESET", 3, "scratch", "50:0:60:0:none", "1:0:0:0:none")
    script(mmfs, "mmlsquota", f"case $2 in -j) printf %s '{of_fileset}';; *) printf %s '{FILESETS}';; esac")
    found = quotas_of(GPFS, "/gpfs/fs1/x", OWNER)
    # Without mmlsattr, iodock cannot know which of the user's two rows applies. The group's number is the
    # same in both.
    assert [(one.kind, one.bytes.used) for one in found.known] == [("group", 4 * KIB)]
    assert ["each fileset has its own" in one for one in why(found)] == [True]
    script(mmfs, "mmlsattr", "echo 'fileset name:         scratch'")
    found = quotas_of(GPFS, "/gpfs/fs1/x", OWNER)
    assert [(one.kind, one.bytes.used) for one in found.known] == [
        ("user", 2 * KIB),
        ("group", 4 * KIB),
        ("fileset", 50 * KIB),
    ]
    assert was_asked(mmfs, "mmlsquota")[-2:] == ["-Y fs1", "-Y -j scratch fs1"]


MIB = 1 << 20


@pytest.mark.parametrize(
    ("of_bytes", "left"),
    [
        (Allowance(0, None, None), None),
        (Allowance(10, None, 15), 5),
        (Allowance(20, 10, 15), 0),
        (Allowance(12, 10, 15, Grace.RUNNING), 3),
        (Allowance(12, 10, None, Grace.OVER), 0),
        (Allowance(12, 10, None, Grace.RUNNING), None),
        (Allowance(20, 10, 15, Grace.OVER, is_exact=False), None),
    ],
)
def test_the_remaining_space_follows_from_limit_and_use(of_bytes: Allowance, left: int | None) -> None:
    assert of_bytes.left == left


def test_a_check_up_is_refused_only_if_space_is_known_to_be_missing() -> None:
    free = Allowance(0, None, None)

    def noted(of_bytes: Allowance, of_files: Allowance) -> list[str]:
        known = (Quota("user", "bob", of_bytes, of_files),)
        return [one.text for one in check_room(Quotas(known), "/scratch", 100 * MIB, 100)]

    enough, margin = 106 * MIB, 121
    assert not noted(Allowance(0, None, enough), Allowance(0, None, margin))
    with pytest.raises(IodockError, match="bytes left of the quota of user bob"):
        noted(Allowance(0, None, enough - 1), free)
    with pytest.raises(IodockError, match="files left of the quota"):
        noted(free, Allowance(0, None, margin - 1))
    (said,) = noted(Allowance(0, None, 1, is_exact=False), free)
    assert "uncertain" in said
    (said,) = noted(Allowance(0, enough - 1, None), free)
    assert "soft limit" in said
    (said,) = noted(free, Allowance(0, margin - 1, margin))
    assert "soft limit" in said


def test_a_check_up_does_not_start_without_free_space(tools: Path, tmp_path: Path) -> None:
    """A sitecustomize that the command loads reports the folder's file system as Lustre."""
    place, fake = tmp_path / "place", tmp_path / "fake"
    place.mkdir()
    fake.mkdir()
    (fake / "sitecustomize.py").write_text(
        "from dataclasses import replace\nfrom iodock.file_system.health import mounts\n"
        "before = mounts.mount_of\n"
        "mounts.mount_of = lambda *of: replace(before(*of), fs_type='lustre')\n"
    )
    environment = {
        **ALONE,
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{fake}:{os.environ.get('PYTHONPATH', '')}",
    }
    arguments = ["--tests", "metadata", "--processes", "1"]

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, "run", str(place), *arguments, "-o", str(tmp_path / "r.json")],
            capture_output=True, text=True, timeout=120, env=environment,
        )  # fmt: skip

    script(tools, "lfs", "[ $1 = quota ] && echo '/scratch 5 0 0 - 990 0 1000 -'")
    refused = run()
    assert refused.returncode == 1, refused.stderr
    assert "10 files left of the quota of user" in refused.stderr and "hint: free space" in refused.stderr
    assert not contents(place) and not list(tmp_path.glob("*.partial"))
    script(tools, "lfs", "echo 'lfs: no' >&2; exit 1")
    done = run()
    assert done.returncode == 0, done.stderr
    assert (
        "note: your quota is unknown, because `lfs quota -u" in done.stderr
        and "failed: lfs: no" in done.stderr
    )


def test_a_quota_with_unknown_use_does_not_count_as_unused() -> None:
    row = f"{HEADING}/scratch  [0]  102400  204800  -  105  0  0  -\n"
    (quota,) = quotas_in(row, "user", "1000")
    assert (quota.bytes.used, quota.bytes.left, quota.files.used) == (None, None, 105)
    assert list(shares_used([quota])) == []
    text = quota_words(quota, language_in("en"))
    assert "unknown used" in text and "0 B" not in text
    assert _quota(quota)["bytes"] == {
        "used": None,
        "soft": 102400 * KIB,
        "hard": 204800 * KIB,
        "grace": "none",
        "left": None,
        "exact": False,
    }


def test_invalid_numbers_are_unknown() -> None:
    (quota,) = quotas_in("/scratch 1.2.3 4.5.6 1e99 - 105 0 0 -\n/scratch 5 1..2 9 - 1 0 0 -", "user", "1000")
    assert (quota.bytes.used, quota.bytes.soft, quota.bytes.is_exact) == (5 * KIB, None, False)
