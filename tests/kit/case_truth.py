"""Compares iodock's results on a log with the known truth.

The truths were computed by an independent, slow and simple reader. `fixtures/cases/` contains them in the
layout described in `fixtures/cases/README.md`. Only the JSON of the public command line is used, as by a
user.
"""

from __future__ import annotations

import json
import lzma
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NS = 1_000_000_000
STANDARD = {"stdin", "stdout", "stderr"}
Row = dict[str, Any]


def load(path: Path) -> Any:
    """Reads JSON, also if compressed with xz."""
    if path.suffix == ".xz":
        return json.loads(lzma.decompress(path.read_bytes()))
    return json.loads(path.read_text())


def without_zero(row: Row) -> Row:
    return {key: value for key, value in row.items() if value not in (0, None, {}, [])}


def wanted_counts(truth: Row, time: str) -> Row:
    """Returns a truth entry under iodock's column names. A duration is null if no call was timed or the log
    has no times."""
    timed = truth["timed"] > 0
    return without_zero(
        {
            "count": truth["count"],
            "success": truth["success"],
            "failed": truth["errors"],
            "no_result": truth["noresult"],
            "errnos": truth["errno"],
            time: truth["total_ns"] if timed else None,
            "min_time_ns": truth["min_ns"] if timed and time == "total_time_ns" else None,
            "max_time_ns": truth["max_ns"] if timed and time == "total_time_ns" else None,
            "read_bytes": truth["bytes_read"],
            "written_bytes": truth["bytes_written"],
            "io_count": truth["io_calls"],
            "min_size_bytes": truth["io_min"],
            "max_size_bytes": truth["io_max"],
        }
    )


def found_counts(row: Row, like: Row, time: str) -> Row:
    keys = {
        "count",
        "success",
        "failed",
        "no_result",
        "errnos",
        time,
        "read_bytes",
        "written_bytes",
        "io_count",
    }
    keys |= {"min_size_bytes", "max_size_bytes"}
    if time == "total_time_ns":
        keys |= {"min_time_ns", "max_time_ns"}
    found = without_zero({key: row.get(key) for key in keys})
    if time not in like:
        found.pop(time, None)
    return found


class Comparison:
    """Compares one log with its truth; `differences()` yields a line for each disagreement."""

    def __init__(self, show: Any, truth: Row, tool: str = "strace") -> None:
        self.show = show
        self.truth = truth
        self.time = "sys_cpu_time_ns" if tool == "truss" else "total_time_ns"

    def differences(self) -> Iterator[str]:
        checks = {
            "syscalls": self.calls,
            "files": self.files,
            "nonpath": self.other_kinds,
            "hist": lambda: self.sizes("hist"),
            "hist_requested": lambda: self.sizes("hist_requested", "--requested"),
            "per_second": self.per_second,
            "series": self.series,
            "processes": self.processes,
        }
        for key, check in checks.items():
            if key in self.truth:
                yield from check()
        yield from self.totals()

    def compare(self, what: str, wanted: Row, found: Row) -> Iterator[str]:
        for key in sorted(set(wanted) | set(found), key=str):
            if key not in found:
                yield f"{what} {key}: missing"
            elif key not in wanted:
                yield f"{what} {key}: not in the truth: {found[key]}"
            elif wanted[key] != found[key]:
                yield f"{what} {key}: truth {wanted[key]}, found {found[key]}"

    def grouped(self, what: str, truth: dict[Any, Row], rows: dict[Any, Row]) -> Iterator[str]:
        wanted = {key: wanted_counts(entry, self.time) for key, entry in truth.items()}
        found = {key: found_counts(row, wanted.get(key, {}), self.time) for key, row in rows.items()}
        yield from self.compare(what, wanted, found)

    def calls(self) -> Iterator[str]:
        rows = self.show("summary", "--by", "call", "--kind", "all")["rows"]
        yield from self.grouped("call", self.truth["syscalls"], {row["call"]: row for row in rows})

    def files(self) -> Iterator[str]:
        truth = {(f, c): entry for f, calls in self.truth["files"].items() for c, entry in calls.items()}
        rows = self.show("summary", "--by", "file,call")["rows"]
        yield from self.grouped("file", truth, {(row["file"], row["call"]): row for row in rows})

    def other_kinds(self) -> Iterator[str]:
        truth = {(k, c): entry for k, calls in self.truth["nonpath"].items() for c, entry in calls.items()}
        by_name = any(kind.startswith("fd:") for kind, _ in truth)
        found: dict[Any, Row] = {}
        for row in self.show("summary", "--by", "file,kind,call", "--kind", "all")["rows"]:
            if row["file"] is None or self.has_path(row["kind"]):
                continue
            name = row["file"] if row["kind"] in {"standard", "memfd"} else row["kind"]
            if by_name and row["kind"] == "unknown":
                name = row["file"]
            key = (name, row["call"])
            found[key] = row if key not in found else merged(found[key], row)
        yield from self.grouped("kind", truth, found)

    @staticmethod
    def has_path(kind: str) -> bool:
        return kind in {"file", "regular", "directory", "symlink", "device", "fifo"}

    def sizes(self, key: str, *options: str) -> Iterator[str]:
        found: Row = {}
        for row in self.show("sizes", "--kind", "all", *options)["rows"]:
            found[f"{row['direction']} {row['upper_bytes']}"] = row["count"]
        wanted = {f"{way} {size}": n for way, sizes in self.truth[key].items() for size, n in sizes.items()}
        yield from self.compare(key, without_zero(wanted), without_zero(found))

    def per_second(self) -> Iterator[str]:
        if not self.truth["per_second"]:
            return
        rows = self.show("timeline", "--every", "1", "--kind", "all")["rows"]
        found = {str(row["ts"] // NS): [row["read_bytes"], row["written_bytes"]] for row in rows}
        nothing = [[0, 0], [None, None]]
        yield from self.compare(
            "second",
            {key: value for key, value in self.truth["per_second"].items() if value not in nothing},
            {key: value for key, value in found.items() if value not in nothing},
        )

    def series(self) -> Iterator[str]:
        for name, truth in self.truth["series"].items():
            calls = {row[2].split(":")[0] for row in truth}
            answer = self.show("accesses", "--file", name, "--call", ",".join(sorted(calls)))
            # A null in a row of the truth means that this column is not compared.
            found = defaultdict(list)
            for row in answer["rows"]:
                call = row["call"] + (f":{row['side']}" if row["side"] in {"in", "out"} else "")
                found[call].append(row)
            for call in sorted({row[2] for row in truth}):
                wanted = sorted((row for row in truth if row[2] == call), key=series_order)
                yield from self.one_series(f"{name} {call}", wanted, found[call])

    def one_series(self, what: str, wanted: list[Any], rows: list[Row]) -> Iterator[str]:
        columns = ("ts", "tid", "call", "offset_bytes", "requested_bytes", "result", "errno")
        found = sorted(([row[column] for column in columns] for row in rows), key=series_order)
        if call_is_seek(what):
            found = [row for row in found if row[6] is None]
        if len(wanted) != len(found):
            yield f"series {what}: truth has {len(wanted)} rows, found {len(found)}"
            return
        for want, have in zip(wanted, found, strict=True):
            pairs = zip((0, 3, 4, 5, 6), (want[0], *want[3:7]), strict=True)
            if any(value is not None and value != have[at] for at, value in pairs):
                yield f"series {what}: truth {want}, found {have}"

    def processes(self) -> Iterator[str]:
        rows = self.show("processes")["rows"]
        found = {str(row["pid"]): row for row in rows}
        for pid, truth in self.truth["processes"].items():
            row = found.get(pid)
            if row is None:
                yield f"process {pid}: missing"
                continue
            wanted = {"exit_code": truth.get("exit"), "parent_pid": truth.get("parent")}
            wanted["how"] = truth.get("kind", row["how"])
            for key, value in wanted.items():
                if row[key] != value:
                    yield f"process {pid} {key}: truth {value}, found {row[key]}"
            if list(row["commands"] or []) != truth["exec"]:
                yield f"process {pid} commands: truth {truth['exec']}, found {row['commands']}"

    def totals(self) -> Iterator[str]:
        source = self.show("summary")["source"]
        pairs = {
            "lines": self.truth.get("lines"),
            "calls": self.truth.get("calls_total"),
            "unfinished": self.truth.get("unfinished_lines"),
            "orphans": self.truth.get("orphan_resumed"),
            "signals": self.truth.get("signals"),
        }
        for key, value in pairs.items():
            if value is not None and source[key] != value:
                yield f"source {key}: truth {value}, found {source[key]}"


def call_is_seek(what: str) -> bool:
    return what.endswith("lseek")


def series_order(row: list[Any]) -> tuple[int, str]:
    return (row[0] or 0, str(row[1]))


def merged(one: Row, two: Row) -> Row:
    """Adds the counts of two files of the same kind."""
    total = dict(one)
    for key in ("count", "success", "failed", "no_result", "total_time_ns", "sys_cpu_time_ns", "read_bytes",
                "written_bytes", "io_count"):  # fmt: skip
        total[key] = (one.get(key) or 0) + (two.get(key) or 0)
    for key, pick in (
        ("min_time_ns", min),
        ("max_time_ns", max),
        ("min_size_bytes", min),
        ("max_size_bytes", max),
    ):
        values = [row[key] for row in (one, two) if row.get(key) is not None]
        total[key] = pick(values) if values else None
    total["errnos"] = dict(one.get("errnos") or {})
    for name, count in (two.get("errnos") or {}).items():
        total["errnos"][name] = total["errnos"].get(name, 0) + count
    return total
