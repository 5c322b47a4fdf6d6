"""Tests `collective-buffering-off`: collective writes that reach the file as small requests of each rank, and
hints that MPI-IO did not take."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from diagnosing import diagnosed, of_rule
from interface_calls import WRITE, WRITE_ALL, with_calls_of_mpi_io
from iodock.program.findings import Severity
from iodock.program.rules import collective_buffering_off
from made_store import without_checksums
from metadata_log import Trace
from rank_log import MIB, ranks
from timed_strace import mounted

NAME = collective_buffering_off.RULE.name
EACH = 120
HINTS = [
    *(("cb_nodes", "2", "1"), ("striping_factor", "4", None), ("romio_cb_write", "ENABLE", "enable")),
    # This hint is for PnetCDF, a library above MPI-IO, which evaluates it itself.
    ("nc_header_align_size", "4", None),
]


def moved(
    folder: Path, call: str = WRITE_ALL, fs_type: str = "lustre", size: int = 4096, reads: bool = False
) -> Path:
    """Imports a run in which each of four ranks moves its pieces, each piece in one MPI-IO call. In
    collective calls, all four ranks make each call."""

    def work(log: Trace, number: int, pid: int) -> None:
        log.open("/data/shared.out", flags="O_RDWR|O_CREAT", pid=pid)
        for _ in range(EACH):
            (log.read if reads else log.write)(size, 2000, pid=pid)
        log.close(pid=pid)

    return mounted(with_calls_of_mpi_io(ranks(work, folder), call), "/data", fs_type)


def in_calls(store: Path, count: int, alone: bool = True) -> Path:
    """Changes the store so that the pieces of each rank belong to COUNT calls. Without ALONE, one rank moves
    the bytes of all."""
    calls = pq.read_table(store / "interface_calls.parquet")
    (path,) = (store / "events").glob("*.parquet")
    events = pq.read_table(path)
    own: dict[int, list[int]] = {}
    for row in calls.to_pylist():
        if len(ids := own.setdefault(row["utid"], [])) < count:
            ids.append(row["id"])
    seen = dict.fromkeys(own, 0)
    ids = []
    for event in events.to_pylist():
        utid = event["utid"]
        mover = utid if alone else min(own)
        ids.append(own[mover][seen[utid] * count // EACH] if event["bytes"] else None)
        seen[utid] += bool(event["bytes"])
    at = events.schema.get_field_index("interface_call_id")
    pq.write_table(events.set_column(at, "interface_call_id", pa.array(ids, pa.uint32())), path)
    kept = calls.filter(pc.is_in(calls["id"], pa.array([*chain(*own.values())], pa.uint32())))
    requested = pc.multiply(kept["requested_bytes"], pa.scalar(EACH // count, pa.int64()))
    at = kept.schema.get_field_index("requested_bytes")
    _write(store, "interface_calls", kept.set_column(at, "requested_bytes", requested))
    return store


def with_hints(store: Path, hints: list[tuple[str, str, str | None]]) -> Path:
    keys, asked, taken = zip(*hints, strict=True)
    first = pq.read_table(store / "interface_calls.parquet").column("id")[0].as_py()
    table = pa.table(
        {
            "interface_call_id": pa.array([first] * len(hints), pa.uint32()),
            "key": list(keys),
            "asked": list(asked),
            "taken": pa.array(list(taken), pa.string()),
        }
    )
    _write(store, "hints", table)
    return store


def _write(store: Path, name: str, table: pa.Table) -> None:
    pq.write_table(table, store / f"{name}.parquet")
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["tables"][name] = len(table)
    (store / "manifest.json").write_text(json.dumps(manifest))
    without_checksums(store)


def test_each_rank_writes_small_pieces_by_itself(tmp_path: Path) -> None:
    (found,) = of_rule(diagnosed(in_calls(moved(tmp_path), 1)), NAME)
    values = found.message.values
    assert (values["call"], values["ranks"], values["count"]) == (WRITE_ALL, 4, 4 * EACH)
    assert (values["mean_bytes"], values["moved_bytes"]) == (4096, 4 * EACH * 4096)
    assert values["requested_bytes"] == values["moved_bytes"]
    assert found.severity is not Severity.NOTE
    # Two of the 120 requests of each rank remain, large enough for all bytes.
    assert found.cost_seconds == pytest.approx(118 * 0.002, rel=0.02)


@pytest.mark.parametrize(
    ("how", "count"),
    [
        ({"fs_type": "ext4"}, 1),
        ({"size": MIB}, 1),
        ({"reads": True}, 1),
        ({}, 2),
        ({}, EACH),
    ],
    ids=["local disk", "large pieces", "reads", "few pieces in a call", "a call for each piece"],
)
def test_where_it_would_not_pay(how: dict[str, object], count: int, tmp_path: Path) -> None:
    store = moved(tmp_path, **how)  # type: ignore[arg-type]
    assert not of_rule(diagnosed(in_calls(store, count)), NAME)


def test_aggregators_are_collective_buffering(tmp_path: Path) -> None:
    assert not of_rule(diagnosed(in_calls(moved(tmp_path), 1, alone=False)), NAME)


def test_hints_that_were_not_taken_are_a_note(tmp_path: Path) -> None:
    (found,) = of_rule(diagnosed(with_hints(moved(tmp_path, WRITE), HINTS)), NAME)
    assert found.severity is Severity.NOTE and found.gain is None
    assert found.message.values["hints"] == "cb_nodes=2 (1), striping_factor=4 (-)"


def test_hints_of_an_implementation_that_does_not_say(tmp_path: Path) -> None:
    unknown = [(key, asked, None) for key, asked, _ in HINTS]
    assert not of_rule(diagnosed(with_hints(moved(tmp_path, WRITE), unknown)), NAME)


def test_striping_hints_on_a_local_disk(tmp_path: Path) -> None:
    assert not of_rule(diagnosed(with_hints(moved(tmp_path, WRITE, "ext4"), HINTS)), NAME)
