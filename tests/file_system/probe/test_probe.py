"""Tests probes: the operations of a round, hanging servers, writers that are killed, damaged stores."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from in_process import iodock
from iodock.file_system.probe.folder import look
from iodock.file_system.probe.leftovers import clean
from iodock.file_system.probe.operations import MOST_BYTES, MOST_CALLS, PREFIX, ROUND, Operation, Steps
from iodock.file_system.probe.records import End, Kind, Late, Mark, Outcome, Record, Round, Run, to_json
from iodock.file_system.probe.rounds import Plan, Prober, Stopped
from iodock.file_system.probe.store import Losses, ProbeStore, framed, host_name, parsed
from iodock.file_system.probe.watch import Wish, _Log, watch
from iodock.file_system.probe.worker import Worker
from iodock.shared.errors import StoreError

NOW = 1_700_000_000_000_000_000


def plan(folder: Path, limit: float = 20.0) -> Plan:
    return Plan("run", str(folder), False, limit, 4096)


def read(store: ProbeStore) -> tuple[list[Record], Losses]:
    losses = Losses()
    return list(store.records(losses)), losses


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until, "did not happen"
        time.sleep(0.02)


class Hanging(Steps):
    """Does the operations of a probe, but one of them waits at a FIFO, as for a server, until the test writes
    to the FIFO."""

    operation = Operation.FSYNC
    fifo = Path()

    def do(self, operation: Operation) -> dict[str, object]:
        if operation is self.operation:
            self.fifo.read_bytes()
        return super().do(operation)


class Hang:
    """Simulates a server that does not answer one operation while the FIFO exists."""

    def __init__(self, operation: Operation, fifo: Path) -> None:
        self.operation, self.fifo = operation, fifo
        os.mkfifo(fifo)
        self.pids: list[int] = []

    def worker(self, steps: Steps) -> Worker:
        made = steps
        if self.fifo.exists():
            made = Hanging(steps.target, steps.folder.name, len(steps.content), steps.made)
            made.operation, made.fifo = self.operation, self.fifo
        worker = Worker(made)
        self.pids.append(worker.pid)
        return worker

    def let_go(self) -> None:
        """Answers the waiting operations, and all later ones."""
        descriptor = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK)
        self.fifo.unlink()
        os.close(descriptor)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "watched"
    made.mkdir()
    return made


def kinds(done: Round) -> dict[str, str]:
    return {one.value: outcome.kind.value for one, outcome in done.outcomes.items()}


def test_a_round_makes_all_operations_and_leaves_no_files(folder: Path) -> None:
    prober = Prober(plan(folder))
    done = prober.round(0)
    assert tuple(done.outcomes) == ROUND
    assert {outcome.kind for outcome in done.outcomes.values()} == {Kind.ANSWERED}
    assert all((outcome.ns or 0) > 0 for outcome in done.outcomes.values())
    assert done.found["size_bytes"] >= done.found["free_bytes"] > 0
    assert done.is_good and done.is_clean
    assert not list(folder.iterdir()) and prober.children() == 0 and prober.end() == ()


def test_a_round_makes_few_calls_and_transfers_few_bytes(folder: Path, tmp_path: Path) -> None:
    """iodock's own recorder counts the calls."""
    store = tmp_path / "seen.iodock"
    script = (
        "from iodock.file_system.probe.rounds import Plan, Prober\n"
        f"done = Prober(Plan('run', {str(folder)!r}, False, 20.0, 512 << 10)).round(0)\n"
        "assert done.is_good"
    )
    command = [sys.executable, "-m", "iodock", "record", "-o", str(store), "--", sys.executable, "-c", script]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    asked = [sys.executable, "-m", "iodock", "show", "summary", str(store), "--format", "json", "-q"]
    chosen = ["--file", str(folder), "--file", f"{folder}/**"]
    shown = subprocess.run([*asked, *chosen], check=True, capture_output=True, timeout=60).stdout
    rows = json.loads(shown)["rows"]
    # The additional 7 calls are Python's: it calls stat on a file that it opens, and lists a folder with two
    # calls.
    assert sum(row["count"] for row in rows) == len(ROUND) + 7 <= MOST_CALLS
    moved = sum((row["read_bytes"] or 0) + (row["written_bytes"] or 0) for row in rows)
    assert moved == MOST_BYTES


@pytest.mark.parametrize(
    ("operation", "not_tried"),
    [
        (Operation.MKDIR, set(ROUND) - {Operation.MKDIR, Operation.DF}),
        (Operation.CREATE, set(ROUND[2:7]) | {Operation.RENAME, Operation.REMOVE}),
        (Operation.WRITE, {Operation.FSYNC, Operation.CLOSE, Operation.READ}),
        (Operation.FSYNC, {Operation.CLOSE}),
        (Operation.STAT, set()),
        (Operation.RENAME, set()),
        (Operation.DF, set()),
    ],
)
def test_a_hanging_operation_is_recorded_and_the_others_continue(
    operation: Operation, not_tried: set[Operation], folder: Path, tmp_path: Path
) -> None:
    hang = Hang(operation, tmp_path / "server")
    prober = Prober(plan(folder, 0.3), make=hang.worker)
    not_tried = not_tried - {Operation.READDIR} if operation is Operation.CREATE else not_tried
    done = prober.round(0)
    assert done.outcomes[operation] == Outcome(Kind.NO_ANSWER, 300_000_000)
    assert {one for one, outcome in done.outcomes.items() if outcome.kind is Kind.NOT_TRIED} == not_tried
    answered = set(ROUND) - not_tried - {operation}
    assert {one for one, outcome in done.outcomes.items() if outcome.kind is Kind.ANSWERED} == answered
    hang.let_go()
    eventually(lambda: bool(list(prober.late())) or prober.children() == 0)
    eventually(lambda: not list(prober.late()) and prober.children() == 0)
    assert not list(folder.iterdir())


@pytest.mark.whole
def test_hanging_child_processes_do_not_accumulate(folder: Path, tmp_path: Path) -> None:
    hang = Hang(Operation.WRITE, tmp_path / "server")
    prober = Prober(plan(folder, 0.2), make=hang.worker)
    first, *later = [prober.round(number) for number in range(6)]
    assert kinds(first)["write"] == "no-answer"
    assert {kinds(one)["write"] for one in later} == {"waiting"}
    spans = [one.outcomes[Operation.WRITE].ns or 0 for one in later]
    assert spans == sorted(spans) and spans[0] >= 200_000_000
    assert prober.children() == 1
    assert {kinds(one)["mkdir"] for one in later} == {"answered"}
    hang.let_go()
    late: list[Late] = []
    eventually(lambda: late.extend(prober.late()) or prober.children() == 0)
    assert [(one.operation, one.detail) for one in late] == [(Operation.WRITE, None)]
    assert late[0].ns > 200_000_000
    assert kinds(prober.round(6))["write"] == "answered"
    assert not list(folder.iterdir()) and prober.end() == ()


@pytest.mark.whole
def test_a_stopped_child_is_not_waited_for_and_killed_later(folder: Path) -> None:
    pids: list[int] = []

    def make(steps: Steps) -> Worker:
        worker = Worker(steps)
        pids.append(worker.pid)
        if len(pids) == 1:
            os.kill(worker.pid, signal.SIGSTOP)
        return worker

    prober = Prober(plan(folder, 0.2), make=make)
    assert kinds(prober.round(0))["mkdir"] == "no-answer"
    assert prober.end() == ()
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)
    assert not list(folder.iterdir())


def test_a_killed_child_is_an_error_of_its_operation(folder: Path) -> None:
    def make(steps: Steps) -> Worker:
        worker = Worker(steps)
        os.kill(worker.pid, signal.SIGKILL)
        worker.has_ended(10)
        return worker

    done = Prober(plan(folder), make=make).round(0)
    assert done.outcomes[Operation.MKDIR].detail == "the child died"


def test_errors_of_operations_are_named(folder: Path) -> None:
    folder.rmdir()
    done = Prober(plan(folder)).round(0)
    assert done.outcomes[Operation.MKDIR].kind is Kind.FAILED
    assert done.outcomes[Operation.MKDIR].detail == done.outcomes[Operation.DF].detail == "ENOENT"
    assert done.is_clean and not done.is_good


def test_wrong_file_contents_count_as_an_error(folder: Path) -> None:
    class Forgetful(Steps):
        def do(self, operation: Operation) -> dict[str, object]:
            if operation is Operation.READ:
                self.file.write_bytes(b"x" * 4096)
            return super().do(operation)

    made = Prober(plan(folder), make=lambda steps: Worker(Forgetful(steps.target, steps.folder.name, 4096)))
    assert made.round(0).outcomes[Operation.READ].detail == "wrong content"


def test_ending_a_probe_does_not_wait_for_a_hung_server(folder: Path, tmp_path: Path) -> None:
    hang = Hang(Operation.MKDIR, tmp_path / "server")
    reading, writing = os.pipe()
    prober = Prober(plan(folder, 3600), reading, hang.worker)
    threading.Timer(0.2, os.write, (writing, b"x")).start()
    with pytest.raises(Stopped):
        prober.round(0)
    assert prober.end() == () and prober.children() <= 1
    assert not list(folder.iterdir())


@pytest.mark.whole
def test_files_of_a_killed_probe_are_removed_by_the_next(folder: Path, tmp_path: Path) -> None:
    store = ProbeStore.prepared(tmp_path / "store")
    store.append(run_record("dead", folder, 2**22 + 1))
    store.append(Round(NOW, "dead", 4, {Operation.DF: Outcome(Kind.ANSWERED, 1)}))
    left, other = (folder / f"{PREFIX}dead-{number}" for number in (5, 9))
    for one in (left, other):
        one.mkdir()
        (one / "probe").write_bytes(b"x")
    alive = run_record("alive", folder, os.getpid(), time.time_ns())
    store.append(alive)
    (folder / f"{PREFIX}alive-0").mkdir()
    assert clean(store, str(folder), 5.0) == 0
    # `clean` removes neither files that the store's records do not name, nor files of a run in progress.
    assert sorted(one.name for one in folder.iterdir()) == [f"{PREFIX}alive-0", f"{PREFIX}dead-9"]
    assert [one.left for one in read(store)[0] if isinstance(one, End)] == [()]


def run_record(name: str, folder: Path, pid: int, ts: int = NOW) -> Run:
    return Run(ts, name, host_name(), pid, str(folder), False, 60.0, 30.0, 4096, "1")


RECORDS: tuple[Record, ...] = (
    run_record("a", Path("/x"), 1),
    Round(NOW, "a", 0, {Operation.DF: Outcome(Kind.ANSWERED, 5)}, {"free_bytes": 3}),
    Round(
        NOW,
        "a",
        1,
        {
            Operation.MKDIR: Outcome(Kind.FAILED, 5, "EIO"),
            Operation.CREATE: Outcome(Kind.NOT_TRIED, None, "mkdir"),
            Operation.DF: Outcome(Kind.NO_ANSWER, 30),
        },
    ),
    Round(NOW, "a", 2, {Operation.DF: Outcome(Kind.WAITING, 40)}),
    Late(NOW, "a", Operation.DF, 50, None),
    End(NOW, "a", (1, 2)),
    Mark(NOW, "設定を変えた"),
)


def test_probe_records_are_read_back_unchanged(tmp_path: Path) -> None:
    store = ProbeStore.prepared(tmp_path / "s")
    for record in RECORDS:
        store.append(record)
    assert read(ProbeStore.open(tmp_path / "s")) == (list(RECORDS), Losses())


def test_damaged_records_of_a_store_are_lost_and_counted() -> None:
    """Every cut and every flipped byte costs at most one record, or two that are adjacent."""
    whole = [framed(record) for record in RECORDS]
    content = b"".join(whole)
    for cut in range(len(whole[0]), len(content), 7):
        losses = Losses()
        found = list(parsed(content[:cut] + content[len(whole[0]) - 1 + cut :], losses))
        assert len(found) >= len(RECORDS) - 1 - len(content) and losses.damaged + len(found) > 0
        losses = Losses()
        kept = list(parsed(content[:cut], losses))
        assert kept == list(RECORDS[: len(kept)])
        assert losses.damaged == (content[:cut] != b"".join(whole[: len(kept)]))
    chance = random.Random(1)
    for at in range(len(content)):
        losses = Losses()
        flipped = bytes([content[at] ^ (1 << chance.randrange(8))])
        found = list(parsed(content[:at] + flipped + content[at + 1 :], losses))
        assert all(record in RECORDS for record in found)
        assert len(found) >= len(RECORDS) - 2 and losses.damaged >= 1


def test_records_after_a_truncated_one_are_read() -> None:
    losses = Losses()
    first, second = framed(RECORDS[0]), framed(RECORDS[1])
    assert list(parsed(first[:40] + second, losses)) == [RECORDS[1]]
    assert losses == Losses(damaged=1)


def test_records_of_later_versions_are_counted_separately() -> None:
    import zlib

    said = json.dumps({**to_json(RECORDS[-1]), "k": "aura"}).encode()
    losses = Losses()
    assert list(parsed(b"\x1e%08x %b\n" % (zlib.crc32(said), said), losses)) == []
    assert losses == Losses(unknown=1)


def test_two_writers_at_once_corrupt_nothing(tmp_path: Path) -> None:
    store = ProbeStore.prepared(tmp_path / "s")
    script = (
        "import sys\nfrom iodock.file_system.probe.store import ProbeStore\n"
        "from iodock.file_system.probe.records import Mark\n"
        f"store = ProbeStore.prepared({str(store.folder)!r})\n"
        "for number in range(300): store.append(Mark(%d + number, sys.argv[1] * 500))" % NOW
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, name]) for name in "abc"]
    assert [one.wait(60) for one in writers] == [0, 0, 0]
    records, losses = read(store)
    assert losses == Losses() and len(records) == 900
    for name in "abc":
        own = [one.ts - NOW for one in records if isinstance(one, Mark) and one.text == name * 500]
        assert own == list(range(300))


@pytest.mark.whole
def test_writers_killed_at_random_leave_a_readable_store(tmp_path: Path, folder: Path) -> None:
    store = tmp_path / "s"
    command = [
        sys.executable,
        "-m",
        "iodock",
        "probe",
        "run",
        str(folder),
        "--every",
        "1",
        "-q",
        "-o",
        str(store),
    ]
    chance = random.Random(2)
    for _ in range(6):
        writers = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
        time.sleep(chance.uniform(0.3, 2.0))
        for one in writers:
            one.kill()
            one.communicate(timeout=30)
    command[command.index("--every") : command.index("--every")] = ["--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    records, losses = read(ProbeStore.open(store))
    assert losses == Losses()
    rounds = [one for one in records if isinstance(one, Round)]
    assert rounds and all(one.is_good for one in rounds)
    eventually(lambda: not list(folder.iterdir()))


@pytest.fixture
def long_run(folder: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    store, fifo = tmp_path / "s", tmp_path / "fifo"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "iodock", "probe", "run", "--command", f"cat {fifo}", "--every", "1"]
    process = subprocess.Popen(
        [*command, "--limit", "500ms", "-o", str(store)], stderr=subprocess.PIPE, text=True
    )
    yield process, store
    process.kill()
    process.communicate(timeout=30)


@pytest.mark.whole
def test_a_hanging_command_is_ended(long_run: tuple[subprocess.Popen[str], Path]) -> None:
    process, folder = long_run

    def outcomes() -> list[Kind]:
        try:
            records, _ = read(ProbeStore.open(folder))
        except StoreError:
            return []
        rounds = [one for one in records if isinstance(one, Round)]
        return [one.outcomes[Operation.COMMAND].kind for one in rounds]

    eventually(lambda: len(outcomes()) >= 3)
    assert outcomes()[:3] == [Kind.NO_ANSWER, Kind.WAITING, Kind.WAITING]
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) == 1
    process.send_signal(signal.SIGTERM)
    # communicate returns only if no other process holds this stderr.
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0 and "command no answer after 500 ms" in said
    assert not Path(f"/proc/{children[0]}").exists()


def test_a_command_runs_in_the_callers_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").touch()
    assert Prober(Plan("r", "test -e here", True, 20.0, 0)).round(0).is_good


def test_the_time_and_status_of_a_command_are_recorded(tmp_path: Path) -> None:
    for number, (command, detail) in enumerate((("sleep 0.2", None), ("exit 3", "exit 3"))):
        done = Prober(Plan("r", command, True, 20.0, 0)).round(number)
        (outcome,) = done.outcomes.values()
        assert outcome.detail == detail
        assert detail or (outcome.ns or 0) >= 200_000_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "-o", "s"], "needs a folder or a --command"),
        (["run", "nowhere", "-o", "s"], "nowhere: no such folder"),
        (["run", "file", "-o", "s"], "file: is not a folder"),
        (["run", ".", "-o", "s", "--every", "0.5"], "too frequent"),
        (["run", ".", "-o", "s", "--limit", "soon"], "soon is not a time"),
        (["mark", "nowhere", "x"], "nowhere: does not exist"),
        (["mark", ".", "x"], ".: is not a probe store"),
    ],
)
def test_impossible_probe_options_give_an_error(arguments: list[str], said: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = iodock("probe", *arguments, cwd=tmp_path)
    assert done.returncode in (1, 2) and said in done.stderr and "hint: " in done.stderr
    assert not (tmp_path / "s").exists()


def test_rounds_before_the_requested_time_are_not_read(tmp_path: Path) -> None:
    store = ProbeStore.prepared(tmp_path / "s")
    for number in range(20):
        store.append(Round(NOW + number, "a", number, {}))
    store.append(run_record("a", Path("/x"), 1, NOW))
    losses = Losses()
    later = list(store.records(losses, NOW + 15))
    assert [one.number for one in later if isinstance(one, Round)] == [15, 16, 17, 18, 19]
    # The reader returns the record of a run even if it began before the requested time.
    assert len(later) == 6 and losses == Losses()


def test_records_are_kept_until_the_store_can_be_written(tmp_path: Path) -> None:
    told: list[Round | Late | StoreError] = []
    store = ProbeStore.prepared(tmp_path / "s")
    log = _Log(store, told.append)
    log.add(RECORDS[1])
    (tmp_path / "s").rename(tmp_path / "away")
    for record in RECORDS[2:5]:
        log.add(record)
    # The log reports the error once, not every minute.
    assert len(told) == 1 and "can't be written" in str(told[0]) and len(log.waiting) == 3
    (tmp_path / "away").rename(tmp_path / "s")
    log.add(RECORDS[5])
    assert read(store) == (list(RECORDS[1:6]), Losses()) and not log.waiting and log.lost == 0


def test_a_running_probe_records_its_target_daily(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that reads only the last month of a store must still know the runs of its rounds."""
    days = iter(range(99))
    monkeypatch.setattr("iodock.file_system.probe.watch._day", lambda ts: next(days) // 2)
    store = ProbeStore.prepared(tmp_path / "s")
    reading, _ = os.pipe()
    watch(Wish(str(folder), False, 0.01, 20.0, 4096, 4), store, reading, lambda _: None)
    records, _ = read(store)
    runs = [one for one in records if isinstance(one, Run)]
    assert len(runs) >= 2 and len({one.run for one in runs}) == 1
    assert len([one for one in records if isinstance(one, Round)]) == 4


def test_a_link_to_a_folder_is_resolved(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    place = look(str(tmp_path / "link"), 20.0)
    assert place is not None and place.path == str(folder)
    assert Prober(plan(tmp_path / "link")).round(0).is_good and not list(folder.iterdir())
