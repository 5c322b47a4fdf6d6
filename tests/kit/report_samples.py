"""Creates reports by hand, one for each kind of run that the page must show well."""

from __future__ import annotations

import math
import random
from typing import Any

from iodock.program.views.report.page import LossNote, Report
from iodock.program.views.verdict import Cost, Overview, Part

SECOND = 1_000_000_000
CALL_COLUMNS = [
    "call",
    "class",
    "count",
    "failed",
    "total_time_ns",
    "mean_time_ns",
    "max_time_ns",
    "read_bytes",
    "written_bytes",
    "calls_per_s",
    "bytes_per_s",
]
FILE_COLUMNS = [
    "file",
    "count",
    "failed",
    "total_time_ns",
    "mean_time_ns",
    "max_time_ns",
    "read_bytes",
    "written_bytes",
    "kind",
    "fs_type",
    "size_bytes",
    "access",
]

HOSTILE = [
    "/data/<script>alert(1)</script>",
    "/data/</script><img src=x onerror=alert(2)>",
    "/data/quote\"'`&amp;&lt;",
    "/data/line\u2028separator\u2029and\u202eoverride",
    "/data/not\\xffutf8\\x80",
    "/data/newline\nand\ttab\x1b[31m",
    "/data/" + "x" * 4000,
    "/data/日本語の名前 with spaces/漢字.dat",
    "/data/-rf $(reboot) `id` ; *?[a]",
    "/data/{n} {file} @SCRIPT@ @DATA@",
    "/data/cafe\u0301\u200d\U0001f469\u200d\U0001f52c",
]


def table(columns: list[str], rows: list[list[Any]], of: int | None = None, **extra: Any) -> dict[str, Any]:
    return {
        "columns": columns,
        "rows": rows,
        "other": None,
        "total": None,
        "of": len(rows) if of is None else of,
    } | extra


def call_row(
    name: str, sort: str, count: int, failed: int, total: int | None, read: int | None, written: int | None
) -> list[Any]:
    moved = (read or 0) + (written or 0)
    if total is None:
        return [name, sort, count, failed, None, None, None, read, written, None, None]
    rate = moved / (total / 1e9) if moved else None
    return [
        name,
        sort,
        count,
        failed,
        total,
        total / count,
        total // 3,
        read,
        written,
        count / (total / 1e9),
        rate,
    ]


def sizes(seed: int) -> dict[str, Any]:
    chance = random.Random(seed)
    rows: list[list[Any]] = [["read", 0, 12, 12_000], ["read", 1, 3, 9_000], ["write", 128, 9000, 10**7]]
    rows += [["read", 2**n, int(10 ** (chance.random() * 5)) + 1, 10**6] for n in range(9, 21, 1 + seed % 2)]
    return table(["direction", "upper_bytes", "count", "total_time_ns"], rows)


def timeline(seed: int, intervals: int = 240, every: int = 50_000_000) -> dict[str, Any]:
    chance = random.Random(seed)
    rows = []
    for index in range(intervals):
        reading = max(0.0, math.sin(index / 19 + seed)) * 4e6 * chance.random()
        writing = 2e6 if index % 40 in (0, 1, 2) else 0
        if reading or writing:
            rows.append(
                [
                    index,
                    int(reading),
                    int(writing),
                    int(reading // 8192),
                    int(writing // 100_000),
                    int(every * 0.3 * chance.random()),
                    int(every * 0.1) if writing else 0,
                ]
            )
    names = [
        "interval",
        "read_bytes",
        "written_bytes",
        "read_count",
        "write_count",
        "read_time_ns",
        "write_time_ns",
    ]
    return table(names, rows) | {"intervals": intervals, "every_ns": every}


def offset_cells(span: int) -> dict[str, Any]:
    cells = [[t, (t * 53) % 80, 3 + t % 50, 0] for t in range(200)] + [
        [t, t * 80 // 200, 0, 40] for t in range(0, 200, 3)
    ]
    return {
        "span_ns": span,
        "low_bytes": 0,
        "high_bytes": 700_000_000,
        "time_bins": 200,
        "offset_bins": 80,
        "cells": cells,
    }


def offset_points(span: int) -> dict[str, Any]:
    points = [[span * n // 60, (n * 7919) % 60 * 65536, 65536, n % 3 == 0] for n in range(60)]
    return {"span_ns": span, "low_bytes": 0, "high_bytes": 61 * 65536, "points": points}


def base_page(durations: bool = True) -> dict[str, Any]:
    return {
        "run": {"durations": durations, "store": "solver.iodock"},
        "verdict": {"split": [], "whole_ns": 1},
        "names": [],
        "calls": table(CALL_COLUMNS, []),
        "call_files": {},
        "files": table(FILE_COLUMNS, []),
        "details": {},
        "timeline": None,
        "sizes": None,
        "samples": [],
        "processes": table(["process"], []) | {"depth": []},
        "ranks": None,
        "failures": table(["call", "errno", "file", "count"], []),
        "first_call": None,
        "first_file": None,
        "print_files": [],
    }


def file_rows(names: list[str], durations: bool) -> list[list[Any]]:
    rows: list[list[Any]] = []
    for index in range(len(names)):
        total = 3_200_000_000 // (index + 1)
        count = 120_000 // (index + 1)
        times = [total, total / count, total // 20] if durations else [None, None, None]
        rows.append(
            [
                index,
                count,
                index % 3,
                *times,
                7_000_000_000 // (index + 1),
                40_000 if index % 2 else None,
                "regular",
                "lustre" if index % 2 else "ext4",
                70_000_000,
                ["consecutive", "random", "strided"][index % 3],
            ]
        )
    return rows


def fill(page: dict[str, Any], names: list[str], listed_of: int, span: int = 12 * SECOND) -> dict[str, Any]:
    """Adds calls, files, details and times to a page with these file names."""
    durations = page["run"]["durations"]

    def known(value: int) -> int | None:
        return value if durations else None

    page["names"] = names
    page["calls"]["rows"] = [
        call_row("read", "data", 120_000, 0, known(3_200_000_000), 14_300_000_000, None),
        call_row("openat", "metadata", 12_000, 3_000, known(900_000_000), None, None),
        call_row("lseek", "seek", 240_000, 0, known(350_000_000), None, None),
        call_row("write", "data", 9_000, 2, known(120_000_000), None, 3_000_000_000),
        call_row("fsync", "sync", 12, 0, known(90_000_000), None, None),
        call_row("close", "metadata", 9_000, 0, known(80_000_000), None, None),
        call_row("mmap", "map", 412, 0, known(1_100_000), None, None),
    ]
    page["calls"]["of"] = 7
    page["calls"]["total"] = call_row(
        "total", "", 390_424, 3_002, known(4_741_100_000), 14_300_000_000, 3_000_000_000
    )
    page["files"]["rows"] = file_rows(names, durations)
    page["files"]["of"] = listed_of
    if listed_of > len(names):
        page["files"]["other"] = [
            None,
            900_000,
            12,
            known(500_000_000),
            known(555),
            known(99_000),
            10**9,
            10**6,
            None,
            None,
            None,
            None,
        ]
        page["files"]["total"] = [
            None,
            1_300_000,
            15,
            known(5_500_000_000),
            known(4200),
            known(160_000_000),
            10**10,
            10**7,
            None,
            None,
            None,
            None,
        ]
    page["call_files"] = {
        "read": table(FILE_COLUMNS[:8], [row[:8] for row in page["files"]["rows"][:20]], of=listed_of)
    }
    for index in range(min(8, len(names))):
        page["details"][index] = {
            "calls": table(CALL_COLUMNS, page["calls"]["rows"][: 2 + index % 3]),
            "sizes": sizes(index),
            "timeline": timeline(index),
            "offsets": offset_cells(span) if index % 2 == 0 else offset_points(span),
        }
    page["timeline"], page["sizes"] = timeline(1), sizes(1)
    page["verdict"] = {
        "split": [
            {"name": "data", "ns": 3_320_000_000},
            {"name": "metadata", "ns": 980_000_000},
            {"name": "seek", "ns": 350_000_000},
            {"name": "sync", "ns": 90_000_000},
            {"name": "waiting", "ns": 1_500_000_000},
        ],
        "whole_ns": span,
    }
    page["first_call"], page["first_file"], page["print_files"] = "read", 0, [0, 1]
    page["failures"] = table(
        ["call", "errno", "file", "count"],
        [["openat", "ENOENT", 1, 2900], ["openat", "EACCES", len(names) - 1, 100], ["write", "ENOSPC", 0, 2]],
    )
    page["processes"] = processes()
    return page


def processes() -> dict[str, Any]:
    columns = [
        "process",
        "pid",
        "how",
        "start_ns",
        "end_ns",
        "exit",
        "count",
        "failed",
        "total_time_ns",
        "read_bytes",
        "written_bytes",
    ]
    rows = [
        ["mpirun", 4100, "root", 0, 12 * SECOND, "0", 412, 30, 12_000_000, 41_000, 900],
        [
            "solver",
            4101,
            "fork",
            120_000_000,
            11 * SECOND,
            "0",
            190_000,
            1400,
            2_400_000_000,
            7 * 10**9,
            10**9,
        ],
        ["solver", 4103, "thread", 150_000_000, 11 * SECOND, None, 900, 0, 4_000_000, 10**6, None],
        [
            "solver",
            4102,
            "fork",
            120_000_000,
            9 * SECOND,
            "SIGKILL",
            199_000,
            1500,
            2_300_000_000,
            7 * 10**9,
            10**9,
        ],
    ]
    return table(columns, rows) | {"depth": [0, 1, 2, 1]}


def overview(
    durations: bool = True,
    wall: int | None = 12 * SECOND,
    io: int | None = 4_400_000_000,
    names: list[str] | None = None,
) -> Overview:
    names = names or ["/lustre/project/input/mesh-0001.h5", "/etc/solver.conf"]
    costs = [
        Cost(
            "read",
            names[0],
            3_200_000_000 if durations else None,
            160_000_000 if durations else None,
            120_000,
            0,
            14_300_000_000,
        ),
        Cost(
            "openat",
            names[-1],
            900_000_000 if durations else None,
            22_000_000 if durations else None,
            12_000,
            3000,
            None,
        ),
        Cost(
            "lseek",
            names[0],
            350_000_000 if durations else None,
            1_000_000 if durations else None,
            240_000,
            0,
            None,
        ),
    ]
    parts = [
        ("data", 3_320_000_000, 129_000),
        ("metadata", 980_000_000, 21_000),
        ("seek", 350_000_000, 240_000),
        ("sync", 90_000_000, 12),
    ]
    if durations:
        parts.append(("waiting", 1_500_000_000, 1200))
    return Overview(
        wall_ns=wall,
        io_ns=io if durations else None,
        waiting_ns=1_400_000_000 if durations else None,
        calls=390_424,
        failed=3_002,
        read_bytes=14_300_000_000,
        written_bytes=3_000_000_000,
        durations=durations,
        parts=[Part(name, time if durations else None, count) for name, time, count in parts],
        costs=costs,
        cure=None if durations else "re-run strace with -T",
    )


FACTS = [
    ("command", "./solver --mesh mesh-0001.h5 --steps 400"),
    ("host", "node0123"),
    ("kernel", "Linux 5.14.0"),
    ("started", "2026-04-02 12:08:20 UTC"),
    ("wall", "12.0 s"),
    ("clock", "date and time"),
    ("captured", "strace log"),
    ("exit", "exit status 0"),
    ("processes", "3 processes, 4 threads"),
    ("calls", "390,424"),
    ("files", "42"),
]
LOSSES = [
    LossNote(
        "mapped-contents", 3, "reads and writes through mmap are not calls, so no tracer of calls sees them"
    ),
    LossNote(
        "unreadable-lines",
        12,
        "the log is damaged there",
        "solver.strace",
        40_112,
        "read(3, <unfin\x00\x00\x00",
    ),
]


def report(page: dict[str, Any], view: Overview, **changes: Any) -> Report:
    values: dict[str, Any] = {
        "name": "solver.iodock",
        "command": "./solver --mesh mesh-0001.h5 --steps 400",
        "writer": "iodock 0.1.0",
        "made": "2026-04-02 12:10",
        "overview": view,
        "facts": FACTS,
        "losses": LOSSES,
        "data": page,
    }
    return Report(**(values | changes))


def ordinary() -> Report:
    names = ["/lustre/project/input/mesh-0001.h5", "/etc/solver.conf"] + [
        f"/lustre/project/out/rank{n:04}.dat" for n in range(40)
    ]
    page = fill(base_page(), names, 42)
    points = [[n * SECOND, abs(math.sin(n)) * 0.6] for n in range(12)]
    page["samples"] = [
        {"source": "pressure", "metric": "some_us", "target": "io", "unit": "share", "points": points},
        {
            "source": "diskstats",
            "metric": "read_bytes",
            "target": "nvme0n1",
            "unit": "byterate",
            "points": [[a, v * 9e8] for a, v in points],
        },
    ]
    return report(page, overview())


def large() -> Report:
    names = [f"/lustre/project/data/FA{n:05}/tagged{n % 7}/sample-{n:07}.dat" for n in range(300)]
    page = fill(base_page(), names, 318_169, 4000 * SECOND)
    many = [
        ["sh -c cat record", 1000 + n, "fork", n * 10**7, n * 10**7 + 5 * 10**6, "0", 40, 4, 10**6, 4096, 10]
        for n in range(300)
    ]
    page["processes"]["rows"] += many
    page["processes"]["depth"] += [1] * 300
    page["processes"]["of"] = 320_004
    return report(page, overview(wall=4000 * SECOND, io=3100 * SECOND, names=names))


def no_durations() -> Report:
    page = fill(base_page(durations=False), ["/data/a.dat", "/etc/solver.conf", "/data/b.dat"], 3)
    page["verdict"]["split"] = []
    losses = [
        LossNote("missing-durations", 390_424, "re-run strace with -T: without it no call has a duration")
    ]
    return report(page, overview(durations=False), losses=losses)


def ranks() -> Report:
    page = fill(base_page(), [f"/lustre/out/rank{n}.dat" for n in range(4)], 4)
    rows = [[n, 90_000 + n, 3, 1_000_000_000 * (n + 1), 10**9, 10**8] for n in range(4)]
    page["ranks"] = table(["rank", "count", "failed", "total_time_ns", "read_bytes", "written_bytes"], rows)
    return report(
        page, overview(wall=2 * SECOND, io=1_900_000_000, names=page["names"]), facts=[*FACTS, ("ranks", "4")]
    )


def failures_only() -> Report:
    page = base_page()
    page["names"] = ["/missing"]
    page["calls"] = table(CALL_COLUMNS, [call_row("openat", "metadata", 3, 3, 30_000, None, None)])
    page["files"] = table(
        FILE_COLUMNS, [[0, 3, 3, 30_000, 10_000, 12_000, None, None, "file", None, None, None]]
    )
    page["failures"] = table(["call", "errno", "file", "count"], [["openat", "ENOENT", 0, 3]])
    page["first_call"], page["first_file"] = "openat", 0
    view = Overview(
        SECOND,
        30_000,
        0,
        3,
        3,
        0,
        0,
        True,
        [Part("metadata", 30_000, 3)],
        [Cost("openat", "/missing", 30_000, 12_000, 3, 3, None)],
    )
    return report(page, view, losses=[])


def fine() -> Report:
    page = fill(base_page(), ["/home/u/a.out", "/home/u/in.txt"], 2)
    return report(page, overview(wall=600 * SECOND, io=4_400_000_000), losses=[])


def empty() -> Report:
    return report(base_page(), Overview(None, None, None, 0, 0, 0, 0, False), facts=[], losses=[], command="")


def hostile() -> Report:
    page = fill(base_page(), list(HOSTILE), len(HOSTILE))
    losses = [
        LossNote(
            "<b>loss</b>",
            1,
            "</li><script>alert(3)</script>",
            "<i>log</i>",
            3,
            "</script><script>alert(4)</script>",
        )
    ]
    return report(
        page,
        overview(names=HOSTILE),
        losses=losses,
        command="./x '</title><script>alert(5)</script>' \u202e",
        name="<u>.iodock",
    )


SAMPLES = {
    "ordinary": ordinary,
    "large": large,
    "no_durations": no_durations,
    "ranks": ranks,
    "failures_only": failures_only,
    "fine": fine,
    "empty": empty,
    "hostile": hostile,
}
