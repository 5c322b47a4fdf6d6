"""Tests episodes: what begins, changes and ends one, and what the ledger stores of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from iodock.centre.watch.audit import Audit
from iodock.centre.watch.episodes import Episode, advanced
from iodock.centre.watch.ledger import Ledger
from iodock.centre.watch.verdict import State
from iodock.shared.errors import StoreError
from iodock.shared.response import Privacy
from made_verdicts import EVERY_S, JOB, SECOND, START, Site, suspect, verdict

DAY = 86_400 * SECOND


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.responder.close()


def after(*states: tuple[State, int]) -> Episode | None:
    """Feeds verdicts on a server with these states, each for this many successive samples, and returns the
    episode."""
    found = None
    for number, (state, samples) in enumerate(states):
        found = advanced(found, verdict(START + number * EVERY_S * SECOND, state, samples))
        if found and found.is_over:
            return found
    return found


@pytest.mark.parametrize("state", ["healthy", "busy", "no-samples"])
def test_healthy_and_unknown_states_begin_no_episode(state: State) -> None:
    assert after((state, 1), (state, 100)) is None


@pytest.mark.parametrize("state", ["overload", "stall", "failover", "degraded"])
def test_an_unwell_state_begins_an_episode(state: State) -> None:
    found = after((state, 3))
    assert found and (found.state, found.begin_ns, found.end_ns) == (
        state,
        START - 2 * EVERY_S * SECOND,
        None,
    )


def test_an_episode_keeps_its_worst_state() -> None:
    found = after(("degraded", 1), ("overload", 1), ("stall", 1), ("overload", 1), ("failover", 1))
    assert found and (found.worst, found.state) == ("stall", "failover")


def test_missing_samples_do_not_end_an_episode() -> None:
    assert not after(("stall", 1), *[("no-samples", n) for n in range(1, 100)]).is_over  # type: ignore[union-attr]
    found = after(("stall", 1), ("healthy", 1), ("healthy", 2), ("no-samples", 9), ("healthy", 1))
    assert found and not found.is_over


def test_an_episode_ends_when_the_healthy_state_began() -> None:
    found = after(("stall", 1), ("busy", 1), ("healthy", 2), ("healthy", 3))
    assert found and found.end_ns == START + EVERY_S * SECOND


def test_an_older_verdict_does_not_change_an_episode() -> None:
    found = advanced(None, verdict(START, "stall"))
    assert advanced(found, verdict(START - 1, "healthy", 50)) is found
    assert advanced(found, verdict(START, "healthy", 50)) is found


def test_earlier_suspects_follow_the_current_ones() -> None:
    first = advanced(None, verdict(START, suspects=(suspect("1"), suspect("2"))))
    found = advanced(first, verdict(START + 1, suspects=(suspect("3"), suspect("2", share=0.1))))
    assert found and [(one.job, one.share) for one in found.suspects] == [("3", 0.9), ("2", 0.1), ("1", 0.9)]


def test_episodes_are_the_same_after_a_restart(site: Site) -> None:
    site.intervals(5)
    before = site.responder.episodes(0)
    site.restart()
    assert site.responder.episodes(0) == before and before[0].suspects[0].evidence[0].what == "opens"
    site.intervals(3)
    site.intervals(3, "healthy")
    found = site.responder.episodes(0)
    assert len(found) == 1 and found[0].is_over and found[0].begin_ns == before[0].begin_ns


def test_a_failed_round_is_repeated(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from iodock.centre.watch.notices import outbox

    def full(*given: object) -> None:
        raise StoreError("response.db: database or disk is full")

    site.intervals(2)
    with monkeypatch.context() as patch:
        patch.setattr(outbox, "put", full)
        for _ in range(3):
            with pytest.raises(StoreError):
                site.interval()
    assert site.sent == []
    site.intervals(3)
    assert [letter.recipient for letter in site.sent] == ["operators", "list", "owners"]


def test_frequent_changes_of_an_episode_are_saved_at_intervals(site: Site) -> None:
    seen = set()
    for number in range(30):
        site.interval(confidence=0.5 + number / 100)
        saved = site.responder.episodes(0)[0]
        seen.add(saved.seen_ns)
        assert site.now - saved.seen_ns < 60 * SECOND
        assert site.responder.open_episodes()[0].confidence == 0.5 + number / 100
    assert 4 <= len(seen) <= 8


def test_a_verdict_from_the_future_does_not_block_later_ones(site: Site) -> None:
    site.quiet()
    site.hear(verdict(site.now + 3600 * SECOND, "stall", 6))
    found = site.responder.episodes(0)[0]
    assert not found.is_over and found.begin_ns == site.now
    # The responder takes no action if the clock is wrong.
    assert site.statuses == []
    site.intervals(3, "healthy")
    assert site.responder.episodes(0)[0].is_over


def test_a_clock_that_is_set_back_does_not_block_verdicts(site: Site) -> None:
    site.intervals(4)
    site.wait(-3600)
    site.intervals(3, "healthy")
    assert site.responder.episodes(0)[0].is_over


def test_two_collectors_cannot_share_a_response_folder(site: Site) -> None:
    with pytest.raises(StoreError, match="in use by another collector"):
        Site(site.folder)


@pytest.mark.parametrize("damage", ["not a database", "cut", "later"])
def test_a_damaged_episode_log_gives_an_error_and_is_kept(tmp_path: Path, damage: str) -> None:
    site = Site(tmp_path)
    site.intervals(6)
    site.responder.close()
    path = tmp_path / "response.db"
    if damage == "later":
        import sqlite3

        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
    else:
        path.write_bytes(b"x" * 5000 if damage == "not a database" else path.read_bytes()[:9000])
    before = path.read_bytes()
    with pytest.raises(StoreError, match="version 99" if damage == "later" else "damaged"):
        Ledger(tmp_path)
    assert path.read_bytes() == before


def test_episodes_are_readable_by_their_owner_only(site: Site) -> None:
    site.intervals(6)
    names = {path.name for path in site.folder.iterdir()}
    assert "response.db" in names and any(name.startswith("audit-2027-01") for name in names)
    assert all(path.stat().st_mode & 0o077 == 0 for path in site.folder.iterdir())


def test_a_truncated_line_does_not_affect_other_lines(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    audit.write(START, "one", job="x\n\u202e\x00")
    path = next(tmp_path.iterdir())
    with path.open("ab") as file:
        file.write(b'{"at": "2027')
    audit.write(START, "two")
    audit.write(START, "three")
    assert [line["what"] for line in audit.lines()] == ["one", "two", "three"]
    assert next(audit.lines())["job"] == "x\n\u202e\x00"
    assert path.read_text().isascii() and len(path.read_text().splitlines()) == 4


def test_the_log_is_only_appended_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audit, flags = Audit(tmp_path), list[int]()
    opened = os.open
    monkeypatch.setattr(os, "open", lambda path, flag, *more: flags.append(flag) or opened(path, flag, *more))
    for number in range(3):
        audit.write(START, "x", n=number)
    assert len(flags) == 3 and all(flag & os.O_APPEND and not flag & os.O_TRUNC for flag in flags)


def test_expired_episodes_are_removed(tmp_path: Path) -> None:
    site = Site(tmp_path, privacy=Privacy(episodes_days=100, suspects_days=10, audit_days=100))
    site.quiet()
    site.intervals(6)
    site.intervals(3, "healthy")
    site.interval("stall", server="mds02")
    site.responder.forget(site.now)
    assert [len(one.suspects) for one in site.responder.episodes(0)] == [1, 1]
    site.wait(11 * 86_400)
    site.responder.forget(site.now)
    # The responder still needs the episode in progress.
    assert [(one.server, len(one.suspects)) for one in site.responder.episodes(0)] == [
        ("mds02", 1),
        ("mds01", 0),
    ]
    assert site.responder.actions()[0].owner is None
    assert "alice" not in json.dumps(
        [dict(row) for row in Ledger.read(site.responder._ledger, "SELECT * FROM outbox")]
    )
    site.wait(150 * 86_400)
    site.responder.forget(site.now)
    assert [one.server for one in site.responder.episodes(0)] == ["mds02"] and site.responder.actions() == []
    assert site.log() == [] and JOB not in str(sorted(tmp_path.iterdir()))
    site.responder.close()


def test_owners_are_notified_after_a_failed_round(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from iodock.centre.watch.telling import Teller

    def full(*given: object) -> None:
        raise StoreError("response.db: database or disk is full")

    site.intervals(2)
    with monkeypatch.context() as patch:
        patch.setattr(Teller, "ended", full)
        with pytest.raises(StoreError):
            site.interval()
    site.interval()
    assert [letter.recipient for letter in site.sent] == ["operators", "list", "owners"]
