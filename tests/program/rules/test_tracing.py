"""Tests that the time that a tracer adds to calls is not a fault, and that the calls' own time can be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Diagnosis, Severity
from iodock.program.rules import tracing
from iodock.program.store import Store
from metadata_log import FIRST, Trace

STOP_US = 10


def of_seeks(folder: Path, seeks: int, took_us: int, trivial: int = 40) -> Diagnosis:
    """Diagnoses half a second of computing and seeks without effect; each call takes STOP_US or more."""
    log = Trace()
    log.open("/data/frames.bin", took_us=STOP_US)
    log.pause(STOP_US)
    for _ in range(trivial):
        log.call("rt_sigaction(SIGINT, NULL, NULL, 8)", took_us=STOP_US)
        log.pause(STOP_US)
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
        (2000, STOP_US, 10, Severity.NOTE),
    ],
    ids=["quick and few", "quick and many", "slow", "few calls that do nothing"],
)
def test_costs_caused_only_by_strace_give_a_note(
    tmp_path: Path, seeks: int, took_us: int, trivial: int, severity: Severity
) -> None:
    (finding,) = of_rule(of_seeks(tmp_path, seeks, took_us, trivial), "seek-storm")
    assert finding.severity.at_least(severity)
    assert (finding.severity is Severity.NOTE) == (severity is Severity.NOTE)


def test_the_overhead_of_strace_is_derived_from_trivial_calls(tmp_path: Path) -> None:
    log = Trace()
    for took_us in (8, 12):
        for _ in range(20):
            log.call("getpid()", "100", took_us)
    log.open("/data/slow", took_us=5000)
    with Store.open(log.imported(tmp_path, 1)) as store:
        assert tracing.within_ns(store) == 10_000
        assert tracing.around_ns(store) == 0


def test_one_long_stop_does_not_change_the_estimated_overhead(tmp_path: Path) -> None:
    log = Trace()
    for number in range(40):
        log.call("getpid()", "100", 500_000 if number == 7 else STOP_US)
    log.open("/data/log", flags="O_WRONLY|O_CREAT")
    for _ in range(100):
        log.write(100, STOP_US)
        log.call("fsync(3)", took_us=20_000)
    (finding,) = of_rule(diagnosed(log.imported(tmp_path, 1)), "sync-heavy")
    assert finding.severity is Severity.HIGH


LINE_US, WRITING_US = 4, 13
"""The time of a write to a cached page under strace, and the time that strace then needs to write its
line."""


def of_writes(
    folder: Path, writes: int, took_us: int, pause_us: int, loader: int = 30, log: Trace | None = None
) -> Diagnosis:
    """Diagnoses a simple program: the calls of its loader, then small writes."""
    log = log or Trace()
    for _ in range(loader):
        log.call("close(9)", took_us=LINE_US)
        log.pause(WRITING_US)
    log.open("/data/grid.dat", flags="O_WRONLY|O_CREAT", took_us=LINE_US)
    for _ in range(writes):
        log.write(8, took_us)
        log.pause(pause_us)
    return diagnosed(log.imported(folder, 0.001))


def test_without_trivial_calls_the_overhead_follows_from_the_cheapest(tmp_path: Path) -> None:
    """The case is a program of 70 ms with 100,000 writes, which took 1.6 s under strace."""
    diagnosis = of_writes(tmp_path, 20_000, LINE_US, WRITING_US + 1)
    alone, wall = diagnosis.verdict.alone_seconds, diagnosis.verdict.wall_seconds
    assert alone is not None and wall is not None and alone < 0.2 * wall
    (said,) = diagnosis.verdict.before
    assert said.text.startswith("Without the tracer this run takes about")
    assert "traced run" in diagnosis.verdict.text.text
    gain = diagnosis.verdict.gain
    assert gain is not None and gain.high_seconds < 0.1 * wall


def test_the_time_strace_takes_to_write_a_line_is_not_computation(tmp_path: Path) -> None:
    diagnosis = of_writes(tmp_path, 20_000, LINE_US, WRITING_US + 1)
    assert not of_rule(diagnosis, "write-in-compute-loop")
    assert of_rule(diagnosis, "small-requests")


def test_computation_between_writes_is_still_recognised(tmp_path: Path) -> None:
    assert of_rule(of_writes(tmp_path, 5_000, LINE_US, 8 * WRITING_US), "write-in-compute-loop")


class WithStacks(Trace):
    """A log as `strace -k` writes it: the tracer reads the stack after each call."""

    def call(self, text: str, result: str = "0", took_us: int = 0, pid: int = FIRST) -> None:
        super().call(text, result, took_us, pid)
        self.lines.append((self.clocks[pid], pid, " > /opt/plain(main+0x10) [0x1010]"))
        self.pause(READING_US, pid)


READING_US = 1_300


def test_the_time_strace_takes_to_read_stacks_is_not_computation(tmp_path: Path) -> None:
    """The case is a program of 50 ms with 20,000 writes, which took 27 s under `strace -k`."""
    diagnosis = of_writes(tmp_path, 5_000, LINE_US, 0, log=WithStacks())
    alone, wall = diagnosis.verdict.alone_seconds, diagnosis.verdict.wall_seconds
    assert alone is not None and wall is not None and alone < 0.1 * wall
    assert of_rule(diagnosis, "small-requests") and not of_rule(diagnosis, "write-in-compute-loop")


def test_with_unknown_tracing_overhead_no_saving_is_given(tmp_path: Path) -> None:
    """The log has only slow writes, as from `strace -e trace=write`."""
    diagnosis = of_writes(tmp_path, 5_000, 400, 20, loader=0)
    assert [one.text[:42] for one in diagnosis.verdict.before] == [
        "The overhead of the tracer is not known: t"
    ]
    assert all(one.gain is None or one.gain.of_seconds is None for one in diagnosis.findings)
