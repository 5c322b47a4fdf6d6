"""Tests the simulated `lctl`: it answers as Lustre's does, and the simulation obeys it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from iodock.shared.errors import RequestError
from iodock.simulation.tree import Tree
from simulated import played, wanted


def lctl(tree: Tree, *words: str, server: str = "mds01") -> tuple[int, str, str]:
    command = [tree.root / server / "usr/sbin/lctl", *words]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return told.returncode, told.stdout, told.stderr


@pytest.fixture
def centre_tree(tmp_path: Path) -> Tree:
    return played(tmp_path / "a centre [1]", "healthy", 600)


def test_lctl_shows_parameters(centre_tree: Tree) -> None:
    folder = centre_tree.root / "mds01/proc/fs/lustre/mdt/lfs-MDT0000"
    job_stats = (folder / "job_stats").read_text()
    answer = lctl(centre_tree, "get_param", "mdt.*.job_stats")
    assert answer == (0, f"mdt.lfs-MDT0000.job_stats=\n{job_stats}", "")
    assert lctl(centre_tree, "get_param", "-n", "mdt.*.job_stats") == (0, job_stats, "")
    assert lctl(centre_tree, "get_param", "version") == (0, "version=2.15.4\n", "")
    both = lctl(centre_tree, "get_param", "*.*.job_cleanup_interval", server="oss01")
    names = ("lfs-OST0000", "lfs-OST0001")
    assert both == (0, "".join(f"obdfilter.{name}.job_cleanup_interval=600\n" for name in names), "")
    assert lctl(centre_tree, "get_param", "-n", "mds.MDS.mdt.stats")[1].startswith("snapshot_time   ")


def test_lctl_lists_parameters(centre_tree: Tree) -> None:
    listed = lctl(centre_tree, "list_param", "mdt.*.*", "mds.MDS.*.stats")
    names = ["job_cleanup_interval", "job_stats", "md_stats"]
    lines = [*(f"mdt.lfs-MDT0000.{name}" for name in names), "mds.MDS.mdt.stats"]
    assert listed == (0, "".join(f"{line}\n" for line in lines), "")
    assert lctl(centre_tree, "get_param", "-N", "mdt.*.*")[1].splitlines() == lines[:3]


@pytest.mark.parametrize("pattern", ["job_stats", "*.job_stats", "obdfilter.lfs-OST0001.job_stats"])
def test_lctl_clears_job_stats(centre_tree: Tree, pattern: str) -> None:
    folder = centre_tree.root / "oss01/proc/fs/lustre/obdfilter/lfs-OST0001"
    before = wanted(centre_tree, True)
    name = "obdfilter.lfs-OST0001.job_stats=clear\n"
    status, said, complaint = lctl(centre_tree, "set_param", f"{pattern}=clear", server="oss01")
    assert (status, complaint) == (0, "") and said.endswith(name)
    assert (folder / "job_stats").read_text() == "job_stats:\n"
    cleared_ns = centre_tree.centre.now_ns
    centre_tree.write()
    target = next(one for one in centre_tree.centre.targets if one.name == "lfs-OST0001")
    assert not target.entries
    # Clearing does not change the true counts of earlier operations.
    assert wanted(centre_tree, True) == before
    centre_tree.centre.advance(60)
    centre_tree.write()
    assert target.entries and all(entry.start_ns >= cleared_ns for entry in target.entries.values())
    assert (folder / "job_stats").read_text().count("job_id") == len(target.entries)


def test_lctl_sets_the_cleanup_interval(centre_tree: Tree) -> None:
    answer = lctl(centre_tree, "set_param", "*.job_cleanup_interval=70", server="oss01")
    names = ("lfs-OST0000", "lfs-OST0001")
    assert answer == (0, "".join(f"obdfilter.{name}.job_cleanup_interval=70\n" for name in names), "")
    centre_tree.write()
    (centre_tree.root / "oss02/proc/fs/lustre/obdfilter/lfs-OST0002/job_cleanup_interval").write_text("soon")
    with pytest.raises(RequestError, match=r"job_cleanup_interval: 'soon' is no number of seconds"):
        centre_tree.write()
    intervals = {target.name: target.cleanup_s for target in centre_tree.centre.targets}
    assert [intervals[f"lfs-OST000{n}"] for n in range(4)] == [70, 70, 600, 600]
    shown = lctl(centre_tree, "get_param", "-n", "*.lfs-OST0000.job_cleanup_interval", server="oss01")
    assert shown == (0, "70\n", "")


@pytest.mark.parametrize(
    "words",
    [
        ("get_param", "no.such.thing"),
        ("set_param", "mdt.*.md_stats=0"),
        ("set_param", "job_cleanup_interval=-5"),
        ("set_param", "job_cleanup_interval="),
        ("get_param", "-x", "version"),
        ("dl",),
        (),
    ],
)
def test_lctl_refuses_invalid_parameters(centre_tree: Tree, words: tuple[str, ...]) -> None:
    status, _, complaint = lctl(centre_tree, *words)
    assert status != 0 and complaint
    centre_tree.write()
    assert {target.cleanup_s for target in centre_tree.centre.targets} == {600}
