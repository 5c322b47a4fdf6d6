"""Tests that data about jobs and users that a site does not want to keep are not shown, and are deleted from
the disk."""

from __future__ import annotations

import time
from pathlib import Path

from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.rolling import DAY, Keep
from iodock.centre.portal.shown.page import Site
from iodock.centre.watch.watching import Watching
from iodock.shared.response import Privacy
from made_verdicts import Site as Answers
from made_verdicts import suspect
from played_centre import LIMITS, Played
from portal_events import events, push
from portal_past import Past
from portal_site import portal

NAME = "secret-project"


def rows(collector: Collector, table: str) -> int:
    found = collector.store.table(f"SELECT count(*) FROM {table}", begin=0, end=1 << 62, resolution="fine")
    return int(found.column(0)[0].as_py())


def on_disk(folder: Path, text: str) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and text.encode() in path.read_bytes()]


def test_job_names_are_neither_shown_nor_stored_if_disabled(tmp_path: Path) -> None:
    with portal(tmp_path, site=Site(names_jobs=False)) as server:
        past = Past(server.collector)
        for day in range(1, 8):
            past.run(f"10{day}", NAME, 24.0 * day, 600)
        past.run("100", NAME, 1, 600)
        past.push()
        pages = ("/jobs?range=7d", "/heavy", "/jobs/100")
        found = ("/jobs?range=7d&format=csv&q=", "/heavy?format=csv&q=")
        assert all(NAME in server.get(page)[1] for page in pages)
        assert all("100," in server.get(page + NAME)[1] for page in found)
        server.collector.store.shows_job_names = False
        assert not any(NAME in server.get(page)[1] for page in pages)
        assert not any("100," in server.get(page + NAME)[1] for page in found)
        # The next upkeep deletes the names.
        server.collector.keep = Keep(job_names=0)
        assert rows(server.collector, "job_names") == 8
        server.collector.tend(time.time_ns())
        assert rows(server.collector, "job_names") == 0 and rows(server.collector, "job_io") > 0
        assert on_disk(tmp_path / "job_names", NAME) == []


def test_suspects_have_no_job_names_if_disabled(tmp_path: Path) -> None:
    played = Played(tmp_path, "overload")
    played.watching = Watching(played.collector.store, limits=LIMITS, names_jobs=False)
    played.watching.look(played.now)
    played.turn()
    for _ in range(8):
        verdict = played.sample()
    assert verdict.suspects and {one.name for one in verdict.suspects} == {None}
    assert verdict.suspects[0].owner and verdict.suspects[0].nodes


def test_expired_events_are_removed(tmp_path: Path) -> None:
    with portal(tmp_path) as server:
        push(server, events())
        kept = rows(server.collector, "events")
        assert kept
        server.collector.keep = Keep(events=1)
        server.collector.tend(time.time_ns())
        assert rows(server.collector, "events") == kept
        server.collector.tend(time.time_ns() + 3 * DAY)
        assert rows(server.collector, "events") == 0


def test_expired_suspects_are_removed_from_the_file(tmp_path: Path) -> None:
    answers = Answers(tmp_path, privacy=Privacy(suspects_days=1, episodes_days=100))
    answers.intervals(6, suspects=(suspect(name=NAME, owner="somebody"),))
    answers.intervals(6, "healthy")
    assert on_disk(tmp_path, NAME)
    answers.responder.forget(answers.now + 2 * DAY)
    assert answers.responder.episodes(0)[0].suspects == ()
    answers.responder.close()
    assert on_disk(tmp_path, NAME) == [] and on_disk(tmp_path, "somebody") == []
