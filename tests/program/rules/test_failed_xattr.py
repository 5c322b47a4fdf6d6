"""Tests the rule `failed-xattr`: when it gives a finding, its count and cost, and when it gives none."""

from __future__ import annotations

from pathlib import Path

from diagnosing import diagnosed, of_rule
from iodock.program.store import Store
from metadata_log import Trace


def test_the_documented_query_for_missing_attributes_runs(tmp_path: Path) -> None:
    log = Trace()
    for number in range(1500):
        call = f'lgetxattr("/data/x{number}", "user.sum", 0x7f, 255)'
        log.call(call, "-1 ENODATA (No data available)", 200)
    path = log.imported(tmp_path)
    (found,) = of_rule(diagnosed(path), "failed-xattr")
    with Store.open(path) as opened:
        (row,) = opened.engine.user_query(found.query).to_pylist()
    assert (row["call"], row["errno"], row["count"]) == ("lgetxattr", "ENODATA", 1500)


def listing(log: Trace, usual_us: int, longest_us: int) -> None:
    log.call('execve("/usr/bin/ls", ["ls", "-l"], 0x7f /* 9 vars */)')
    for number in range(6904):
        name = f"/home/me/data/file{number}"
        log.call(f'lstat("{name}", {{st_mode=S_IFREG|0644, st_size=5, ...}})', "0", 23)
        for which in range(3):
            took = longest_us if number == 3000 and which == 1 else usual_us
            log.call(f'lgetxattr("{name}", "system.posix_acl_access", 0x0, 0)', "-1 ENODATA (No data)", took)


def test_a_slow_listing_is_reported_with_its_slowest_call(tmp_path: Path) -> None:
    """A case of NAOJ: 20,712 of 20,712 lgetxattr calls fail and take 5.5 of 6.3 s; the longest takes 0.72
    s."""
    log = Trace()
    listing(log, 233, 722_723)
    diagnosis = diagnosed(log.imported(tmp_path))
    asked, hung = diagnosis.worth_changing
    assert (asked.rule, hung.rule) == ("failed-xattr", "slow-call")
    assert (asked.evidence["count"], asked.evidence["asked"]) == (20_712, 20_712)
    assert asked.evidence["longest_ns"] == 722_723_000


def test_a_fast_listing_gives_no_finding(tmp_path: Path) -> None:
    log = Trace()
    listing(log, 12, 55)
    assert not diagnosed(log.imported(tmp_path)).worth_changing
