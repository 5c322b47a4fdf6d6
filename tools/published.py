"""Writes the published tables of the SS-ken report (2015, chapter 4) as trace logs.

`python tools/published.py FOLDER` writes them all.

The report prints tables, not logs. Each function writes a log with the table's counts, times and bytes,
complete or scaled down as its docstring says. The docstring also names the values that the tables do not
contain, such as the run's length or the order of calls, which are chosen freely. The output is deterministic.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

NOON = 43_200.0
"""Seconds since midnight."""
READ_BLOCK = 8192


@dataclass
class Strace:
    """Builds lines as `strace -f -ttT` writes them, one after the other; times are in seconds."""

    at: float = NOON
    pid: int = 4711
    lines: list[str] = field(default_factory=list)

    def call(self, text: str, result: object = 0, took: float = 0.00001, then: float = 0.000001) -> None:
        """Adds one call that begins now. The next one begins THEN seconds after its end."""
        clock = self.at % 86_400
        stamp = f"{int(clock // 3600):02}:{int(clock // 60 % 60):02}:{clock % 60:09.6f}"
        self.lines.append(f"{self.pid} {stamp} {text} = {result} <{took:.6f}>")
        self.at += took + then

    def compute(self, seconds: float) -> None:
        """Lets time pass without calls."""
        self.at += seconds

    def end(self) -> list[str]:
        """Adds the exit and returns all lines."""
        self.call("exit_group(0)", "?", 0.0)
        self.lines[-1] = self.lines[-1].rsplit(" <", 1)[0]
        self.lines.append(self.lines[-1].split(" exit_group")[0] + " +++ exited with 0 +++")
        return self.lines


def shares(total: float, count: int) -> Iterator[float]:
    """Yields COUNT durations that add up to TOTAL within rounding to µs."""
    done = 0.0
    for number in range(1, count + 1):
        upto = round(total * number / count, 6)
        yield round(upto - done, 6)
        done = upto


def jaxa_cfd() -> Iterable[str]:
    """Figures 4.1.7 and 4.1.8, node 1: in each of 511 steps the program opens, stats, writes and closes 3
    files. The run's length is not published: 600 s here."""
    log = Strace()
    names = {
        "RESULT/shock5_jet1-3-reordered_0001.rslt": (2, 2_500_000, 51.8, 51.5, 7.7 - 1.1 - 1.9, 1.1),
        "adc_body_jet1-3.txt": (1, 2_150, 2.9, 0.1, 1.0, 59.8),
        "adc_stbl_jet1-3.txt": (1, 2_150, 1.4, 0.4, 0.5, 1.1),
    }
    for _ in range(511):
        log.compute(1.17)
        for name, (opens, size, open_ms, write_ms, stat_ms, statvfs_ms) in names.items():
            each = 1 / 511 / 1000
            if opens == 2:
                log.call(f'open("{name}", O_RDONLY)', 4, open_ms / 2 * each)
                log.call("close(4)", 0, 0.000001)
            log.call(f'stat("{name}", {{st_mode=S_IFREG|0644, st_size=1}})', 0, stat_ms * each / 2)
            if opens == 2:
                log.call(f'stat("{name}", {{st_mode=S_IFREG|0644, st_size=1}})', 0, stat_ms * each / 2)
            log.call(f'open("{name}", O_WRONLY|O_CREAT|O_APPEND, 0666)', 4, open_ms / opens * each)
            for _ in range(2):
                log.call("fstat(4, {st_mode=S_IFREG|0644, st_size=1})", 0, 0.000002)
            log.call(f'statfs("{name}", {{f_bsize=1048576}})', 0, statvfs_ms * each)
            log.call(f'write(4, "..."..., {size})', size, write_ms * each)
            log.call("close(4)", 0, 0.000001)
    return log.end()


def jaxa_data() -> Iterable[str]:
    """Figures 4.1.9 and 4.1.10: the program makes 24,704 reads of 14 GB and 30,202 lseeks on four files of
    about 70 MB. The run's length is not published: 60 s here."""
    log = Strace()
    files = {"file1": (6_616, 1024, 4.4694), "file2": (6_534, 466, 2.1041), "file3": (3_059, 621, 1.3713),
             "file4": (8_495, 250, 1.7552)}  # fmt: skip
    for number, name in enumerate(files):
        log.call(f'open("{name}", O_RDONLY)', 3 + number)
    for number, (count, size, seconds) in enumerate(files.values()):
        limit = 70_000_000 // (size * 1024)
        for at, took in enumerate(shares(seconds, count)):
            place = at % limit * size * 1024
            log.call(f"lseek({3 + number}, {place}, SEEK_SET)", place, 0.000001)
            if number == 0 and at < 30_202 - 24_704:
                log.call("lseek(3, 0, SEEK_CUR)", place, 0.000001)
            log.call(f'read({3 + number}, "..."..., {size * 1024})', size * 1024, took, 0.0019)
    log.call('open("result", O_WRONLY|O_CREAT, 0666)', 9)
    for took in shares(0.9, 1_005):
        log.call('write(9, "..."..., 411648)', 411_648, took)
    log.call("close(9)")
    return log.end()


def kyoto(records: int = 3_200) -> Iterable[str]:
    """Tables 4.2.1 to 4.2.3, with fewer records: the shell's loop starts `cat` for each record, and the
    shell's own `read` reads single bytes. The log is as `truss -aefldE` on Solaris writes it: system CPU
    times, no elapsed times."""
    lines = ["Base time stamp:  1372900000.0000  [ Thu Jul  4 10:06:40 JST 2013 ]"]
    at = 0.0

    def line(pid: int, call: str, result: object, cpu: float = 0.0) -> None:
        nonlocal at
        at += 0.0005
        gap = " " if call.endswith("argc") else "\t"
        shown = f"Err#{result}" if isinstance(result, str) else f"= {result}"
        lines.append(f"{pid}/1:\t{at:7.4f}\t{cpu:7.4f}\t{call}{gap}{shown}")

    shell = 1000
    line(shell, 'execve("/bin/sh", 0x08047DEC, 0x08047DF8)  argc', 2)
    line(shell, 'open("tmpalldat", O_WRONLY|O_CREAT|O_TRUNC, 0666)', 4)
    for number in range(records):
        name = f"data/FA{number % 100:03}/tagged{number // 100 % 30}/{number}.dat"
        # truss prints a blank before each character of a buffer.
        for letter in (*(f" {letter}" for letter in name[-25:]), "\\n"):
            line(shell, f'read(0, "{letter}", 1)', 1)
        cat = 2000 + number
        line(shell, "fork()", cat)
        line(cat, 'execve("/usr/bin/cat", 0x00039E68, 0x00039F68)  argc', 2, 0.0004)
        line(cat, 'open("/var/ld/ld.config", O_RDONLY)', "2 ENOENT", 0.0001)
        for library in ("/lib/libc.so.1", "/platform/FJSV,GPUZC-M/lib/libc_psr.so.1"):
            line(cat, f'stat("{library}", 0xFFBFF0A0)', 0, 0.0000)
            line(cat, f'open("{library}", O_RDONLY)', 3, 0.0001)
            line(cat, "close(3)", 0)
        line(cat, 'stat("/usr/lib/libintl.so.1", 0xFFBFF0A0)', "2 ENOENT")
        line(cat, f'open64("{name}", O_RDONLY)', 3, 0.0001)
        line(cat, 'read(3, " . . .", 8192)', 588, 0.0001)
        line(cat, 'write(1, " . . .", 588)', 588, 0.0001)
        line(cat, 'read(3, "", 8192)', 0)
        line(cat, "close(3)", 0)
        line(cat, "_exit(0)", 0)
        lines[-1] = lines[-1].rsplit("\t", 1)[0]
    return lines


def ls(slow: bool) -> Callable[[], Iterable[str]]:
    """Tables 4.3.4.1 (fast) and 4.3.4.2 (slow), complete: `ls` of 6,902 names makes three lgetxattr calls for
    each, all of which fail."""

    def log_of() -> Iterable[str]:
        log = Strace(at=NOON + 5 * 3600 + 180)
        times = {
            "stat": 0.075346,
            "lstat": 0.314374,
            "xattr": 5.545225,
            "getdents": 0.320007,
            "open": 0.038194,
        }
        if not slow:
            times = {
                "stat": 0.071214,
                "lstat": 0.795326,
                "xattr": 0.249096,
                "getdents": 0.000650,
                "open": 0.000347,
            }
        log.call('open(".", O_RDONLY|O_NONBLOCK|O_DIRECTORY|O_CLOEXEC)', 3, times["open"])
        for took in shares(times["getdents"], 12):
            log.call("getdents(3, 576 entries, 32768)", 18_000, took)
        log.call("close(3)")
        rest = times["xattr"] - (0.722723 if slow else 0.0)
        usual = shares(0.26 if slow else rest, 20_712)
        # One slow call of 0.72 s is published. The other slow calls add up to the rest of the published sum.
        slow_ones = {9_000: 0.722723} | (
            {n * 150 + 75: (rest - 0.26) / 138 for n in range(138)} if slow else {}
        )
        stats, lstats = shares(times["stat"], 6_902), shares(times["lstat"], 13_808)
        done = 0
        for number in range(6_904):
            name = f"frame{number:05}.fits"
            for _ in range(2):
                log.call(f'lstat("{name}", {{st_mode=S_IFREG|0644, st_size=2880}})', 0, next(lstats))
            for attribute, why in (
                ("security.selinux", "EOPNOTSUPP (Operation not supported)"),
                ("system.posix_acl_access", "ENODATA (No data available)"),
                ("system.posix_acl_default", "ENODATA (No data available)"),
            ):
                took = next(usual)
                took += slow_ones.get(done, 0.0) if slow else 0.0
                done += 1
                log.call(f'lgetxattr("{name}", "{attribute}", 0x1a90fb0, 255)', f"-1 {why}", took)
            if number < 6_902:
                log.call(f'stat("{name}", {{st_mode=S_IFREG|0644, st_size=2880}})', 0, next(stats))
        for took in shares(0.003, 129):
            log.call('write(1, "..."..., 4096)', 4096, took)
        return log.end()

    return log_of


def swarp() -> Iterable[str]:
    """Tables 4.3.5 to 4.3.9, complete: closes of the 94 files that the program wrote take 83 % of the time in
    I/O. The run's length is not published: 20 s here."""
    log = Strace()
    groups = (("resamp", 0.526696, 0.061972, 0.032339), ("resamp.weight", 0.520030, 0.056894, 0.033042))
    for number in range(46):
        log.compute(0.37)
        log.call(f'open("mfl_{number:02}.fits", O_RDONLY)', 3, 0.000195)
        for _ in range(9):
            log.call('read(3, "..."..., 248880)', 248_880, 0.000058)
        log.call("close(3)", 0, 0.000015)
        for kind, close, write, _ in groups:
            log.call(f'open("mfl_{number:02}_{kind}.fits", O_RDWR|O_CREAT|O_TRUNC, 0666)', 3, 0.0002)
            for took in shares(write / 46, 32):
                log.call('write(3, "..."..., 32768)', 32_768, took)
            log.call("close(3)", 0, close / 46)
    for number in range(23):
        for kind, _, _, read in groups:
            log.call(f'open("mfl_{number:02}_{kind}.fits", O_RDONLY)', 3, 0.00002)
            for took in shares(read / 23, 64):
                log.call('read(3, "..."..., 32768)', 32_768, took)
            log.call("close(3)", 0, 0.00001)
    for name, close in (("coadd.fits", 0.304272), ("coadd.weight.fits", 0.304729)):
        log.call(f'open("{name}", O_RDWR|O_CREAT|O_TRUNC, 0666)', 3, 0.000192)
        for took in shares(0.026552, 925):
            log.call('write(3, "..."..., 32748)', 32_748, took)
        log.call("close(3)", 0, close)
    return log.end()


def plot5(slow: bool) -> Callable[[], Iterable[str]]:
    """Table 4.3.11: plot5's usual calls, or with the open of 13.94 s at 12:08:20 and the following close of
    1.94 s."""

    def log_of() -> Iterable[str]:
        log = Strace(at=NOON + 8 * 60 + 20.010048 - (6.0 if slow else 0.0))
        for number in range(101):
            log.compute(0.12)
            if number == 50 and slow:
                log.at = NOON + 8 * 60 + 20.010048
            is_slow = slow and number == 50
            opened, closed = (13.936576, 1.939770) if is_slow else (0.005942, 0.001514)
            log.call('open("plot.cfg", O_WRONLY|O_CREAT|O_TRUNC, 0666)', 5, opened)
            log.call("fstat(5, {st_mode=S_IFREG|0644, st_size=0})", 0, 0.000241)
            log.call("lseek(5, 0, SEEK_SET)", 0, 0.000008)
            log.call('write(5, "all3.dat1"..., 42)', 42, 0.000019)
            log.call("close(5)", 0, closed)
            log.call('open("all3.dat1", O_RDONLY)', 5, 0.00003)
            for _ in range(9):
                log.call('read(5, "..."..., 32768)', 32_768, 0.000008)
            log.call('read(5, ""..., 32768)', 0, 0.000008)
            log.call("close(5)", 0, 0.000010)
        return log.end()

    return log_of


def super_kamiokande(stage: str, scale: int = 50) -> Callable[[], Iterable[str]]:
    """Tables 4.4.3 to 4.4.5, with 1/SCALE of the calls and of the file. `before`: the program reads 50 times
    the file's bytes, with 1.5 lseeks for each read; this run took 400 s. `header`: the program copies the
    header, which halves the bytes; 2 lseeks for each read. `after`: no tellg and no seeks; the program reads
    each byte once."""
    lseek_s, reads, read_s, wall = {
        "before": (25.6, 3_092_219, 35.0, 400.0),
        "header": (31.0 * 25.6 / 46.1, 1_546_000, 35.0 * 25.7 / 48.0, 360.0),
        "after": (0.0, 500_000_000 // READ_BLOCK, 0.7, 300.0),
    }[stage]

    def log_of() -> Iterable[str]:
        log = Strace()
        log.call('open("event_run071482.000010", O_RDONLY)', 3, 0.0001)
        blocks = 500_000_000 // scale // READ_BLOCK
        again = round(reads / scale / blocks)
        steps = {
            "before": ("set", "read", "tell", "set", "read"),
            "header": ("tell", "set", "read"),
            "after": ("read",),
        }
        step_reads = steps[stage].count("read")
        count = blocks * again
        each_read = read_s / scale / count
        each_seek = lseek_s / scale / count / (1.5 if stage == "before" else 2.0)
        rest = (wall - lseek_s - read_s) / scale / count
        for block in range(blocks):
            place = block * READ_BLOCK
            at = place
            for step in steps[stage] * (again // step_reads):
                if step == "read":
                    log.call(f'read(3, "..."..., {READ_BLOCK})', READ_BLOCK, each_read, rest)
                    at = place + READ_BLOCK
                    continue
                at = place if step == "set" else at
                where = f"{place}, SEEK_SET" if step == "set" else "0, SEEK_CUR"
                log.call(f"lseek(3, {where})", at, each_seek)
        log.call("close(3)")
        log.call('open("rfm_run071482.000010.root", O_RDWR|O_CREAT|O_TRUNC, 0644)', 3, 0.0001)
        for _ in range(max(1, 401 // scale)):
            log.call('write(3, "..."..., 778000)', 778_000, 0.000820)
        log.call("close(3)")
        return log.end()

    return log_of


LOGS: dict[str, Callable[[], Iterable[str]]] = {
    "jaxa-cfd.strace": jaxa_cfd,
    "jaxa-data.strace": jaxa_data,
    "kyoto.truss": kyoto,
    "ls-fast.strace": ls(slow=False),
    "ls-slow.strace": ls(slow=True),
    "swarp.strace": swarp,
    "plot5-usual.strace": plot5(slow=False),
    "plot5-slow.strace": plot5(slow=True),
    "super-kamiokande-before.strace": super_kamiokande("before"),
    "super-kamiokande-header.strace": super_kamiokande("header"),
    "super-kamiokande-after.strace": super_kamiokande("after"),
}


def write(name: str, folder: Path) -> Path:
    """Writes one log and returns its path."""
    path = folder / name
    path.write_text("\n".join(LOGS[name]()) + "\n")
    return path


def main() -> int:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in LOGS:
        print(write(name, folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
