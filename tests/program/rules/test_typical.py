"""Tests a run against a site's typical values: rates of small calls, and more processes than at the knee of
the curve."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Diagnosis
from iodock.shared.settings import FileSystem, Settings
from metadata_log import FIRST, Trace
from timed_strace import mounted

pytestmark = pytest.mark.whole

HOME = {"/data": FileSystem(metadata_per_s=10_000, small_read_per_s=20_000, small_write_per_s=20_000)}


def said(diagnosis: Diagnosis) -> list[dict[str, object]]:
    return [dict(one.values) for one in diagnosis.remarks]


def stats(folder: Path, took_us: int, times: int = 1000) -> Path:
    log = Trace()
    for _ in range(times):
        log.call('stat("/data/in", {st_mode=S_IFREG|0644, st_size=5, ...})', "0", took_us)
    return mounted(log.imported(folder, 1), "/data", "nfs4")


@pytest.mark.parametrize(("took_us", "slow"), [(100, False), (199, False), (201, True), (1000, True)])
def test_a_rate_below_half_of_the_typical_one_is_slow(tmp_path: Path, took_us: int, slow: bool) -> None:
    store = stats(tmp_path, took_us)
    usual, found = diagnosed(store), diagnosed(store, Settings(file_systems=HOME))
    (before,), (after,) = of_rule(usual, "stat-storm"), of_rule(found, "stat-storm")
    assert after.confidence == pytest.approx(before.confidence + (-0.2 if slow else 0.1))
    assert usual.remarks == ()
    (remark,) = found.remarks
    assert remark.values == {"mount": "/data", "measured": round(1e6 / took_us), "typical": 10_000}
    assert ("slower than usual" in remark.text) == slow


def test_few_calls_and_other_mounts_are_not_compared(tmp_path: Path) -> None:
    elsewhere = {"/home": FileSystem(metadata_per_s=10_000)}
    store = stats(tmp_path, 1000)
    assert diagnosed(store, Settings(file_systems=elsewhere)).remarks == ()
    (tmp_path / "few").mkdir()
    few = stats(tmp_path / "few", 1000, 199)
    assert diagnosed(few, Settings(file_systems=HOME)).remarks == ()


@pytest.mark.parametrize(("typical", "fast"), [(3_400, False), (3_300, True), (10, True)])
def test_a_rate_far_above_the_typical_one_comes_from_a_cache(
    tmp_path: Path, typical: float, fast: bool
) -> None:
    store = stats(tmp_path, 100)
    settings = Settings(file_systems={"/data": FileSystem(metadata_per_s=typical)})
    usual, found = diagnosed(store), diagnosed(store, settings)
    (before,), (after,) = of_rule(usual, "stat-storm"), of_rule(found, "stat-storm")
    assert after.confidence == pytest.approx(before.confidence + (0 if fast else 0.1))
    (remark,) = found.remarks
    assert ("a cache answered" in remark.text) == fast
    assert ("as usual there" in remark.text) != fast


@pytest.mark.parametrize(("size", "compared"), [(4096, True), (4097, False)])
def test_small_reads_and_writes_have_their_own_typical_rates(
    tmp_path: Path, size: int, compared: bool
) -> None:
    log = Trace()
    log.open("/data/f")
    for _ in range(300):
        log.read(size, 200)
        log.write(size, 50)
    found = diagnosed(mounted(log.imported(tmp_path, 1), "/data", "nfs4"), Settings(file_systems=HOME))
    rates = [(one["measured"], one["typical"]) for one in said(found)]
    assert rates == ([(5_000, 20_000), (20_000, 20_000)] if compared else [])


@pytest.mark.parametrize(
    ("stream", "wait_us", "said_so"),
    # A write of 4 KiB in 50 us is 82 MB/s, and all writes take 15 ms.
    [(81_920_000 * 4, 0, True), (81_920_000 * 3.9, 0, False), (81_920_000 * 4, 1_000_000, False)],
)
def test_small_writes_are_compared_with_the_rate_of_one_stream(
    tmp_path: Path, stream: float, wait_us: int, said_so: bool
) -> None:
    log = Trace()
    log.open("/data/f")
    for _ in range(300):
        log.write(4096, 50)
    log.pause(wait_us)
    log.write(4096, 50)
    settings = Settings(file_systems={"/data": FileSystem(write_bytes_per_s=stream)})
    found = said(diagnosed(mounted(log.imported(tmp_path, 1), "/data", "nfs4"), settings))
    expected = {
        "mount": "/data",
        "mean_bytes": 4096,
        "rate_bytes_per_s": 81_920_000,
        "stream_share": pytest.approx(0.25),
        "stream_bytes_per_s": stream,
    }
    assert found == ([expected] if said_so else [])


@pytest.mark.parametrize(
    ("size", "knee", "stream", "said_so"),
    [
        (65536, 1 << 20, None, True),
        (524288, 1 << 20, None, True),
        # A request that is, or may be, as large as at the knee does not count as smaller.
        (524289, 1 << 20, None, False),
        (1 << 20, 1 << 20, None, False),
        (65536, 65537, None, True),
        (65536, 65536, None, False),
        # 64 KiB in 50 us are 1.31 GB/s. A small request as fast as a sequential one came from a cache.
        (65536, 1 << 20, 1.31072e9 / 0.75, True),
        (65536, 1 << 20, 1.31e9 / 0.75, False),
    ],
)
@pytest.mark.parametrize("is_read", [True, False])
def test_requests_below_the_efficient_size_are_found(
    tmp_path: Path, size: int, knee: int, stream: float | None, said_so: bool, is_read: bool
) -> None:
    log = Trace()
    log.open("/data/f")
    for _ in range(300):
        (log.read if is_read else log.write)(size, 50)
    store = mounted(log.imported(tmp_path, 1), "/data", "nfs4")
    mine = (
        FileSystem(read_knee_bytes=knee, read_bytes_per_s=stream)
        if is_read
        else FileSystem(write_knee_bytes=knee, write_bytes_per_s=stream)
    )
    other = FileSystem(write_knee_bytes=knee) if is_read else FileSystem(read_knee_bytes=knee)
    expected = {
        "mount": "/data",
        "mean_bytes": size,
        "rate_bytes_per_s": pytest.approx(size / 50e-6),
        "knee_bytes": knee,
    }
    found = diagnosed(store, Settings(file_systems={"/data": mine}))
    assert [one for one in said(found) if "knee_bytes" in one] == ([expected] if said_so else [])
    assert not said(diagnosed(store, Settings(file_systems={"/data": other, "/home": mine})))


def test_few_or_cheap_requests_below_the_efficient_size_are_not_reported(tmp_path: Path) -> None:
    settings = Settings(file_systems={"/data": FileSystem(write_knee_bytes=1 << 20)})
    for name, count, pause_us in (("few", 199, 0), ("cheap", 300, 1_000_000)):
        log = Trace()
        log.open("/data/f")
        for _ in range(count):
            log.write(65536, 50)
        log.pause(pause_us)
        (tmp_path / name).mkdir()
        assert not said(diagnosed(mounted(log.imported(tmp_path / name, 1), "/data", "nfs4"), settings))


@pytest.mark.parametrize(("knee", "crowded"), [(3, True), (4, False)])
def test_more_processes_than_the_efficient_number_are_found(tmp_path: Path, knee: int, crowded: bool) -> None:
    log = Trace()
    for number in range(8):
        pid = FIRST + 1 + number
        log.start(pid)
        log.pause(50_000 * (number // 4), pid)  # Four processes run at a time.
        for part in range(10):
            log.open(f"/data/part{part}", took_us=1000, pid=pid)
            log.close(pid=pid)
    store = mounted(log.imported(tmp_path, 1), "/data", "nfs4")
    settings = Settings(file_systems={"/data": FileSystem(stat_knee_processes=knee)})
    expected = [{"mount": "/data", "processes": 4, "knee": knee}] if crowded else []
    assert said(diagnosed(store, settings)) == expected
