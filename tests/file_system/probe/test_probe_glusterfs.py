"""Tests probes on a real network file system over loopback: GlusterFS with delays, and with a stopped brick.

Needs root, /dev/fuse and `apt-get install --no-install-recommends glusterfs-server glusterfs-client`.
glusterd refuses loopback, so the test does not use it: brick and client read their volume files directly."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from iodock.file_system.probe.episodes import slow_points
from iodock.file_system.probe.history import Watch
from iodock.file_system.probe.operations import ROUND
from iodock.file_system.probe.records import Kind, Late
from iodock.file_system.probe.rounds import Plan, Prober

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("glusterfsd") or not Path("/dev/fuse").exists(),
        reason="GlusterFS is not installed, or this is not root",
    ),
]
DELAY_US = 500_000
BRICK = """\
volume posix
    type storage/posix
    option directory {folder}
end-volume
volume locks
    type features/locks
    subvolumes posix
end-volume
volume delay
    type debug/delay-gen
    option delay-percentage {percentage}
    option delay-duration {delay_us}
    option enable write,lookup,create
    subvolumes locks
end-volume
volume threads
    type performance/io-threads
    option thread-count 4
    subvolumes delay
end-volume
volume brick
    type debug/io-stats
    option volume-id probe
    option unique-id brick
    subvolumes threads
end-volume
volume server
    type protocol/server
    option transport-type tcp
    option transport.address-family inet
    option transport.socket.bind-address 127.0.0.1
    option transport.socket.listen-port {port}
    option auth.addr.brick.allow 127.0.0.1
    subvolumes brick
end-volume
"""
CLIENT = """\
volume client
    type protocol/client
    option transport-type tcp
    option remote-host 127.0.0.1
    option remote-port {port}
    option remote-subvolume brick
end-volume
"""


@dataclass(frozen=True)
class Mounted:
    """A mounted GlusterFS with one brick."""

    folder: Path
    brick: int
    """Process id."""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def wait_for(port: int) -> None:
    until = time.monotonic() + 30
    while True:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < until, "the brick does not listen"
        time.sleep(0.1)


def set_up(folder: Path, percentage: int) -> Iterator[Mounted]:
    port, mount, data = free_port(), folder / "mount", folder / "data"
    mount.mkdir()
    data.mkdir()
    server, client = folder / "brick.vol", folder / "client.vol"
    server.write_text(BRICK.format(folder=data, port=port, percentage=percentage, delay_us=DELAY_US))
    client.write_text(CLIENT.format(port=port))
    log = ["-l", str(folder / "log")]
    brick = subprocess.Popen(["glusterfsd", "-N", "-f", server, *log, "-p", folder / "brick.pid"])
    try:
        wait_for(port)
        fuse = ["glusterfs", "-f", client, "--volfile-id", "probe", *log, "-p", folder / "pid", mount]
        subprocess.run(fuse, check=True, timeout=60)
        until = time.monotonic() + 30
        while not os.path.ismount(mount):
            assert time.monotonic() < until, "is not mounted"
            time.sleep(0.1)
        yield Mounted(mount, brick.pid)
    finally:
        brick.send_signal(signal.SIGCONT)
        subprocess.run(["umount", "-l", str(mount)], check=False, timeout=60)
        brick.kill()
        brick.wait(30)


@pytest.fixture
def delayed(tmp_path: Path) -> Iterator[Mounted]:
    """Mounts a GlusterFS that delays 1 % of writes, lookups and creations by half a second."""
    yield from set_up(tmp_path, 1)


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Mounted]:
    yield from set_up(tmp_path, 0)


def test_injected_delays_are_found_as_outliers(delayed: Mounted) -> None:
    prober = Prober(Plan("run", str(delayed.folder), False, 20.0, 65536))
    watch = Watch("here", "gluster", False, 1.0, 20.0)
    for number in range(200):
        watch.add(prober.round(number))
    watch.finish()
    assert watch.rounds == 200 and not watch.troubles
    delays = found = 0
    for operation, series in watch.series.items():
        delayed_ones = {
            ts for ts, ns in zip(series.times, series.spans, strict=True) if ns >= DELAY_US * 1000
        }
        points = {one.ts for one in slow_points(operation, series)}
        assert delayed_ones <= points
        delays, found = delays + len(delayed_ones), found + len(points)
    # 200 rounds make about 2,000 lookups, creations and writes. Other isolated delays come from this machine.
    assert delays >= 3 and found <= 2 * delays + 5
    assert not list(delayed.folder.iterdir())


def test_a_stopped_glusterfs_brick_is_recorded_without_hanging(quick: Mounted) -> None:
    limit = 1.0
    prober = Prober(Plan("run", str(quick.folder), False, limit, 65536))
    assert prober.round(0).is_good
    os.kill(quick.brick, signal.SIGSTOP)
    began = time.monotonic()
    stopped = [prober.round(number) for number in range(1, 5)]
    # The operations of a round wait together until the limit at most once, because no thread of iodock blocks
    # in the file system.
    assert time.monotonic() - began < 4 * limit * len(ROUND)
    kinds = [{outcome.kind for outcome in one.outcomes.values()} for one in stopped]
    assert Kind.NO_ANSWER in kinds[0] and all(Kind.WAITING in one for one in kinds[1:])
    assert 1 <= prober.children() <= len(ROUND)
    os.kill(quick.brick, signal.SIGCONT)
    late: list[Late] = []
    until = time.monotonic() + 60
    while prober.children():
        late += prober.late()
        assert time.monotonic() < until, "children stay"
        time.sleep(0.05)
    # The child process measures the time, and its clock starts slightly after that of the limit.
    assert late and all(one.ns > 0.9 * limit * 1e9 for one in late)
    assert prober.round(9).is_good
    assert not list(quick.folder.iterdir())
