"""Tests which users are affected: those with a job on the file system, according to a collector's store."""

from __future__ import annotations

from pathlib import Path

import pytest

from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.watch.sufferers import sufferers
from iodock.shared.errors import StoreError
from iodock.shared.response import Notices, Recipient
from made_verdicts import Site
from portal_site import OTHER_ID, OWN_USER, fill


def test_affected_users_are_found_by_name(tmp_path: Path) -> None:
    collector = Collector(tmp_path / "store")
    fill(collector)
    found = sufferers(collector.store, JobIds())
    assert set(found("lfs") or ()) == {OWN_USER, OTHER_ID}
    assert set(found("gfs") or ()) == set()
    # iodock sends no mail to a user unknown to this machine: a number is not an address.
    notices = Notices(to={"users": Recipient("users", "mail", "{user}@example.org")})
    site = Site(tmp_path / "response", notices=notices, sufferers=found)
    site.intervals(3)
    assert [letter.address for letter in site.sent] == [f"{OWN_USER}@example.org"]
    site.responder.close()


def test_an_unreadable_store_does_not_delay_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = Collector(tmp_path / "store")
    fill(collector)

    def damaged(*given: object, **named: object) -> None:
        raise StoreError("catalogue.json: damaged")

    monkeypatch.setattr(type(collector.store), "table", damaged)
    assert sufferers(collector.store, JobIds())("lfs") is None
