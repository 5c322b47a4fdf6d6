"""Tests that the files of the simulated Lustre have the format of real releases: the simulation reproduces
lines of real servers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from iodock.simulation import forms
from iodock.simulation.counters import SECOND_NS, Tally
from iodock.simulation.jobs import Job
from iodock.simulation.scenarios import Release

# Release, kind, and a line of a real server's file.
REAL: tuple[tuple[Release, str, str], ...] = (
    (
        "2.5", "obdfilter",
        "  read_bytes:      { samples:           0, unit: bytes, min:       0, max:       0, "
        "sum:               0 }",
    ),
    (
        "2.5", "obdfilter",
        "  write_bytes:     { samples:       64575, unit: bytes, min:    4096, max: 4194304, "
        "sum:    215147593728 }",
    ),
    ("2.5", "obdfilter", "  punch:           { samples:           1, unit:  reqs }"),
    (
        "2.12", "obdfilter",
        "  read_bytes:      { samples:      937568, unit: bytes, min:     4096, max:  4194304, "
        "sum:       8039751680, sumsq:   7499746432253952 }",
    ),
    (
        "2.12", "obdfilter",
        "  read:            { samples:      937568, unit: usecs, min:       44, max:    57940, "
        "sum:        389295481, sumsq:       676291579771 }",
    ),
    (
        "2.15", "mdt",
        "  statfs:          { samples:        9372, unit: usecs, min:        8, max:       53, "
        "sum:           148887, sumsq:            2456573 }",
    ),
    (
        "2.15", "mdt",
        "  parallel_rename_file: { samples:           0, unit: usecs, min:        0, max:        0, "
        "sum:                0, sumsq:                  0 }",
    ),
    (
        "2.15", "obdfilter",
        "  read_bytes:      { samples:           0, unit: bytes, min:        0, max:        0, "
        "sum:                0, sumsq:                  0, hist: {  } }",
    ),
)  # fmt: skip
FIELDS = {
    "samples": "samples",
    "min": "smallest",
    "max": "largest",
    "sum": "sum",
    "sumsq": "sum_of_squares",
}


@pytest.mark.parametrize(("release", "kind", "line"), REAL)
def test_an_operation_has_the_format_of_its_lustre_release(release: Release, kind: str, line: str) -> None:
    operation = line.split(":")[0].strip()
    tally = Tally()
    for name, attribute in FIELDS.items():
        if number := re.search(rf"\b{name}: *([0-9]+)", line):
            setattr(tally, attribute, int(number[1]))
    assert line in forms.job_entry(release, kind, "24", {operation: tally}, 0, 0).splitlines()


def test_the_header_of_a_job_entry_has_the_format_of_its_lustre_release() -> None:
    updated = 1_721_048_534_873_002_069
    new = forms.job_entry("2.15", "mdt", ":988:ds88", {}, 1_720_767_442_368_619_499, updated)
    assert new.splitlines()[:4] == [
        '- job_id:          ":988:ds88"',
        "  snapshot_time:   1721048534.873002069 secs.nsecs",
        "  start_time:      1720767442.368619499 secs.nsecs",
        "  elapsed_time:    281092.504382570 secs.nsecs",
    ]
    old = forms.job_entry("2.5", "obdfilter", "24", {}, 0, 1_510_782_606 * SECOND_NS)
    assert old.splitlines()[:2] == ["- job_id:          24", "  snapshot_time:   1510782606"]


def test_request_sizes_are_counted_by_powers_of_two() -> None:
    tally = Tally()
    for size in (1, 2, 3, 512, 513, 1024, 4096, 1 << 20, (1 << 20) + 1):
        tally.add(1, size)
    entry = forms.job_entry("2.15", "obdfilter", "1", {"read_bytes": tally}, 0, 0)
    assert "hist: { 1: 1, 2: 1, 4: 1, 512: 1, 1K: 2, 4K: 1, 1M: 1, 2M: 1 } }" in entry


@pytest.mark.parametrize(
    ("job_id", "printed"),
    [
        ("11317854", "11317854"),
        ("kworker/86", "kworker/86"),
        ("a:b", '"a:b"'),
        ("@x", '"@x"'),
        ('my job "x"\n', r'"my\x20job\x20\x22x\x22\x0A"'),
        ("\udcff", r'"\xFF"'),
    ],
)  # fmt: skip
def test_job_ids_are_quoted_as_in_lustre_2_15(job_id: str, printed: str) -> None:
    assert forms.quoted(job_id) == printed


def test_sums_of_squares_overflow_as_in_the_kernel() -> None:
    tally = Tally()
    tally.add(2**40, 2**20)
    assert "sumsq:                  0" in forms.job_entry(
        "2.15", "obdfilter", "1", {"read_bytes": tally}, 0, 0
    )


def test_service_statistics_have_the_format_of_their_lustre_release() -> None:
    tally = Tally()
    tally.samples, tally.smallest, tally.largest = 171898, 3, 6638
    tally.sum, tally.sum_of_squares = 9524258, 703415796
    now = 1_716_295_737_288_815_113
    new = forms.stats("2.15", {"req_waittime": tally}, forms.SERVICE_UNITS, 1_715_712_429_574_034_579, now)
    assert new.splitlines() == [
        "snapshot_time             1716295737.288815113 secs.nsecs",
        "start_time                1715712429.574034579 secs.nsecs",
        "elapsed_time              583307.714780534 secs.nsecs",
        "req_waittime              171898 samples [usecs] 3 6638 9524258 703415796",
    ]
    old = forms.stats("2.5", {"req_waittime": tally, "open": tally}, forms.SERVICE_UNITS, 0, now)
    assert old.splitlines() == [
        "snapshot_time             1716295737.288815 secs.usecs",
        "req_waittime              171898 samples [usec] 3 6638 9524258 703415796",
        "open                      171898 samples [reqs]",
    ]


def test_job_ids_follow_the_jobid_name_pattern() -> None:
    job = Job(11317854, "user01", 17001, "cfd-1", "cfd", ("r01c01", "r01c02"), 0, 1)
    outside = replace(job, number=None, name="rsync", nodes=("login01",))
    assert job.ids("%j") == ("11317854",)
    assert job.ids("%j:%u:%H") == ("11317854:17001:r01c01", "11317854:17001:r01c02")
    assert outside.ids("%j:%u:%H") == (":17001:login01",)
    assert outside.ids("%j") == ("rsync.17001",)
