"""Tests a job's digest: its content, its readers, its forms, and its sources."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from data_faults import made, small_reads
from in_process import iodock, printed
from iodock.centre.portal.shown.page import Site
from iodock.centre.watch.episodes import Episode
from iodock.centre.watch.verdict import Evidence, State, Suspect
from portal_past import EVIL, GB, HOUR, Past
from portal_site import OTHER_ID, SECOND, Server, fill, portal, with_tokens

SLOW, SLOW_S = "100", 1860
TIMES = (600, 620, 590, 605, 610, 615)


def episode(begin: int, end: int, state: State = "overload", **more: object) -> Episode:
    values = {
        "file_system": "lfs", "server": "mds01", "kind": "metadata", "begin_ns": begin, "state": state,
        "worst": state, "seen_ns": end, "confidence": 0.9, "samples": 9, "end_ns": end, **more,
    }  # fmt: skip
    return Episode(**values)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serves past runs, and a metadata server that was overloaded for 20 minutes of the slow run, in two
    episodes, one inside the other."""
    folder = tmp_path_factory.mktemp("digests")
    access, secrets = with_tokens(folder)
    episodes: list[Episode] = []
    with portal(folder / "store", access, Site(episodes=lambda begin, end: episodes)) as server:
        server.secrets = secrets
        past = Past(server.collector)
        for day, seconds in enumerate(TIMES, 1):
            past.run(f"10{day}", "ocean", 24.0 * day, seconds, GB + day)
            past.run(f"30{day}", "ocean", 24.0 * day + 2, 60, GB, OTHER_ID)
        past.run(SLOW, "ocean", 3, SLOW_S)
        past.run("200", EVIL, 5, 100)
        past.run("500", "", 7, 100)
        past.run("120", "ocean", 0.6, 1900)
        past.run("700", "tide", 30, 3000)
        past.run("700", "tide", 5, 600, GB // 2)
        past.run("710", "tide", 9, 120)
        past.run("710", "tide", 9 - 150 / 3600, 300, GB // 2)
        begin = past.now - 3 * HOUR
        minute = 60 * SECOND
        evidence = (Evidence("creates", 9e3, None, "1/s"),)
        episodes += [
            episode(begin - 10 * minute, begin + 20 * minute, suspects=(Suspect("500", 0.5, 0.9, evidence),)),
            episode(begin + 5 * minute, begin + 9 * minute, server="oss01"),
            episode(begin, begin + 20 * minute, file_system="other"),
            episode(past.now - 7 * HOUR, past.now - 6 * HOUR, "degraded", worst="overload",
                    suspects=(Suspect("500", 0.5, 0.9, evidence), Suspect("301", 0.9, 0.9, evidence))),
        ]  # fmt: skip
        past.push()
        yield server


def digest(site: Server, job: str, role: str = "operator", form: str = "text", lang: str = "en") -> str:
    status, text, _ = site.get(f"/digests/{job}?format={form}&lang={lang}", role)
    assert status == 200, text
    return text


def document(site: Server, job: str, role: str = "operator") -> dict[str, object]:
    found: dict[str, object] = json.loads(digest(site, job, role, "json"))
    return found


def test_the_digest_of_a_slow_job_gives_the_reason(site: Server) -> None:
    first, *lines = digest(site, SLOW).splitlines()
    usual = median(TIMES)
    assert first == (
        f"iodock: Job 100 (ocean) of root: {SLOW_S / usual:.1f} times slower than usual; "
        "lfs was overloaded for 20 min of 31 min"
    )
    assert any(line.startswith("  File servers: read at least 954 MiB in 1 request") for line in lines)
    assert any("6 earlier runs with about the same I/O volume took 10 min (median" in line for line in lines)
    assert "Run the job again before you change the program" in "".join(lines)
    assert lines[-1].startswith("  For the help desk: iodock bundle 100@20")


def test_the_json_form_has_numbers_for_programs(site: Server) -> None:
    found = document(site, SLOW)
    assert found["schema"] == "iodock-digest-1" and found["users"] == ["root"] and found["over"] is True
    compared = found["compared"]
    assert isinstance(compared, dict)
    assert (compared["verdict"], compared["runs"], compared["usual_s"]) == ("slower", 6, median(TIMES))
    assert compared["times"] == pytest.approx(SLOW_S / median(TIMES))
    assert found["servers"] == [
        {"file_system": "lfs", "state": "overload", "is_all": True, "seconds": 1200.0, "by_clients": False}
    ]
    (counted,) = found["counted"]  # type: ignore[misc]
    # No source reported metadata and writes, so they are unknown and not zero.
    assert (counted["read_bytes"], counted["metadata"], counted["exact"]) == (GB, None, False)
    assert found["recorded"] is None


def test_all_server_states_during_a_job_are_mentioned(site: Server) -> None:
    text = digest(site, "500")
    assert "lfs was in trouble for 100 s of 100 s, at worst overloaded" in text
    # The job has no name, so iodock cannot compare it with other runs.
    assert "usual" not in text and document(site, "500")["compared"] is None


def test_only_owners_of_suspects_get_advice(site: Server) -> None:
    assert "Write fewer and larger files" in digest(site, "500", "user")
    assert "Write fewer and larger files" not in digest(site, SLOW)


def test_a_running_job_has_a_preliminary_digest(site: Server) -> None:
    text = digest(site, "120")
    assert "so far 3.1 times the usual time" in text and "Active: from 20" in text


def test_too_few_earlier_runs_give_no_verdict(site: Server) -> None:
    first, *lines = digest(site, "102").splitlines()
    assert first == "iodock: Job 102 (ocean) of root"
    assert any("five are needed to compare" in line for line in lines)


def test_a_digest_is_in_japanese(site: Server) -> None:
    text = digest(site, SLOW, lang="ja")
    assert text.startswith(
        "iodock: root のジョブ 100（ocean）: 通常の 3.1 倍の時間がかかりました、lfs は 31 min のうち"  # noqa: RUF001
    )
    assert "高負荷状態でした" in text and "iodock bundle 100@" in text


def test_a_user_gets_no_digest_of_another_user(site: Server) -> None:
    assert digest(site, SLOW, "user") == digest(site, SLOW)
    there, _, _ = site.get("/digests/301", "user")
    status, text, _ = site.get("/digests/999", "user")
    assert (there, status, text) == (404, 404, "iodock: you have no such job\n")
    assert site.get("/digests/301", "operator")[0] == 200
    for role in ("", "agent"):
        status, text, headers = site.get(f"/digests/{SLOW}", role)
        assert (status, text, headers["www-authenticate"]) == (401, "iodock: a token is needed\n", "Bearer")


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_hostile_names_are_plain_text_in_a_digest(site: Server, form: str) -> None:
    text = digest(site, "200", form=form)
    assert "\x1b" not in text
    if form == "text":
        assert len([line for line in text.splitlines() if not line.startswith("  ")]) == 1
    if form == "json":
        assert json.loads(text)["name"].endswith("=cmd")
    if form == "html":
        assert "<script" not in text and "&lt;script&gt;" in text


def test_the_digest_page_loads_no_other_resource(site: Server) -> None:
    status, text, headers = site.get(f"/digests/{SLOW}?format=html", "user")
    assert status == 200 and text.startswith("<!DOCTYPE html>") and "http" not in text.split("<body")[1]
    assert "default-src 'none'" in text and "unsafe" not in headers["content-security-policy"]


@pytest.mark.parametrize(
    "job", ["%00", "..", "'%20OR%201=1%20--", "9" * 5000, "1@2@3", "100@20261399T000000Z", "%ff", "@"]
)
@pytest.mark.parametrize("role", ["operator", "user"])
def test_invalid_job_ids_are_refused(site: Server, job: str, role: str) -> None:
    status, text, _ = site.get(f"/digests/?id={job}", role)
    assert status in (400, 404) and text.startswith("iodock: ") and text.count("\n") == 1


def test_invalid_parameters_are_refused_in_one_line(site: Server) -> None:
    for words in ("format=csv", "lang=xx", "nonsense=1", "id=1&id=2"):
        status, text, _ = site.get(f"/digests/{SLOW}?{words}", "user")
        assert status == 400 and text.count("\n") == 1, words


def test_the_id_of_a_digest_identifies_one_run_of_the_job(site: Server) -> None:
    own = str(document(site, SLOW)["id"])
    assert document(site, own)["job"] == SLOW
    other = f"{SLOW}@{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime(time.time() - 40 * 86_400))}"
    assert site.get(f"/digests/{other}", "operator")[0] == 404


def later(site: Server, hours: float, job: str = "700") -> str:
    """Returns the time HOURS after the job first began, in the form of an id."""
    begin = int(str(document(site, job)["begin_ts"]))
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(begin / SECOND + hours * 3600))


def test_digest_covers_the_last_run_of_a_restarted_job(site: Server) -> None:
    last = document(site, f"700@{later(site, 25)}")
    (counted,) = last["counted"]  # type: ignore[misc]
    assert counted["read_bytes"] == GB // 2 and last["seconds"] == pytest.approx(600, abs=60)
    # iodock compares only the last run of the job.
    assert last["compared"]["seconds"] == pytest.approx(600, abs=60)  # type: ignore[index]
    assert last["earlier_ts"] is not None and "was used before, since 20" in json.dumps(last["text"])
    first = document(site, f"700@{later(site, 0)}")
    assert first["begin_ts"] == last["earlier_ts"]
    # The start time is from Slurm.
    status, text, _ = site.get(f"/digests/?id=700@{later(site, 25)}&again=2&written=690_7", "operator")
    assert status == 200 and text.startswith("iodock: Job 690_7 (tide) of root")
    assert "has restarted this job 2 times. Only its last run is reported." in text
    assert f"iodock bundle 700@{later(site, 25)[:8]}" in text
    # The collector has no data of that run yet.
    assert site.get(f"/digests/?id=700@{later(site, 29.5)}&again=3", "operator")[0] == 404


def test_a_run_that_ended_half_a_minute_before_does_not_count(site: Server) -> None:
    begin = later(site, 150 / 3600, "710")
    status, text, _ = site.get(f"/digests/?id=710@{begin}&again=1&format=json", "operator")
    (counted,) = json.loads(text)["counted"]
    assert status == 200 and counted["read_bytes"] == GB // 2


@pytest.mark.parametrize(
    "words", ["again=-1", "again=x", "again=99999", "written=<b>", "written=7", "written=1_2_3"]
)
def test_impossible_facts_of_a_scheduler_are_refused(site: Server, words: str) -> None:
    status, text, _ = site.get(f"/digests/{SLOW}?{words}", "operator")
    assert status == 400 and text.startswith("iodock: ") and text.count("\n") == 1


def test_digest_lists_kinds_of_operations(tmp_path: Path) -> None:
    with portal(tmp_path / "store") as server:
        fill(server.collector)
        text = digest(server, "700", "")
        assert "read 38.1 MiB in 40 requests, wrote 76.3 MiB in 80 requests" in text
        assert "1,200 metadata operations (open 1,200)" in text and "at least" not in text


def run(*words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = iodock("monitor", "digest", *words, HOME="/nonexistent", LANG="C")
    assert done.returncode == status, done.stderr
    return done


def test_the_command_gets_the_digest_from_a_portal(site: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(site.secrets["user"])
    token.chmod(0o600)
    place = ("--portal", site.url, "--token-file", token)
    assert run(SLOW, *place).stdout == digest(site, SLOW)
    page = tmp_path / "job.html"
    run(SLOW, *place, "-o", page, "--lang", "ja")
    assert page.read_text() == digest(site, SLOW, "user", "html", "ja")
    assert json.loads(run(SLOW, *place, "--json").stdout) == document(site, SLOW)
    refused = run("301", *place, status=1)
    assert refused.stdout == "" and refused.stderr.startswith("error: http://127.0.0.1")
    assert "you have no such job" in refused.stderr
    token.chmod(0o644)
    assert "other users may read it" in run(SLOW, *place, status=2).stderr


def test_array_tasks_are_found_under_their_own_number(site: Server) -> None:
    place = ("--store", site.collector.store.folder)
    assert "-o JobIDRaw -j 700_3" in run("700_3", *place, status=1).stderr
    assert "JobIDRaw" not in run("7003", *place, status=1).stderr


def test_the_command_reports_errors_of_a_portal(site: Server) -> None:
    assert "a token is needed" in run(SLOW, "--portal", site.url, status=1).stderr
    assert "does not answer" in run(SLOW, "--portal", "http://127.0.0.1:9", status=1).stderr
    assert "no monitor was given" in run(SLOW, status=2).stderr
    for address in ("ftp://x", "http://a:b@c", "nonsense", "http://[::1"):
        assert run(SLOW, "--portal", address, status=2).stderr.startswith("error: --portal")


def test_the_command_reads_a_store_and_its_episodes(site: Server, tmp_path: Path) -> None:
    from iodock.centre.watch import episode_rows
    from iodock.centre.watch.ledger import Ledger

    folder = site.collector.store.folder
    without = run(SLOW, "--store", folder, "--json").stdout
    assert json.loads(without)["servers"] is None and json.loads(without)["headline"] == (
        "3.1 times slower than usual"
    )
    ledger = Ledger(tmp_path / "response")
    begin = json.loads(without)["begin_ts"]
    with ledger.writing() as connection:
        episode_rows.save(connection, episode(begin - HOUR, begin + 600 * SECOND, "stall"))
    # The collector may have the store open at the same time.
    text = run(SLOW, "--store", folder, "--response", tmp_path / "response").stdout
    assert "lfs was stalled for 10 min of 31 min" in text.splitlines()[0]
    ledger.close()
    assert "no such job is known" in run("999", "--store", folder, status=1).stderr
    assert run(SLOW, "--store", folder, "--response", tmp_path / "none", status=2)


def bundle(folder: Path, *words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = iodock("bundle", *words, cwd=folder, HOME="/nonexistent", LANG="C")
    assert done.returncode == status, done.stderr
    return done


def packed(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as opened:
        files = {one.name.partition("/")[2]: opened.extractfile(one) for one in opened.getmembers()}
        return {name: file.read().decode() for name, file in files.items() if file}


@pytest.mark.parametrize("where", ["portal", "store"])
def test_bundle_of_a_digest_contains_the_digest_and_its_runs(
    site: Server, tmp_path: Path, where: str
) -> None:
    own = str(document(site, SLOW)["id"])
    token = tmp_path / "token"
    token.write_text(site.secrets["user"])
    token.chmod(0o600)
    folder = site.collector.store.folder.resolve()
    place = ("--portal", site.url, "--token-file", token) if where == "portal" else ("--store", folder)
    archive = tmp_path / bundle(tmp_path, own, *place).stdout.strip()
    found = packed(archive)
    assert json.loads(found["digest.json"])["id"] == own and "3.1 times slower" in found["digest.txt"]
    assert found["digest.html"].startswith("<!DOCTYPE html>") and "totals.csv" in found["READ-ME.txt"]
    rows = list(csv.reader(io.StringIO(found["runs.csv"])))
    assert len(rows) >= 7 and not any("301" in row for row in rows)
    assert "exists" in bundle(tmp_path, own, *place, status=1).stderr
    bundle(tmp_path, own, *place, "--force")


def test_hostile_names_are_plain_text_in_a_bundle(site: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(site.secrets["user"])
    token.chmod(0o600)
    own = str(document(site, "200")["id"])
    archive = tmp_path / bundle(tmp_path, own, "--portal", site.url, "--token-file", token).stdout.strip()
    found = packed(archive)
    assert {"READ-ME.txt", "digest.txt", "digest.json", "digest.html", "totals.csv"} <= found.keys()
    for name, text in found.items():
        assert "/" not in name and "\x1b" not in text, name
    assert "<script" not in found["digest.html"]


def test_no_interface_gives_a_user_the_digest_of_another(site: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(site.secrets["user"])
    token.chmod(0o600)
    began = str(document(site, "301")["id"])
    for job in ("301", began):
        for words in ("", "&again=1", "&written=1_2", "&only=slower"):
            assert site.get(f"/digests/?id={job}{words}", "user")[0] == 404
            assert site.get(f"/digests/?id={job}{words}", "operator")[0] in (200, 204, 404)
        refused = run(job, "--portal", site.url, "--token-file", token, status=1)
        assert refused.stdout == "" and "ocean" not in refused.stderr
        assert site.get(f"/jobs/?id={job.partition('@')[0]}&format=csv&table=totals", "user")[0] == 404


def test_digests_that_can_not_be_packed_give_an_error(site: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(site.secrets["user"])
    token.chmod(0o600)
    place = ("--portal", site.url, "--token-file", token)
    other = str(document(site, "301")["id"])
    assert "you have no such job" in bundle(tmp_path, other, *place, status=1).stderr
    assert "is for recordings" in bundle(tmp_path, other, "--anonymous", status=2).stderr
    assert "no monitor was given" in bundle(tmp_path, other, status=2).stderr
    assert "is not an id from a digest" in bundle(tmp_path, "run.iodock", *place, status=2).stderr
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def recording(folder: Path, job: str) -> Path:
    """Returns a store with small reads, recorded in a job."""
    store = made(small_reads, folder)
    manifest = store / "manifest.json"
    raw = json.loads(manifest.read_text())
    raw.pop("checksum", None)
    manifest.write_text(json.dumps({**raw, "job": {"id": job}}))
    return store


@pytest.mark.usefixtures("few_rules")
def test_a_digest_with_a_recording_has_its_io_share_and_findings(site: Server, tmp_path: Path) -> None:
    store, folder = recording(tmp_path, SLOW), site.collector.store.folder
    found = json.loads(run(SLOW, "--store", folder, "--run", store, "--json").stdout)
    own = json.loads(printed("diagnose", store, "--json"))
    first = own["findings"][0]
    assert found["recorded"]["io_share"] == own["verdict"]["io_share"] is not None
    assert found["recorded"]["finding"]["title"] == first["title"]
    assert found["advice"] == first["advice"][0]["text"]
    text = run(SLOW, "--store", folder, "--run", store).stdout
    assert f"Largest finding: {first['title']}" in text and f"Advice: {found['advice']}" in text
    assert "Run the job again" not in text
    # The portal does not know the recording, so the command adds the recording's result to the portal's
    # answer.
    token = tmp_path / "token"
    token.write_text(site.secrets["user"])
    token.chmod(0o600)
    place = ("--portal", site.url, "--token-file", token, "--run", store)
    assert json.loads(run(SLOW, *place, "--json").stdout)["recorded"] == found["recorded"]
    text = run(SLOW, *place).stdout
    assert text.startswith(digest(site, SLOW, "user")) and f"Largest finding: {first['title']}" in text
    assert "is available for text and JSON only" in run(SLOW, *place, "--format", "html", status=2).stderr


@pytest.mark.usefixtures("few_rules")
def test_a_recording_of_another_job_is_refused(site: Server, tmp_path: Path) -> None:
    store, folder = recording(tmp_path, "101"), site.collector.store.folder
    said = run(SLOW, "--store", folder, "--run", store, status=2).stderr
    assert f"is a recording of job 101, not of {SLOW}" in said
