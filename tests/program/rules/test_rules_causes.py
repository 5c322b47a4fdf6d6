"""Faults that hide behind what comes with them: earlier steps, other names, the way to a file, the lives of
processes; and neighbours without fault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from iodock.program.diagnosis import _Found, _without_symptoms
from iodock.program.findings import Diagnosis, Finding, Severity
from iodock.program.rules.base import Candidate
from iodock.shared.message import Message
from metadata_log import FIRST, Trace, diagnosed, of_rule

MIB = 1 << 20
MISSING = "-1 ENOENT (No such file or directory)"
NO_LINK = "-1 EINVAL (Invalid argument)"


def of_log(folder: Path, write: Callable[[Trace], None], wall_us: int = 1) -> Diagnosis:
    log = Trace()
    write(log)
    return diagnosed(log.imported(folder, wall_us))


def blamed(diagnosis: Diagnosis) -> list[str]:
    return [one.rule for one in diagnosis.worth_changing]


@pytest.mark.parametrize(
    ("name", "rule"), [("fit.trace", "write-in-compute-loop"), ("fit.dat", "small-requests")]
)
def test_a_log_is_written_while_computing_however_short_the_steps(
    tmp_path: Path, name: str, rule: str
) -> None:
    def write(log: Trace) -> None:
        log.open(f"/data/{name}", flags="O_WRONLY|O_CREAT")
        for _ in range(5000):
            log.write(30, 1)
            log.pause(1)

    assert blamed(of_log(tmp_path, write)) == [rule]


def on_the_way(come: bool, opens: bool) -> Callable[[Trace], None]:
    """Each look-up asks all folders on its path, as Tcl, Java and realpath() do it."""

    def write(log: Trace) -> None:
        for number in range(1200):
            for folder in ("/data", "/data/run", "/data/run/texts"):
                log.call(f'readlink("{folder}", 0x7f, 1023)', NO_LINK, 30)
            name = f"/data/run/texts/{number % 400}.ja"
            if opens and come:
                log.open(name, took_us=20)
                log.read(100, 20)
                log.close(10)
            elif opens:
                log.open_missing(name, 40)

    return write


@pytest.mark.parametrize(
    ("come", "opens", "rules"),
    [(False, True, ["failed-open-storm"]), (True, True, []), (False, False, ["stat-storm"])],
    ids=["in vain", "found", "no file meant"],
)
def test_who_follows_a_path_asks_for_the_file(
    tmp_path: Path, come: bool, opens: bool, rules: list[str]
) -> None:
    found = blamed(of_log(tmp_path, on_the_way(come, opens), wall_us=2_000_000))
    assert [one for one in found if one in ("stat-storm", "failed-open-storm")] == rules


@pytest.mark.parametrize(("size", "found"), [(1, 1), (512, 0)])
def test_a_descriptor_opened_by_its_name_is_mostly_a_pipe(tmp_path: Path, size: int, found: int) -> None:
    def write(log: Trace) -> None:
        log.open("/dev/fd/63", flags="O_RDONLY")
        for _ in range(3000):
            log.read(size, 20)

    assert len(of_rule(of_log(tmp_path, write), "bytewise-read")) == found


@pytest.mark.parametrize(("step", "found"), [(2, 1), (1, 0)], ids=["every second", "all"])
def test_short_turns_wait_for_the_device_where_nobody_reads_ahead(
    tmp_path: Path, step: int, found: int
) -> None:
    def write(log: Trace) -> None:
        log.open("/data/sweeps", flags="O_RDONLY")
        for number in range(100):
            log.call(f'pread64(3, ""..., 262144, {step * number * 262144})', "262144", 200)
            log.pause(250)

    assert len(of_rule(of_log(tmp_path, write), "io-not-overlapped")) == found


def whole_files(log: Trace) -> None:
    for number in range(20):
        log.open(f"/data/scan-{number}", flags="O_RDONLY")
        log.call("fstat(3, {st_mode=S_IFREG|0644, st_size=4194304, ...})", "0", 1)
        log.read(4 * MIB, 800)
        log.close(1)
        log.pause(20)


def table_of(log: Trace) -> None:
    log.open("/data/table", flags="O_WRONLY|O_CREAT")
    log.write(8 * MIB, 100)
    log.close(1)


@pytest.mark.parametrize(
    ("steps", "found"), [((table_of, whole_files), 1), ((whole_files, table_of), 0)], ids=["before", "after"]
)
def test_what_was_written_before_is_no_output_of_what_is_read(
    tmp_path: Path, steps: tuple[Callable[[Trace], None], ...], found: int
) -> None:
    def write(log: Trace) -> None:
        for step in steps:
            step(log)

    assert len(of_rule(of_log(tmp_path, write, 100_000), "whole-file-for-a-few-bytes")) == found


def states(name: str, keeps: bool, reads: bool = False) -> Callable[[Trace], None]:
    """A state is written for each step, under a name of its own until it is complete."""

    def write(log: Trace) -> None:
        for number in range(40):
            log.open("/data/new.tmp", flags="O_WRONLY|O_CREAT|O_TRUNC")
            log.write(MIB, 500)
            log.close()
            log.call(f'rename("/data/new.tmp", "/data/{name.format(number)}")', "0", 5)
        if reads:
            log.open(f"/data/{name.format(7)}", flags="O_RDONLY")
            log.read(MIB, 100)
            log.close()
        for number in range(0 if keeps else 40):
            log.call(f'unlink("/data/{name.format(number)}")', "0", 5)

    return write


@pytest.mark.parametrize(
    ("write", "rules"),
    [
        (states("state-{}", keeps=True), []),
        (states("state", keeps=True), ["redundant-writes"]),
        (states("state-{}", keeps=False), ["unused-output"]),
        (states("state-{}", keeps=False, reads=True), []),
    ],
    ids=["kept", "replaced", "deleted", "read"],
)
def test_a_file_lives_on_under_its_later_name(
    tmp_path: Path, write: Callable[[Trace], None], rules: list[str]
) -> None:
    found = blamed(of_log(tmp_path, write))
    assert [one for one in found if one in ("redundant-writes", "unused-output")] == rules


@pytest.mark.parametrize(("sync_us", "first"), [(3000, "sync-heavy"), (300, "process-storm")])
def test_a_loop_of_commands_is_blamed_for_their_starts_only(tmp_path: Path, sync_us: int, first: str) -> None:
    def write(log: Trace) -> None:
        for pid in range(1000, 1100):
            log.start(pid, "/usr/bin/dd")
            log.pause(1500, pid)
            log.open("/data/log", flags="O_WRONLY|O_APPEND", pid=pid)
            log.write(40, 5, pid=pid)
            log.call("fsync(3)", "0", sync_us, pid)
            log.end(pid)
            log.clocks[FIRST] = log.clocks[pid]

    diagnosis = of_log(tmp_path, write)
    assert blamed(diagnosis)[0] == first
    (storm,) = of_rule(diagnosis, "process-storm")
    assert storm.cost_seconds == pytest.approx(100 * 1505e-6, rel=0.05)


@pytest.mark.parametrize(("inside", "found"), [(True, 1), (False, 0)], ids=["of the run", "to others"])
def test_sockets_between_processes_are_pipes(tmp_path: Path, inside: bool, found: int) -> None:
    def write(log: Trace) -> None:
        log.call("socketpair(AF_UNIX, SOCK_STREAM, 0, [3, 4])")
        log.start(FIRST + 1)
        for _ in range(2000):
            log.call('sendto(3, ""..., 20, 0, NULL, 0)', "20", 20)
            log.call('recvfrom(4, ""..., 65536, 0, NULL, NULL)', "20" if inside else "200", 100, FIRST + 1)
        log.end(FIRST + 1)

    assert len(of_rule(of_log(tmp_path, write), "pipe-bound")) == found


def found_by(rule: str, cost: float) -> _Found:
    nothing = Message("")
    finding = Finding(
        rule=rule,
        severity=Severity.HIGH,
        confidence=0.8,
        cost_seconds=cost,
        cost_share=None,
        node_hours=None,
        gain=None,
        title=nothing,
        message=nothing,
        files=("/data/log",),
        file_count=1,
        call=None,
        evidence={},
        query="",
        advice=(),
        fine_when=nothing,
        case=None,
    )
    return _Found(finding, frozenset(finding.files), Candidate(nothing, 1, None, {}, ""))


@pytest.mark.parametrize(
    ("costs", "kept"),
    [
        ((4.0, 3.0, 2.5), ["open-close-loop"]),
        ((4.0, 2.5, 1.5), ["small-requests", "open-close-loop"]),
        ((4.0, 2.5, 1.0), ["write-in-compute-loop", "open-close-loop"]),
    ],
)
def test_what_is_left_out_itself_explains_as_much_as_what_is_shown_for_it(
    costs: tuple[float, ...], kept: list[str]
) -> None:
    rules = ("small-requests", "write-in-compute-loop", "open-close-loop")
    found = [found_by(*one) for one in zip(rules, costs, strict=True)]
    assert [one.finding.rule for one in _without_symptoms(found)] == kept
