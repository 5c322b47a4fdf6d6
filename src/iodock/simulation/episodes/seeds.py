"""Lists the simulated episodes. Those that measure the classifier's quality must never be used to tune the
classifier."""

from __future__ import annotations

from collections.abc import Iterator

from iodock.simulation.episodes import breaks, stories
from iodock.simulation.episodes.episode import Episode
from iodock.simulation.episodes.stage import Scene, Stage

STORIES: dict[str, stories.Story] = {
    "idle": stories.idle,
    "healthy": stories.healthy,
    "busy-day": stories.busy_day,
    "backup": stories.backup,
    "scrub": stories.scrub,
    "overload-1": stories.overload(1),
    "overload-2": stories.overload(2),
    "overload-3": stories.overload(3),
    "overload-beside-an-old-job": stories.overload_beside_an_old_job,
    "k-overload": stories.k_overload,
    "k-stall": stories.k_stall,
    "stall": stories.stall,
    "hang-without-a-job": stories.hang_without_a_job,
    "object-stall": stories.object_stall,
    "object-overload": stories.object_overload,
    "slow-array": stories.slow_array,
    "failover": breaks.failover,
    "reboot": breaks.reboot,
    "network-cut": breaks.network_cut,
    "missing-samples": breaks.missing_samples,
    "clock-skew": breaks.clock_skew,
}
TUNING = range(100, 106)
JUDGING = range(9000, 9012)
"""Seeds for judging, for each story. They give 252 runs."""
HEALTHY_DAYS = range(500, 530)
"""Seeds of healthy runs of one day each, at 60 s or 10 s."""
_DAY_S = 86_400


def play(story: str, seed: int) -> Episode:
    """Plays a story. The run is deterministic for story and seed."""
    stage = Stage(story, seed)
    STORIES[story](stage)
    return stage.episode


def runs(seeds: range) -> Iterator[Episode]:
    for story in STORIES:
        for seed in seeds:
            yield play(story, seed)


def healthy_day(seed: int) -> Episode:
    """Plays a day with a quiet night and a busier day, in which every server is healthy."""
    stage = Stage("healthy-day", seed, 10.0 if seed % 5 == 0 else 60.0)
    hour = round(3600 / stage.step_s)
    for at in range(_DAY_S // 3600):
        level = 0.2 if at < 7 else 1.0 + 0.5 * (9 <= at < 18)
        stage.play(hour, Scene(level=level * stage.random.uniform(0.8, 1.2)))
    return stage.episode
