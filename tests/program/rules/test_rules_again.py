"""Headers that are brought up to date after each record, copies of files that were listed before, files that
are gone through several times for their first bytes; and neighbours without these faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from iodock.program.findings import Diagnosis
from metadata_log import Trace, diagnosed, of_rule

MIB = 1 << 20
RECORD = 700


def of_log(folder: Path, write: Callable[[Trace], None], wall_us: int = 1) -> Diagnosis:
    log = Trace()
    write(log)
    return diagnosed(log.imported(folder, wall_us))


def pwrite(log: Trace, size: int, at: int, took_us: int = 20) -> None:
    log.call(f'pwrite64(3, ""..., {size}, {at})', str(size), took_us)


def with_header(update: Callable[[int], int | None], header: int = 16) -> Callable[[Trace], None]:
    """Records one after the other, and after each a write of HEADER bytes where UPDATE says, if anywhere."""

    def write(log: Trace) -> None:
        log.open("/data/events.rec", flags="O_RDWR|O_CREAT|O_TRUNC")
        pwrite(log, 4096, 0)
        for number in range(1000):
            pwrite(log, RECORD, 65536 + number * RECORD)
            at = update(number)
            if at is not None:
                pwrite(log, header, at)

    return write


@pytest.mark.parametrize(
    ("update", "found"),
    [
        (lambda number: 0, 1),
        (lambda number: 0 if number % 2 else None, 1),
        (lambda number: 0 if number % 100 == 99 else None, 0),
        (lambda number: number * 4, 0),
        (lambda number: None, 0),
    ],
    ids=["after each", "after two", "after a hundred", "an index of all records", "none"],
)
def test_a_small_header_is_written_again(
    tmp_path: Path, update: Callable[[int], int | None], found: int
) -> None:
    diagnosis = of_log(tmp_path, with_header(update))
    assert len(of_rule(diagnosis, "redundant-writes")) == found
    if found:
        assert not of_rule(diagnosis, "random-access")
        (one,) = of_rule(diagnosis, "redundant-writes")
        assert one.evidence["written_bytes"] - one.evidence["again_bytes"] == 16


@pytest.mark.parametrize(("extra_reads", "found"), [(0, 0), (1, 1)], ids=["refills", "reads of its own"])
def test_a_buffer_that_is_filled_anew_after_the_header_is_no_reading(
    tmp_path: Path, extra_reads: int, found: int
) -> None:
    def write(log: Trace) -> None:
        log.open("/data/events.rec", flags="O_RDWR|O_CREAT|O_TRUNC")
        pwrite(log, 4096, 0)
        for number in range(1000):
            pwrite(log, RECORD, 4096 + number * RECORD)
            pwrite(log, 16, 0)
            for _ in range(1 + extra_reads):
                log.call('pread64(3, ""..., 4096, 0)', "4096", 20)

    diagnosis = of_log(tmp_path, write)
    assert len(of_rule(diagnosis, "read-after-write")) == found
    assert bool(of_rule(diagnosis, "redundant-writes")) != found


@pytest.mark.parametrize("size", [4096, 700])
def test_records_at_random_stay_random_beside_a_header(tmp_path: Path, size: int) -> None:
    def write(log: Trace) -> None:
        log.open("/data/slots.bin", flags="O_RDWR")
        for number in range(4000):
            pwrite(log, size, 4096 + number * 2741 % 4000 * 4096, 200)
            if number % 3 == 2:
                pwrite(log, 16, 0, 20)

    (found,) = of_rule(of_log(tmp_path, write), "random-access")
    assert found.cost_seconds is not None and found.cost_seconds > 0.5


def test_records_that_are_read_back_are_no_refills(tmp_path: Path) -> None:
    def write(log: Trace) -> None:
        log.open("/data/checkpoint", flags="O_RDWR|O_CREAT|O_TRUNC")
        for number in range(200):
            pwrite(log, MIB, 4096 + number * MIB, 1000)
            pwrite(log, 16, 0)
            log.call(f'pread64(3, ""..., {MIB}, {4096 + number * MIB})', str(MIB), 1000)

    (found,) = of_rule(of_log(tmp_path, write), "read-after-write")
    assert found.evidence["count"] == 200


@pytest.mark.parametrize(("sniffs", "asks", "found"), [(True, False, 1), (False, True, 0)])
def test_whole_files_are_told_from_their_first_parts(
    tmp_path: Path, sniffs: bool, asks: bool, found: int
) -> None:
    """SNIFFS: each is opened for its magic number first. ASKS: read in part, then asked for the place."""

    def write(log: Trace) -> None:
        for number in range(40):
            name = f"/data/run-{number}.nc"
            if sniffs:
                log.open(name, flags="O_RDONLY", took_us=3)
                log.read(4096, 5)
                log.close()
            log.open(name, flags="O_RDONLY", took_us=3)
            if not asks:
                log.call(f"fstat(3, {{st_mode=S_IFREG|0644, st_size={2 * MIB}, ...}})")
            log.read(MIB if asks else 2 * MIB, 1000)
            if asks:
                log.call("lseek(3, 0, SEEK_CUR)", str(MIB), 1)
            log.close()

    assert len(of_rule(of_log(tmp_path, write), "whole-file-for-a-few-bytes")) == found


def copied(listed: bool, open_us: int, pause_us: int) -> Callable[[Trace], None]:
    """Each of ten files of a size is read, the target is opened, and what was read is written."""

    def write(log: Trace) -> None:
        names = [f"/data/part-{number}.bin" for number in range(10)]
        for name in names if listed else []:
            log.call(f'stat("{name}", {{st_mode=S_IFREG|0644, st_size={MIB}, ...}})', "0", 2)
        for name in names:
            log.open(name, flags="O_RDONLY", took_us=3)
            log.read(MIB, 400)
            log.close()
            log.pause(pause_us)
            log.open(f"{name}.bak", took_us=open_us, flags="O_WRONLY|O_CREAT|O_TRUNC")
            log.write(MIB, 200)
            log.close()

    return write


@pytest.mark.parametrize(
    ("listed", "open_us", "pause_us", "copies"),
    [(False, 5, 5, 10), (True, 5, 5, 10), (False, 900, 5, 10), (True, 900, 5, 10), (True, 5, 900, 0)],
    ids=["plain", "listed before", "slow to create", "both", "changed on the way"],
)
def test_copies_are_paired_by_what_is_moved(
    tmp_path: Path, listed: bool, open_us: int, pause_us: int, copies: int
) -> None:
    found = of_rule(of_log(tmp_path, copied(listed, open_us, pause_us)), "copy-through-user-space")
    assert [one.evidence["copies"] for one in found] == [copies] * bool(copies)


def gone_through(rounds: int, pause_us: int, seek_to: int = 0) -> Callable[[Trace], None]:
    """Twenty files that are read whole in each of ROUNDS, with PAUSE_US after each."""

    def write(log: Trace) -> None:
        for _ in range(rounds):
            for number in range(20):
                log.open(f"/data/day-{number}.nc", flags="O_RDONLY", took_us=3)
                if seek_to:
                    log.call("lseek(3, 0, SEEK_END)", str(seek_to), 1)
                    log.call("lseek(3, 0, SEEK_SET)", "0", 1)
                    log.call(f'read(3, ""..., {MIB})', str(MIB), 300)
                else:
                    log.call(f'read(3, ""..., {MIB + 1})', str(MIB), 300)
                log.close(took_us=2)
                log.pause(pause_us)

    return write


@pytest.mark.parametrize(
    ("rounds", "pause_us", "seek_to", "found"),
    [(1, 10, 0, 1), (4, 10, 0, 1), (4, 2000, 0, 0), (1, 10, MIB, 1), (1, 10, 64 * MIB, 0)],
    ids=["once", "four times", "looked at each time", "size from a seek", "the first part of each"],
)
def test_files_gone_through_for_their_first_bytes(
    tmp_path: Path, rounds: int, pause_us: int, seek_to: int, found: int
) -> None:
    diagnosis = of_log(tmp_path, gone_through(rounds, pause_us, seek_to))
    assert len(of_rule(diagnosis, "whole-file-for-a-few-bytes")) == found
    assert bool(of_rule(diagnosis, "redundant-reads")) == (rounds > 1 and not found)


def test_headers_in_states_that_are_replaced_are_charged_once(tmp_path: Path) -> None:
    def write(log: Trace) -> None:
        for number in range(60):
            log.open(f"/data/tmp{number * 7919:06x}", flags="O_RDWR|O_CREAT|O_EXCL", took_us=30)
            for record in range(60):
                pwrite(log, 4096, 65536 + record * 4096)
                pwrite(log, 64, 0)
            log.close()
            log.call(f'rename("/data/tmp{number * 7919:06x}", "/data/state.bin")', "0", 40)

    (found,) = of_rule(of_log(tmp_path, write), "redundant-writes")
    assert found.evidence["time_ns"] == pytest.approx(59 * (120 * 20 + 70) * 1000, rel=0.01)


def test_a_file_that_is_moved_away_each_time_has_no_headers(tmp_path: Path) -> None:
    def write(log: Trace) -> None:
        for number in range(15):
            log.open("/data/out.tmp", flags="O_RDWR|O_CREAT|O_TRUNC", took_us=30)
            for piece in range(60 if number else 1500):
                pwrite(log, 4096, piece * 4096, 200)
            log.close()
            log.call(f'rename("/data/out.tmp", "/data/out-{number}")', "0", 40)

    assert not of_rule(of_log(tmp_path, write), "redundant-writes")


def replaced(kept: str, reads: int) -> Callable[[Trace], None]:
    """A state that is written under a new name each time and renamed to its own one (KEPT: "state"), to
    another one each time ("each"), after the last one was renamed to a backup's name ("backup"), or linked to
    a name that stays ("link")."""

    def write(log: Trace) -> None:
        for number in range(100):
            log.open(f"/data/tmp{number * 7919:06x}", flags="O_RDWR|O_CREAT|O_EXCL", took_us=30)
            log.write(65536, 30)
            log.close()
            if kept == "backup" and number:
                log.call('rename("/data/state.bin", "/data/state.old")', "0", 40)
            name = f"state-{number}.bin" if kept == "each" else "state.bin"
            log.call(f'rename("/data/tmp{number * 7919:06x}", "/data/{name}")', "0", 400)
            if kept == "link":
                log.call(f'link("/data/state.bin", "/data/step-{number}.bin")', "0", 10)
            for _ in range(reads):
                log.open(f"/data/{name}", flags="O_RDONLY")
                log.call("mmap(NULL, 65536, PROT_READ, MAP_SHARED, 3, 0)", "0x7f0000000000", 5)
                log.close()

    return write


@pytest.mark.parametrize(
    ("kept", "reads", "found"),
    [("state", 0, 1), ("each", 0, 0), ("backup", 0, 0), ("link", 0, 0), ("state", 1, 0)],
    ids=["one state", "all are kept", "the last one is kept", "all are linked", "mapped each time"],
)
def test_a_state_that_takes_the_place_of_the_last_one(
    tmp_path: Path, kept: str, reads: int, found: int
) -> None:
    diagnosis = of_log(tmp_path, replaced(kept, reads), 100_000)
    rewritten = of_rule(diagnosis, "redundant-writes")
    assert len(rewritten) == found
    for one in rewritten:
        assert one.files == ("/data/state.bin",)
        assert one.evidence["written_bytes"] - one.evidence["again_bytes"] == 65536
        assert one.cost_seconds == pytest.approx(0.046 * 99 / 100, rel=0.02)


@pytest.mark.parametrize("passes", [1, 40])
def test_a_table_written_once_is_read_back_once_and_then_read_again(tmp_path: Path, passes: int) -> None:
    def write(log: Trace) -> None:
        log.open("/data/table", flags="O_RDWR|O_CREAT")
        for _ in range(16):
            log.write(MIB, 500)
        for _ in range(passes):
            log.call("lseek(3, 0, SEEK_SET)", "0", 1)
            for _ in range(16):
                log.read(MIB, 500)

    diagnosis = of_log(tmp_path, write)
    (handed,) = of_rule(diagnosis, "read-after-write")
    assert handed.evidence["own_bytes"] == 16 * MIB
    again = of_rule(diagnosis, "redundant-reads")
    assert [one.evidence["again_bytes"] for one in again] == [39 * 16 * MIB] * (passes > 1)
    assert diagnosis.worth_changing[0].rule == ("redundant-reads" if passes > 1 else "read-after-write")
