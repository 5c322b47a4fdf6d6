"""Tests the model of the simulated Lustre: entries appear and disappear as in Lustre, and scenarios do what
they describe."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from iodock.shared.errors import RequestError
from iodock.simulation.applications import SLEEPER
from iodock.simulation.centre import Centre
from iodock.simulation.counters import SECOND_NS, Rate
from iodock.simulation.flow import Stream
from iodock.simulation.jobs import Job
from iodock.simulation.scenarios import SCENARIOS, in_release, named
from iodock.simulation.target import Target
from iodock.simulation.truth import truth

MINUTE = 60
HOUR = 3600


def truth_by_entry(centre: Centre) -> dict[tuple[str, str, str], int]:
    """Returns the true values by (job id, target, counter)."""
    found: dict[tuple[str, str, str], int] = {}
    for job in truth(centre)["jobs"]:
        for job_id, targets in job["work"].items():
            for target, operations in targets.items():
                for operation, done in operations.items():
                    rate = Rate(operation, 1, 0)
                    found[job_id, target, rate.count_name] = done["samples"]
                    found[job_id, target, rate.sum_name] = done["sum"]
    return found


def done(centre: Centre, operation: str, kind: str = "mdt") -> int:
    """Returns the true number of an operation since the beginning, over all targets of this kind."""
    of_kind = {target.name for target in centre.targets if target.kind == kind}
    return sum(
        value
        for (_, target, counter), value in truth_by_entry(centre).items()
        if counter == operation and target in of_kind
    )


def by_minute(centre: Centre, minutes: int) -> Iterator[int]:
    """Yields the operations on the metadata target in each of the next minutes."""

    def all_done() -> int:
        target = next(target for target in centre.targets if target.kind == "mdt")
        streams = [stream for stream in centre.streams if stream.target is target]
        return sum(tally.samples for stream in streams for tally in stream.truth_at(centre.now_ns).values())

    before = all_done()
    for _ in range(minutes):
        centre.advance(MINUTE)
        now = all_done()
        yield now - before
        before = now


# The following tests check how entries appear and disappear.


class Alone:
    """A target, and job ids that access it when the test says so."""

    def __init__(self, cleanup_s: int = 600) -> None:
        self.now_ns = self.begin_ns = 1_700_000_000 * SECOND_NS
        self.target = Target("lfs-OST0000", "obdfilter", self.now_ns, cleanup_s)
        self.streams: dict[str, Stream] = {}

    def works(self, job_id: str, at_s: float, seconds: float, per_s: float = 1.0) -> None:
        """Lets a job write to the target from AT_S on, for this duration."""
        job = Job(1, "user01", 17001, "x", "x", ("n1",), self.begin_ns, None)
        stream = self.streams.setdefault(job_id, Stream(job, job_id, self.target))
        stream.change([Rate.per_second("write_bytes", per_s, 4096)], self.at(at_s))
        stream.change([], self.at(at_s + seconds))

    def at(self, seconds: float) -> int:
        return self.begin_ns + int(seconds * SECOND_NS)

    @property
    def ids(self) -> list[str]:
        return list(self.target.entries)


def test_an_idle_entry_is_removed_when_a_new_job_appears() -> None:
    alone = Alone()
    alone.works("a", 0, 10)
    alone.target.bring_back(alone.at(5000))
    # Without any access to the target, an idle entry stays for any time.
    assert alone.ids == ["a"]
    alone.works("b", 600, 5)
    assert alone.ids == ["a", "b"], "idle for 590 s only"
    alone.works("c", 650, 5)
    assert alone.ids == ["a", "b", "c"], "swept at 600 s, and so not before 900 s again"
    alone.works("d", 899, 5)
    assert alone.ids == ["a", "b", "c", "d"]
    alone.works("e", 901, 5)
    assert alone.ids == ["b", "c", "d", "e"]
    assert alone.target.expired == 1


def test_known_jobs_do_not_trigger_a_cleanup() -> None:
    alone = Alone()
    alone.works("a", 0, 10)
    alone.works("b", 0, 10)
    alone.works("b", 5000, 10)
    assert alone.ids == ["a", "b"]
    # Only reading the file removes the entry.
    alone.target.sweep(alone.at(5020))
    assert alone.ids == ["b"]


def test_an_entry_that_reappears_begins_at_zero() -> None:
    alone = Alone()
    alone.works("a", 0, 100)
    alone.works("b", 2000, 1)
    alone.works("a", 2010, 9)
    entry = alone.target.entries["a"]
    now_ns = alone.at(2020)
    assert entry.counters(now_ns) == {"write_bytes_count": 10, "write_bytes": 40_960}
    assert (entry.start_ns, entry.updated_ns(now_ns)) == (alone.at(2010), alone.at(2019))
    assert alone.streams["a"].truth_at(now_ns)["write_bytes"].samples == 111


def test_the_time_of_an_entry_is_that_of_its_last_operation() -> None:
    alone = Alone()
    alone.works("a", 0, 9.5)
    assert alone.target.entries["a"].updated_ns(alone.at(100)) == alone.at(9)


@pytest.mark.parametrize(("cleanup_s", "left"), [(0, ["a", "b"]), (60, ["b"])])
def test_the_administrator_sets_the_cleanup_interval(cleanup_s: int, left: list[str]) -> None:
    alone = Alone(cleanup_s)
    alone.works("a", 0, 1)
    alone.works("b", 62, 1)
    assert alone.ids == left


def test_active_jobs_reappear_after_their_entries_are_cleared() -> None:
    alone = Alone()
    alone.works("gone", 0, 1)
    stream = Stream(next(iter(alone.streams.values())).job, "busy", alone.target)
    stream.change([Rate("write_bytes", 10 * SECOND_NS, 512)], alone.at(0))
    alone.target.clear(alone.at(25))
    alone.target.bring_back(alone.at(29))
    assert alone.ids == []
    alone.target.bring_back(alone.at(31))
    assert alone.ids == ["busy"]
    entry = alone.target.entries["busy"]
    assert (entry.start_ns, entry.counters(alone.at(45))["write_bytes"]) == (alone.at(30), 1024)
    assert stream.truth_at(alone.at(45))["write_bytes"].sum == 5 * 512
    assert alone.target.totals(alone.at(45))["write_bytes"].samples == 5 + 2


# The following tests check the model of a whole centre.


@pytest.mark.parametrize("seed", [7, 8, 9])
@pytest.mark.parametrize("name", [scenario.name for scenario in SCENARIOS if scenario.jobs < 1000])
def test_the_same_seed_gives_the_same_day_for_any_step_length(name: str, seed: int) -> None:
    def played(step_s: float, seed: int) -> str:
        centre = Centre(named(name), seed=seed, jobs=10)
        for _ in range(int(2400 / step_s)):
            centre.advance(step_s)
        readings = [
            (target.name, entry.job_id, entry.start_ns, entry.updated_ns(centre.now_ns), counters)
            for target, entry, counters in centre.readings()
        ]
        return json.dumps([truth(centre)["jobs"], readings])

    once = played(2400, seed)
    assert once == played(7.5, seed)
    assert once != played(2400, seed + 1)


def test_incremental_readings_omit_only_unchanged_entries() -> None:
    centre = Centre(named("cleanup"))
    known: dict[tuple[str, str], dict[str, int]] = {}
    left_out = 0
    for _ in range(200):
        before = centre.now_ns
        centre.advance(10)
        some = {(target.name, entry.job_id): values for target, entry, values in centre.readings(before)}
        all_of_them = {(target.name, entry.job_id): values for target, entry, values in centre.readings()}
        known = {key: some.get(key, known.get(key, {})) for key in all_of_them}
        assert known == all_of_them
        left_out += len(all_of_them) - len(some)
    assert left_out > 0


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_scenario_has_a_description(scenario: object) -> None:
    sentence = getattr(scenario, "sentence", "")
    assert sentence[0].isupper() or sentence[0].isdigit()
    assert len(sentence) > 40


def test_an_unknown_scenario_is_refused() -> None:
    with pytest.raises(RequestError, match="no scenario 'x'"):
        named("x")
    with pytest.raises(RequestError, match=r"no release '1\.8'"):
        in_release(named("idle"), "1.8")


def test_the_healthy_scenario_makes_all_kinds_of_requests() -> None:
    centre = Centre(named("healthy"))
    centre.advance(3600)
    assert all(done(centre, operation) > 0 for operation in ("open", "close", "mknod", "unlink", "getattr"))
    assert done(centre, "read_bytes", "obdfilter") > 1 << 30
    assert done(centre, "write_bytes", "obdfilter") > 1 << 30
    assert all(server.condition.name == "healthy" for server in centre.servers)
    ids = {job_id for job_id, _, _ in truth_by_entry(centre)}
    assert all(re.fullmatch(r"\d*:170\d\d:(r\d+c\d+|login01)", job_id) for job_id in ids)


def test_the_idle_scenario_makes_few_requests() -> None:
    centre = Centre(named("idle"))
    centre.advance(3600)
    jobs = [job for job in truth(centre)["jobs"] if job["number"] is not None]
    assert len(jobs) >= 12
    for job in jobs:
        for targets in job["work"].values():
            counted = sum(one["samples"] for work in targets.values() for one in work.values())
            assert counted < 200


def test_the_overload_scenario_has_a_high_steady_load() -> None:
    centre = Centre(named("overload"))
    before = max(by_minute(centre, 5))
    during = list(by_minute(centre, 40))
    assert min(during) > 30_000 * MINUTE * 0.9
    assert min(during) > 3 * before
    assert max(during) < 1.4 * min(during)
    server = centre.servers[0]
    server.update(centre.now_ns)
    assert server.condition.cpu_share > 0.9
    assert server.service["req_qdepth"].largest > 5000
    big = next(job for job in centre.jobs if job.application == "shared-dir")
    assert (len(big.nodes), (big.end_ns or 0) - big.start_ns) == (1008, 23 * 3600 * SECOND_NS)


def test_in_a_stall_requests_wait_while_the_cpu_is_idle() -> None:
    centre = Centre(named("stall"))
    before = list(by_minute(centre, 10))
    server = centre.servers[0]
    server.update(centre.now_ns)
    busy_ns, samples = server.busy_ns, server.service["req_waittime"].samples
    assert server.condition.queue_depth == 12_000
    during = list(by_minute(centre, 13))
    server.update(centre.now_ns)
    # The server hardly handled any requests, so counters of handled requests do not show the waiting ones.
    assert server.service["req_waittime"].samples - samples < 0.02 * samples
    assert (server.busy_ns - busy_ns) / (13 * MINUTE * SECOND_NS) < 0.02
    after = list(by_minute(centre, 10))
    assert max(during) < 0.02 * min(*before, *after)
    assert server.condition.name == "healthy"


def test_the_stalling_job_has_the_load_of_the_k_computers_job() -> None:
    centre = Centre(named("stall"), jobs=0)
    centre.advance(30 * MINUTE)
    job = next(job for job in truth(centre)["jobs"] if job["application"] == "wide-stripes")
    (targets,) = job["work"].values()
    assert len(job["nodes"]) == 12_096
    assert targets["lfs-MDT0000"]["open"]["samples"] == pytest.approx(84_672, rel=0.03)
    objects = [work["create"]["samples"] for name, work in targets.items() if "OST" in name]
    assert (len(objects), (job["end_ns"] - job["start_ns"]) // SECOND_NS) == (12, 18 * MINUTE)
    assert sum(objects) == pytest.approx(12 * 84_672, rel=0.01)


def test_failover_moves_targets_with_empty_counters() -> None:
    centre = Centre(named("failover"))
    centre.advance(10 * MINUTE - 1)
    dead, heir = centre.servers[1], centre.servers[2]
    names = [target.name for target in dead.targets]

    def served() -> list[str]:
        return sorted({target.name for target, _, _ in centre.readings()} & set(names))

    assert served() == names
    centre.advance(30)
    assert served() == [] and not dead.is_up
    centre.advance(60)
    moved_ns = centre.begin_ns + int((10 * MINUTE + 45) * SECOND_NS)
    assert [target.name for target in heir.targets][-2:] == names
    assert served() == names
    for target, entry, _ in centre.readings():
        if target.name in names:
            assert entry.start_ns >= moved_ns
    centre.advance(20 * MINUTE)
    assert [target.name for target in dead.targets] == names and len(heir.targets) == 2
    assert all(
        entry.start_ns >= centre.begin_ns + 30 * MINUTE * SECOND_NS
        for target in dead.targets
        for entry in target.entries.values()
    )


def test_a_reboot_resets_all_counters() -> None:
    centre = Centre(named("reboot"))
    centre.advance(10 * MINUTE + 1)
    server = centre.servers[0]
    assert not server.is_up
    assert not any(target.kind == "mdt" for target, _, _ in centre.readings())
    assert set(by_minute(centre, 3)) == {0}
    centre.advance(2 * MINUTE)
    up_ns = centre.begin_ns + 14 * MINUTE * SECOND_NS
    assert server.booted_ns == up_ns
    server.update(centre.now_ns)
    entries = list(server.targets[0].entries.values())
    assert entries and all(entry.start_ns >= up_ns for entry in entries)
    counted = sum(tally.samples for tally in server.targets[0].totals(centre.now_ns).values())
    assert server.service["req_waittime"].samples == counted


@pytest.mark.whole
def test_with_start_times_cleanup_of_entries_loses_no_growth() -> None:
    """The growth of all entries, read every 10 s, equals the truth to the byte."""
    centre = Centre(named("cleanup"))
    last: dict[tuple[str, str], tuple[int, dict[str, int]]] = {}
    grown: Counter[tuple[str, str, str]] = Counter()
    returns, idle_for, starts = 0, [], {}
    for _ in range(1080):
        before_ns = centre.now_ns
        centre.advance(10)
        now = {}
        for target, entry, values in centre.readings():
            key = entry.job_id, target.name
            start, known = last.get(key, (0, {}))
            returns += starts.get(key, entry.start_ns) != entry.start_ns
            starts[key] = entry.start_ns
            if start != entry.start_ns:
                known = {}
            for name, value in values.items():
                grown[(*key, name)] += value - known.get(name, 0)
            now[key] = entry.start_ns, values
            idle_for.append((before_ns - entry.updated_ns(before_ns)) / SECOND_NS)
        last = now
    assert returns > 20
    assert sum(target.expired for target in centre.targets) > 100
    assert max(idle_for) < 900 + 120, "new ids come every few seconds, and each target is swept at 300 s"
    assert max(idle_for) > 600, "nobody sweeps before half an interval is over"
    assert dict(grown) == {key: value for key, value in truth_by_entry(centre).items() if value}


@pytest.mark.whole
def test_the_scenario_many_jobs_has_fifty_thousand_entries() -> None:
    centre = Centre(named("many-jobs"))
    centre.advance(10)
    metadata = next(target for target in centre.targets if target.kind == "mdt")
    assert len(metadata.entries) >= 50_000
    assert len(centre.jobs) == len({job.number or job.name for job in centre.jobs})


@pytest.mark.parametrize("scenario", ["overload", "stall", "failover", "reboot"])
def test_the_event_of_a_scenario_begins_after_an_ordinary_day(scenario: str) -> None:
    chosen = named(scenario)
    centre = Centre(replace(named("healthy"), servers=chosen.servers))
    centre.advance(HOUR)
    turned_ns, running = centre.now_ns, active(centre)
    passed_s = centre.turn(chosen, 30)
    first = min(one.at_s for one in (*chosen.specials, *chosen.spells))
    assert passed_s == first - 30
    assert active(centre) == running
    centre.advance(29)
    assert all(server.condition.name == "healthy" for server in centre.servers)
    assert {job.application for job in centre.jobs} <= {one.name for one, _ in chosen.mix}
    centre.advance(2)
    assert [job.start_ns - turned_ns for job in centre.jobs if job.application in SPECIAL] == [
        30 * SECOND_NS for _ in chosen.specials
    ]
    unwell = {server.condition.name for server in centre.servers} - {"healthy"}
    # In a stall, the metadata server changes its state two minutes after the job begins.
    assert bool(unwell) == (scenario != "stall")
    centre.advance(2 * MINUTE)
    assert {server.condition.name for server in centre.servers} - {"healthy"}


@pytest.mark.parametrize("scenario", ["idle", "cleanup"])
def test_jobs_of_a_scenario_replace_running_jobs(scenario: str) -> None:
    chosen = named(scenario)
    centre = Centre(named("healthy"), jobs=25)
    centre.advance(HOUR)
    before = [job for job in centre.jobs if job.number]
    centre.turn(chosen, 30)
    turned_ns = centre.now_ns
    assert active(centre) == chosen.jobs
    centre.advance(HOUR)
    later = [job for job in centre.jobs if job.number][len(before) :]
    assert {job.application for job in later} <= {one.name for one, _ in chosen.mix}
    assert all((job.end_ns or 0) <= turned_ns for job in centre.jobs[: len(before) + 2] if job.number)
    assert len({job.number for job in centre.jobs if job.number}) == len(before) + len(later)
    # Cancelled jobs did nothing afterwards, and keep their counts.
    numbers = {job.number for job in before}
    ended = [stream for stream in centre.streams if stream.job.number in numbers]
    assert ended and all(stream.last_ns(centre.now_ns) <= turned_ns for stream in ended)
    assert sum(len(job["work"]) > 0 for job in truth(centre)["jobs"]) > len(before) / 2


def test_a_job_does_the_same_work_on_fewer_nodes() -> None:
    special = named("stall").specials[0]
    smaller = replace(special, application=special.application.on_fewer_nodes(1008))
    centre = Centre(replace(named("stall"), specials=(smaller,)), jobs=0)
    centre.advance(30 * MINUTE)
    job = next(job for job in truth(centre)["jobs"] if job["application"] == "wide-stripes")
    (targets,) = job["work"].values()
    assert len(job["nodes"]) == 1008
    assert targets["lfs-MDT0000"]["open"]["samples"] == pytest.approx(84_672, rel=0.03)
    objects = [work["create"]["samples"] for name, work in targets.items() if "OST" in name]
    assert sum(objects) == pytest.approx(12 * 84_672, rel=0.01)
    assert SLEEPER.on_fewer_nodes(1008) is SLEEPER


SPECIAL = ("shared-dir", "wide-stripes")


def active(centre: Centre) -> int:
    return sum(job.number is not None and (job.end_ns or 0) > centre.now_ns for job in centre.jobs)
