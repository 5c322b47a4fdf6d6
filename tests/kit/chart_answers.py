"""Creates made-up answers for the chart tests: a small one of each analysis, hostile names, and many
accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from iodock.shared.answer import Answer, Column, Role

START = 1_700_000_000_000_000_000

HOSTILE = (
    "/a \"quoted\" 'name'.txt",
    "/x/<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<!-- <script",
    "/line\nbreak\tand\rmore",
    "/datum.value[0].b\\c",
    "/" + "z" * 3999,
    "/" + "z" * 3998 + "y",
    "/データ/実験結果/第一回/出力ファイル.dat",
    "/bad\\xff\\xfebytes",
    "",
    "/rtl\u202eabc",
    "{{jinja}} ${x} {x} %s",
    "/a'+alert(1)+'b",
    "null",
    "constructor",
    "__proto__",
    "/lone\udc80surrogate".encode("utf-8", "replace").decode(),
)


def answer(
    analysis: str, rows: Mapping[str, Any] | pa.Table, keys: Sequence[str] = (), **more: Any
) -> Answer:
    """Returns an answer whose units follow from the names of its columns."""
    table = rows if isinstance(rows, pa.Table) else pa.table(dict(rows))
    columns = tuple(_column(field, keys) for field in table.schema)
    given = {"clock": "epoch", "first_ts": START, "source": {"durations": True}} | more
    return Answer(analysis, analysis, columns, table, keys=tuple(keys), **given)


def _column(field: pa.Field, keys: Sequence[str]) -> Column:
    role: Role = "key" if field.name in keys else "time" if field.name == "ts" else "measure"
    unit = "ns" if field.name.endswith("_ns") else "bytes" if field.name.endswith("bytes") else None
    kind = (
        "int" if pa.types.is_integer(field.type) else "float" if pa.types.is_floating(field.type) else "str"
    )
    return Column(field.name, kind, unit, role, "made up")


def summary(names: Sequence[str], key: str = "call", durations: bool = True, **more: Any) -> Answer:
    """Returns a summary with one row for each name, the first one the largest."""
    counts = [10 * (len(names) - index) for index in range(len(names))]
    times = pa.array([count * 1000 if durations else None for count in counts], pa.int64())
    rows = {
        key: pa.array(names, pa.string()),
        "count": counts,
        "success": [count - 3 for count in counts],
        "failed": [2] * len(names),
        "no_result": [1] * len(names),
        "errnos": pa.array([[("ENOENT", 1), ("EACCES", 1)]] * len(names), pa.map_(pa.string(), pa.int64())),
        "total_time_ns": times,
        "mean_time_ns": pc.cast(pc.multiply(times, 2), pa.float64()),
        "min_time_ns": times,
        "max_time_ns": pc.multiply(times, 50),
        "read_bytes": [count * 4096 for count in counts],
        "written_bytes": [count * 1024 for count in counts],
        "mean_size_bytes": [4096.0] * len(names),
        "min_size_bytes": [0] * len(names),
        "max_size_bytes": [65536] * len(names),
    }
    return answer("summary", rows, (key,), **more)


def sizes(uppers: Sequence[int] = (0, 1, 512, 4096, 1 << 20), count: int = 1000) -> Answer:
    """Returns a histogram of reads and writes; the last bin of the writes contains one call only."""
    writes = [count] * (len(uppers) - 1) + [1]
    rows = {
        "direction": ["read"] * len(uppers) + ["write"] * len(uppers),
        "upper_bytes": [*uppers, *uppers],
        "count": [count] * len(uppers) + writes,
        "total_time_ns": [count * 900] * (2 * len(uppers)),
    }
    return answer("sizes", rows, ("direction", "upper_bytes"))


def timeline(rows: int = 40, every_ns: int = 1_000_000_000, scale: int = 1 << 20) -> Answer:
    """Returns a timeline without activity in the intervals 10 to 14."""
    steps = [step for step in range(rows) if not 10 <= step < 15]
    amounts = [(step % 7 + 1) * scale for step in steps]
    table = {
        "ts": [START + step * every_ns for step in steps],
        "read_bytes": amounts,
        "written_bytes": [amount // 2 for amount in amounts],
        "read_count": [step % 7 + 1 for step in steps],
        "write_count": [step % 3 for step in steps],
        "read_time_ns": [10_000 * (step + 1) for step in steps],
        "write_time_ns": [5_000 * (step + 1) for step in steps],
        "count": [step % 7 + 4 for step in steps],
        "success": [step % 7 + 1 for step in steps],
        "failed": [3] * len(steps),
    }
    spread = {f"spread_{name}": values for name, values in table.items() if name.endswith(("bytes", "_ns"))}
    return answer("timeline", {**table, **spread}, options={"every": every_ns})


def accesses(count: int, stride: int = 65536, first: int = START) -> Answer:
    """Returns COUNT consecutive accesses; every third one is a write, and the others are reads."""
    index = pa.array(range(count), pa.int64())
    calls = pa.array(["read", "read", "pwrite64"]).take(
        pc.subtract(index, pc.multiply(pc.divide(index, 3), 3))
    )
    rows = {
        "ts": pc.add(pc.multiply(index, 1_000_000), first),
        "dur": pc.add(pc.multiply(index, 10), 500),
        "call": calls,
        "file": pa.array(["/data/a.dat"] * count, pa.string()),
        "side": pa.array(["only"] * count, pa.string()),
        "offset_bytes": pc.multiply(index, stride),
        "result": pa.array([stride] * count, pa.int64()),
    }
    return answer("accesses", rows, ("call", "file"))


def errors() -> Answer:
    """Returns the errors of eight calls, each of which fails in two ways."""
    names = [f"call{index}" for index in range(8)]
    rows = {
        "call": names + names,
        "errno": ["ENOENT"] * 8 + ["EAGAIN"] * 8,
        "file": ["/a"] * 16,
        "count": list(range(1, 17)),
    }
    return answer("errors", rows, ("call", "errno", "file"))


def processes(count: int = 6) -> Answer:
    """Returns a root process and its children: the second is killed by a signal, the third fails, and the end
    of the fourth was not recorded."""
    second = 1_000_000_000
    rows = {
        "pid": [100 + index for index in range(count)],
        "process_pid": [100 if index == 4 else 100 + index for index in range(count)],
        "parent_pid": pa.array([None, *[100] * (count - 1)], pa.int64()),
        "how": ["root", *["fork"] * (count - 1)],
        "commands": [["sh -c 'データ <b>'", "cat x"] for _ in range(count)],
        "start_ts": [START + index * second for index in range(count)],
        "end_ts": pa.array(
            [None if index == 3 else START + 20 * second for index in range(count)], pa.int64()
        ),
        "exit_code": pa.array(
            [None if index in (1, 3) else int(index == 2) for index in range(count)], pa.int64()
        ),
        "exit_signal": pa.array(["SIGKILL" if index == 1 else None for index in range(count)], pa.string()),
    }
    return answer("processes", rows, ("pid",))


def offsets() -> Answer:
    """Returns three cells of an offset chart; the second one has reads and writes."""
    second = 1_000_000_000
    starts = [START, START + second, START + second, START + 2 * second]
    rows = {
        "ts": starts,
        "end_ts": [start + second for start in starts],
        "offset_bytes": [0, 4096, 4096, 8192],
        "end_offset_bytes": [4096, 8192, 8192, 12288],
        "direction": ["read", "read", "write", "write"],
        "count": [1, 20, 3, 500],
    }
    return answer("offsets", rows)


def overview() -> Answer:
    """Returns two parts of a run; calls and failures are the only counts."""
    rows = {
        "part": ["data", "metadata"],
        "count": [100, 50],
        "failed": [0, 20],
        "total_time_ns": [5_000_000, 100_000],
        "read_bytes": [1 << 20, None],
        "written_bytes": [4096, None],
    }
    return answer("overview", rows, ("part",))


def ranks() -> Answer:
    """Returns four ranks; one writes, and the others wait."""
    rows = {
        "rank": [0, 1, 2, 3],
        "io_time_ns": [9_000_000, 500_000, 500_000, 400_000],
        "read_time_ns": [1_000_000, 300_000, 300_000, 300_000],
        "write_time_ns": [6_000_000, 0, 0, 0],
        "metadata_time_ns": [1_000_000, 200_000, 200_000, 100_000],
        "sync_time_ns": [1_000_000, 0, 0, 0],
        "waiting_time_ns": [0, 8_000_000, 8_000_000, 8_000_000],
    }
    return answer("ranks", rows, ("rank",))


# One small answer for each analysis that has charts.
def ratio_history() -> Answer:
    from iodock.program.ratio.history import history_of
    from iodock.program.ratio.record import Record
    from iodock.program.ratio.tables import history_answer

    jobs = [Record("io", 100.0, 1.0 + step % 5, 0.5) for step in range(60)]
    jobs += [Record("compute", 100.0, 80.0 + step % 15, 0.5) for step in range(140)]
    history = history_of(jobs, "jobs", 0.0, None)
    assert history is not None
    return history_answer(history, (), (), {"io_below": 0.1, "weight": "jobs", "min_real": 0.0}, "year.txt")


def machine() -> Answer:
    """Returns samples, one per second: bytes, times and numbers."""
    series = (
        ("diskstats", "vda", "read_bytes", "rate", 2.0e6),
        ("diskstats", "vda", "busy_time_ms", "rate", 250.0),
        ("diskstats", "vda", "in_flight", "level", 3.0),
        ("pressure", "io", "some_us", "rate", 125_000.0),
        ("pressure", "cpu", "some_us", "rate", 900_000.0),
        ("loadavg", "", "load_1min", "level", 2.5),
    )
    rows = [
        {"ts": START + at * 10**9, "source": source, "target": target, "metric": metric, "kind": kind}
        | {"value": value * (at + 1) / 3}
        for source, target, metric, kind, value in series
        for at in range(3)
    ]
    return answer("machine", pa.Table.from_pylist(rows), ("source", "target", "metric"))


def volume() -> Answer:
    """Returns the volume of a file read twice, of one written once, and of one of unknown size."""
    return answer(
        "volume",
        {
            "file": ["/d/twice", "/d/new", "/d/unknown"],
            "size_bytes": pa.array([1000, 4096, None], pa.int64()),
            "read_bytes": [2000, 0, 100],
            "written_bytes": [0, 4096, 0],
        },
        ("file",),
    )


SMALL = {
    "summary": summary(["read", "write", "openat", "close"]),
    "files": answer("files", summary(["/a", "/b"], "file").table, ("file",)),
    "sizes": sizes(),
    "timeline": timeline(),
    "accesses": accesses(60),
    "errors": errors(),
    "offsets": offsets(),
    "overview": overview(),
    "processes": processes(),
    "ranks": ranks(),
    "ratio-history": ratio_history(),
    "machine": machine(),
    "volume": volume(),
}


def rows_of(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns all data rows of a chart specification."""
    return [row for rows in spec["datasets"].values() for row in rows]
