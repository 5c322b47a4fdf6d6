"""Tests the collector: each push counts once, whatever happens, and sums do not change when rows are rolled
up."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

import pytest

from batches import BYTES, COUNT, LEVEL, Entry, Part, frame, framed
from collector_site import BEGIN, HOUR, SECOND, post, serving, sums, written
from iodock.centre.monitor import rolling
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.rolling import Keep, expire, roll, tidy
from iodock.centre.store import RESOLUTIONS, MonitorStore
from iodock.shared.errors import RequestError, StoreError
from iodock.simulation.centre import Centre
from iodock.simulation.history import write_history
from iodock.simulation.scenarios import named
from places import ROOT


def test_queries_return_the_pushed_values(tmp_path: Path) -> None:
    collector = Collector(tmp_path)
    assert collector.push(frame(1, [Part(BEGIN, [written("7", 100, BEGIN)], full=True)])) == (1, False)
    later = BEGIN + 10 * SECOND
    both = [written("7", 350, later), Entry("8", {("open", COUNT): 3}, start=BEGIN + SECOND, updated=later)]
    collector.push(frame(2, [Part(later, both)]))
    collector.flush()
    rows = collector.store.table(
        "SELECT * FROM job_io ORDER BY job", begin=0, end=time.time_ns(), resolution="fine"
    ).to_pylist()
    found = [(row["job"], row["write_bytes"], row["open"], row["exact"]) for row in rows]
    assert found == [("7", 250, 0, True), ("8", 0, 3, True)]
    assert (rows[0]["begin_ts"], rows[0]["end_ts"]) == (BEGIN, later)
    assert (rows[0]["host"], rows[0]["file_system"], rows[0]["target"]) == ("oss01", "lfs", "lfs-OST0000")


def test_the_documented_columns_exist(tmp_path: Path) -> None:
    collector = Collector(tmp_path)
    level = Entry("", {("in_flight", LEVEL): 4}, evidence=0)
    for sequence in (1, 2):
        at = BEGIN + sequence * SECOND
        collector.push(
            frame(sequence, [Part(at, [written("7", 4096 * sequence, at)]), Part(at, [level], target="sda")])
        )
    collector.push(frame(9, [Part(BEGIN + 9 * SECOND, [])]))
    page = (ROOT / "docs/explanation/monitor-store.md").read_text()
    for state in ("stored", "nothing"):
        if state == "stored":
            collector.flush()
        store = collector.store if state == "stored" else MonitorStore(empty(tmp_path / "empty"))
        for table in ("job_io", "targets", "losses"):
            answer = store.table(f"SELECT * FROM {table}", begin=0, end=time.time_ns(), resolution="fine")
            assert (answer.num_rows > 0) == (state == "stored")
            missing = [name for name in answer.column_names if f"`{name}`" not in page]
            assert not missing, f"docs/explanation/monitor-store.md lacks {missing}"


def empty(folder: Path) -> Path:
    Collector(folder)
    return folder


def busy_day(collector: Collector, seed: int, batches: int = 60) -> dict[str, int]:
    """Pushes the data of jobs that write for some hours, with occasional flushes. Returns the bytes that each
    job wrote."""
    chance = random.Random(seed)
    totals = {str(job): 0 for job in range(5)}
    collector.push(frame(1, [Part(BEGIN, [], full=True)]))
    for sequence in range(2, batches):
        at = BEGIN + sequence * 200 * SECOND
        busy = [job for job in totals if chance.random() < 0.7]
        for job in busy:
            totals[job] += chance.randrange(1, 1 << 30)
        collector.push(frame(sequence, [Part(at, [written(job, totals[job], at) for job in busy])]))
        if chance.random() < 0.4:
            collector.flush()
    collector.flush()
    return {job: total for job, total in totals.items() if total}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sums_stay_the_same_as_rows_are_rolled_up_and_merged(tmp_path: Path, seed: int) -> None:
    collector = Collector(tmp_path)
    truth = busy_day(collector, seed)
    intake, store = collector._intake, collector.store
    assert all(sums(store, resolution) == truth for resolution in RESOLUTIONS)
    now = BEGIN + 36 * HOUR
    assert roll(store, intake, now) > 0
    assert all(sums(store, resolution) == truth for resolution in RESOLUTIONS)
    assert roll(store, intake, now) == 0
    # The next roll-up includes data that arrive late.
    late = BEGIN + 4 * HOUR
    collector.push(frame(1000, [Part(late, [written("late", 77, late)])]))
    collector.flush()
    truth["late"] = 77
    roll(store, intake, now)
    tidy(store, intake, now)
    assert all(sums(store, resolution) == truth for resolution in RESOLUTIONS)
    assert {file.name for _, files in store.catalogue.files.items() for file in files} == {
        str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet")
    }


@pytest.mark.whole
def test_files_are_merged_as_long_as_one_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Collector(tmp_path)
    store, intake, now = collector.store, collector._intake, BEGIN + 36 * HOUR
    for hour in range(6):
        for job in range(4):
            at = BEGIN + hour * HOUR + (job + 1) * SECOND
            collector.push(frame(hour * 4 + job + 1, [Part(at, [written(str(job), 5, at)], full=job == 0)]))
        collector.flush()
        roll(store, intake, at + HOUR)
    truth, files = sums(store, "ten_minutes"), store.catalogue.of("job_io", "ten_minutes")
    most = 2 * max(file.rows for file in files)
    monkeypatch.setattr(rolling, "_MOST_ROWS", most)
    assert tidy(store, intake, now) > 0
    merged = store.catalogue.of("job_io", "ten_minutes")
    assert 1 < len(merged) < len(files) and all(file.rows <= most for file in merged)
    assert tidy(store, intake, now) == 0 and sums(store, "ten_minutes") == truth


def test_coarser_rows_keep_the_mean_and_maximum_of_gauges(tmp_path: Path) -> None:
    collector = Collector(tmp_path)
    for number in range(12):
        at = BEGIN + (number + 1) * 10 * SECOND
        level = Entry("", {("in_flight", LEVEL): number}, evidence=0)
        collector.push(frame(number + 1, [Part(at, [level], target="sda", source="diskstats")]))
    collector.flush()
    roll(collector.store, collector._intake, BEGIN + HOUR)
    rows = collector.store.table(
        "SELECT value, greatest FROM targets ORDER BY end_ts",
        begin=0,
        end=time.time_ns(),
        resolution="minute",
    ).to_pylist()
    # Levels are stored as whole numbers, so the means 2.5 and 8.5 are rounded.
    assert [(row["value"], row["greatest"]) for row in rows] == [(3, 5), (9, 11)]


def test_old_rows_are_removed_only_after_they_were_summed_up(tmp_path: Path) -> None:
    collector = Collector(tmp_path)
    truth = busy_day(collector, 4)
    store, intake = collector.store, collector._intake
    assert expire(store, intake, Keep(fine=0.1), BEGIN + 36 * HOUR) == 0
    roll(store, intake, BEGIN + 36 * HOUR)
    assert expire(store, intake, Keep(fine=0.1), BEGIN + 36 * HOUR) > 0
    assert not store.catalogue.of("job_io", "fine")
    assert sums(store, "minute") == truth
    assert expire(store, intake, Keep(ten_minutes=0.1, minute=0.1), BEGIN + 36 * HOUR) > 0
    assert not sums(store, "ten_minutes")


@pytest.mark.whole
def test_a_collector_killed_at_any_moment_has_each_batch_once(tmp_path: Path) -> None:
    chance = random.Random(5)
    totals: dict[str, int] = {"a": 0, "b": 0}
    frames = [frame(1, [Part(BEGIN, [], full=True)])]
    for sequence in range(2, 400):
        at = BEGIN + sequence * SECOND
        for job in totals:
            totals[job] += chance.randrange(1, 1 << 20)
        frames.append(frame(sequence, [Part(at, [written(job, total, at) for job, total in totals.items()])]))
    kept = 0
    for _ in range(6):
        with serving(tmp_path / "store") as (url, process):
            ends = time.monotonic() + chance.uniform(0.05, 1.5)
            while time.monotonic() < ends and kept < len(frames):
                # An agent begins with the last batch that it knows to be stored, so it sends some batches
                # again.
                status, receipt = post(url, b"".join(frames[max(kept - 2, 0) : kept + 3]))
                assert status == 200
                assert int(str(receipt["kept"])) >= kept
                kept = int(str(receipt["kept"]))
            process.send_signal(signal.SIGKILL)
    collector = Collector(tmp_path / "store")
    for missing in frames[kept:]:
        collector.push(missing)
    collector.flush()
    assert sums(collector.store) == totals


@pytest.mark.whole
def test_after_a_clean_end_no_journal_is_replayed(tmp_path: Path) -> None:
    with serving(tmp_path / "store") as (url, process):
        post(url, frame(1, [Part(BEGIN, [], full=True)]))
        post(url, frame(2, [Part(BEGIN + SECOND, [written("a", 5, BEGIN)])]))
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert sums(MonitorStore(tmp_path / "store")) == {"a": 5}


def test_agents_retry_if_the_collector_can_not_write(tmp_path: Path) -> None:
    with serving(tmp_path / "store", limit="ulimit -f 64") as (url, _):
        status = 200
        for sequence in range(1, 200):
            at = BEGIN + sequence * SECOND
            many = [written(f"{job}", sequence * 7919, at) for job in range(50)]
            status, answer = post(url, frame(sequence, [Part(at, many)]))
            if status != 200:
                break
        assert (status, answer) == (503, {"error": "the data can't be stored at the moment"})
    collector = Collector(tmp_path / "store")
    # The collector has stored every batch that it answered with 200, and the sender continues with the next
    # one.
    assert collector.push(frame(sequence, [Part(at, many)]))[0] == sequence
    assert not collector.store.table("FROM losses", begin=0, end=time.time_ns(), resolution="fine").num_rows


def test_one_invalid_counter_does_not_stop_upkeep(tmp_path: Path) -> None:
    collector = Collector(tmp_path)
    collector.push(frame(1, [Part(BEGIN, [], full=True), Part(BEGIN, [], target="sda", full=True)]))
    for number in (1, 2, 3):
        at = BEGIN + number * SECOND
        level = Entry("", {("in_flight", LEVEL): (1 << 64) - 1}, evidence=0)
        huge = Entry(f"{number}", {("write_bytes", BYTES): (1 << 64) - 1}, at, at)
        collector.push(
            frame(1 + number, [Part(at, [huge, written("7", 5, at)]), Part(at, [level], target="sda")])
        )
    collector.tend(BEGIN + 48 * HOUR)
    assert all(sums(collector.store, resolution)["7"] == 5 for resolution in RESOLUTIONS[1:])
    assert collector.store.catalogue.of("targets", "ten_minutes")


def test_an_absent_agent_does_not_extend_other_activity(tmp_path: Path) -> None:
    """The absent agent gives a row of one day, and another one gives rows of 10 s of the same owner in the
    same minute."""
    collector = Collector(tmp_path)
    collector.push(frame(1, [Part(BEGIN, [], full=True)]))
    back = BEGIN + 24 * HOUR - 60 * SECOND
    for number in range(4):
        at = back + (1 + number * 10) * SECOND
        collector.push(frame(2 + number, [Part(at, [written("7", 4096 * (1 + number), at)])]))
    collector.flush()
    roll(collector.store, collector._intake, BEGIN + 36 * HOUR)
    rows = collector.store.table(
        "SELECT (end_ts - begin_ts) // 1_000_000_000 AS seconds, write_bytes FROM job_io ORDER BY 1",
        begin=0, end=time.time_ns(), resolution="minute",
    ).to_pylist()  # fmt: skip
    assert [(row["seconds"], row["write_bytes"]) for row in rows] == [(30, 12288), (86_341, 4096)]


def test_files_of_losses_are_merged(tmp_path: Path) -> None:
    collector = Collector(tmp_path)
    for number in range(5):
        collector.push(frame(1 + 3 * number, [Part(BEGIN + number * SECOND, [])]))
        collector.flush()
    assert len(collector.store.catalogue.of("losses", "fine")) == 4
    tidy(collector.store, collector._intake, BEGIN + 48 * HOUR)
    assert len(collector.store.catalogue.of("losses", "fine")) == 1
    found = collector.store.table("FROM losses", begin=0, end=time.time_ns(), resolution="fine")
    assert found.num_rows == 4


def test_an_incomplete_copy_is_read_as_far_as_possible(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    collector = Collector(folder)
    truth = busy_day(collector, 7)
    del collector
    gone = MonitorStore(folder).catalogue.of("job_io", "fine")[0]
    (folder / gone.name).unlink()
    collector = Collector(folder)
    assert 0 < sum(sums(collector.store).values()) < sum(truth.values())
    losses = collector.store.table("FROM losses", begin=0, end=1 << 62, resolution="fine").to_pylist()
    assert [(row["name"], row["count"], row["detail"]) for row in losses] == [("missing-files", 1, gone.name)]
    del collector
    # Without the catalogue the collector cannot know which files count, so it changes nothing.
    (folder / "catalogue.json").unlink()
    before = sorted(folder.rglob("*.parquet"))
    with pytest.raises(StoreError, match="missing, but job_io is there"):
        Collector(folder)
    assert sorted(folder.rglob("*.parquet")) == before


def test_two_collectors_do_not_share_a_store(tmp_path: Path) -> None:
    first = Collector(tmp_path)
    with pytest.raises(StoreError, match="in use by another collector"):
        Collector(tmp_path)
    assert first.replayed == (0, 0)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"<html>", "not a batch of samples"),
        (frame(1, [Part(BEGIN)])[:-1], "cut"),
        (framed(1, b"\xff" * 40), "not the layout of a batch"),
        (framed(1, b"", version=4), "version 4"),
        (frame(1, [Part(BEGIN)], names=[("7", "sato", "x" * 257)]), "names of jobs"),
        (frame(1, [Part(BEGIN)], names=[("7", "sato", "x")] * 1001), "names of jobs"),
        (frame(1, [Part(time.time_ns() + 2 * HOUR)]), "its clock is wrong"),
        (frame(1, [Part(-(1 << 63))]), "its clock is wrong"),
        (frame(2, [])[:16] + frame(1, [])[16:], "checksum"),
    ],
)
def test_an_invalid_push_is_refused_without_effect(tmp_path: Path, body: bytes, why: str) -> None:
    collector = Collector(tmp_path)
    with pytest.raises(RequestError, match=why):
        collector.push(body)
    assert collector.push(frame(1, [Part(BEGIN)])) == (1, True)


@pytest.mark.parametrize("begin", [BEGIN, time.time_ns() - HOUR // 60], ids=["kept for days", "fresh"])
@pytest.mark.parametrize(
    ("ahead", "why"),
    [
        (0, ""),
        (-HOUR // 2, ""),
        (HOUR // 2, ""),
        (-HOUR - HOUR // 60, "more than an hour behind the"),
        (HOUR + HOUR // 60, "more than an hour ahead of the"),
        (-24 * HOUR, "about 24 hours behind the"),
        (3 * HOUR, "about 3 hours ahead of the"),
        (-40 * 24 * HOUR, "about 40 days behind the"),
        # A clock that was never set shows a day in 1970.
        (-56 * 365 * 24 * HOUR, "days behind the"),
    ],
)
def test_senders_with_a_wrong_clock_are_refused(tmp_path: Path, begin: int, ahead: int, why: str) -> None:
    """The collector compares the sender's clock and not the time of the batch, which the agent may have kept
    for a while."""
    collector = Collector(tmp_path)
    body = frame(1, [Part(begin)])
    taken = collector.take(body, sent=time.time_ns() + ahead)
    if why:
        assert (taken.refused or "").endswith(f"{why} collector's") and taken.kept == 0
        assert (taken.refused or "").startswith('"oss01": its clock is wrong, ')
    else:
        assert (taken.refused, taken.kept) == (None, 1)
    # Older agents do not send the time of their clock.
    assert collector.take(body).kept == 1


def test_times_at_the_limits_of_64_bits_are_refused(tmp_path: Path) -> None:
    for sent in (-(1 << 63), (1 << 63) - 1):
        refused = Collector(tmp_path / str(sent)).take(frame(1, [Part(BEGIN)]), sent=sent).refused
        assert refused and "its clock is wrong" in refused


def test_a_frame_that_claims_a_huge_size_uses_no_memory(tmp_path: Path) -> None:
    head = bytearray(frame(1, [Part(BEGIN)]))
    head[20:24] = (1 << 31).to_bytes(4, "little")
    with pytest.raises(RequestError, match="a batch of 2147483648 bytes"):
        Collector(tmp_path).push(bytes(head))


def test_hostile_ids_are_stored_unchanged(tmp_path: Path) -> None:
    ids = [
        b"'; DROP TABLE job_io; --",
        b'"<script>alert(1)</script>',
        b"a\nb",
        b"a\\nb",
        b"\xff\xfe",
        b"../../etc",
        b"",
    ]
    collector = Collector(tmp_path)
    collector.push(frame(1, [Part(BEGIN, [], full=True)]))
    at = BEGIN + SECOND
    collector.push(frame(2, [Part(at, [written(job, 10 + number, at) for number, job in enumerate(ids)])]))
    collector.flush()
    roll(collector.store, collector._intake, BEGIN + 24 * HOUR)
    for resolution in RESOLUTIONS:
        found = sums(collector.store, resolution)
        assert sorted(found.values()) == list(range(10, 10 + len(ids)))
        assert {"a\\x0ab", "a\\\\nb", "\\xff\\xfe", ""} < set(found)


def test_damaged_and_newer_catalogues_give_an_error(tmp_path: Path) -> None:
    del_lock = Collector(tmp_path)
    del del_lock
    catalogue = tmp_path / "catalogue.json"
    whole = json.loads(catalogue.read_text())
    del whole["checksum"]
    for content, why in (("{", "catalogue"), (json.dumps(whole | {"version": 9}), "version 9")):
        catalogue.write_text(content)
        with pytest.raises(StoreError, match=why):
            Collector(tmp_path)
        with pytest.raises(StoreError, match=why):
            _ = MonitorStore(tmp_path).catalogue


def test_queries_are_answered_while_files_are_replaced(tmp_path: Path) -> None:
    collector = Collector(tmp_path)
    truth = busy_day(collector, 6)
    reader = MonitorStore(tmp_path)
    stale = reader.catalogue
    roll(collector.store, collector._intake, BEGIN + 36 * HOUR)
    # The test imitates a reader that read the catalogue just before it was replaced.
    assert reader._read
    reader._read = ((tmp_path / "catalogue.json").stat().st_mtime_ns, 0), stale
    assert sums(reader) == truth


def test_last_readings_of_another_version_give_an_error(tmp_path: Path) -> None:
    collector = Collector(tmp_path)
    del collector
    state = next(tmp_path.glob("state-*.bin"))
    state.write_bytes(b"IODOCKM\x63" + state.read_bytes()[8:])
    catalogue = tmp_path / "catalogue.json"
    whole = json.loads(catalogue.read_text())
    # Another version would have written correct checksums. Without these keys, iodock checks none.
    del whole["checksum"], whole["state_checksum"]
    catalogue.write_text(json.dumps(whole))
    with pytest.raises(StoreError, match="another version of iodock"):
        Collector(tmp_path)


def test_many_small_files_of_an_hour_are_merged(tmp_path: Path) -> None:
    """A query must open few files, even if upkeep runs every two minutes."""
    collector = Collector(tmp_path / "store")
    centre = Centre(named("healthy"), seed=4, begin_ns=HOUR * 500_000, servers=3, jobs=5)
    names = {"job_io", "targets", "job_names"}
    most = 0
    for _ in range(25):
        write_history(centre, collector.writer, 120, 30, lambda share: None)
        collector.tend(centre.now_ns)
        files = collector.store.catalogue.files
        most = max(most, *(len(found) for (table, _), found in files.items() if table in names))
    # A period has at most eight files, and the history covers two periods.
    assert 1 < most <= 16
    rows = collector.store.table(
        "SELECT sum(read_bytes)::BIGINT AS read_bytes FROM job_io", begin=0, end=1 << 62, resolution="fine"
    ).column(0)[0].as_py()  # fmt: skip
    for resolution in ("minute", "ten_minutes"):
        sql = "SELECT sum(read_bytes)::BIGINT AS read_bytes FROM job_io"
        found = collector.store.table(sql, begin=0, end=1 << 62, resolution=resolution).column(0)
        assert found[0].as_py() == rows > 0
