"""Tests `iodock merge`, which joins the parts of a run into a store equal to that of the run recorded as a
whole."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from in_process import iodock
from iodock.program.capture import import_logs, merge
from iodock.program.store import Store
from iodock.shared.errors import IodockError, RequestError
from made_store import without_checksums
from metadata_log import FIRST, Trace

EVENTS = """SELECT e.ts, e.end_ts, e.dur, c.name AS call, x.name AS errno, e.result, p.rank, p.pid,
  f.name AS file, o.name AS other, e.side, e.requested_bytes, e.offset_bytes, e.bytes, e.direction, e.fd,
  e.flags, e.pattern, e.gap_bytes, e.own_read_bytes, e.any_read_bytes, e.own_written_bytes,
  e.any_written_bytes
FROM events e JOIN calls c ON c.id = e.call_id LEFT JOIN errnos x ON x.id = e.errno_id
JOIN processes p ON p.utid = e.utid LEFT JOIN files f ON f.file_id = e.file_id
LEFT JOIN files o ON o.file_id = e.other_file_id ORDER BY ALL"""
FILES = """SELECT name, kind, folder, ending, pattern, size_bytes FROM files ORDER BY ALL"""
TASKS = """SELECT p.rank, p.pid, p.how, p.start_ts, p.end_ts, p.exit_code, p.io_ns, p.waiting_ns,
  q.pid AS parent
FROM processes p LEFT JOIN processes q ON q.utid = p.parent_utid ORDER BY ALL"""
COMMANDS = """SELECT p.rank, p.pid, c.ts, c.path, c.argv FROM commands c JOIN processes p USING (utid)
ORDER BY ALL"""
RANKS = 4


def logs(folder: Path) -> list[Path]:
    """Writes one log for each rank: a file that all ranks share, one file for each rank, a child, failures
    and a rename."""
    found = []
    for rank in range(RANKS):
        pid = FIRST + 10 * rank
        log = Trace(clocks={pid: 1000 * rank})
        log.call('execve("/bin/sim", ["sim"], 0x7f /* 9 vars */)', "0", 5, pid)
        log.open_missing("/data/none", 3, pid)
        log.open("/data/shared.dat", pid=pid, flags="O_RDWR|O_CREAT", took_us=7)
        for piece in range(6):
            offset = 4096 * (piece * RANKS + rank)
            log.call(f'pwrite64(3, ""..., 4096, {offset})', "4096", 20, pid)
        # The read covers data that the preceding rank has written, and data that no rank has written.
        log.pause(50_000, pid)
        log.call(f'pread64(3, ""..., 8192, {4096 * ((rank - 1) % RANKS)})', "8192", 20, pid)
        log.close(pid=pid)
        log.open(f"/data/out.{rank}", pid=pid, flags="O_WRONLY|O_CREAT", took_us=2)
        log.write(1000 + rank, 9, pid=pid)
        log.close(pid=pid)
        log.call(f'rename("/data/out.{rank}", "/data/done.{rank}")', "0", 4, pid)
        log.start(pid + 1, "/bin/child", pid)
        log.call('openat(AT_FDCWD, "/data/shared.dat", O_RDONLY)', "4", 3, pid + 1)
        log.call('read(4, ""..., 4096)', "4096", 30, pid + 1)
        log.end(pid + 1)
        log.clocks[pid] = max(log.clocks[pid], log.clocks[pid + 1] + 10)
        log.end(pid)
        path = folder / f"trace.{rank}.log"
        lines = sorted(log.lines, key=lambda line: line[0])
        path.write_text("".join(f"{text}\n" for *_, text in lines))
        found.append(path)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """Imports the run as a whole, and each rank's log by itself."""
    folder = tmp_path_factory.mktemp("merging")
    paths = logs(folder)
    whole = folder / "whole.iodock"
    import_logs([str(path) for path in paths], whole, rank_from="trace.{rank}.log")
    parts = []
    for rank, path in enumerate(paths):
        parts.append(folder / f"part-{rank}.iodock")
        import_logs([str(path)], parts[-1], rank_from="trace.{rank}.log")
    return whole, parts


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with Store.open(path) as store:
        return [tuple(map(str, row.values())) for row in store.rows(sql)]


@pytest.mark.parametrize("order", ["as numbered", "backwards", "in two steps"])
def test_merged_parts_equal_the_run_imported_at_once(
    order: str, run: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    whole, parts = run
    merged = tmp_path / "merged.iodock"
    if order == "in two steps":
        merge(parts[:2], tmp_path / "first.iodock")
        merge([tmp_path / "first.iodock", *parts[2:]], merged)
    else:
        merge(parts if order == "as numbered" else parts[::-1], merged)
    for sql in (EVENTS, FILES, TASKS, COMMANDS):
        assert rows(merged, sql) == rows(whole, sql), sql
    with Store.open(merged) as store:
        store.check()
        ends = [row["t"] for row in store.rows("SELECT ts + dur AS t FROM events WHERE dur >= 0")]
        assert ends == sorted(ends) and len(ends) >= 80
        handles = "SELECT count(DISTINCT handle_id) AS n FROM events"
        assert store.rows(handles) == [{"n": int(rows(whole, handles)[0][0])}]
        assert store.manifest.raw["ranks"] == RANKS and not store.manifest.losses
        told = store.manifest.source
    with Store.open(whole) as store:
        assert {**store.manifest.source} == {**told}


def test_commands_describe_a_merged_run_as_one(run: tuple[Path, list[Path]], tmp_path: Path) -> None:
    whole, parts = run
    merged = tmp_path / "merged.iodock"
    done = iodock("merge", *map(str, parts), "-o", str(merged))
    assert done.returncode == 0 and done.stdout == f"{merged}\n"
    assert "ranks: 4 of 4" in done.stderr
    for question in (["summary", "--by", "rank,call"], ["files"], ["ranks"], ["timeline"]):
        said = [iodock("show", *question[:1], str(store), *question[1:], "--format", "csv").stdout
                for store in (merged, whole)]  # fmt: skip
        assert said[0] == said[1] and said[0].count("\n") > 2


def test_a_rank_without_a_part_is_named(run: tuple[Path, list[Path]], tmp_path: Path) -> None:
    _, parts = run
    merge([parts[0], parts[3]], tmp_path / "merged.iodock")
    with Store.open(tmp_path / "merged.iodock") as store:
        (loss,) = store.manifest.losses
    assert (loss.name, loss.count) == ("missing-ranks", 2) and "(rank 1, 2)" in loss.cure


def changed(part: Path, to: Path, change: dict[str, Any]) -> Path:
    """Returns a copy of a part with changes in its manifest."""
    shutil.copytree(part, to)
    # Imported logs do not contain the number of ranks.
    change = {**change, "captured": {"logs": [], **change.get("captured", {})}}
    manifest = json.loads((to / "manifest.json").read_text())
    for key, value in change.items():
        manifest[key] = {**manifest.get(key, {}), **value} if isinstance(value, dict) else value
    (to / "manifest.json").write_text(json.dumps(manifest))
    without_checksums(to)
    return to


def test_a_truncated_part_and_missing_ranks_are_reported(
    run: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    _, parts = run
    losses = {"journal-cut": 9, "missing-ranks": 7}
    cut = [{"name": name, "count": count, "cure": "x"} for name, count in losses.items()]
    second = changed(parts[1], tmp_path / "b", {"ranks": 8, "state": "cut", "losses": cut})
    first = changed(parts[0], tmp_path / "a", {"ranks": 8})
    found = merge([first, second], tmp_path / "merged.iodock").found
    assert found.cut
    with Store.open(tmp_path / "merged.iodock") as store:
        found_losses = {loss.name: loss for loss in store.manifest.losses}
        assert store.manifest.state == "cut" and store.manifest.raw["ranks"] == 8
    cut_part, missing = found_losses["journal-cut"], found_losses["missing-ranks"]
    assert cut_part.count == 9 and "(rank 1)" in cut_part.cure
    assert missing.count == 6 and "(rank 2, 3, 4, 5, 6, 7)" in missing.cure


def without_ranks(part: Path, to: Path, change: dict[str, Any]) -> Path:
    """Returns a copy of a part whose processes have no rank numbers."""
    changed(part, to, change)
    tasks = pq.read_table(to / "processes.parquet")
    at = tasks.schema.get_field_index("rank")
    field = tasks.schema.field(at)
    none = pa.nulls(tasks.num_rows, field.type)
    pq.write_table(tasks.set_column(at, field, none), to / "processes.parquet", compression="zstd")
    return to


def test_without_ranks_a_node_without_a_part_is_counted(run: tuple[Path, list[Path]], tmp_path: Path) -> None:
    _, parts = run
    job = {"scheduler": "slurm", "id": "17", "nodes": 4}
    made = [
        without_ranks(part, tmp_path / name, {"ranks": None, "job": job, "host": {"name": name}})
        for part, name in zip(parts, ("node1", "node2"), strict=False)
    ]
    merged = merge(made, tmp_path / "merged.iodock")
    assert [(clock.host, clock.offset_ns) for clock in merged.clocks] == [("node1", 0), ("node2", None)]
    with Store.open(tmp_path / "merged.iodock") as store:
        losses = {loss.name: loss.count for loss in store.manifest.losses}
        hosts = store.rows("SELECT DISTINCT host FROM processes ORDER BY 1")
    assert losses == {"missing-nodes": 2}
    assert hosts == [{"host": "node1"}, {"host": "node2"}]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"job": {"scheduler": "slurm", "id": "18"}}, "its job is slurm 18, not slurm 17"),
        ({"captured": {"launch": "17 step.1"}}, "its launch is 17 step.1, not 17 step.0"),
        ({"ranks": 16}, "it has 16 ranks, not 8"),
        ({"clock": "relative"}, "its clock is relative, not epoch"),
        ({"first_ts": 10**18 * 3, "last_ts": 10**18 * 3 + 5}, "s after the end of the other"),
    ],
)
def test_a_part_of_another_run_is_refused(
    change: dict[str, Any], why: str, run: tuple[Path, list[Path]], tmp_path: Path
) -> None:
    _, parts = run
    same = {"job": {"scheduler": "slurm", "id": "17"}, "captured": {"launch": "17 step.0"}, "ranks": 8}
    first = changed(parts[0], tmp_path / "a", same)
    second = changed(parts[1], tmp_path / "b", same | change)
    with pytest.raises(RequestError, match="is of another run than") as raised:
        merge([first, second], tmp_path / "merged.iodock")
    assert why in str(raised.value) and not (tmp_path / "merged.iodock").exists()
    merge([first, changed(parts[1], tmp_path / "c", same)], tmp_path / "merged.iodock")


def test_a_part_given_twice_is_refused(run: tuple[Path, list[Path]], tmp_path: Path) -> None:
    _, parts = run
    into = tmp_path / "merged.iodock"
    (tmp_path / "link").symlink_to(parts[0])
    shutil.copytree(parts[0], tmp_path / "copy")
    for again in (parts[0], tmp_path / "link", tmp_path / "copy"):
        with pytest.raises(RequestError, match="is the same part as"):
            merge([parts[0], again], into)
    with pytest.raises(RequestError, match="at least two parts"):
        merge([parts[0]], into)
    done = iodock("merge", str(parts[0]), str(into), "-o", str(into))
    assert done.returncode == 2 and "is one of the parts" in done.stderr


def test_a_damaged_part_is_named_and_nothing_is_written(run: tuple[Path, list[Path]], tmp_path: Path) -> None:
    _, parts = run
    shutil.copytree(parts[1], tmp_path / "damaged")
    (events,) = (tmp_path / "damaged" / "events").glob("*.parquet")
    events.write_bytes(events.read_bytes()[:-100])
    with pytest.raises(IodockError, match="damaged/events") as raised:
        merge([parts[0], tmp_path / "damaged"], tmp_path / "merged.iodock")
    assert "leave it out" in (raised.value.hint or "")
    assert not list(tmp_path.glob("*merged*"))


def test_an_existing_store_is_replaced_only_on_request(run: tuple[Path, list[Path]], tmp_path: Path) -> None:
    _, parts = run
    into = tmp_path / "merged.iodock"
    merge(parts[:2], into)
    with pytest.raises(IodockError, match=r"merged\.iodock"):
        merge(parts, into)
    assert rows(into, "SELECT count(DISTINCT rank) FROM processes") == [("2",)]
    merge(parts, into, force=True)
    assert rows(into, "SELECT count(DISTINCT rank) FROM processes") == [("4",)]
