"""Defines cases of inefficient data access. Each has a log that shows the fault and a log of the same work
done efficiently, both with known times."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fault_case import Case
from timed_strace import StraceLog

MIB = 1 << 20
Build = Callable[[StraceLog], None]


def small_reads(log: StraceLog) -> None:
    log.open("/data/a")
    for _ in range(2001):
        log.read(100, 100)


def large_reads(log: StraceLog) -> None:
    log.open("/data/a")
    for _ in range(20):
        log.read(65536, 10_000)


def small_writes(log: StraceLog) -> None:
    log.open("/data/out", "O_WRONLY|O_CREAT")
    for _ in range(5001):
        log.write(50, 20)


def page_writes(log: StraceLog) -> None:
    log.open("/data/out", "O_WRONLY|O_CREAT")
    for _ in range(5001):
        log.write(4096, 20)


def reads_of_a_byte(log: StraceLog) -> None:
    log.open("/data/list")
    for _ in range(5000):
        log.read(1, 20)


def few_reads_of_a_byte(log: StraceLog) -> None:
    log.open("/data/list")
    for _ in range(200):
        log.read(1, 20)


def jumps(log: StraceLog) -> None:
    log.open("/data/table")
    place = 1
    for _ in range(1000):
        place = place * 16807 % 2147483647
        log.pread(4096, place % 100_000 * 4096, 100)


def sorted_jumps(log: StraceLog) -> None:
    log.open("/data/table")
    for number in range(1000):
        log.pread(4096, number * 40960, 100)


def blocks_backward(log: StraceLog) -> None:
    log.open("/data/history")
    for number in range(500, 0, -1):
        log.pread(4096, number * 4096, 200)


def blocks_forward(log: StraceLog) -> None:
    log.open("/data/history")
    for number in range(500):
        log.pread(4096, number * 4096, 200)


def unaligned(log: StraceLog) -> None:
    log.open("/data/records", "O_RDWR")
    for number in range(1000):
        log.pwrite(8192, 100 + number * 16384, 90)


def aligned(log: StraceLog) -> None:
    log.open("/data/records", "O_RDWR")
    for number in range(1000):
        log.pwrite(8192, number * 16384, 90)


def written_anew(log: StraceLog) -> None:
    log.open("/data/field", "O_RDWR|O_CREAT|O_TRUNC")
    for number in range(1000):
        log.pwrite(40_000, number * 40_000, 100)


def read_ten_times(log: StraceLog) -> None:
    for _ in range(10):
        log.open("/data/in")
        for _ in range(16):
            log.read(65536, 1000)
        log.close()


def read_once(log: StraceLog) -> None:
    log.open("/data/in")
    for _ in range(160):
        log.read(65536, 1000)


def rewritten(log: StraceLog) -> None:
    log.open("/data/state", "O_WRONLY|O_CREAT")
    for _ in range(101):
        log.pwrite(1000, 0, 1000)


def appended(log: StraceLog) -> None:
    log.open("/data/state", "O_WRONLY|O_CREAT")
    for _ in range(101):
        log.write(65536, 1000)


def read_back(log: StraceLog) -> None:
    log.open("/data/scratch", "O_RDWR|O_CREAT")
    for _ in range(20):
        log.write(65536, 100)
    log.seek(0)
    for _ in range(20):
        log.read(65536, 10_000)


def read_from_elsewhere(log: StraceLog) -> None:
    log.open("/data/scratch", "O_RDWR|O_CREAT")
    for _ in range(20):
        log.write(65536, 100)
    log.open("/data/in", fd=4)
    for _ in range(20):
        log.read(65536, 10_000, fd=4)


def asked_for_more(log: StraceLog) -> None:
    log.open("/data/log")
    log.read(4096, 50)
    for _ in range(3002):
        log.read(0, 50, asked=4096)


def waited_for_more(log: StraceLog) -> None:
    log.open("/data/log")
    log.read(4096, 50)
    for _ in range(900):
        log.read(0, 50, asked=4096)


def tells(log: StraceLog) -> None:
    log.open("/data/events")
    for number in range(2000):
        log.tell(number * 8192, 50)
        log.read(8192, 10)


def seeks_that_lead_on(log: StraceLog) -> None:
    log.open("/data/events")
    for number in range(2000):
        log.seek(number * 81920, 50)
        log.read(8192, 10)


def lines_to_stdout(log: StraceLog) -> None:
    log.open("/data/out.txt", "O_WRONLY|O_CREAT", fd=5)
    log.call("dup2(5, 1) = 1", 1)
    for _ in range(4000):
        log.write(40, 30, fd=1)


def blocks_to_stdout(log: StraceLog) -> None:
    log.open("/data/out.txt", "O_WRONLY|O_CREAT", fd=5)
    log.call("dup2(5, 1) = 1", 1)
    for _ in range(40):
        log.write(4096, 3000, fd=1)


def synchronous(log: StraceLog) -> None:
    log.open("/data/log", "O_WRONLY|O_CREAT|O_DSYNC")
    for _ in range(100):
        log.write(4096, 5000)


def synchronous_once(log: StraceLog) -> None:
    log.open("/data/log", "O_WRONLY|O_CREAT")
    for _ in range(100):
        log.write(4096, 5)
    log.call("fsync(3) = 0", 5000)


def direct_refused(log: StraceLog) -> None:
    log.open("/data/direct", "O_WRONLY|O_CREAT|O_DIRECT")
    for _ in range(100):
        log.call('write(3, ""..., 1000) = -1 EINVAL (Invalid argument)', 1000)


def direct_fitting(log: StraceLog) -> None:
    log.open("/data/direct", "O_WRONLY|O_CREAT|O_DIRECT")
    for _ in range(100):
        log.write(4096, 1000)


def copied(log: StraceLog) -> None:
    log.open("/data/from")
    log.open("/data/to", "O_WRONLY|O_CREAT", fd=4)
    for _ in range(100):
        log.read(65536, 1000)
        log.write(65536, 2000, fd=4)


def changed_on_the_way(log: StraceLog) -> None:
    log.open("/data/from")
    log.open("/data/to", "O_WRONLY|O_CREAT", fd=4)
    for _ in range(100):
        log.read(65536, 1000)
        log.now += 3000
        log.write(65536, 2000, fd=4)


def never_read(log: StraceLog) -> None:
    log.open("/data/tmp1", "O_WRONLY|O_CREAT")
    for _ in range(40):
        log.write(65536, 10_000)
    log.close()
    log.call('unlink("/data/tmp1") = 0', 1000)


def read_before_it_went(log: StraceLog) -> None:
    log.open("/data/tmp1", "O_RDWR|O_CREAT")
    for _ in range(40):
        log.write(65536, 10_000)
    log.pread(4096, 0)
    log.close()
    log.call('unlink("/data/tmp1") = 0', 1000)


def grep_per_record(log: StraceLog) -> None:
    for number in range(20):
        log.child(200 + number, "/usr/bin/grep")
        log.open("/data/catalogue")
        for _ in range(4):
            log.read(65536, 1000)
        log.close()
        log.call('write(1, ""..., 20) = 20', 1)
        log.ends()


def grep_of_all(log: StraceLog) -> None:
    log.child(200, "/usr/bin/grep")
    log.open("/data/catalogue")
    for _ in range(80):
        log.read(65536, 1000)
    log.call('write(1, ""..., 400) = 400', 1)
    log.ends()


CASES = [
    # The 2,000 reads are consecutive and could be one call. The subtracted 40 us are the time to copy 200 kB
    # from memory.
    Case("small-requests", small_reads, 2000, 0.2 - 0.0001 - 0.00004, ("/data/a",), large_reads),
    Case(
        "small-requests", small_writes, 5000, 0.1 - 0.00002 - 0.000125, ("/data/out",), page_writes, "writes"
    ),
    Case("bytewise-read", reads_of_a_byte, 5000, 0.1, ("/data/list",), few_reads_of_a_byte),
    # Sorted, the 4 MB need 4 reads of 100 us, and 0.82 ms to copy from memory.
    Case("random-access", jumps, 1000, 0.1 - 0.0004 - 0.00082, ("/data/table",), sorted_jumps),
    Case("backward-access", blocks_backward, 500, 0.1 - 0.0004 - 0.00041, ("/data/history",), blocks_forward),
    # Each request touches three pages instead of two.
    Case("unaligned-requests", unaligned, 1000, 0.03, ("/data/records",), aligned),
    Case("redundant-reads", read_ten_times, 144, 0.144, ("/data/in",), read_once),
    Case("redundant-writes", rewritten, 100, 0.1, ("/data/state",), appended),
    Case("read-after-write", read_back, 20, 0.2, ("/data/scratch",), read_from_elsewhere),
    # The program needs two of the empty reads to notice the end of the file.
    Case("polling-at-end", asked_for_more, 3000, 0.15, ("/data/log",), waited_for_more),
    Case("seek-storm", tells, 1997, 0.09985, ("/data/events",), seeks_that_lead_on),
    Case("stdout-unbuffered", lines_to_stdout, 4000, 0.12, ("/data/out.txt",), blocks_to_stdout),
    # One write of the 400 kB would take 5 ms, and copying into memory 0.2 ms.
    Case("synchronous-flags", synchronous, 100, 0.5 - 0.005 - 0.0002, ("/data/log",), synchronous_once),
    Case("direct-io-unaligned", direct_refused, 100, 0.1, ("/data/direct",), direct_fitting),
    Case("copy-through-user-space", copied, 200, 0.1, ("/data/to",), changed_on_the_way),
    Case("unused-output", never_read, 43, 0.401, ("/data/tmp1",), read_before_it_went),
    # The program needs one of twenty reads.
    Case("whole-file-for-a-few-bytes", grep_per_record, 80, 0.076, ("/data/catalogue",), grep_of_all),
]
IDS = [f"{case.rule}{'-' if case.name else ''}{case.name}" for case in CASES]


def made(build: Build, folder: Path, durations: bool = True) -> Path:
    log = StraceLog()
    build(log)
    return log.imported(folder, durations=durations)
