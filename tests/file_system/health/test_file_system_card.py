"""Tests the card of a file system, made from mount tables and tool outputs of other machines."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from in_process import asked, printed
from iodock.file_system.health.card import Space, caches_of, options_of, remarks_of, servers_of
from iodock.file_system.health.commands import Stripes, output_of, stripes_in, stripes_of
from iodock.file_system.health.mount_options import FAMILIES, OPTIONS, explanation
from iodock.file_system.health.mounts import Mount, mount_of, mounts
from iodock.file_system.health.quotas import Allowance, Grace, Quota, Quotas
from iodock.shared.language import language_in
from iodock.shared.settings import kind_of
from mount_tables import MOUNTINFO


@pytest.fixture
def table() -> tuple[Mount, ...]:
    return mounts(MOUNTINFO)


def at(point: str, table: tuple[Mount, ...]) -> Mount:
    (found,) = [one for one in table if one.point == point][:1]
    return found


def test_the_mount_table_is_read(table: tuple[Mount, ...]) -> None:
    assert len(table) == 11
    assert at("/mnt/with blank", table).source == "//nas/share"
    assert dict(at("/home", table).options)["rsize"] == "1048576"
    assert "rw" not in dict(table[-1].options)


@pytest.mark.parametrize(
    ("folder", "point", "source"),
    [
        ("/home", "/home", "fs1:/export/home"),
        ("/home/me", "/home", "fs1:/export/home"),
        ("/homes", "/", "/dev/sda2"),
        ("/home/old/x", "/home/old", "fs3:/hidden"),
        ("/", "/", "/dev/sda2"),
    ],
)
def test_a_folder_belongs_to_the_deepest_and_last_mount(
    folder: str, point: str, source: str, table: tuple[Mount, ...]
) -> None:
    found = mount_of(folder, table)
    assert found is not None and (found.point, found.source) == (point, source)


def test_the_device_decides_between_mounts_at_the_same_point(table: tuple[Mount, ...]) -> None:
    found = mount_of("/home/old", table, os.makedev(0, 51))
    assert found is not None and found.source == "fs2:/old"
    assert mount_of("/home/old", table, os.makedev(9, 9)) == mount_of("/home/old", table)


@pytest.mark.parametrize(
    ("point", "unknown"),
    [
        ("/", []),
        ("/scratch", []),
        ("/home", []),
        ("/home/old", []),
        ("/work", ["nouser_xattr", "lruresize"]),
        ("/gpfs/fs1", ["nfssync"]),
        ("/dev/shm", []),
        ("/merged", []),
        ("/gl", []),
        ("/mnt/with blank", []),
    ],
)
def test_every_common_mount_option_is_explained(
    point: str, unknown: list[str], table: tuple[Mount, ...]
) -> None:
    options = options_of(at(point, table))
    assert len(options) == len(at(point, table).options)
    assert [one.name for one in options if one.meaning is None] == unknown


def test_the_meaning_of_an_option_depends_on_the_file_system_type() -> None:
    assert explanation("nfs4", "hard") == explanation("nfs", "hard") != explanation("cifs", "hard")
    assert explanation("fuse.sshfs", "max_read") and explanation("xfs", "hard") is None
    assert set(FAMILIES.values()) <= set(OPTIONS)
    text = language_in("ja")
    for options in OPTIONS.values():
        assert not [meaning for meaning in options.values() if text.gettext(meaning) == meaning]


@pytest.mark.parametrize(
    ("point", "servers", "kind"),
    [
        ("/", (), "local"),
        ("/home", ("fs1", "10.0.0.1"), "network"),
        ("/work", ("10.1.0.1@o2ib", "10.1.0.2@o2ib"), "parallel"),
        ("/gpfs/fs1", (), "parallel"),
        ("/gl", ("gl1",), "network"),
        ("/mnt/with blank", ("nas",), "network"),
    ],
)
def test_servers_and_kinds_of_file_systems_are_recognised(
    point: str, servers: tuple[str, ...], kind: str, table: tuple[Mount, ...]
) -> None:
    assert servers_of(at(point, table)) == servers
    assert kind_of(at(point, table).fs_type) == kind


def test_only_slow_settings_get_remarks(table: tuple[Mount, ...]) -> None:
    said = [one.text for one in remarks_of(at("/home/old", table), None, None, None)]
    found = [
        word
        for word in ("sync", "noac", "soft", "UDP")
        if any(f"with {word}" in one or word in one for one in said)
    ]
    assert found == ["sync", "noac", "soft", "UDP"] and len(said) == 6
    roomy = Space(1000, 500, 1000, 500, 4096, 255)
    roomy_quota = (quota("u", Allowance(1, None, 100), Allowance(1, 100, 100)),)
    assert not list(remarks_of(at("/home", table), roomy, Stripes(4, 1 << 20), Quotas(roomy_quota)))
    full = Space(1000, 49, 1000, 49, 4096, 255)
    few = Allowance(5, None, None)
    close = (
        quota("u", Allowance(96, 100, 200), few),
        quota("g", few, Allowance(96, None, 100)),
        quota("h", few, few),
        quota("i", Allowance(150, 100, 200, Grace.RUNNING), few),
        quota("j", few, Allowance(150, 100, 200, Grace.OVER)),
    )
    found = list(remarks_of(at("/", table), full, Stripes(-1, 1), Quotas(close)))
    assert len(found) == 7 and "all targets" in found[2].text
    assert [one.values["owner"] for one in found[3:]] == ["u", "g", "i", "j"]
    assert "grace period" in found[5].text and "writing fails" in found[6].text


def quota(owner: str, of_bytes: Allowance, of_files: Allowance) -> Quota:
    return Quota("user", owner, of_bytes, of_files)


LFS_OLD = "/work\nstripe_count:   4 stripe_size:    1048576 stripe_offset:  -1\n"
LFS_NEW = "stripe_count:  -1 stripe_size:   4194304 pattern:       raid0 stripe_offset: -1 pool: flash\n"
LFS_LONG = "lmm_stripe_count:  2\nlmm_stripe_size:   1048576\nlmm_pattern: raid0\n"
LFS_COMPOSITE = """  lcm_layout_gen:    0
  lcm_entry_count:   2
    lcme_id:             N/A
      stripe_count:  1       stripe_size:   1048576       pattern:       raid0
    lcme_id:             N/A
      stripe_count:  8       stripe_size:   4194304       pattern:       raid0
"""


@pytest.mark.parametrize(
    ("said", "stripes"),
    [
        (LFS_OLD, Stripes(4, 1 << 20)),
        (LFS_NEW, Stripes(-1, 4 << 20, "flash")),
        (LFS_LONG, Stripes(2, 1 << 20)),
        (LFS_COMPOSITE, Stripes(1, 1 << 20)),
        ("nothing of it", None),
        ("stripe_count: many stripe_size: 1", None),
    ],
)
def test_stripe_settings_are_read_from_lfs(said: str, stripes: Stripes | None) -> None:
    assert stripes_in(said) == stripes


def fake_tool(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_file_system_tools_are_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: tuple[Mount, ...]
) -> None:
    work = at("/work", table)
    monkeypatch.setenv("PATH", "/nowhere")
    assert stripes_of("/work", work) is None
    fake_tool(tmp_path, "lfs", f"case $1 in getstripe) echo '{LFS_NEW.strip()}';; esac")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert stripes_of("/work", work) == Stripes(-1, 4 << 20, "flash")
    assert stripes_of("/", at("/", table)) is None


def test_a_hanging_or_failing_tool_is_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_tool(tmp_path, "hangs", "echo begun; sleep 1000")
    fake_tool(tmp_path, "fails", "echo wrong; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    began = time.monotonic()
    assert output_of(["hangs"], 0.3) is None
    assert time.monotonic() - began < 30
    assert output_of(["fails"]) is None and output_of(["is-not-there"]) is None


def test_caches_are_read_from_proc_and_sys(tmp_path: Path, table: tuple[Mount, ...]) -> None:
    for name, content in {
        "sys/class/bdi/253:0/read_ahead_kb": "4096",
        "sys/dev/block/253:0/queue/rotational": "0",
        "sys/dev/block/253:0/queue/scheduler": "none [mq-deadline] kyber",
        "sys/fs/lustre/llite/work-0/max_read_ahead_mb": "64",
        "sys/fs/lustre/osc/a/max_dirty_mb": "32",
        "sys/fs/lustre/osc/b/max_dirty_mb": "32",
        "proc/sys/vm/dirty_ratio": "20",
        "proc/sys/vm/dirty_expire_centisecs": "3000",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content + "\n")
    found = caches_of(at("/scratch", table), tmp_path / "proc", tmp_path / "sys")
    values = {one.name: one.value for one in found}
    assert values["read_ahead"] == "4096 KiB" and values["rotational"] == "no"
    assert (
        values["scheduler"] == "mq-deadline"
        and values["dirty_ratio"] == "20 %"
        and values["dirty_expire"] == "30 s"
    )
    assert values["max_dirty_mb"] == "32" and values["max_read_ahead_mb"] == "64"


def card(*arguments: object) -> str:
    return printed("fs", *arguments)


def test_the_card_of_this_machine_is_written_in_every_format(tmp_path: Path) -> None:
    point = subprocess.run(
        ["stat", "-c", "%m", tmp_path], capture_output=True, text=True, check=True, timeout=10
    ).stdout.strip()
    site = tmp_path / "site.toml"
    site.write_text(f'[file_systems."{point}"]\nlink_bytes_per_s = 125_000_000\nmetadata_per_s = 1500\n')
    known = json.loads(card(tmp_path, "--format", "json", "--settings", site))
    seen = os.statvfs(tmp_path)
    assert known["mount_point"] == point and known["typical"] == {
        "link_bytes_per_s": 125e6,
        "metadata_per_s": 1500,
    }
    assert known["space"]["size_bytes"] == seen.f_blocks * seen.f_frsize
    assert known["space"]["block_bytes"] == seen.f_bsize and known["options"]
    table = card(tmp_path, "--settings", site, "--lang", "en")
    assert f"mounted at        {point}\n" in table and "119 MiB/s" in table and "Mount options" in table
    motd = card(tmp_path, "--format", "motd", "--settings", site, "--lang", "en")
    assert motd.startswith(f"{point}: ") and "1,500: metadata calls per second" in motd
    card(tmp_path, "-o", tmp_path / "card.html", "--settings", site, "--lang", "ja")
    page = (tmp_path / "card.html").read_text()
    assert '<html lang="ja">' in page and "マウント" in page and "<script" not in page


def test_a_missing_folder_gives_an_error(tmp_path: Path) -> None:
    status, _, said = asked("fs", tmp_path / "no")
    assert status == 2 and "no: no such folder" in said
