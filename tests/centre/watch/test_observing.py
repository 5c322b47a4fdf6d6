"""Tests how a store's rows become observations, and what other machines report about a server."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from batches import COUNT, LEVEL, Entry, Event, Part, frame
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.watch.observation import SECOND
from iodock.centre.watch.observing import Observer
from iodock.centre.watch.watching import Watching
from iodock.shared.settings import ServerStates

TIME, SUM = 2, 3
STEP = 10 * SECOND


def begin_of_day() -> int:
    """Returns a multiple of the step that is some minutes ago."""
    return (time.time_ns() - 600 * SECOND) // STEP * STEP


def machine(at: int, number: int, wrong: int = 0) -> list[Part]:
    """Returns one reading of a metadata server: 100 requests that wait 2 ms, 6 of 24 threads busy, a quarter
    of the CPU used."""
    at += wrong
    handled = number * 100
    service = {
        ("req_waittime", COUNT): handled, ("req_waittime", TIME): handled * 2000,
        ("req_qdepth", COUNT): handled, ("req_qdepth", SUM): handled * 3,
        ("req_active", COUNT): handled, ("req_active", SUM): handled * 6,
    }  # fmt: skip
    cpu = {
        ("system", TIME): number * 25,
        ("idle", TIME): number * 75,
        ("uptime_s", LEVEL): 1000 + number * 10,
    }
    jobs = [
        Entry(
            "5:7:n1",
            {("open", COUNT): number * 40, ("mknod", COUNT): number * 4},
            start=1,
            updated=at,
        )
    ]
    return [
        Part(at, [Entry("", service, evidence=0)], "mds_stats", "", "mdt", full=number == 0),
        Part(at + 300_000_000, [Entry("", cpu, evidence=0)], "cpu", "", "cpu", full=number == 0),
        Part(
            at, [Entry("", {("load1_percent", LEVEL): 150}, evidence=0)], "load", "", "load", full=number == 0
        ),
        Part(at, jobs, "mdt_job_stats", "lfs", "lfs-MDT0000", full=number == 0),
    ]


def pushed(folder: Path, readings: int, wrong: int = 0) -> tuple[Collector, int]:
    """Returns a collector with READINGS, and the time of the last one."""
    collector, begin = Collector(folder), begin_of_day()
    for number in range(readings):
        at = begin + number * STEP
        collector.push(frame(number + 1, machine(at, number, wrong), spool=b"M" * 16, host="mds01"))
    collector.flush()
    return collector, begin + (readings - 1) * STEP


def test_an_observation_contains_the_agents_readings(tmp_path: Path) -> None:
    collector, last = pushed(tmp_path, 5)
    observer = Observer(collector.store, JobIds())
    found = observer.round(last + 3 * SECOND).observations
    one = found[-1]
    assert (one.host, one.file_system, one.kind) == ("mds01", "lfs", "metadata")
    assert (one.handled, one.opens, one.creates) == (100, 40, 4)
    assert one.wait_s == pytest.approx(2e-3) and one.waiting == 3 and one.threads == 6
    assert one.cpu == pytest.approx(0.25) and one.load == 1.5 and one.uptime_s == 1040
    assert one.seconds == 10 and one.pressure is None and one.operation_s is None
    # The observer returns each observation once.
    assert len(found) == 5 and observer.round(last + 5 * SECOND).observations == ()


def test_an_unchanged_counter_is_zero_and_not_unknown(tmp_path: Path) -> None:
    collector, last = pushed(tmp_path, 5)
    observer = Observer(collector.store, JobIds())
    observer.round(last + 3 * SECOND)
    parts = machine(last + STEP, 4)
    parts[1] = machine(last + STEP, 5)[1]
    collector.push(frame(6, parts, spool=b"M" * 16, host="mds01"))
    collector.flush()
    (one,) = observer.round(last + 13 * SECOND).observations
    assert one.handled == 0 and one.waiting is None and one.wait_s is None and one.cpu == pytest.approx(0.25)


@pytest.mark.parametrize("wrong_s", [-2400, -120, 120, 2400])
def test_a_server_with_a_wrong_clock_is_not_silent(tmp_path: Path, wrong_s: int) -> None:
    collector, last = pushed(tmp_path, 30, wrong_s * SECOND)
    watching = Watching(collector.store, limits=ServerStates(scheduler="none", usual_hours=1))
    watching.look(last + 3 * SECOND)
    for number in range(30, 40):
        at = last + (number - 29) * STEP
        collector.push(
            frame(number + 1, machine(at, number, wrong_s * SECOND), spool=b"M" * 16, host="mds01")
        )
        collector.flush()
        said = watching.look(at + 3 * SECOND)
    # The monitor notices a slow clock after some minutes.
    assert [one.state for one in said] == ["healthy"] or wrong_s < 0


@pytest.mark.parametrize("wrong_s", [120, 2400])
def test_a_clock_that_is_ahead_gives_each_sample_once(tmp_path: Path, wrong_s: int) -> None:
    collector, last = pushed(tmp_path, 30, wrong_s * SECOND)
    observer = Observer(collector.store, JobIds())
    observer.round(last + 3 * SECOND)
    for number in range(30, 34):
        at = last + (number - 29) * STEP
        collector.push(
            frame(number + 1, machine(at, number, wrong_s * SECOND), spool=b"M" * 16, host="mds01")
        )
        collector.flush()
        assert len(observer.round(at + 3 * SECOND).observations) == 1
    # If a server is silent, its earlier rows do not count as current samples.
    for later in range(5, 20):
        assert observer.round(last + later * STEP + 3 * SECOND).observations == ()


def test_samples_continue_after_a_clock_ahead_is_corrected(tmp_path: Path) -> None:
    wrong = 1200 * SECOND
    collector, last = pushed(tmp_path, 30, wrong)
    observer = Observer(collector.store, JobIds())
    observer.round(last + 3 * SECOND)
    for number in range(30, 36):
        at = last + (number - 29) * STEP
        collector.push(frame(number + 1, machine(at, number), spool=b"N" * 16, host="mds01"))
        collector.flush()
        (one,) = observer.round(at + 3 * SECOND).observations
        assert abs(one.end_ns - at) < STEP


def test_if_the_local_clock_is_set_back_no_sample_counts_twice(tmp_path: Path) -> None:
    collector, last = pushed(tmp_path, 30)
    observer = Observer(collector.store, JobIds())
    observer.round(last + 3 * SECOND)
    for number in range(30, 34):
        at = last + (number - 29) * STEP
        collector.push(frame(number + 1, machine(at, number), spool=b"M" * 16, host="mds01"))
        collector.flush()
        assert len(observer.round(at - 200 * SECOND).observations) == 1


def test_a_client_that_loses_many_targets_counts_once(tmp_path: Path) -> None:
    collector, last = pushed(tmp_path, 5)
    lost = [
        Event(last, "lustre-connection-lost", source="kernel-log", target=f"lfs-MDT0000-mdc-ffff{n}")
        for n in range(8)
    ]
    collector.push(frame(1, [], spool=b"1" * 16, host="n1", events=lost))
    collector.flush()
    assert Observer(collector.store, JobIds()).round(last + 3 * SECOND).news["mds01"].lost == 1


def test_a_lost_connection_counts_until_it_is_restored(tmp_path: Path) -> None:
    collector, last = pushed(tmp_path, 5)
    target = "lfs-MDT0000-mdc-ffff9d3c81a5f000"
    lost = [Event(last, "lustre-connection-lost", source="kernel-log", target=target, file_system="lfs")]
    for number, host in enumerate(("n1", "n2")):
        collector.push(frame(1, [], spool=bytes([number]) * 16, host=host, events=lost))
    collector.flush()
    observer = Observer(collector.store, JobIds())
    assert observer.round(last + 3 * SECOND).news["mds01"].lost == 2
    back = [Event(last + 5 * SECOND, "lustre-connection-back", source="kernel-log", target=target)]
    collector.push(frame(2, [], spool=b"\0" * 16, host="n1", events=back))
    collector.flush()
    assert observer.round(last + 8 * SECOND).news["mds01"].lost == 1


def test_recovery_and_evictions_are_read_from_the_servers_log(tmp_path: Path) -> None:
    collector, last = pushed(tmp_path, 5)
    observer = Observer(collector.store, JobIds())
    observer.round(last + 2 * SECOND)
    own = {"source": "kernel-log", "file_system": "lfs", "target": "lfs-MDT0000"}
    for number, (kind, expected) in enumerate((("lustre-recovery", True), ("lustre-recovery-ended", False))):
        told = [Event(last + number * SECOND, kind, **own), Event(last, "lustre-evicts", count=4, **own)]
        collector.push(frame(10 + number, [], spool=b"M" * 16, host="mds01", events=told))
        collector.flush()
        news = observer.round(last + (3 + number) * SECOND).news["mds01"]
        assert news.is_recovering is expected and news.evictions >= 4


def test_a_target_of_another_server_is_recognised_after_failover(tmp_path: Path) -> None:
    collector, last = pushed(tmp_path, 20)
    for number in range(1, 4):
        at = last + (number + 15) * STEP
        jobs = [Entry("5:7:n1", {("open", COUNT): number * 40}, start=1, updated=at)]
        part = Part(at, jobs, "mdt_job_stats", "lfs", "lfs-MDT0000", full=number == 1)
        collector.push(frame(number, [part], spool=b"H" * 16, host="mds02"))
    collector.flush()
    observer = Observer(collector.store, JobIds())
    found = observer.round(last + 18 * STEP + 3 * SECOND)
    assert found.news["mds01"].is_away
    assert all(one.has_guests for one in found.observations if one.host == "mds02")


def test_requests_are_counted_by_job(tmp_path: Path) -> None:
    collector, last = pushed(tmp_path, 5)
    observer = Observer(collector.store, JobIds())
    observer.round(last + 3 * SECOND)
    (one,) = observer.asked("mds01", last - 2 * STEP, last)
    assert (one.job, one.opens, one.creates, one.metadata) == ("5", 80, 8, 88)


def mount(at: int, number: int, wait_us: int, grows: bool = True) -> list[Part]:
    done = number * 50 if grows else 29 * 50
    values = {("getattr", COUNT): done, ("getattr", TIME): done * wait_us, ("getattr/queue", TIME): done}
    return [
        Part(at, [Entry("", values, evidence=0)], "mountstats", "nfs01:/home", "/home", full=number == 0),
        Part(
            at, [Entry("", {("load1_percent", LEVEL): 50}, evidence=0)], "load", "", "load", full=number == 0
        ),
    ]


def test_the_state_of_a_server_without_an_agent_follows_from_clients(tmp_path: Path) -> None:
    """The NFS client is synthetic, because the test machine has no kernel NFS."""
    collector, begin = Collector(tmp_path), begin_of_day()
    watching = Watching(collector.store, limits=ServerStates(scheduler="none"))
    said = []
    for number in range(36):
        at = begin + number * STEP
        collector.push(frame(number + 1, mount(at, number, 2000, number < 30), spool=b"C" * 16, host="n1"))
        collector.flush()
        if number:
            said += watching.look(at + 3 * SECOND)
    assert {(one.server, one.file_system, one.kind) for one in said} == {("nfs01", "nfs01:/home", "client")}
    assert {one.state for one in said} == {"healthy"}
    assert said[-1].confidence <= 0.5
