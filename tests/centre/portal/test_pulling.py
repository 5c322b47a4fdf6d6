"""Tests pulling from agents: their data count once, and faulty agents do not delay others."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from batches import Part, frame
from collector_site import SECOND, serving
from fake_agent import BAD, FakeAgent, answering, misbehaving
from iodock.centre.monitor.access import Access
from iodock.centre.monitor.collector import Collector
from iodock.centre.monitor.speakers import Names
from iodock.centre.monitor.targets import Shown, each_once, read_targets, target_of
from iodock.centre.portal import puller
from iodock.centre.portal.asking import NoRoom
from iodock.centre.portal.connections import OpenConnections
from iodock.centre.portal.keeper import Keeper
from iodock.centre.portal.puller import Puller, Pulling, pulling
from iodock.centre.portal.shown.page import Site
from iodock.cli.monitor_serve import _Serving
from iodock.shared.errors import RequestError
from iodock.shared.settings import AgentLimits, ConnectionLimits
from places import ROOT
from pulled_agents import made, pulled, stored, wait_for
from simulated import played

TLS = ROOT / "crates/iodock-agent/tests/fixtures/tls"


def losses(collector: Collector) -> set[tuple[str, str]]:
    collector.flush()
    rows = collector.store.table("FROM losses", begin=0, end=1 << 62, resolution="fine").to_pylist()
    return {(row["target"], row["detail"]) for row in rows if row["name"] == "refused-samples"}


def test_batches_are_pulled_and_acknowledged(tmp_path: Path) -> None:
    frames, total = made("oss01", 21)
    one = FakeAgent("oss01", frames)
    with answering(one), pulled(tmp_path, target_of(one.url, "")) as (collector, said):
        wait_for("the last is acknowledged", lambda: not one.frames)
        assert stored(collector) == {"oss01": total}
    assert one.asked[0] == {}
    # The acknowledged number grows, and the collector requests full data when it lacks some.
    kept = [asked["kept"] for asked in one.asked[1:]]
    assert kept == sorted(kept) and kept[-1] == 21 and said == []


def test_after_a_restart_repeated_batches_count_once(tmp_path: Path) -> None:
    frames, total = made("oss01", 12)
    for _ in range(3):
        # The new agent object has forgotten the acknowledgements, too.
        one = FakeAgent("oss01", frames)
        with answering(one), pulled(tmp_path, target_of(one.url, "")) as (collector, _):
            wait_for("the last is acknowledged", lambda one=one: not one.frames)
            assert stored(collector) == {"oss01": total}
        del collector


@pytest.mark.whole
def test_bad_agents_do_not_delay_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(puller, "GOOD_LANE", 2)
    monkeypatch.setattr(puller, "DOUBTFUL_LANE", 1)
    monkeypatch.setattr(puller, "ANSWER_S", 2.0)
    frames, total = made("oss01", 50)
    good = FakeAgent("oss01", frames, most=1)
    with contextlib.ExitStack() as stack:
        stack.enter_context(answering(good))
        bad = {what: stack.enter_context(misbehaving(*conduct)) for what, conduct in BAD.items()}
        bad |= {"more silent": stack.enter_context(misbehaving(*BAD["silent"])), "dead": "http://127.0.0.1:9"}
        targets = [target_of(url, "") for url in [*bad.values(), good.url]]
        collector, said = stack.enter_context(pulled(tmp_path, *targets))
        wait_for("the good one's", lambda: not good.frames)
        wait_for("all complaints", lambda: all(any(url in line for line in said) for url in bad.values()))
        # Pulling continues while the collector retries the faulty agents.
        asked = len(good.asked)
        wait_for("more questions", lambda: len(good.asked) > asked + 20)
        assert stored(collector) == {"oss01": total}
    assert all(line.startswith(("note: ", "over: ")) and line.isprintable() for line in said)


def alone(folder: Path, said: list[str]) -> tuple[Puller, puller._Agent]:
    """Returns a puller that does not run, and one of its agents."""
    target = target_of("http://127.0.0.1:9", "")
    keeper, names = Keeper(Collector(folder), AgentLimits(), 1, 100), Names([target], lambda _: ())
    wanted = Pulling((target,), Shown(), 60.0)
    return Puller(keeper, wanted, names, ssl.create_default_context(), said.append), puller._Agent(target)


def test_without_free_memory_the_agent_is_asked_again_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    one, asked = alone(tmp_path, said)

    async def no_room(_: object) -> bool:
        raise NoRoom

    monkeypatch.setattr(one, "_turn", no_room)
    waits = [asyncio.run(one._wait_after_turn(asked)) for _ in range(20)]
    assert all(0.5 <= wait <= 1.5 for wait in waits) and len(set(waits)) > 1
    assert asked.failures == 0 and not asked.is_doubtful
    assert said == [f"note: {asked.target}: there is no memory for the samples at the moment"]


def test_agents_are_not_queried_before_their_budget(tmp_path: Path) -> None:
    one, asked = alone(tmp_path, [])
    assert all(one._fail(asked, puller._Trouble("too much", 400.0)) >= 400.0 for _ in range(50))


def test_all_addresses_of_a_name_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = FakeAgent("oss01", made("oss01", 3)[0])
    port = agent.server_address[1]
    # The agent listens only on the second address.
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{last}", port)) for last in (2, 1)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *words, **more: found)
    target = target_of(f"http://localhost:{port}", "")
    with answering(agent), pulled(tmp_path, target) as (_, said):
        wait_for("samples", lambda: not agent.frames)
    assert said == []


def test_pulling_continues_if_its_output_is_closed(tmp_path: Path) -> None:
    good, tried = FakeAgent("oss01", made("oss01", 21)[0], most=1), list[str]()
    targets = (target_of("http://127.0.0.1:9", ""), target_of(good.url, ""))

    def closed(line: str) -> None:
        tried.append(line)
        raise OSError(5, "standard error is closed")

    with answering(good), pulling(
        Collector(tmp_path), Pulling(targets, Shown(), 0.05), AgentLimits(), closed
    ):  # fmt: skip
        wait_for("a complaint", lambda: tried)
        asked = len(good.asked)
        wait_for("samples", lambda: not good.frames and len(good.asked) > asked + 10)


def test_a_failure_of_pulling_is_reported_and_the_collector_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def mistaken(_: object) -> None:
        raise RuntimeError("a mistake")

    monkeypatch.setattr(Puller, "run", mistaken)
    with pulled(tmp_path, target_of("http://127.0.0.1:9", "")) as (_, said):
        wait_for("the end", lambda: not [one for one in threading.enumerate() if one.name == "pulling"])
    assert said == ["error: pulling has ended: RuntimeError('a mistake')"]


def test_errors_are_printed_with_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as door:
        room = OpenConnections(ConnectionLimits(), open_files=64)
        serving = _Serving(door, room, Access(), None, Site(), is_quiet=True)
        serving.tell("note: this is not told")
        serving.tell("error: this is")
    assert capsys.readouterr().err == "error: this is\n"


@pytest.mark.parametrize("said", ["oss01", "liar"])
def test_a_batch_with_the_name_of_another_agent_is_refused(tmp_path: Path, said: str) -> None:
    """The false name is in the header, or in the batches only."""
    frames, total = made("oss01", 4)
    true, liar = FakeAgent("oss01", frames), FakeAgent(said, made("oss01", 9)[0])
    targets = (target_of(true.url, "", "oss01"), target_of(liar.url, "", "liar"))
    why = '"oss01": this sender may not use this name'
    with answering(true, liar), pulled(tmp_path, *targets) as (collector, told):
        wait_for("its own", lambda: not true.frames)
        wait_for("the refusal", lambda: any(why in line.replace("'", '"') for line in told))
        wait_for("the count", lambda: losses(collector))
        assert {target for target, _ in losses(collector)} == {liar.url}
        assert stored(collector) == {"oss01": total}
        # The agent keeps its batches, since an administrator may correct the name later.
        assert not liar.set_aside and len(liar.frames) == 9


def test_an_address_without_a_configured_name_gets_a_unique_one(tmp_path: Path) -> None:
    one, two = FakeAgent("oss01", made("oss01", 4)[0]), FakeAgent("oss01", made("oss01", 4)[0])
    with answering(one, two), pulled(tmp_path, target_of(one.url, ""), target_of(two.url, "")) as (
        collector, said,
    ):  # fmt: skip
        wait_for("one of them", lambda: not one.frames or not two.frames)
        wait_for("the other", lambda: losses(collector))
        assert bool(one.frames) != bool(two.frames)
        assert any("this sender may not use this name" in line for line in said)


def test_an_invalid_batch_is_set_aside_and_later_ones_are_read(tmp_path: Path) -> None:
    frames, total = made("oss01", 6)
    ahead = frame(3, [Part(time.time_ns() + 7200 * SECOND)], host="oss01")
    frames[2] = (3, ahead)
    one = FakeAgent("oss01", frames, most=4)
    with answering(one), pulled(tmp_path, target_of(one.url, "")) as (collector, said):
        wait_for("the last is acknowledged", lambda: not one.frames)
        assert one.set_aside == [3] and stored(collector) == {"oss01": total}
        wait_for("the agent is well again", lambda: said[-1].startswith("over: "))
    assert "its clock is wrong" in said[0]


HOUR = 3600 * SECOND


@pytest.mark.parametrize(
    ("apart", "why"), [(-30 * HOUR, "about 30 hours behind"), (2 * HOUR, "about 2 hours ahead of")]
)
def test_batches_with_a_wrong_clock_are_reported_and_set_aside(tmp_path: Path, apart: int, why: str) -> None:
    one = FakeAgent("oss01", made("oss01", 3)[0])
    one.clock_ns = apart
    with answering(one), pulled(tmp_path, target_of(one.url, "")) as (collector, said):
        wait_for("all are set aside", lambda: one.set_aside == [1, 2, 3])
        text = f'"oss01": its clock is wrong, {why} the collector\'s'
        assert stored(collector) == {} and losses(collector) == {(one.url, text)}
    assert text in said[0] and not [line for line in said[1:] if line.startswith("note: ")]


def test_batches_kept_during_a_clock_error_arrive_with_the_right_time(tmp_path: Path) -> None:
    """Some frames of `made` are more than a day old."""
    frames, total = made("oss01", 3)
    one = FakeAgent("oss01", frames)
    one.clock_ns = -20 * 60 * SECOND
    with answering(one), pulled(tmp_path, target_of(one.url, "")) as (collector, said):
        wait_for("the last is acknowledged", lambda: not one.frames)
        assert stored(collector) == {"oss01": total} and said == []


def test_endless_senders_are_stopped_and_counted(tmp_path: Path) -> None:
    frames, _ = made("flood", 400)
    flood = FakeAgent("flood", frames, most=10)
    good = FakeAgent("oss01", made("oss01", 5)[0])
    limits = AgentLimits(values_per_s=0.001, saved_s=100_000)
    with answering(flood, good), pulled(
        tmp_path, target_of(flood.url, ""), target_of(good.url, ""), limits=limits
    ) as (collector, said):  # fmt: skip
        wait_for(
            "it is refused",
            lambda: (flood.url, "more samples than one machine can have") in losses(collector),
        )
        wait_for("the good one's", lambda: not good.frames)
        assert flood.frames
        assert any("more samples than one machine can have" in line for line in said)


def test_repeated_batches_are_reported(tmp_path: Path) -> None:
    one = FakeAgent("oss01", made("oss01", 3)[0])
    one.answer = lambda said: (one.asked.append(said), (one.frames[0][1], "yes"))[1]  # type: ignore[method-assign]
    with answering(one), pulled(tmp_path, target_of(one.url, "")) as (_, said):
        wait_for(
            "the complaint",
            lambda: any("the agent sends batches again that are already stored" in line for line in said),
        )
        asked = len(one.asked)
    assert asked < 50


def test_the_token_is_sent_only_to_agents(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("abc-123\n")
    token.chmod(0o600)
    right = FakeAgent("oss01", made("oss01", 3)[0], token="abc-123")
    wrong = FakeAgent("oss02", made("oss02", 3)[0], token="another")
    targets = (target_of(right.url, ""), target_of(wrong.url, ""))
    with answering(right, wrong), pulled(tmp_path / "s", *targets, shown=Shown(token)) as (_, said):
        wait_for("samples", lambda: not right.frames)
        wait_for("the refusal", lambda: said)
    assert said == [f"note: {wrong.url}: status 401: [no"]
    token.chmod(0o644)
    with pytest.raises(RequestError, match="other users may read it"):
        Shown(token).bearer()


def test_a_host_name_matches_with_and_without_its_domain() -> None:
    target = target_of("https://oss07.example.org", "")
    assert (target.port, str(target)) == (9846, "https://oss07.example.org:9846")
    assert target.may_be("oss07") and target.may_be("OSS07.example.org")
    assert not target.may_be("oss08") and not target.may_be("oss07.example.com") and not target.may_be("")
    assert target_of("https://192.0.2.7", "").may_be("any") is None
    named = target_of("https://192.0.2.7:1", "", "oss07")
    assert named.may_be("oss07") and not named.may_be("oss08")
    assert str(target_of("http://[::1]:5", "")) == "http://[::1]:5"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("oss07", "not an agent's address"),
        ("ftp://oss07", "not an agent's address"),
        ("https://", "not an agent's address"),
        ("https://oss07/metrics", "not an agent's address"),
        ("https://oss07?x", "not an agent's address"),
        ("https://oss07:99999", "out of range"),
        ("https://oss07:0", "not an agent's address"),
        ("https://user:secret@oss07", "a user or password"),
        ("http://oss07", "could be read on the way"),
        ("http://10.0.0.1:9846", "could be read on the way"),
        ("http://127.0.0.1.evil.example", "could be read on the way"),
        ("https://oss 07", "not an agent's address"),
    ],
)
def test_insecure_agent_addresses_are_refused(text: str, why: str) -> None:
    with pytest.raises(RequestError, match=why) as caught:
        target_of(text, "--pull")
    assert "secret" not in str(caught.value)


def test_the_list_of_agents_is_read_line_by_line(tmp_path: Path) -> None:
    path = tmp_path / "agents"
    path.write_text("# servers\n\nhttps://oss01:9846\nhttps://192.0.2.7  mds01\n")
    assert [(str(target), target.name) for target in read_targets(path)] == [
        ("https://oss01:9846", ""), ("https://192.0.2.7:9846", "mds01"),
    ]  # fmt: skip
    for text, why in (("https://a b c\n", "line 1: more than"), ("\nnothing\n", "line 2: nothing: not an")):
        path.write_text(text)
        with pytest.raises(RequestError, match=why):
            read_targets(path)
    for lines in ("https://a\nhttps://a:9846\n", "https://a x\nhttps://b x\n"):
        path.write_text(lines)
        with pytest.raises(RequestError, match="is given twice"):
            each_once(read_targets(path))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--pull", "http://192.0.2.1"], "could be read on the way"),
        (["--pull-ca", "a.pem"], "no agent is named"),
        (["--pull", "https://a", "--pull-cert", "a.pem"], "belong together"),
        (["--pull", "https://a", "--pull-ca", "missing.pem"], "No such file"),
        (["--pull", "https://a", "--pull-token", "missing"], "No such file"),
        (["--pull-list", "missing"], "No such file"),
        (["--pull", "https://a", "--pull", "https://a"], "is given twice"),
        (["--store", "prometheus://127.0.0.1:9", "--pull", "https://a"], "a Prometheus scrapes"),
    ],
)
def test_wrong_options_give_an_error(tmp_path: Path, options: list[str], why: str) -> None:
    command = [sys.executable, "-m", "iodock", "monitor", "serve", "--store", "s", "--listen", "127.0.0.1:0"]
    done = subprocess.run(
        [*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2 and why in done.stderr and "Traceback" not in done.stderr, done.stderr


@pytest.mark.whole
def test_a_real_agent_is_pulled_with_certificate_and_token(agent: Path, tmp_path: Path) -> None:
    """The agent requires a certificate and a token. A client with only one of them gets nothing."""
    tree = played(tmp_path / "centre", "healthy", 600, cleanup_s=0)
    name = sorted(path.name for path in tree.root.iterdir() if path.is_dir())[0]
    files = {}
    for wanted, content in (("token", b"abc-123"), ("server.key", None), ("client.key", None)):
        files[wanted] = tmp_path / wanted
        files[wanted].write_bytes(content or (TLS / wanted).read_bytes())
        files[wanted].chmod(0o600)
    command = [
        agent, "run", "--root", tree.root / name, "--listen", "127.0.0.1:0", "--interval", "0.1",
        "--spool", tmp_path / "spool", "--serve-spool", "--listen-token-file", files["token"],
        "--listen-cert", TLS / "server.pem", "--listen-key", files["server.key"],
        "--listen-ca", TLS / "authority.pem",
    ]  # fmt: skip
    process = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        url = next(line.split()[1] for line in process.stderr if "/metrics" in line).removesuffix("/metrics")
        assert url.startswith("https://127.0.0.1:")
        known = ["--pull-ca", TLS / "authority.pem", "--pull-every", "0.1", "--pull", url]
        own = ["--pull-cert", TLS / "client.pem", "--pull-key", files["client.key"]]
        for options, why in ((own, "status 401"), (["--pull-token", files["token"]], "note: https")):
            with serving(tmp_path / "refused", *known, *options) as (_, collector):
                assert collector.stderr
                assert why in next(line for line in collector.stderr if url in line)
        with serving(tmp_path / "store", *known, *own, "--pull-token", files["token"]) as (_, collector):
            state = tmp_path / "store/catalogue.json"
            wait_for("samples", lambda: name in state.read_text() if state.exists() else False)
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
