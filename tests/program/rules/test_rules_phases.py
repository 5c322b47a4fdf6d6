"""Workers of which one does I/O while the others wait, in a part of a run: ranks, a pool and the process that
started it, threads; and neighbours that work side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from metadata_log import FIRST, Trace, diagnosed, of_rule
from processor_times import THREAD, with_processor_times

MIB = 1 << 20


def pieces(log: Trace, name: str, count: int, pid: int, verb: str = "write", took_us: int = 10_000) -> None:
    log.open(name, 3, flags="O_RDWR|O_CREAT", pid=pid)
    for _ in range(count):
        (log.write if verb == "write" else log.read)(MIB, took_us, 3, pid)
    log.close(pid=pid)


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


def test_what_a_worker_starts_works_for_it(tmp_path: Path) -> None:
    log = Trace()
    for number in range(4):
        shell, tool = 200 + number, 300 + number
        log.start(shell)
        log.start(tool, "/usr/bin/tr", shell)
        pieces(log, f"/data/out.{number}", 50 if number == 3 else 10, tool)
        log.end(tool)
        log.clocks[shell] = 600_000
        log.end(shell)
    (found,) = of_rule(diagnosed(log.imported(tmp_path)), "rank-imbalance")
    assert found.title.text == "Unequal I/O among the processes"
    assert found.message.values["workers"] == 4
    assert found.cost_seconds == pytest.approx(0.5 - 0.2)


def threads(log: Trace, count: int) -> list[int]:
    pids = [FIRST + 1 + number for number in range(count)]
    for pid in pids:
        log.call(THREAD, str(pid))
        log.clocks[pid] = log.clocks[FIRST]
    return pids


@pytest.mark.parametrize(
    ("others_ms", "found"), [(100, True), (500, False)], ids=["others are done", "others compute"]
)
def test_a_thread_with_more_files_than_the_others(tmp_path: Path, others_ms: int, found: bool) -> None:
    log = Trace()
    pids = threads(log, 4)
    for pid in pids:
        pieces(log, f"/data/part.{pid}", 50 if pid == pids[0] else 10, pid)
        log.clocks[pid] = 600_000
        log.call("exit(0)", "?", 0, pid)
    store = log.imported(tmp_path, wall_us=600_000)
    with_processor_times(store, [0, 10_000_000, *[others_ms * 1_000_000] * 3])
    diagnosis = diagnosed(store)
    assert bool(of_rule(diagnosis, "rank-imbalance")) == found
    for one in of_rule(diagnosis, "rank-imbalance"):
        assert one.title.text == "Unequal I/O among the threads"
        assert one.cost_seconds == pytest.approx(0.5 - 0.2)


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


@pytest.mark.parametrize(("usual_us", "found"), [(600, True), (300, False)], ids=["turns", "a busy machine"])
def test_turns_are_told_from_a_processor_that_others_had(tmp_path: Path, usual_us: int, found: bool) -> None:
    log = Trace()
    log.open("/data/series.bin", flags="O_WRONLY|O_CREAT")
    for number in range(200):
        log.write(MIB, 600)
        log.pause(20_000 if usual_us == 300 and number % 8 == 0 else usual_us)
    assert bool(of_rule(diagnosed(log.imported(tmp_path, wall_us=1)), "io-not-overlapped")) == found


@pytest.mark.parametrize(
    ("user_ms", "found"),
    [((4, 3), True), ((4, 30), False), (None, False)],
    ids=["hardly computes", "one computes meanwhile", "not known"],
)
def test_whole_files_read_by_a_task_that_wanders_from_thread_to_thread(
    tmp_path: Path, user_ms: tuple[int, int] | None, found: bool
) -> None:
    log = Trace()
    (other,) = threads(log, 1)
    for number in range(40):
        pid, past = (FIRST, other) if number % 2 else (other, FIRST)
        log.clocks[pid] = max(log.clocks[pid], log.clocks[past])
        log.open(f"/data/run-{number}.bin", flags="O_RDONLY", pid=pid)
        log.call(f"fstat(3, {{st_mode=S_IFREG|0644, st_size={4 * MIB}, ...}})", pid=pid)
        log.read(4 * MIB, 4000, pid=pid)
        log.close(pid=pid)
    store = log.imported(tmp_path)
    if user_ms:
        with_processor_times(store, [ms * 1_000_000 for ms in user_ms])
    assert bool(of_rule(diagnosed(store), "whole-file-for-a-few-bytes")) == found


NAMED = ("<pipe:[1]>", "<pipe:[2]>")


def stages(log: Trace, piece: int, write_us: int, pipes: tuple[str, str] = NAMED) -> None:
    """`cat /data/big | cat | cat`: three copies of one program, of which only the first has a file. Each
    gives pieces of PIECE bytes to the next, which goes on while the first reads."""

    def call(verb: str, pid: int, fd: int, took_us: int) -> None:
        log.call(f'{verb}({fd}{pipes[fd > 11]}, ""..., {piece})', str(piece), took_us, pid)

    for fd, pipe in zip((10, 12), pipes, strict=True):
        log.call(f"pipe2([{fd}{pipe}, {fd + 1}{pipe}], 0)")
    copies = [FIRST + 1 + number for number in range(3)]
    for pid in copies:
        log.start(pid, "/usr/bin/cat")
    log.open("/data/big", 3, flags="O_RDONLY", pid=copies[0])
    for _ in range(100):
        log.read(MIB, 5_000, 3, copies[0])
        call("write", copies[0], 11, write_us)
        log.clocks[copies[1]] = log.clocks[copies[0]]
        call("read", copies[1], 10, 100)
        call("write", copies[1], 13, write_us)
        log.clocks[copies[2]] = log.clocks[copies[1]]
        call("read", copies[2], 12, 100)
    for pid in copies:
        log.end(pid)


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


@pytest.mark.parametrize(("write_us", "found"), [(2000, True), (500, False)])
def test_who_only_passes_on_is_named_though_the_file_is_slow(
    tmp_path: Path, write_us: int, found: bool
) -> None:
    log = Trace()
    stages(log, MIB, write_us)
    store = with_processor_times(log.imported(tmp_path, wall_us=1), [1_000_000] * 4)
    findings = of_rule(diagnosed(store), "pipe-bound")
    assert bool(findings) == found
    for one in findings:
        assert one.message.values["waiting_share"] < 0.3
        assert one.cost_seconds == pytest.approx(0.2, rel=0.05)
