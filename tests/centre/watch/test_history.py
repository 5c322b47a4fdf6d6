"""Tests the history on the Now page after a restart: from the ledger, from observation, and from the
store."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path

from iodock.centre.portal.shown.page import Site
from iodock.centre.watch.history import together
from iodock.centre.watch.verdict import State
from iodock.centre.watch.watching import Spell, Watching
from made_verdicts import SECOND, suspect, verdict
from made_verdicts import Site as Answers
from played_centre import LIMITS, Played
from portal_site import Server, portal, with_tokens

HOUR = 3600 * SECOND


def rows(server: Server, table: str, role: str = "operator") -> list[dict[str, str]]:
    status, text, _ = server.get(f"/now?format=csv&table={table}", role)
    assert status == 200
    return list(csv.DictReader(io.StringIO(text)))


def spell(begin_h: float, end_h: float | None, state: State = "stall", **more: object) -> Spell:
    at = round((end_h or begin_h + 1) * HOUR)
    told = verdict(at, state, since_ns=round(begin_h * HOUR), **more)
    return Spell(told, None if end_h is None else at)


def kept(answers: Answers, hours: float) -> None:
    """Writes an overload of ten minutes, HOURS ago, into the ledger."""
    answers.now = time.time_ns() - round(hours * HOUR)
    answers.intervals(60, suspects=(suspect(name="training"),))
    answers.intervals(6, "healthy")


def test_a_restarted_collector_shows_earlier_episodes_in_its_history(tmp_path: Path) -> None:
    answers = Answers(tmp_path / "response")
    kept(answers, 50)
    kept(answers, 3)
    answers.restart()
    access, secrets = with_tokens(tmp_path)
    with portal(tmp_path / "store", access) as plain:
        watching = Watching(plain.collector.store)
    site = Site(watching=watching, responder=answers.responder)
    with portal(tmp_path / "other", access, site) as server:
        server.secrets = secrets
        first, second = rows(server, "history")
        assert (first["state"], first["server"], first["jobs"]) == ("overload", "mds01", "4711")
        assert 590 <= float(second["seconds"]) <= 610 and int(second["since"]) < int(first["since"])
        # A user sees that there was an overload, but only their own jobs.
        assert [row["jobs"] for row in rows(server, "history", "user")] == ["", ""]
        assert "server" not in rows(server, "history", "user")[0]
        assert "The last 30 days" in server.get("/now", "operator")[1]
    answers.responder.close()


def test_observed_episodes_are_reported_once(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    answers.now = 100 * HOUR
    answers.intervals(60)
    answers.intervals(6, "healthy")
    (episode,) = answers.responder.episodes(0)
    live = spell(99.9, 100.2, "overload")
    assert together([live], [episode]) == [live]
    # Entries of another server, of another time, or without samples are separate.
    others = [
        spell(99.9, 100.2, server="mds02"), spell(90, 91), spell(99.9, 100.2, "no-samples", suspects=())
    ]  # fmt: skip
    assert len(together(others, [episode])) == 4
    answers.responder.close()


def test_an_observed_episode_replaces_one_derived_from_the_store(tmp_path: Path) -> None:
    answers = Answers(tmp_path)
    answers.now = 100 * HOUR
    answers.intervals(60)
    answers.intervals(6, "healthy")
    (episode,) = answers.responder.episodes(0)
    learnt = Spell(spell(99.9, 100.2, suspects=()).verdict, round(100.2 * HOUR), is_learnt=True)
    (told,) = together([learnt], [episode])
    assert told.verdict.suspects and not told.is_learnt
    assert together([learnt], []) == [learnt]
    answers.responder.close()


def test_a_continuing_episode_is_reported_once_after_a_restart(tmp_path: Path) -> None:
    played = Played(tmp_path / "store", "overload")
    answers = Answers(tmp_path / "response")
    played.turn()
    for _ in range(14):
        played.sample()
        answers.responder.respond(played.watching.look(played.now), played.now)
    answers.restart()
    again = Watching(played.collector.store, limits=LIMITS)
    again.look(played.now)
    (episode,) = answers.responder.episodes(0)
    assert episode.server == "mds01" and not episode.is_over
    (told,) = [one for one in together(again.history(), [episode]) if one.verdict.server == "mds01"]
    assert told.end_ns is None
    answers.responder.close()
