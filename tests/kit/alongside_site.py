"""Creates a simulated centre whose metadata server has a hiccup, a compute node with an agent, and plot5's
run of the SS-ken report (figure 4.3.8) on that node. Everything is synthetic, and the time of the hiccup is
known."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.rolling import Keep, expire, roll
from iodock.program.store import Store
from iodock.shared.settings import FileSystem, ServerReadings, ServerStates, Settings
from iodock.simulation.centre import Centre
from iodock.simulation.history import _TARGETS, _job_io, write_history
from iodock.simulation.scenarios import STALLED, Condition, Spell, named
from made_store import without_checksums
from strace_log import Log

SECOND = 1_000_000_000
BEGIN = int(datetime(2026, 3, 2, 11, 30, tzinfo=UTC).timestamp()) * SECOND
HUNG = int(datetime(2026, 3, 2, 12, 8, 20, tzinfo=UTC).timestamp()) * SECOND + 10_048_000
"""Start of plot5's open of plot.cfg."""
HUNG_S = 13.936576
NODE = "r01c07"
SAMPLES = pa.schema(
    [
        *((name, pa.int64()) for name in ("ts",)),
        *((name, pa.string()) for name in ("host", "source", "target", "metric")),
        ("value", pa.float64()),
        ("kind", pa.string()),
    ]
)
MOUNTS = pa.schema([(name, pa.string()) for name in ("mount_point", "fs_type", "source", "options", "host")])


def centre_store(
    folder: Path,
    hiccup_s: float | None = 15.0,
    step_s: float = 10.0,
    condition: Condition = STALLED,
    until: int = HUNG + 100 * SECOND,
    begin: int = BEGIN,
    before_s: float = 2.0,
) -> Collector:
    """Returns a collector whose store has the servers' readings from BEGIN on. The metadata server has the
    CONDITION from BEFORE_S before the hanging open on."""
    shutil.copytree(_played(hiccup_s, step_s, condition, until, begin, before_s).name, folder)
    return Collector(folder)


@cache
def _played(
    hiccup_s: float | None, step_s: float, condition: Condition, until: int, begin: int, before_s: float
) -> TemporaryDirectory[str]:
    """Writes half an hour of readings once and caches it: this takes a second, and many tests start from the
    same store."""
    kept = TemporaryDirectory(prefix="alongside-")
    collector = Collector(Path(kept.name))
    at_s = (HUNG - begin) / SECOND - before_s
    spells = () if hiccup_s is None else (Spell("condition", at_s, hiccup_s, condition=condition),)
    centre = Centre(replace(named("healthy"), spells=spells), seed=3, jobs=12, begin_ns=begin)
    write_history(centre, collector.writer, (until - begin) / SECOND, step_s, lambda share: None)
    return kept


def disk_bytes(at: int) -> float:
    """Returns the bytes that the node's disk has written until AT. It writes in bursts of different size."""
    seconds = (at - BEGIN) / SECOND
    return 1e6 * seconds + sum(
        1e8 * (1 + number % 7) * min(1.0, max(0.0, (seconds - begin) / 3))
        for number, begin in enumerate(_bursts())
    )


@cache
def _bursts() -> Sequence[float]:
    random = Random(5)
    return sorted(random.uniform(0, 3000) for _ in range(230))


def node_rows(
    collector: Collector,
    ahead_s: float = 0.0,
    others: Sequence[tuple[str, str, int]] = (),
    grown: Callable[[int], float] = disk_bytes,
    commands: Mapping[str, str] | None = None,
) -> None:
    """Writes the rows of the agent on NODE, whose clock is AHEAD_S ahead: its disk, the processes of OTHERS
    (job, user, bytes written in each reading), and COMMANDS, the commands of jobs."""
    ahead, step = int(ahead_s * SECOND), 10 * SECOND
    targets: list[tuple[Any, ...]] = []
    jobs: list[dict[str, Any]] = []
    for begin in range(BEGIN // step * step, HUNG + 100 * SECOND, step):
        end, place = begin + step, (begin, begin + step, NODE)
        value = round(grown(end - ahead) - grown(begin - ahead))
        row = (*place, "diskstats", None, "sda", "write_bytes", "bytes", None, False, value, None, True)
        busy = (*place, "diskstats", None, "sda", "busy_time", "us", None, False, 1000, None, True)
        targets += [row, busy]
        for job, user, size in others:
            known = {"begin_ts": begin, "end_ts": end, "host": NODE, "source": "process_io", "job": job}
            jobs.append(
                {
                    **known,
                    "user": user,
                    "known_by": "cgroup",
                    "write_bytes": size,
                    "exact": False,
                    "command": (commands or {}).get(job),
                }
            )
    _put(collector, "targets", pa.table(list(map(list, zip(*targets, strict=True))), schema=_TARGETS))
    if jobs:
        schema = _job_io()
        columns = {
            field.name: [row.get(field.name, 0 if field.type == pa.int64() else None) for row in jobs]
            for field in schema
        }
        _put(collector, "job_io", pa.table(columns, schema=schema))


def nfs_rows(
    collector: Collector, slow_s: float | None = 60.0, begin: int = BEGIN, idle_until: int = 0
) -> None:
    """Writes rows of NODE's agent for an NFS mount, from BEGIN on: no operations until IDLE_UNTIL, then 50 in
    each reading, of 2 ms each. From two seconds before the hanging open, each operation takes 4 s, for
    SLOW_S."""
    step = 10 * SECOND
    slow = range(HUNG - 2 * SECOND, HUNG + int((slow_s or -3.0) * SECOND))
    rows: list[tuple[Any, ...]] = []
    for at in range(begin // step * step, HUNG + 100 * SECOND, step):
        place = (at, at + step, NODE, "mountstats", "nas:/export", "/scratch")
        wait_us = 4_000_000 if at + step // 2 in slow else 2_000
        for unit, value in (("1", 50), ("us", 50 * wait_us)) if at >= idle_until else ():
            metric = "getattr" if unit == "1" else "getattr_time"
            rows.append((*place, metric, unit, None, False, value, None, True))
        load = (at, at + step, NODE, "load", None, "load", "load1_percent")
        rows.append((*load, None, None, True, 50, 50, True))
    _put(collector, "targets", pa.table(list(map(list, zip(*rows, strict=True))), schema=_TARGETS))


def _put(collector: Collector, table: str, rows: pa.Table) -> None:
    begin, end = rows.column("begin_ts")[0].as_py(), rows.column("end_ts")[-1].as_py()
    name, path = collector.writer.new_file(table, "fine", end)
    pq.write_table(rows, path)
    collector.writer.replace([], [], [(table, "fine", name, begin, end, rows.num_rows, False)])


@dataclass(frozen=True)
class Recorded:
    """Settings of the recording of plot5."""

    host: str | None = NODE
    source: str | None = "10.0.0.1@tcp:/lfs"
    """The type of the mount; None: the recording has no mounts, like an imported log."""
    fs_type: str = "lustre"
    behind_s: float = 0.0
    """The difference of the recording's clock."""
    steady: bool = False
    """The disk wrote at a constant rate."""


def plot5(folder: Path, how: Recorded | None = None) -> str:
    """Writes the log of plot5, which opens, writes and closes plot.cfg for five minutes, with one open that
    hangs. Returns the path of the imported store."""
    how = how or Recorded()
    behind = int(how.behind_s * SECOND)
    log = Log(now_s=(HUNG - behind) / SECOND - 120)
    name = "/scratch/me/plot.cfg"
    for number in range(260):
        hangs = number == 120
        log.open(name, HUNG_S if hangs else 0.005942, "O_WRONLY|O_CREAT|O_TRUNC")
        log.move("write", name, 1, 42, 0.000046)
        log.call(f"close({log.files[name]})", "0", 0.001514)
        log.compute(1 - 0.007502 if number < 120 else 0.2)
        if number == 119:
            log.now_s = (HUNG - behind) / SECOND
    path = Path(log.store(folder))
    without_checksums(path)
    _dress(path, how)
    return str(path)


def _dress(path: Path, how: Recorded) -> None:
    """Adds to the store what a live recording has and an imported log lacks: host, mounts and samples."""
    manifest = json.loads((path / "manifest.json").read_text())
    if how.host is not None:
        manifest["host"] = {**(manifest.get("host") or {}), "name": how.host}
    if how.source is not None:
        mounts = [{"mount_point": "/scratch", "fs_type": how.fs_type, "source": how.source, "host": how.host}]
        pq.write_table(pa.Table.from_pylist(mounts, schema=MOUNTS), path / "mounts.parquet")
        files = pq.read_table(path / "files.parquet")
        at = files.column_names.index("mount_point")
        names = files.column("name").to_pylist()
        on = pa.array(["/scratch" if one.startswith("/scratch/") else None for one in names])
        pq.write_table(files.set_column(at, "mount_point", on), path / "files.parquet")
    if how.host is not None:
        rows = list(_samples(manifest, how))
        (path / "samples").mkdir()
        pq.write_table(pa.Table.from_pylist(rows, schema=SAMPLES), path / "samples" / "part-00000.parquet")
    (path / "manifest.json").write_text(json.dumps(manifest))


def _samples(manifest: dict[str, Any], how: Recorded) -> Any:
    """Yields a sample of the disk for each second, with times of the recording's clock."""
    behind = int(how.behind_s * SECOND)
    for at in range(manifest["first_ts"], manifest["last_ts"], SECOND):
        value = 1e6 * (at - BEGIN) / SECOND if how.steady else disk_bytes(at + behind)
        yield {
            "ts": at, "host": how.host, "source": "diskstats", "target": "sda", "metric": "written_bytes",
            "value": value, "kind": "counter",
        }  # fmt: skip


def site(
    store: Path | str, agree_s: float | None = None, monitored_as: str | None = None, sample_s: float = 10.0
) -> Settings:
    """Returns settings that name the STORE of a monitor."""
    systems = {} if monitored_as is None else {"/scratch": FileSystem(monitored_as=monitored_as)}
    return Settings(
        servers=ServerReadings(store=str(store), clocks_agree_s=agree_s),
        states=ServerStates(scheduler="none", usual_hours=1.0, sample_s=sample_s),
        file_systems=systems,
    )


def opened(path: str) -> Store:
    """Opens the store at PATH."""
    return Store.open(path)


def aged(collector: Collector, days: float) -> None:
    """Runs the collector's upkeep (merging and expiry of old rows) as if this number of days had passed."""
    now = HUNG + int(days * 86_400) * SECOND
    roll(collector.store, collector.writer, now)
    expire(collector.store, collector.writer, Keep(), now)
