"""Tests the page of jobs by their load on file servers: amounts, shares, episodes, and who may see which
job."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from iodock.centre.monitor.questions import heavy
from iodock.centre.monitor.questions.ids import JobIds
from iodock.centre.monitor.questions.spans import span
from iodock.centre.monitor.summaries import summarise
from iodock.centre.portal.shown.page import Site
from made_verdicts import Site as Answers
from made_verdicts import suspect
from played_centre import SECOND, Played
from portal_past import EVIL, Past
from portal_site import OPENED, OTHER, OTHER_ID, OWN, READ, STEPS, WRITTEN, Server, fill, portal, with_tokens

DAY = 86_400 * SECOND


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("heavy")
    access, secrets = with_tokens(folder)
    answers = Answers(folder / "response")
    answers.now = time.time_ns() - DAY
    for _ in range(2):
        answers.intervals(6, suspects=(suspect(OTHER), suspect(OWN)))
        answers.intervals(6, "healthy")
    answers.intervals(6, suspects=(suspect(OTHER),))
    with portal(folder / "store", access, Site(responder=answers.responder)) as server:
        server.secrets = secrets
        fill(server.collector)
        past = Past(server.collector)
        past.run("400", EVIL, 5, 100)
        past.run("500", "x" * 250, 4, 100)
        past.push()
        yield server
    answers.responder.close()


def rows(site: Server, words: str = "", role: str = "operator") -> list[dict[str, str]]:
    status, text, _ = site.get(f"/heavy?format=csv{words}", role)
    assert status == 200, text
    return list(csv.DictReader(io.StringIO(text)))


def test_heavy_jobs_are_listed_with_load_and_share(site: Server) -> None:
    told = {row["job"]: row for row in rows(site)}
    own, other = told[OWN], told[OTHER]
    assert int(own["opens"]) == 2 * STEPS * OPENED and int(other["opens"]) == 10 * STEPS * OPENED
    assert int(other["read_bytes"]) == 10 * STEPS * READ and int(own["write_bytes"]) == 2 * STEPS * WRITTEN
    assert float(own["metadata_share"]) == pytest.approx(2 / 12, abs=0.001)
    assert float(other["bytes_share"]) == pytest.approx(10 / 12, abs=0.001)
    assert (own["user"], other["user"], own["hosts"]) == ("root", OTHER_ID, "2")
    assert (other["episodes"], own["episodes"], told["400"]["episodes"]) == ("3", "2", "0")
    assert int(own["end_ts"]) - int(own["begin_ts"]) == pytest.approx(STEPS * 10 * SECOND, rel=0.1)
    # The metadata server counts jobs, and has no activity of this one.
    assert (told["400"]["opens"], told["400"]["metadata_share"]) == ("0", "")


def test_a_user_sees_only_the_own_jobs(site: Server) -> None:
    assert OTHER not in {row["job"] for row in rows(site, role="user")}
    assert OWN in {row["job"] for row in rows(site, role="user")}
    assert rows(site, f"&user={OTHER_ID}", "user") == []
    page = site.get("/heavy", "user")[1]
    assert OTHER not in page and OTHER_ID not in page and 'name="user"' not in page


def test_the_heaviest_jobs_are_sorted_and_filtered(site: Server) -> None:
    assert [row["job"] for row in rows(site, "&top=1")] == [OTHER]
    assert rows(site, "&sort=opens&order=up")[0]["job"] in (OWN, "400", "500")
    assert rows(site, "&sort=episodes")[0]["job"] == OTHER
    assert [row["job"] for row in rows(site, "&q=script")] == ["400"]
    assert {row["job"] for row in rows(site, "&user=root")} == {OWN, "400", "500"}
    assert rows(site, "&fs=other") == []
    for wrong in ("sort=write_rate", "range=15x", "sort=x", "at=servers"):
        assert site.get(f"/heavy?{wrong}", "operator")[0] == 400
    page = site.get("/heavy?sort=opens", "operator")[1]
    assert re.search(r'aria-sort="descending"><a class="sort" href="/heavy\?sort=opens', page)


@pytest.mark.whole
@pytest.mark.parametrize("sort", heavy.SORTS)
def test_the_heaviest_jobs_can_be_sorted_by_any_column(site: Server, sort: str) -> None:
    assert rows(site, f"&sort={sort}")


def test_hostile_job_names_are_plain_text(site: Server) -> None:
    page = site.get("/heavy", "operator")[1]
    assert "<script>alert" not in page and "x" * 2100 not in page and "x" * 30 in page


def test_the_page_of_heavy_jobs_is_in_japanese(site: Server) -> None:
    page = site.get("/heavy?lang=ja", "operator")[1]
    assert "ジョブがファイルサーバに与えた負荷" in page and "Load of jobs" not in page


def test_without_an_episode_log_the_column_is_left_out(tmp_path: Path) -> None:
    with portal(tmp_path) as server:
        assert "No agent has pushed anything yet" in server.get("/heavy")[1]
        fill(server.collector)
        (first, *_) = rows(server, role="")
        assert first["episodes"] == "" and first["opens"]
        assert "suspected</a>" not in server.get("/heavy")[1]


def test_shares_refer_to_the_requests_while_the_job_was_active(tmp_path: Path) -> None:
    """The test compares the shares with a sum over the rows within each job's time, with summaries and
    without."""
    played = Played(tmp_path, "healthy", jobs=8)
    played.write(4 * 3600, 60)
    collector, now = played.collector, played.now
    within = span(now - DAY, now, collector.store.catalogue)
    wanted = heavy.Wanted(most=10_000)
    before, total = heavy.heavy(collector.store, within, JobIds(), wanted)
    assert total == len(before) > 8
    # Activity on a login node belongs to no job.
    before = [row for row in before if row["user"]]
    collector.tend(now)
    assert summarise(collector.store, JobIds()) >= 0
    after, _ = heavy.heavy(collector.store, within, JobIds(), wanted)
    amounts = ("job", "metadata", "opens", "object_creates", "read_bytes", "bytes_share", "hosts")

    def told(rows: list[dict[str, object]]) -> dict[str, tuple[object, ...]]:
        return {str(row["job"]): tuple(row[name] for name in amounts) for row in rows if row["user"]}

    assert told(after).keys() == told(before).keys()
    for job, row in told(before).items():
        assert told(after)[job][:5] == row[:5] and told(after)[job][6] == row[6]
        # With steps of ten minutes, more requests count as simultaneous than with finer steps.
        assert (told(after)[job][5] or 0) <= (row[5] or 0) * 1.001  # type: ignore[operator]
    for row in before:
        sql = (
            "SELECT sum(read_bytes + write_bytes) FROM job_io WHERE source LIKE 'obdfilter%' "
            f"AND end_ts > {row['begin_ts']} AND begin_ts < {row['end_ts']}"
        )
        found = collector.store.table(sql, begin=0, end=1 << 62, resolution="fine")
        meanwhile = float(found.column(0)[0].as_py() or 0)
        # Steps are whole ten minutes here, so somewhat more counts as simultaneous.
        if not row["bytes"]:
            continue
        assert isinstance(row["bytes_share"], float) and isinstance(row["bytes"], float)
        assert row["bytes_share"] <= row["bytes"] / meanwhile * 1.001
        if int(str(row["end_ts"])) - int(str(row["begin_ts"])) > 7200 * SECOND:
            assert row["bytes_share"] == pytest.approx(row["bytes"] / meanwhile, rel=0.25)


def test_jobs_of_the_k_computer_have_the_published_figures(tmp_path: Path) -> None:
    """The job creates 84,000 files with 12 objects each, and an operator sees it in the list."""
    played = Played(tmp_path, "stall", nodes=None, jobid_name="%j")
    played.turn()
    played.write(1200)
    within = span(played.now - DAY, played.now, played.collector.store.catalogue)
    found, _ = heavy.heavy(played.collector.store, within, JobIds(), heavy.Wanted(sort="object_creates"))
    first = found[0]
    assert (first["job"], first["job_name"]) == (played.culprit(), "wide-stripes")
    assert first["opens"] == pytest.approx(84_672, rel=0.02)
    assert first["object_creates"] == pytest.approx(12 * 84_672, rel=0.02)
    assert json.dumps(first["seconds"]) and 1000 < float(str(first["seconds"])) <= 1090
