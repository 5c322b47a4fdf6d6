"""Tests which sender may push for which machine, whichever sender is first."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

from batches import Part, frame
from collector_site import BEGIN
from fake_agent import SPOOL, FakeAgent, answering
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.speakers import Names
from iodock.centre.monitor.targets import Target, target_of
from pulled_agents import made, pulled, stored, wait_for

BARE, OTHER = target_of("https://192.0.2.1", ""), target_of("https://192.0.2.2", "")
ITS, STRANGE = "1" * 32, "2" * 32
"""Spools."""


def named(*targets: Target, known: Mapping[str, Collection[str]] | None = None) -> Names:
    stored = known or {}
    return Names(targets, lambda machine: stored.get(machine, ()))


@pytest.mark.parametrize("said", ["oss01", "OSS01", "oss01.example.org"])
@pytest.mark.parametrize(
    "rightful",
    [
        target_of("https://oss01.example.org", ""),
        target_of("https://192.0.2.9", "", "oss01"),
        target_of("https://192.0.2.9", "", "oss01.example.org"),
    ],
    ids=["by its address", "listed", "listed with its domain"],
)
def test_a_configured_agent_name_cannot_be_used_by_another_agent(rightful: Target, said: str) -> None:
    names = named(BARE, rightful)
    if said.lower() not in rightful.own_names:
        assert names.why_not(BARE, said, ITS) == ""
        return
    assert "--pull-list" in names.why_not(BARE, said, ITS)
    own = rightful.name or said
    assert names.why_not(rightful, own, ITS) == ""
    # Later pushes have the same result.
    assert names.why_not(BARE, own, ITS) and not names.why_not(rightful, own, STRANGE)


def test_a_target_with_a_configured_name_has_no_other() -> None:
    listed, own = target_of("https://192.0.2.9", "", "oss01"), target_of("https://oss02.example.org", "")
    names = named(listed, own)
    assert names.why_not(listed, "oss03", ITS) and names.why_not(own, "oss03", ITS)
    assert not names.why_not(own, "oss02", ITS) and not names.why_not(own, "oss02.example.org", ITS)


def test_two_domains_do_not_share_a_short_name() -> None:
    one, two = target_of("https://oss01.a.example", ""), target_of("https://oss01.b.example", "")
    names = named(one, two)
    assert not names.why_not(one, "oss01", ITS)
    assert names.why_not(two, "oss01", ITS) and not names.why_not(two, "oss01.b.example", ITS)


def test_an_address_gets_the_first_free_name_that_it_reports() -> None:
    names = named(BARE, OTHER)
    assert not names.why_not(BARE, "oss01", ITS) and not names.why_not(BARE, "oss01", STRANGE)
    assert "it was 'oss01' before" in names.why_not(BARE, "oss02", ITS)
    assert "used by another one" in names.why_not(OTHER, "oss01", STRANGE)
    assert not names.why_not(OTHER, "oss02", STRANGE)


def test_an_address_cannot_take_the_name_of_another_spool() -> None:
    known = {"oss01": [ITS]}
    assert "--pull-list" in named(BARE, known=known).why_not(BARE, "oss01", STRANGE)
    assert not named(BARE, known=known).why_not(BARE, "oss01", ITS)
    # The collector trusts a sender that the site names in its settings.
    own = target_of("https://192.0.2.9", "", "oss01")
    assert not named(own, known=known).why_not(own, "oss01", STRANGE)


def test_an_agent_in_the_list_takes_precedence_over_an_earlier_one(tmp_path: Path) -> None:
    frames, total = made("oss01", 4)
    true, liar = FakeAgent("oss01", frames), FakeAgent("oss01", made("oss01", 9)[0])
    targets = (target_of(liar.url, ""), target_of(true.url, "", "oss01"))
    with answering(liar), pulled(tmp_path, *targets) as (collector, said):
        wait_for("the refusal", lambda: any("name after its address" in line for line in said))
        with answering(true):
            wait_for("its own", lambda: not true.frames)
            assert stored(collector) == {"oss01": total} and len(liar.frames) == 9


def test_an_address_does_not_identify_a_pushing_agent(tmp_path: Path) -> None:
    pusher = Collector(tmp_path)
    pusher.push(frame(1, [Part(BEGIN, [], full=True)], host="oss01", spool=b"P" * 16))
    pusher.flush()
    assert pusher.store.catalogue.spools == {"oss01": {(b"P" * 16).hex()}}
    del pusher
    liar = FakeAgent("oss01", made("oss01", 9)[0])
    with answering(liar), pulled(tmp_path, target_of(liar.url, "")) as (collector, said):
        wait_for("the refusal", lambda: any("used by another one" in line for line in said))
        assert stored(collector) == {} and len(liar.frames) == 9
        assert SPOOL.hex() not in collector.store.catalogue.spools["oss01"]
