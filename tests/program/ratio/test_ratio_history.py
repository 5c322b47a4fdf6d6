"""Tests `iodock ratio --history`: the distribution of jobs, and when iodock may propose a threshold."""

from __future__ import annotations

import random
import statistics
import tomllib

import pytest

from iodock.program.ratio.history import History, history_of
from iodock.program.ratio.record import Record
from iodock.program.ratio.threshold import BINS, propose, smoothed
from iodock.shared.quantile import quantile


def job(share: float, real: float = 600.0, cores: float = 1.0) -> Record:
    return Record("job", real, max(0.0, share) * real * cores, 0.0, cores)


def history(records: list[Record], weight: str = "jobs", shortest: float = 60.0) -> History:
    found = history_of(records, weight, shortest, None)  # type: ignore[arg-type]
    assert found is not None
    return found


def mixture(seed: int, count: int, *parts: tuple[float, float, float]) -> list[Record]:
    """Returns jobs whose ratios are normally distributed around several peaks: (share, middle, width) of
    each."""
    chance = random.Random(seed)
    weights = [share for share, _, _ in parts]
    chosen = (chance.choices(parts, weights)[0] for _ in range(count))
    return [job(min(1.0, abs(chance.gauss(middle, width)))) for _, middle, width in chosen]


def test_statistics_equal_those_of_the_python_library() -> None:
    chance = random.Random(3)
    values = [chance.random() for _ in range(997)]
    found = history([job(value) for value in values])
    assert found.jobs == 997
    assert found.mean == pytest.approx(statistics.fmean(values))
    assert found.deciles == pytest.approx(statistics.quantiles(values, n=10, method="inclusive"))
    assert sum(one.jobs for one in found.bins) == 997
    assert found.core_hours == pytest.approx(997 / 6)
    assert found.share_below(0.5)[0] == sum(value < 0.5 for value in values) / 997


def test_weighting_by_core_hours_favours_long_and_wide_jobs() -> None:
    found = history([job(0.2, 3600, 1), job(0.8, 7200, 3)])
    assert found.mean == pytest.approx(0.5)
    assert found.mean_by_hours == pytest.approx((0.2 * 1 + 0.8 * 6) / 7)
    assert found.bins[80].core_hours + found.bins[79].core_hours == pytest.approx(6)


def test_omitted_jobs_are_counted() -> None:
    found = history([job(0.5), job(0.5, 10), job(1.7), job(0.5, 0), Record("a", None, 1.0, 0.0)])
    assert (found.jobs, found.too_short, found.without_ratio, found.above_one) == (2, 1, 2, 1)
    assert found.bins[-1].jobs == 1


def test_ratios_above_one_count_as_one() -> None:
    found = history([job(0.5), job(8640.0)])
    assert found.above_one == 1
    assert (found.mean, found.mean_by_hours) == (pytest.approx(0.75), pytest.approx(0.75))
    assert found.deciles[-1] == pytest.approx(0.95)


def test_no_remaining_jobs_give_no_history() -> None:
    assert history_of([job(0.5, 10)], "jobs", 60.0, None) is None


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("count", [1_000, 20_000])
def test_two_peaks_give_the_end_of_the_lower_one_as_threshold(share: float, count: int) -> None:
    found = history(mixture(1, count, (share, 0.04, 0.02), (1 - share, 0.88, 0.06))).proposal
    assert found.bimodal and found.modes is not None
    assert found.modes[0] < 0.1 < 0.8 < found.modes[1]
    # The threshold lies two standard deviations or more above the lower peak. The upper bound allows for
    # chance.
    assert 0.08 <= found.threshold <= 0.2


def test_a_peak_of_half_used_nodes_does_not_change_the_threshold() -> None:
    parts = ((0.1, 0.04, 0.02), (0.3, 0.5, 0.05), (0.6, 0.92, 0.03))
    found = history(mixture(2, 20_000, *parts)).proposal
    assert found.bimodal and found.threshold < 0.15


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        (((1.0, 0.9, 0.04),), "not bimodal"),
        (((1.0, 0.5, 0.2),), "not bimodal"),
        (((0.3, 0.5, 0.03), (0.7, 0.95, 0.02)), "too high for I/O"),
        (((0.004, 0.03, 0.01), (0.996, 0.9, 0.04)), "not bimodal"),
    ],
)
def test_without_two_peaks_the_first_decile_is_proposed(
    parts: tuple[tuple[float, float, float], ...], reason: str
) -> None:
    found = history(mixture(4, 20_000, *parts))
    assert not found.proposal.bimodal and reason in found.proposal.reason
    assert found.proposal.threshold == min(0.5, round(found.deciles[0], 2))


def test_evenly_distributed_jobs_have_no_peaks() -> None:
    chance = random.Random(5)
    for count in (150, 1_000, 50_000):
        assert not history([job(chance.random()) for _ in range(count)]).proposal.bimodal


def test_few_jobs_are_not_a_sufficient_sample() -> None:
    found = history(mixture(6, 50, (0.5, 0.03, 0.01), (0.5, 0.9, 0.02))).proposal
    assert not found.bimodal and "50 jobs are too few" in found.reason


def test_weighting_changes_the_peaks() -> None:
    # A thousand short I/O jobs are less than a hundredth of the core-hours.
    jobs = [job(0.03, 100) for _ in range(1_000)] + [job(0.9, 360_000) for _ in range(1_000)]
    assert history(jobs, "jobs").proposal.bimodal
    assert not history(jobs, "core-hours").proposal.bimodal


def test_the_proposal_is_a_line_for_the_settings_file() -> None:
    found = history(mixture(1, 5_000, (0.3, 0.04, 0.02), (0.7, 0.9, 0.05))).proposal
    assert tomllib.loads(found.toml) == {"ratio": {"io_below": found.threshold}}


def test_smoothing_keeps_the_sum_and_flat_distributions() -> None:
    weights = [float(place % 7) for place in range(BINS)]
    assert sum(smoothed(weights, 3.0)) == pytest.approx(sum(weights))
    assert smoothed([2.0] * BINS, 8.0) == pytest.approx([2.0] * BINS)


def test_histograms_with_one_or_no_bin_are_handled() -> None:
    one = [0.0] * BINS
    one[5] = 1000.0
    assert not propose(one, 1000, 0.055).bimodal
    assert not propose([0.0] * BINS, 1000, 0.0).bimodal


def test_quantiles_of_a_single_value_equal_it() -> None:
    assert quantile([0.3], 0.1) == quantile([0.3], 0.9) == 0.3
