"""`serial-phases`: when it speaks, what it counts and charges, what it leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from diagnosing import diagnosed, of_rule
from iodock.program.findings import Severity
from log_shapes import NAMED, pieces, stages
from metadata_log import FIRST, Trace
from processor_times import THREAD, with_processor_times
from rank_log import ranks, writes

MIB = 1 << 20
PIECE = 65536
WORKERS = range(FIRST + 1, FIRST + 4)


def test_a_rank_that_works_alone_could_share(tmp_path: Path) -> None:
    path = ranks(lambda log, n, pid: writes(log, n, pid, 0 if n else 40, 10_000), tmp_path)
    diagnosis = diagnosed(path)
    (found,) = of_rule(diagnosis, "serial-phases")
    assert found.title.text == "One rank does all the I/O"
    assert found.cost_seconds == pytest.approx(0.4 * 3 / 4)
    assert [one.rule for one in diagnosis.worth_changing] == ["serial-phases"]


def test_one_rank_that_writes_what_all_have_open_may_do_it_for_them(tmp_path: Path) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.open("/data/shared.out", flags="O_RDWR|O_CREAT", pid=pid)
        for _ in range(0 if number else 40):
            log.write(MIB, 10_000, pid=pid)
        log.close(pid=pid)

    (found,) = of_rule(diagnosed(ranks(work, tmp_path)), "serial-phases")
    assert found.severity is Severity.NOTE


@pytest.mark.parametrize("asked, severity", [("/data", Severity.NOTE), ("/dev/shm", Severity.MEDIUM)])
def test_mpi_io_asks_for_the_type_of_the_file_system(tmp_path: Path, asked: str, severity: Severity) -> None:
    def work(log: Trace, number: int, pid: int) -> None:
        log.call(f'statfs("{asked}", {{f_type=EXT2_SUPER_MAGIC, ...}})', pid=pid)
        log.open("/data/shared.out", flags="O_RDWR|O_CREAT", pid=pid)
        for _ in range(0 if number else 40):
            log.write(MIB, 10_000, pid=pid)
        log.close(pid=pid)

    (found,) = of_rule(diagnosed(ranks(work, tmp_path)), "serial-phases")
    assert found.severity is severity


@pytest.mark.parametrize(
    ("own", "others_wait", "begin_us"),
    [(10, True, 0), (50, False, 0), (10, True, 5_000_000)],
    ids=["the others wait", "they write meanwhile", "after computing"],
)
def test_one_rank_reads_for_all_after_each_wrote_its_own(
    tmp_path: Path, own: int, others_wait: bool, begin_us: int
) -> None:
    log = Trace(clocks={FIRST + number: 0 for number in range(4)})
    for number in range(4):
        pid = FIRST + number
        log.open("/data/settings.nml", 3, pid=pid)
        log.close(pid=pid)
        log.pause(begin_us, pid)
        pieces(log, f"/data/field.{number}", own if number else 10, pid)
        if number == 0:
            pieces(log, "/data/restart.bin", 40, pid, "read")
        else:
            log.clocks[pid] = begin_us + 1_000_000
            log.end(pid)
    found = of_rule(diagnosed(log.imported(tmp_path, ranks=4)), "serial-phases")
    assert bool(found) == others_wait
    for one in found:
        assert one.title.text == "One rank does some of the I/O alone"
        assert one.cost_seconds == pytest.approx(0.4 * 3 / 4, rel=0.05)


def pool(log: Trace, computes_us: int) -> None:
    """A process that reads a file of a megabyte for each task, and gives it to one of three workers."""
    for number in range(3):
        fd = 10 + 2 * number
        log.call(f"pipe2([{fd}, {fd + 1}], 0)")
    for number in range(3):
        log.start(FIRST + 1 + number)
    for task in range(30):
        number = task % 3
        worker, fd = FIRST + 1 + number, 10 + 2 * number
        log.open(f"/data/image-{task:02}.raw", 3, flags="O_RDONLY")
        log.read(MIB, 10_000)
        log.close()
        log.write(60_000, 10, fd + 1)
        waited = max(0, log.clocks[FIRST] - log.clocks[worker])
        log.read(60_000, waited, fd, worker)
        log.pause(computes_us, worker)
    for number in range(3):
        log.end(FIRST + 1 + number)


@pytest.mark.parametrize(
    ("computes_us", "waits"), [(2_000, True), (29_000, False)], ids=["workers wait", "workers compute"]
)
def test_a_process_that_reads_for_its_workers(tmp_path: Path, computes_us: int, waits: bool) -> None:
    log = Trace()
    pool(log, computes_us)
    found = of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "serial-phases")
    assert bool(found) == waits
    for one in found:
        assert one.title.text == "One process does the I/O of its workers"
        assert one.message.values["workers"] == 4
        assert one.cost_seconds == pytest.approx(0.3 * 3 / 4, rel=0.05)


def test_a_process_that_writes_between_its_workers_turns(tmp_path: Path) -> None:
    log = Trace()
    for step in range(4):
        began, pids = log.clocks[FIRST], [200 + 10 * step + number for number in range(3)]
        for pid in pids:
            log.start(pid)
            log.clocks[pid] = began + 50_000
            log.end(pid)
        log.pause(50_000)
        pieces(log, f"/data/step.{step}", 10, FIRST)
    (found,) = of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "serial-phases")
    assert found.cost_seconds == pytest.approx(0.4 * 3 / 4, rel=0.05)


@pytest.mark.parametrize(
    ("started", "stay"),
    [((0, 1, 2, 3), False), ((0,), True), ((3,), False)],
    ids=["anew for each round", "they may compute meanwhile", "once, when all is read"],
)
def test_threads_that_are_started_when_one_has_read(
    tmp_path: Path, started: tuple[int, ...], stay: bool
) -> None:
    log = Trace()
    threads = 0
    for step in range(4):
        pieces(log, f"/data/cube.{step}", 8, FIRST, "read")
        for number in range((8 if started == (3,) else 3) if step in started else 0):
            threads += 1
            pid = 200 + 10 * step + number
            log.call(THREAD, str(pid))
            log.clocks[pid] = log.clocks[FIRST] + (360_000 if stay else 25_000)
            log.call("exit(0)", "?", 0, pid)
        log.pause(26_000)
    store = log.imported(tmp_path, wall_us=500_000)
    with_processor_times(store, [1_000_000, *[20_000_000] * threads])
    findings = of_rule(diagnosed(store), "serial-phases")
    assert bool(findings) == (len(started) == 4)
    for one in findings:
        assert one.title.text == "One thread does the I/O while no other computes"
        assert (one.message.values["stretches"], one.message.values["threads"]) == (4, 3)
        assert one.cost_seconds == pytest.approx(0.32 * 2 / 3, rel=0.05)


@pytest.mark.parametrize(
    ("piece", "pipes", "found"),
    [(MIB, NAMED, False), (1, NAMED, True), (MIB, ("", ""), True)],
    ids=["what was read", "a token of who may go on", "one name for all pipes"],
)
def test_stages_of_a_pipeline_are_no_workers(
    tmp_path: Path, piece: int, pipes: tuple[str, str], found: bool
) -> None:
    log = Trace()
    stages(log, piece, 100, pipes)
    assert bool(of_rule(diagnosed(log.imported(tmp_path)), "serial-phases")) == found


def taken_apart(log: Trace, work_us: int, pid: int = FIRST, call_us: int = 20, verb: str = "read") -> None:
    """Four files of 640 KiB, each piece worked on after it is read, or before it is written."""
    for number in range(4):
        log.open(f"/data/stations-{number}.csv", flags="O_RDWR|O_CREAT", pid=pid)
        for _ in range(10):
            if verb == "write":
                log.pause(work_us, pid)
            (log.write if verb == "write" else log.read)(PIECE, call_us, 3, pid)
            if verb == "read":
                log.pause(work_us, pid)
        log.close(pid=pid)


def computed(log: Trace, us: int = 300_000, at_once: bool = True) -> None:
    """Three forked workers."""
    for pid in WORKERS:
        log.start(pid)
        log.clocks[pid] += us
        log.end(pid)
        if not at_once:
            log.pause(us)
    if at_once:
        log.pause(us)


def found_in(log: Trace, folder: Path, cpu_ms: list[int]) -> list[float | None]:
    store = log.imported(folder, wall_us=1)
    with_processor_times(store, [ms * 1_000_000 for ms in cpu_ms])
    return [one.cost_seconds for one in of_rule(diagnosed(store), "serial-phases")]


@pytest.mark.parametrize(
    ("work_us", "at_once", "cpu_ms", "found"),
    [
        (10_000, True, 400, True),
        (60_000, True, 2400, False),
        (100, True, 4, False),
        (10_000, False, 400, False),
        (10_000, True, 10, False),
    ],
    ids=["taken apart", "another work", "only read", "one worker after the other", "it sleeps"],
)
def test_a_process_takes_apart_what_it_reads_before_its_workers_start(
    tmp_path: Path, work_us: int, at_once: bool, cpu_ms: int, found: bool
) -> None:
    log = Trace()
    taken_apart(log, work_us)
    computed(log, at_once=at_once)
    costs = found_in(log, tmp_path, [cpu_ms, 300, 300, 300])
    assert costs == ([pytest.approx(0.4 * 2 / 3, rel=0.03)] if found else [])


def test_what_workers_read_too_is_shared_out(tmp_path: Path) -> None:
    log = Trace()
    taken_apart(log, 10_000)
    for pid in WORKERS:
        log.start(pid)
        taken_apart(log, 7_000, pid)
        log.end(pid)
    assert found_in(log, tmp_path, [400, 300, 300, 300]) == []


def test_what_one_process_puts_together_when_its_workers_have_ended(tmp_path: Path) -> None:
    log = Trace()
    computed(log)
    taken_apart(log, 10_000, verb="write")
    assert found_in(log, tmp_path, [400, 300, 300, 300]) == [pytest.approx(0.4 * 2 / 3, rel=0.03)]


@pytest.mark.parametrize("handed_first", [False, True], ids=["handed later", "handed before"])
def test_a_pool_waits_until_it_is_handed_work(tmp_path: Path, handed_first: bool) -> None:
    log = Trace()
    for number in range(3):
        log.call(f"pipe2([{10 + 2 * number}, {11 + 2 * number}], 0)")
    for pid in WORKERS:
        log.start(pid)
    if not handed_first:
        taken_apart(log, 10_000)
    for number, pid in enumerate(WORKERS):
        log.write(100, 10, 11 + 2 * number)
        log.read(100, max(10, log.clocks[FIRST] - log.clocks[pid]), 10 + 2 * number, pid)
        log.clocks[pid] += 300_000
        log.end(pid)
    if handed_first:
        taken_apart(log, 7_000)
    log.pause(300_000)
    assert bool(found_in(log, tmp_path, [400, 300, 300, 300])) != handed_first


@pytest.mark.parametrize("meanwhile_ms", [20, 1200], ids=["the runtime's own", "it may compute meanwhile"])
def test_a_thread_takes_apart_what_it_reads_before_others_start(tmp_path: Path, meanwhile_ms: int) -> None:
    log = Trace()
    log.call(THREAD, "200")
    log.clocks[200] = log.clocks[FIRST]
    taken_apart(log, 10_000)
    for pid in WORKERS:
        log.call(THREAD, str(pid))
        log.clocks[pid] = log.clocks[FIRST] + 300_000
        log.call("exit(0)", "?", 0, pid)
    log.pause(300_000)
    log.clocks[200] = log.clocks[FIRST]
    log.call("exit(0)", "?", 0, 200)
    costs = found_in(log, tmp_path, [400, meanwhile_ms, 300, 300, 300])
    assert costs == ([pytest.approx(0.4 * 2 / 3, rel=0.03)] if meanwhile_ms == 20 else [])


def test_a_list_of_what_to_do_is_no_work_of_the_workers(tmp_path: Path) -> None:
    log = Trace()
    taken_apart(log, 10_000)
    for pid in WORKERS:
        log.start(pid)
        log.open(f"/data/slices/{pid}.bin", pid=pid)
        for _ in range(30):
            log.read(4 * PIECE, 20, pid=pid)
            log.pause(10_000, pid)
        log.end(pid)
    log.pause(300_000)
    assert found_in(log, tmp_path, [400, 300, 300, 300]) == []


@pytest.mark.parametrize("is_shared", [False, True], ids=["other files", "what was made for it"])
def test_commands_of_another_program_are_workers_where_they_share_files(
    tmp_path: Path, is_shared: bool
) -> None:
    log = Trace()
    taken_apart(log, 10_000)
    for pid in WORKERS:
        if is_shared:
            log.open(f"/data/job{pid}.in", flags="O_WRONLY|O_CREAT")
            log.write(500, 10)
            log.close()
        log.start(pid, "/opt/solver")
        log.open(f"/data/job{pid}.in", pid=pid)
        log.read(500, 10, pid=pid)
        log.close(pid=pid)
        log.clocks[pid] += 300_000
        log.end(pid)
    log.pause(300_000)
    assert bool(found_in(log, tmp_path, [400, 300, 300, 300])) == is_shared


@pytest.mark.parametrize(("name", "found"), [("stars.bin", False), ("stars.csv", True)])
def test_only_text_is_taken_apart_behind_the_last_call(tmp_path: Path, name: str, found: bool) -> None:
    log = Trace()
    log.open(f"/data/{name}")
    for _ in range(100):
        log.read(PIECE, 20)
    log.pause(600_000)
    computed(log)
    assert found_in(log, tmp_path, [600, 300, 300, 300]) == ([pytest.approx(0.4, rel=0.03)] if found else [])


@pytest.mark.parametrize(("ends", "found"), [("stdout", False), ("answer", True)])
def test_workers_end_with_their_answer_not_with_what_they_print(
    tmp_path: Path, ends: str, found: bool
) -> None:
    log = Trace()
    for number in range(3):
        log.call(f"pipe2([{10 + 2 * number}, {11 + 2 * number}], 0)")
    log.call("pipe2([4, 5], 0)")
    log.write(10, 10, 5)
    for number, pid in enumerate(WORKERS):
        log.start(pid)
        log.clocks[pid] += 200_000
        log.write(100, 10, 5 if ends == "stdout" else 11 + 2 * number, pid)
    log.pause(210_000)
    if ends == "answer":
        for number in range(3):
            log.read(100, 10, 10 + 2 * number)
    taken_apart(log, 7_000, verb="write")
    for pid in WORKERS:
        log.clocks[pid] = log.clocks[FIRST]
        log.end(pid)
    assert bool(found_in(log, tmp_path, [300, 400, 400, 400])) == found


def test_the_first_thread_may_compute_meanwhile(tmp_path: Path) -> None:
    log = Trace()
    log.call(THREAD, "200")
    log.clocks[200] = log.clocks[FIRST]
    taken_apart(log, 10_000, pid=200)
    log.clocks[FIRST] = log.clocks[200]
    for pid in WORKERS:
        log.call(THREAD, str(pid))
        log.clocks[pid] = log.clocks[FIRST] + 300_000
        log.call("exit(0)", "?", 0, pid)
    log.call("exit(0)", "?", 0, 200)
    log.pause(300_000)
    assert found_in(log, tmp_path, [400, 400, 300, 300, 300]) == []


def test_workers_that_are_fed_as_it_comes_wait_only_for_the_end(tmp_path: Path) -> None:
    log = Trace()
    for number in range(3):
        log.call(f"pipe2([{10 + 2 * number}, {11 + 2 * number}], 0)")
    for pid in WORKERS:
        log.start(pid)
    log.open("/data/events.csv", fd=4)
    for _ in range(40):
        log.read(PIECE, 20, 4)
        log.pause(10_000)
        for number, pid in enumerate(WORKERS):
            log.write(100, 10, 11 + 2 * number)
            log.read(100, max(10, log.clocks[FIRST] - log.clocks[pid]), 10 + 2 * number, pid)
    log.pause(600_000)
    for number, pid in enumerate(WORKERS):
        log.close(fd=11 + 2 * number)
        log.read(0, log.clocks[FIRST] - log.clocks[pid], 10 + 2 * number, pid)
        log.end(pid)
    assert found_in(log, tmp_path, [1000, 300, 300, 300]) == []
