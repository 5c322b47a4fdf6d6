"""What a tracer adds to calls makes none of them a fault; what they take themselves does."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Diagnosis, Severity
from iodock.program.rules import tracing
from iodock.program.store import Store
from metadata_log import Trace

STOP_US = 10


def of_seeks(folder: Path, seeks: int, took_us: int, trivial: int = 40) -> Diagnosis:
    """Half a second of computing, and seeks that go nowhere; calls that do nothing take STOP_US."""
    log = Trace()
    log.open("/data/frames.bin")
    for _ in range(trivial):
        log.call("rt_sigaction(SIGINT, NULL, NULL, 8)", took_us=STOP_US)
    log.pause(500_000)
    for _ in range(seeks):
        log.call("lseek(3, 0, SEEK_CUR)", took_us=took_us)
        log.pause(STOP_US)
    log.read(4096, STOP_US)
    return diagnosed(log.imported(folder, 1))


@pytest.mark.parametrize(
    ("seeks", "took_us", "trivial", "severity"),
    [
        (2000, STOP_US, 40, Severity.NOTE),
        (20000, STOP_US, 40, Severity.LOW),
        (2000, 50 * STOP_US, 40, Severity.HIGH),
        (2000, STOP_US, 10, Severity.LOW),
    ],
    ids=["quick and few", "quick and many", "slow", "nothing known of the tracer"],
)
def test_what_only_strace_makes_dear_is_a_note(
    tmp_path: Path, seeks: int, took_us: int, trivial: int, severity: Severity
) -> None:
    (finding,) = of_rule(of_seeks(tmp_path, seeks, took_us, trivial), "seek-storm")
    assert finding.severity.at_least(severity)
    assert (finding.severity is Severity.NOTE) == (severity is Severity.NOTE)


def test_calls_that_do_nothing_show_what_strace_adds(tmp_path: Path) -> None:
    log = Trace()
    for took_us in (8, 12):
        for _ in range(20):
            log.call("getpid()", "100", took_us)
    log.open("/data/slow", took_us=5000)
    with Store.open(log.imported(tmp_path, 1)) as store:
        assert tracing.within_ns(store) == 10_000
        assert tracing.around_ns(store) == 0


def test_one_stop_that_took_long_says_nothing_of_the_others(tmp_path: Path) -> None:
    log = Trace()
    for number in range(40):
        log.call("getpid()", "100", 500_000 if number == 7 else STOP_US)
    log.open("/data/log", flags="O_WRONLY|O_CREAT")
    for _ in range(100):
        log.write(100, STOP_US)
        log.call("fsync(3)", took_us=20_000)
    (finding,) = of_rule(diagnosed(log.imported(tmp_path, 1)), "sync-heavy")
    assert finding.severity is Severity.HIGH
