"""Decodes exported Perfetto traces by their definition and compares slices, tracks, files and stacks with the
store."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from in_process import asked, printed, shown
from iodock.program.capture import import_logs
from made_store import Shape, make_store
from messages_of import grouped
from stacked import CALLS, stacked_store

BEGIN, END, INSTANT = 1, 2, 3


@dataclass
class Trace:
    """A decoded trace, with names in place of interned numbers."""

    tracks: dict[int, dict[int, list[Any]]] = field(default_factory=dict)
    slices: list[dict[str, Any]] = field(default_factory=list)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Returns the slices on tracks of threads."""
        return [one for one in self.slices if 4 in self.tracks[one["track"]]]

    @property
    def of_files(self) -> list[dict[str, Any]]:
        return [one for one in self.slices if 4 not in self.tracks[one["track"]]]

    def track(self, one: dict[str, Any]) -> str:
        return str(self.tracks[one["track"]][2][0].decode())


def text(value: bytes) -> str:
    return value.decode()


def decoded(path: Path) -> Trace:
    trace, names = Trace(), {at: {} for at in (1, 2, 3, 5, 6, 7, 18, 29)}  # type: dict[int, dict[int, Any]]
    is_open: dict[int, dict[str, Any]] = {}
    for packet in map(grouped, grouped(path.read_bytes())[1]):
        assert packet[10] == [1]
        for interned in map(grouped, packet.get(12, [])):
            for kind, known in names.items():
                for one in map(grouped, interned.get(kind, [])):
                    known[one[1][0]] = one if kind in (6, 7) else text(one[2][0])
        for one in map(grouped, packet.get(60, [])):
            trace.tracks[one[1][0]] = one
        for event in map(grouped, packet.get(11, [])):
            at, (track,), (kind,) = packet[8][0], event[11], event[9]
            if kind == END:
                is_open.pop(track)["end"] = at
                continue
            assert track not in is_open, "slices of a track overlap"
            told = {"track": track, "begin": at, "end": None}
            told["name"], told["category"] = names[2][event[10][0]], names[1][event[3][0]]
            for one in map(grouped, event.get(4, [])):
                told[names[3][one[1][0]]] = one[4][0] if 4 in one else names[29][one[17][0]]
            if 56 in event:
                frames = (names[6][number] for number in names[7][event[56][0]][2])
                told["stack"] = [
                    (names[5][one[2][0]], names[18].get(one.get(5, [0])[0]), one.get(6, [0])[0])
                    for one in frames
                ]
            trace.slices.append(told)
            if kind == BEGIN:
                is_open[track] = told
    assert not is_open
    return trace


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stacked_store(tmp_path_factory.mktemp("stacked"))


def exported(store: Path, folder: Path, *options: str) -> Path:
    printed("export", store, "-o", folder / "run.pftrace", *options)
    return folder / "run.pftrace"


@pytest.mark.parametrize("options", [(), ("--kind", "all"), ("--call", "write"), ("--file", "/data/in")])
def test_calls_times_and_bytes_equal_those_of_the_store(
    store: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    calls = decoded(exported(store, tmp_path, *options)).calls
    rows = shown(store, "summary", "--by", "call", *options)["rows"]
    assert Counter(one["name"] for one in calls) == {row["call"]: row["count"] for row in rows}
    times: Counter[str] = Counter()
    for one in calls:
        times[one["name"]] += one["end"] - one["begin"]
    assert times == {row["call"]: row["total_time_ns"] for row in rows}


def test_calls_have_files_errors_and_stacks(store: Path, tmp_path: Path) -> None:
    trace = decoded(exported(store, tmp_path))
    writes = [one for one in trace.calls if one["name"] == "write"]
    assert {(one["file"], one["bytes"], one["category"]) for one in writes} == {("/data/out", 16, "data")}
    places = Counter(one["stack"][-2] for one in writes)
    assert places == {
        ("write_step", "/home/u/src/solver.c", 412): CALLS - CALLS // 100,
        ("main", "/home/u/src/solver.c", 500): CALLS // 100,
    }
    assert all("stack" not in one for one in trace.calls if one["name"] == "openat")
    (thread,) = {one["track"] for one in trace.calls}
    described = grouped(trace.tracks[thread][4][0])
    assert (described[1], described[2], described[5]) == ([7], [7], [b"solver"])
    (process,) = [grouped(one[3][0]) for one in trace.tracks.values() if 3 in one]
    assert (process[1], process[6]) == ([7], [b"solver"])


def test_each_file_has_tracks_with_its_calls(store: Path, tmp_path: Path) -> None:
    trace = decoded(exported(store, tmp_path))
    found = Counter(trace.track(one) for one in trace.of_files)
    rows = shown(store, "files")["rows"]
    assert found == {row["file"]: row["count"] for row in rows}
    assert {one["category"] for one in trace.of_files} == {"file"}


def test_simultaneous_calls_are_on_separate_tracks(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(
        '7 1700000010.000000 read(3</data/in>, "x"..., 9) = 9 <0.500000>\n'
        '8 1700000010.200000 read(3</data/in>, "x"..., 9) = 9 <0.500000>\n'
        '7 1700000010.800000 read(3</data/in>, "x"..., 9) = -1 EIO (Input/output error) <0.100000>\n'
    )
    store = import_logs([str(tmp_path / "log")], tmp_path / "run.iodock").store
    trace = decoded(exported(store, tmp_path))
    assert len(trace.of_files) == 3
    assert Counter(one["track"] for one in trace.of_files).most_common(1)[0][1] == 2
    assert [one.get("error") for one in trace.calls] == [None, None, "EIO"]


def test_without_durations_calls_are_instants(tmp_path: Path) -> None:
    store = stacked_store(tmp_path, times=False)
    trace = decoded(exported(store, tmp_path))
    assert len(trace.calls) == sum(row["count"] for row in shown(store, "summary")["rows"])
    assert {one["end"] for one in trace.slices} == {None}


def test_a_store_without_times_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").write_text('1 read(3</data/in>, "x", 1) = 1\n')
    store = import_logs([str(tmp_path / "log")], tmp_path / "run.iodock").store
    status, _, said = asked("export", store, "-o", tmp_path / "run.pftrace")
    assert status != 0 and "times of calls" in said
    assert not (tmp_path / "run.pftrace").exists()


def test_the_perfetto_package_reads_the_export(store: Path, tmp_path: Path) -> None:
    traces = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    trace = traces.Trace()
    trace.ParseFromString(exported(store, tmp_path).read_bytes())
    kinds = Counter(packet.track_event.type for packet in trace.packet if packet.HasField("track_event"))
    calls = sum(row["count"] for row in shown(store, "summary")["rows"])
    in_files = sum(row["count"] for row in shown(store, "files")["rows"])
    assert kinds == {BEGIN: calls + in_files, END: calls + in_files}


@pytest.mark.whole
def test_an_export_of_many_calls_limits_the_number_of_tracks(tmp_path: Path) -> None:
    names = tuple(f"/data/{number}.dat" for number in range(300))
    store = make_store(tmp_path / "made.iodock", Shape(events=200_000, names=names))
    _, _, said = asked("export", store, "-o", tmp_path / "run.pftrace")
    assert "only 200 of 300 files have tracks" in said
    trace = decoded(tmp_path / "run.pftrace")
    assert len(trace.calls) == sum(row["count"] for row in shown(store, "summary")["rows"])
