"""Defines faults of metadata, processes and time as logs of one second, each with the same work done
efficiently."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fault_case import Case
from metadata_log import Trace

MIB = 1 << 20
ENOENT = "-1 ENOENT (No such file or directory)"
Build = Callable[[Trace], None]


def searches(log: Trace) -> None:
    for number in range(1000):
        log.open_missing(f"/data/path/{number % 4}/table.cfg", 200)


def searches_a_little(log: Trace) -> None:
    for number in range(200):
        log.open_missing(f"/data/path/{number}/table.cfg", 200)


def asks_for_attributes(log: Trace) -> None:
    for number in range(3000):
        name = f"/data/f{number % 3}"
        log.call(f'lgetxattr("{name}", "user.x", 0x7f, 255)', "-1 ENODATA (No data available)", 100)


def gets_attributes(log: Trace) -> None:
    for number in range(3000):
        log.call(f'lgetxattr("/data/f{number // 3}", "user.x", "abc", 255)', "3", 100)


def stats_again(log: Trace) -> None:
    for _ in range(1001):
        log.call('stat("/data/in", {st_mode=S_IFREG|0644, st_size=5, ...})', "0", 300)


def stats_each_once(log: Trace) -> None:
    for number in range(1001):
        log.call(f'stat("/data/in{number}", {{st_mode=S_IFREG|0644, st_size=5, ...}})', "0", 300)


def waits_for_a_file(log: Trace) -> None:
    for _ in range(1001):
        log.call('stat("/data/ready", 0x7f)', ENOENT, 300)


def reopens(log: Trace) -> None:
    for _ in range(501):
        log.open("/data/log", took_us=300, flags="O_WRONLY|O_APPEND")
        log.write(40, 20)
        log.close(200)


def keeps_open(log: Trace) -> None:
    log.open("/data/log", took_us=300, flags="O_WRONLY|O_APPEND")
    for _ in range(501):
        log.write(40, 20)
    log.close(200)


def lists_again(log: Trace) -> None:
    for _ in range(101):
        log.open("/data/in", took_us=100, flags="O_RDONLY|O_DIRECTORY")
        log.call("getdents64(3, 0x55 /* 90 entries */, 32768)", "2900", 3000)
        log.call("getdents64(3, 0x55 /* 0 entries */, 32768)", "0", 100)
        log.close(100)


def lists_many_once(log: Trace) -> None:
    for number in range(101):
        log.open(f"/data/in{number}", took_us=100, flags="O_RDONLY|O_DIRECTORY")
        log.call("getdents64(3, 0x55 /* 90 entries */, 32768)", "2900", 3000)
        log.call("getdents64(3, 0x55 /* 0 entries */, 32768)", "0", 100)
        log.close(100)


def creates_many(log: Trace) -> None:
    for number in range(600):
        log.open(f"/data/out/step{number:04d}.dat", took_us=300, flags="O_WRONLY|O_CREAT")
        log.write(100, 10)
        log.close(100)


def creates_few(log: Trace) -> None:
    for number in range(400):
        log.open(f"/data/out/step{number:04d}.dat", took_us=300, flags="O_WRONLY|O_CREAT")
        log.write(100, 10)
        log.close(100)


def syncs_each(log: Trace) -> None:
    log.open("/data/journal", flags="O_WRONLY|O_CREAT")
    for _ in range(101):
        log.write(4096, 10)
        log.call("fsync(3)", took_us=5000)


def syncs_checkpoints(log: Trace) -> None:
    log.open("/data/state", flags="O_WRONLY|O_CREAT")
    for _ in range(30):
        for _ in range(8):
            log.write(MIB, 1000)
        log.call("fsync(3)", took_us=5000)


def commits_each(log: Trace) -> None:
    log.open("/data/runs.db", flags="O_RDWR|O_CREAT")
    for _ in range(101):
        log.write(4096, 10)
        log.call("fdatasync(3)", took_us=5000)


def commits_batches(log: Trace) -> None:
    log.open("/data/runs.db", flags="O_RDWR|O_CREAT")
    for _ in range(90):
        log.write(4096, 10)
        log.call("fdatasync(3)", took_us=5000)


def locks_again(log: Trace) -> None:
    log.open("/data/table")
    for _ in range(2005):
        log.call("flock(3, LOCK_EX)", took_us=200)
    log.read(100, 10)


def locks_many_once(log: Trace) -> None:
    for number in range(1000):
        log.open(f"/data/table{number}x")
        log.call("flock(3, LOCK_EX)", took_us=400)
        log.close()


def child_per_record(log: Trace) -> None:
    for number in range(100):
        pid = 1000 + number
        log.start(pid, "/usr/bin/cut")
        log.call('access("/etc/ld.so.preload", R_OK)', ENOENT, 100, pid)
        log.open("/usr/lib/libc.so.6", took_us=100, flags="O_RDONLY", pid=pid)
        log.close(100, pid=pid)
        log.pause(4700, pid)
        log.end(pid)
        log.pause(5000)


def compiler_per_source(log: Trace) -> None:
    for number in range(100):
        pid = 1000 + number
        log.start(pid, "/usr/bin/gcc")
        log.open("/data/source.h", took_us=100, flags="O_RDONLY", pid=pid)
        log.close(100, pid=pid)
        log.pause(4800, pid)
        log.end(pid)
        log.pause(5000)


def hangs_once(log: Trace) -> None:
    for number in range(100):
        log.open("/data/plot.cfg", took_us=400_000 if number == 50 else 50, flags="O_WRONLY|O_CREAT")
        log.close(10)


def hangs_never(log: Trace) -> None:
    for _ in range(100):
        log.open("/data/plot.cfg", took_us=50, flags="O_WRONLY|O_CREAT")
        log.close(10)


def turns(log: Trace) -> None:
    log.open("/data/state", flags="O_WRONLY|O_CREAT")
    for _ in range(10):
        log.pause(50_000)
        for _ in range(4):
            log.write(MIB, 10_000)


def irregular_turns(log: Trace) -> None:
    log.open("/data/state", flags="O_WRONLY|O_CREAT")
    for number in range(10):
        log.pause(450_000 if number == 5 else 6_000)
        for _ in range(4):
            log.write(MIB, 10_000)


def debug_lines(log: Trace) -> None:
    log.open("/data/debug.txt", flags="O_WRONLY|O_CREAT")
    for _ in range(900):
        log.pause(1000)
        log.write(50, 100)


def a_line_at_the_end(log: Trace) -> None:
    log.open("/data/debug.txt", flags="O_WRONLY|O_CREAT")
    log.pause(900_000)
    for _ in range(11):
        log.write(4096, 100)


CASES = [
    Case("failed-open-storm", searches, 1000, 0.2, ("/data/path/*/table.cfg",), searches_a_little),
    Case("failed-xattr", asks_for_attributes, 3000, 0.3, ("/data/f0",), gets_attributes),
    Case("stat-storm", stats_again, 1000, 0.3, ("/data/in",), stats_each_once),
    Case("stat-storm", waits_for_a_file, 1000, 0.3, ("/data/ready",), stats_each_once, "of-nothing"),
    Case("open-close-loop", reopens, 500, 0.26, ("/data/log",), keeps_open),
    Case("directory-scan-storm", lists_again, 100, 0.33, ("/data/in",), lists_many_once),
    Case("tiny-file-flood", creates_many, 1200, 0.24, (), creates_few),
    Case("sync-heavy", syncs_each, 101, 0.5, ("/data/journal",), syncs_checkpoints),
    Case("sync-heavy", commits_each, 101, 0.5, ("/data/runs.db",), commits_batches, "of-a-database"),
    # Any program needs four metadata calls, which are not part of the cost.
    Case("metadata-heavy", locks_again, 2002, 0.401 * 2002 / 2006, ("/data/table",), locks_many_once),
    Case("process-storm", child_per_record, 400, 0.5, (), compiler_per_source),
    Case("slow-call", hangs_once, 1, 0.4, ("/data/plot.cfg",), hangs_never),
    # The log has ten writes of 40 ms with nine pauses of 50 ms between them.
    Case("io-not-overlapped", turns, 40, 0.4, (), irregular_turns),
    Case("write-in-compute-loop", debug_lines, 900, 0.09, ("/data/debug.txt",), a_line_at_the_end),
]
IDS = [f"{case.rule}{'-' if case.name else ''}{case.name}" for case in CASES]


def made(build: Build, folder: Path, durations: bool = True) -> Path:
    log = Trace()
    build(log)
    return log.imported(folder, durations=durations)
