"""Tests matching mounts of a run to the monitor's file systems."""

from __future__ import annotations

import pytest

from iodock.centre.alongside.systems import system_of
from iodock.shared.meanwhile import MountedAs

KNOWN = ("lfs", "work", "nas:/export", "nas:/export/home")


@pytest.mark.parametrize(
    ("fs_type", "source", "found"),
    [
        ("lustre", "10.0.0.1@tcp:/lfs", "lfs"),
        ("lustre", "10.0.0.1@tcp:10.0.0.2@tcp:/work", "work"),
        ("lustre", "10.0.0.1@tcp:/lfs/project", "lfs"),
        ("lustre", "10.0.0.1@tcp:/other", None),
        ("nfs4", "nas:/export", "nas:/export"),
        ("nfs4", "nas:/export/home/me", "nas:/export/home"),
        ("nfs4", "nas:/exports", None),
        ("nfs4", "nas2:/export", None),
        ("ext4", "/dev/sda1", None),
        ("ext4", None, None),
        ("tmpfs", "lfs", "lfs"),
    ],
)
def test_a_monitored_file_system_is_found_by_its_mount(
    fs_type: str, source: str | None, found: str | None
) -> None:
    assert system_of(MountedAs("/x", fs_type, source), KNOWN) == found


def test_settings_take_precedence_over_the_mount() -> None:
    assert system_of(MountedAs("/x", "fuse", "odd", monitored_as="work"), KNOWN) == "work"
    assert system_of(MountedAs("/x", "lustre", "a@tcp:/lfs", monitored_as="new"), KNOWN) == "new"
