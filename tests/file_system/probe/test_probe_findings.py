"""Tests findings in synthetic probe histories, with and without known problems."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from diagnosing import diagnosed
from in_process import iodock
from iodock.file_system.probe.episodes import Sort
from iodock.file_system.probe.history import History, Trouble, Watch, history
from iodock.file_system.probe.judge import DAY_NS, Sight, State, current, judge
from iodock.file_system.probe.operations import Operation
from iodock.file_system.probe.records import Kind, Late, Mark, Outcome, Record, Round, Run
from iodock.file_system.probe.remarks import remarks
from iodock.file_system.probe.statistics import (
    chi_square_tail,
    friedman,
    mann_kendall,
    mann_whitney,
    pettitt,
    ranks,
    theil_sen,
)
from iodock.file_system.probe.store import Losses, ProbeStore, framed
from iodock.program.comparison.significance import p_value
from iodock.program.store import Store
from iodock.shared.language import language_in
from iodock.shared.message import Message
from iodock.shared.sentences import say
from iodock.shared.settings import FileSystem, Settings
from made_probes import EVERY_S, OPERATIONS, START, hours_of, made_up
from metadata_log import Trace
from timed_strace import mounted

SEEDS = 20


def seen(watch: Watch, *marks: Mark) -> Sight:
    assert watch.last is not None
    (sight,) = judge(History((watch,), marks, Losses(), 0), watch.last.ts)
    return sight


def share(holds: Callable[[int], bool]) -> float:
    return sum(holds(seed) for seed in range(SEEDS)) / SEEDS


def test_steady_rounds_give_no_finding() -> None:
    def quiet(seed: int) -> bool:
        sight = seen(made_up(seed, 10), Mark(START + 5 * DAY_NS, "nothing"))
        found = (sight.episodes, sight.daily, sight.changes, sight.drifts)
        return not any(found) and not any(one.is_clear for many in sight.marks.values() for one in many)

    assert share(quiet) >= 0.95


def test_a_daily_pattern_is_found() -> None:
    def found(seed: int) -> bool:
        sight = seen(made_up(seed, 7, lambda at: 1.6 if 9 <= hours_of(at) < 17 else 1.0))
        hours = [sight.daily[one].busy for one in OPERATIONS if one in sight.daily]
        near = [abs(start - 9) <= 1 and abs(end - 17) <= 1 for start, end in hours]
        return near == [True] * len(OPERATIONS) and not sight.changes and not sight.drifts

    assert share(found) >= 0.95


def test_a_daily_pattern_needs_several_days() -> None:
    assert not seen(made_up(1, 2, lambda at: 3.0 if 9 <= hours_of(at) < 17 else 1.0)).daily


def test_a_change_is_found_at_its_time() -> None:
    def found(seed: int) -> bool:
        sight = seen(made_up(seed, 10, lambda at: 1.0 if at < 6.5 * DAY_NS else 1.5))
        return not sight.drifts and all(
            len(changes := sight.changes.get(one, ())) == 1
            and abs(changes[0].ts - START - 6.5 * DAY_NS) < DAY_NS / 4
            and 1.35 < changes[0].after_ns / changes[0].before_ns < 1.67
            for one in OPERATIONS
        )

    assert share(found) >= 0.95


def test_a_temporary_change_is_found_despite_a_daily_pattern() -> None:
    def level(at: int) -> float:
        return (2.0 if 9 <= hours_of(at) < 17 else 1.0) * (3.0 if 4 * DAY_NS <= at < 7 * DAY_NS else 1.0)

    def found(seed: int) -> bool:
        changes = seen(made_up(seed, 12, level)).changes.get(Operation.CREATE, ())
        ends = [round((one.ts - START) / DAY_NS) for one in changes]
        return ends == [4, 7] and changes[0].after_ns > changes[0].before_ns > changes[1].after_ns * 0.8

    assert share(found) >= 0.95


def test_a_slow_drift_is_not_reported_as_a_change() -> None:
    def found(seed: int) -> bool:
        sight = seen(made_up(seed, 20, lambda at: math.exp(0.8 * at / (20 * DAY_NS))))
        return not sight.changes and all(
            1.8 < sight.drifts[one].last_ns / sight.drifts[one].first_ns < 2.8 for one in sight.drifts
        ) and len(sight.drifts) == len(OPERATIONS)  # fmt: skip

    assert share(found) >= 0.95


def test_exactly_the_outliers_are_found() -> None:
    def found(seed: int) -> bool:
        chance = random.Random(seed)
        far = {chance.randrange(1000) * int(EVERY_S * 1e9) for _ in range(8)}
        sight = seen(made_up(seed, 7, lambda at: 500.0 if at in far else 1.0))
        points = {point.ts - START for one in sight.episodes for point in one.points}
        return points == far

    assert share(found) >= 0.95


def test_outliers_are_found_across_a_change_of_level() -> None:
    """Usual times from before the change do not apply afterwards."""
    sight = seen(made_up(3, 7, lambda at: 1.0 if at < 3 * DAY_NS else 40.0))
    assert not sight.episodes


def test_marks_compare_the_times_before_and_after() -> None:
    mark = Mark(START + 3 * DAY_NS, "tuned")
    sight = seen(made_up(5, 6, lambda at: 1.0 if at < 3 * DAY_NS else 0.7), mark)
    for effects in sight.marks.values():
        (effect,) = effects
        assert effect.is_clear and 0.65 < effect.after_ns / effect.before_ns < 0.75
        assert effect.before_count == effect.after_count == 3 * 144
    # The second mark ends the period after the first one.
    sight = seen(made_up(5, 6), mark, Mark(START + 4 * DAY_NS, "again"))
    assert [one.after_count for one in sight.marks[Operation.CREATE]] == [144, 288]


def outage(*kinds: Kind) -> Watch:
    watch = made_up(1, 0.2)
    assert watch.last is not None
    begin, step = watch.last.ts, int(EVERY_S * 1e9)
    for number, kind in enumerate(kinds, 1):
        ns = {Kind.ANSWERED: 2_000_000, Kind.NO_ANSWER: 30_000_000_000}.get(kind, number * step)
        outcome = Outcome(kind, ns, "EIO" if kind is Kind.FAILED else None)
        watch.add(Round(begin + number * step, "r", number, {Operation.CREATE: outcome}))
    watch.finish()
    return watch


def test_an_outage_is_one_episode_until_its_last_wait_ends() -> None:
    watch = outage(Kind.NO_ANSWER, Kind.WAITING, Kind.WAITING, Kind.ANSWERED)
    (episode,) = seen(watch).episodes
    assert episode.sort is Sort.UNANSWERED and len(episode.points) == 3
    assert episode.end_ts - episode.start_ts == int(2 * EVERY_S * 1e9)
    assert seen(watch).usual[Operation.CREATE].no_answer == 3


def test_a_late_answer_gives_the_length_of_an_outage() -> None:
    watch = outage(Kind.NO_ANSWER, Kind.ANSWERED)
    ts = watch.troubles[0].ts
    watch.late += [
        Late(ts - 1, "r", Operation.CREATE, 9, None),
        Late(ts + 5, "r", Operation.FSYNC, 7 * 10**11, None),
    ]
    watch.late.append(Late(ts + 5, "r", Operation.CREATE, 70_000_000_000, None))
    (episode,) = seen(watch).episodes
    assert episode.end_ts - episode.start_ts == 70_000_000_000


def test_errors_and_outliers_before_an_outage_are_separate() -> None:
    watch = outage(Kind.FAILED, Kind.NO_ANSWER, Kind.ANSWERED)
    watch.series[Operation.FSYNC].spans[-1] = 900_000_000
    found = [one.sort for one in seen(watch).episodes]
    assert found == [Sort.SLOW, Sort.FAILED, Sort.UNANSWERED]


@pytest.mark.parametrize(
    ("kinds", "state"),
    [
        ((Kind.ANSWERED,), State.OK),
        ((Kind.NO_ANSWER,), State.NO_ANSWER),
        ((Kind.NO_ANSWER, Kind.WAITING), State.NO_ANSWER),
        ((Kind.FAILED,), State.FAILING),
        ((Kind.NO_ANSWER, Kind.ANSWERED), State.OK),
    ],
)
def test_the_state_is_that_of_the_last_round(kinds: tuple[Kind, ...], state: State) -> None:
    watch = outage(*kinds)
    assert watch.last is not None
    assert current(watch, watch.last.ts).state is state
    assert current(watch, watch.last.ts + DAY_NS).state is State.STALE


def test_a_slow_current_state_is_reported() -> None:
    watch = made_up(1, 2, lambda at: 30.0 if at > 1.95 * DAY_NS else 1.0)
    assert watch.last is not None
    assert current(watch, watch.last.ts).state is State.SLOW


def test_statistics_equal_published_values() -> None:
    assert ranks([10, 20, 10, 30]) == [1.5, 3, 1.5, 4]
    # In tables of the chi-square distribution, 5 % is at 35.17 for 23 degrees of freedom.
    assert chi_square_tail(35.17, 23) == pytest.approx(0.05, abs=0.0005)
    first, second = list(range(1, 11)), list(range(6, 16))
    assert mann_whitney(first, second) == pytest.approx(p_value(first, second), abs=0.002)
    assert friedman([[1, 2, 3]] * 6) == pytest.approx(math.exp(-6), rel=0.3)
    assert pettitt([1, 1.1, 0.9, 1, 1.05, 5, 5.1, 4.9, 5, 5.05])[0] == 5
    assert mann_kendall([1, 2, 3, 4, 5, 6, 7, 8]) < 0.001 and mann_kendall([1, 2, 1, 2, 1, 2]) > 0.3
    assert theil_sen([0, 1, 2, 3, 4, 5], [1, 3, 5, 70, 9, 11]) == pytest.approx((2, 1))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Creates a probe store with two days of rounds until now, an outage, a late answer, a mark, and
    damage."""
    made = ProbeStore.prepared(tmp_path / "s")
    begin = time.time_ns() - 2 * DAY_NS
    records: list[Run | Round | Late | Mark] = [
        Run(begin, "r", "node1", 1, "/work", False, 600.0, 30.0, 65536, "1")
    ]
    for number, one in enumerate(made_up(1, 2).totals.spans):
        outcomes = {Operation.CREATE: Outcome(Kind.ANSWERED, one)}
        if number == 100:
            outcomes = {Operation.CREATE: Outcome(Kind.NO_ANSWER, 30_000_000_000)}
        records.append(Round(begin + int(number * EVERY_S * 1e9), "r", number, outcomes, {"free_bytes": 1}))
    records.append(Late(begin, "r", Operation.CREATE, 50_000_000_000, None))
    records.append(Round(begin, "unknown", 1, {}))
    records.append(Mark(begin + DAY_NS, "<b>changed</b>"))
    log = b"".join(framed(one) for one in records)
    (made.folder / "node1-9999-01.log").write_bytes(log + framed(records[-1])[:20])
    return made.folder


def shown(*arguments: object) -> str:
    done = iodock("probe", "show", *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_a_probe_store_is_shown_in_every_format(store: Path, tmp_path: Path) -> None:
    table = shown(store, "--lang", "en")
    assert (
        "/work as seen from node1: ok" in table and "no answer to create; this lasted at least 30 s" in table
    )
    assert "left out: 1" in table and "its record is damaged: 1" in table
    assert "'<b>changed</b>'" in table
    known = json.loads(shown(store, "--format", "json"))
    assert known["losses"] == {"damaged": 1, "unknown": 0, "orphans": 1}
    (watch,) = known["watches"]
    assert watch["rounds"] == 288 and watch["operations"]["create"]["count"] == 287
    assert len(watch["episodes"]) == 1 and watch["state"] == "ok"
    motd = shown(store, "--format", "motd", "--lang", "en")
    assert motd.startswith("/work: ok at ") and motd.count("\n") == 1
    shown(store, "-o", tmp_path / "status.html")
    page = (tmp_path / "status.html").read_text()
    assert "<svg" in page and "&lt;b&gt;changed" in page and "<b>changed" not in page
    assert "<script" not in page and "http" not in page.replace("http-equiv", "")
    assert 'class="silent"' in page


def test_a_time_range_can_be_shown(store: Path) -> None:
    (watch,) = json.loads(shown(store, "--format", "json", "--since", "1d"))["watches"]
    assert 140 <= watch["rounds"] <= 144 and not watch["episodes"]
    assert shown(store, "--until", "2001-01-01", "--lang", "en").startswith("No probe rounds in that time.")


def test_all_texts_appear_in_japanese(store: Path) -> None:
    text = language_in("ja")
    for sight in judge(history(ProbeStore.open(store)), time.time_ns()):
        for one in remarks(sight):
            assert say(one, text) != say(one, language_in("en"))


def test_records_of_simultaneous_probes_are_sorted() -> None:
    watch = made_up(1, 0.1)
    watch.add(Round(START - 1, "other", 0, {Operation.CREATE: Outcome(Kind.ANSWERED, 7)}))
    watch.finish()
    times = watch.series[Operation.CREATE].times
    assert list(times) == sorted(times) and watch.series[Operation.CREATE].spans[0] == 7


def around(watch: Watch, tmp_path: Path) -> Settings:
    """Returns the settings of a site whose probes of /data recorded this history."""
    made = ProbeStore.prepared(tmp_path / "probes")
    records: list[Record] = [Run(START, "r", "node1", 1, "/data/probe", False, EVERY_S, 30.0, 65536, "1")]
    for ts, ns in zip(watch.totals.times, watch.totals.spans, strict=True):
        records.append(Round(ts, "r", 0, {Operation.CREATE: Outcome(Kind.ANSWERED, ns)}))
    records += [Round(one.ts, "r", 0, {one.operation: one.outcome}) for one in watch.troubles]
    (made.folder / "node1-9999-01.log").write_bytes(b"".join(framed(one) for one in records))
    return Settings(file_systems={"/data": FileSystem(probe_store=str(made.folder))})


def diagnosed_beside(watch: Watch, tmp_path: Path) -> list[Message]:
    """Returns what the diagnosis of a run with a few calls says about probes."""
    log = Trace()
    log.open("/data/f")
    (tmp_path / "run").mkdir()
    store = mounted(log.imported(tmp_path / "run", 1), "/data", "nfs4")
    found = diagnosed(store, around(watch, tmp_path)).remarks
    return [one for one in found if "probe" in one.text]


def run_start(tmp_path: Path) -> int:
    log = Trace()
    log.open("/data/f")
    (tmp_path / "first").mkdir()
    with Store.open(str(log.imported(tmp_path / "first", 1))) as opened:
        assert opened.manifest.first_ts is not None
        return opened.manifest.first_ts


def shifted(watch: Watch, by: int) -> Watch:
    for series in (*watch.series.values(), watch.totals):
        for at in range(len(series.times)):
            series.times[at] += by
    return watch


@pytest.mark.parametrize(
    ("factor", "text"), [(1.0, "were normal"), (3.0, "slower than usual"), (400.0, "outlier")]
)
def test_a_diagnosis_includes_probe_results_of_the_run(factor: float, text: str, tmp_path: Path) -> None:
    begin = run_start(tmp_path)
    # The run lies between the last two rounds.
    last = int((288 - 1.5) * EVERY_S * 1e9)
    watch = shifted(
        made_up(4, 2, lambda at: factor if at >= last - EVERY_S * 1e9 else 1.0, 0.1), begin - START - last
    )
    messages = diagnosed_beside(watch, tmp_path)
    assert text in messages[0].text and messages[0].values["mount"] == "/data"
    assert len(messages) == (2 if factor == 400.0 else 1)


def test_a_diagnosis_mentions_an_unresponsive_server(tmp_path: Path) -> None:
    watch = shifted(made_up(4, 2), run_start(tmp_path) - START - 2 * DAY_NS)
    ts = watch.totals.times[-1] + int(EVERY_S * 1e9)
    watch.troubles.append(Trouble(ts, Operation.CREATE, Outcome(Kind.NO_ANSWER, 30_000_000_000)))
    (message, *_) = diagnosed_beside(watch, tmp_path)
    assert "did not answer" in message.text and message.values["length_s"] == 30.0


def test_a_diagnosis_works_without_probe_results(tmp_path: Path) -> None:
    log = Trace()
    log.open("/data/f")
    store = mounted(log.imported(tmp_path, 1), "/data", "nfs4")
    gone = Settings(file_systems={"/data": FileSystem(probe_store=str(tmp_path / "gone"))})
    (message,) = diagnosed(store, gone).remarks
    assert "can't be read" in message.text and "gone: does not exist" in str(message.values["error"])
    elsewhere = Settings(file_systems={"/home": FileSystem(probe_store=str(tmp_path / "gone"))})
    assert diagnosed(store, elsewhere).remarks == ()
    ProbeStore.prepared(tmp_path / "empty")
    empty = Settings(file_systems={"/data": FileSystem(probe_store=str(tmp_path / "empty"))})
    assert "no probe ran" in diagnosed(store, empty).remarks[0].text
