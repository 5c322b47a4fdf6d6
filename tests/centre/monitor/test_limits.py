"""Tests that a sender with far more samples than one machine can have must wait and is counted, and that
other senders are not delayed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

import pytest

from batches import COUNT, Entry, Part, frame
from collector_site import BEGIN, post, serving, written
from iodock import _native
from iodock.centre.monitor.access import Access, Role, Visitor, add_token, read_tokens
from iodock.centre.monitor.limits import Budget, Budgets, Refusal, sender_of
from iodock.centre.portal import door
from iodock.centre.portal.keeper import Room, _Together
from iodock.centre.store import MonitorStore
from iodock.shared.errors import RequestError
from iodock.shared.settings import AgentLimits, load

pytestmark = pytest.mark.whole

NOW = time.time_ns()
SMALL = AgentLimits(bytes_per_s=100, values_per_s=10, saved_s=10, names_per_s=1, names_at_once=50)


def test_a_senders_budget_refills_up_to_its_limit() -> None:
    budget = Budget(SMALL, now=0.0)
    assert budget.left(0.0) == (1000, 100, 50)
    # The last push may exceed the remaining budget.
    budget.spend((900, 110, 50))
    assert budget.left(0.0) is None
    assert budget.wait_s(0.0) == pytest.approx(1.1)
    assert budget.left(1.0) is None
    assert budget.left(1.5) == (250, 5, 1)
    assert budget.left(1000.0) == (1000, 100, 50)
    assert budget.is_full(1000.0)


def test_each_sender_has_its_own_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iodock.centre.monitor.limits._MOST_SENDERS", 10)
    budgets = Budgets(SMALL, lambda: 7.0)
    budgets.spend("a", (2000, 0, 0))
    for number in range(100):
        assert budgets.left(f"b{number}") == (1000, 100, 50)
    refusal = budgets.left("a")
    assert isinstance(refusal, Refusal)
    assert refusal.wait_s == pytest.approx(10.01)
    assert len(budgets._known) <= 11


def test_a_machine_has_one_name_as_a_sender() -> None:
    assert sender_of("nodes", "10.0.0.7") == "nodes 10.0.0.7"
    # A machine can use any of the 2**64 addresses of its IPv6 network, so the network identifies the sender.
    assert (
        sender_of("nodes", "2001:db8::1")
        == sender_of("nodes", "2001:db8::ffff:7")
        != sender_of("nodes", "::1")
    )
    access = Access(proxies=frozenset({"10.0.0.1"}))
    said = {"x-forwarded-for": "6.6.6.6, 10.0.0.9"}
    assert access.origin(said, "10.0.0.1") == "10.0.0.9"
    assert access.origin(said, "10.0.0.2") == "10.0.0.2"


def test_one_sender_does_not_fill_the_memory() -> None:
    room = Room(400)
    with room.some("greedy") as first, room.some("greedy") as second, room.some("other") as other:
        assert first(60) and not second(60) and second(40) and not first(1)
        assert room.is_greedy("greedy", 1)
        assert other(100) and not other(1)
    with room.some("greedy") as again:
        assert again(100)
    assert room._left == 400 and not room._taken


def test_disk_errors_reach_all_waiting_senders() -> None:
    answers: list[Exception | None] = [RuntimeError("not foreseen"), None]

    def sync() -> None:
        if answer := answers.pop(0):
            raise answer

    async def three() -> list[object]:
        together = _Together(sync)
        waiting = asyncio.gather(together.wait(), together.wait(), return_exceptions=True)
        failed = await asyncio.wait_for(waiting, 30)
        await asyncio.wait_for(together.wait(), 30)
        return list(failed)

    assert [str(failed) for failed in asyncio.run(three())] == ["not foreseen"] * 2


def settings(folder: Path, monkeypatch: pytest.MonkeyPatch, **limits: float) -> None:
    path = folder / "settings.toml"
    path.write_text("[agents]\n" + "".join(f"{name} = {value}\n" for name, value in limits.items()))
    monkeypatch.setenv("IODOCK_SETTINGS", str(path))


def flood(sequence: int, count: int, host: str = "flood") -> bytes:
    entries = [Entry(f"{sequence}-{number}", {("open", COUNT): 1}) for number in range(count)]
    return frame(sequence, [Part(NOW, entries)], host=host)


def test_a_flood_of_names_is_refused_without_affecting_other_senders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(tmp_path, monkeypatch, names_at_once=500, names_per_s=0.001)
    tokens = tmp_path / "tokens.toml"
    bad, good = (add_token(tokens, name, Role.AGENT) for name in ("bad", "good"))
    with serving(tmp_path / "store", "--tokens", tokens) as (url, process):
        assert post(url, flood(1, 100), Authorization=f"Bearer {bad}") == (200, {"kept": 1, "full": True})
        # The push has more batches than the budget allows, and the agent keeps the rest.
        many = b"".join(flood(number, 100) for number in range(2, 50))
        status, receipt = post(url, many, Authorization=f"Bearer {bad}")
        assert status == 200 and receipt["kept"] == 5
        for host in ("flood", "another"):
            status, answer = post(url, flood(6, 1, host), Authorization=f"Bearer {bad}")
            assert status == 429 and "more samples than one machine can have" in str(answer["error"])
        # Another token at the same address has its own budget.
        for number in range(1, 4):
            assert post(url, flood(number, 3, "oss07"), Authorization=f"Bearer {good}")[0] == 200
        process.terminate()
        assert process.wait(30) == 0
    losses = MonitorStore(tmp_path / "store").table("FROM losses", begin=0, end=1 << 62, resolution="fine")
    found = [row for row in losses.to_pylist() if row["name"] == "refused-samples"]
    assert {(row["source"], row["target"], row["detail"]) for row in found} == {
        ("collector", "bad 127.0.0.1", "more samples than one machine can have")
    }
    assert sum(row["count"] for row in found) == 2


def test_bytes_and_values_of_a_sender_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = tmp_path / "tokens.toml"
    secret = add_token(tokens, "nodes", Role.AGENT)
    for limit in ({"bytes_per_s": 1}, {"values_per_s": 1}):
        settings(tmp_path, monkeypatch, **limit)
        with serving(tmp_path / f"store-{len(limit)}-{min(limit)}", "--tokens", tokens) as (url, _):
            assert post(url, flood(1, 100), Authorization=f"Bearer {secret}")[0] == 200
            assert post(url, flood(2, 1), Authorization=f"Bearer {secret}")[0] == 429


def test_an_oversized_push_is_counted(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    secret = add_token(tokens, "nodes", Role.AGENT, host="oss07")
    with serving(tmp_path / "store", "--tokens", tokens) as (url, process):
        body = b"x" * (door.LONGEST_BYTES + 1)
        # The server may close the connection while the client sends the body.
        with contextlib.suppress(OSError):
            assert post(url, body, Authorization=f"Bearer {secret}")[0] == 413
        assert post(url, frame(1, [Part(NOW)], host="oss07"), Authorization=f"Bearer {secret}")[0] == 200
        process.terminate()
        assert process.wait(30) == 0
    losses = MonitorStore(tmp_path / "store").table("FROM losses", begin=0, end=1 << 62, resolution="fine")
    found = [(row["host"], row["detail"], row["count"]) for row in losses.to_pylist()]
    assert ("oss07", "an oversized push", 1) in found


def test_a_token_of_one_machine_cannot_send_for_another(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens.toml"
    secret = add_token(tokens, "oss07's", Role.AGENT, host="oss07")
    access = Access(read_tokens(tokens))
    assert access.visitor({"authorization": f"Bearer {secret}"}, "") == Visitor(Role.AGENT, host="oss07")
    with serving(tmp_path / "store", "--tokens", tokens) as (url, _):
        status, answer = post(url, frame(1, [Part(NOW)], host="mds01"), Authorization=f"Bearer {secret}")
        # The status must not be 400, which would make the agent discard the batch.
        assert (status, answer) == (403, {"error": '"mds01": this sender may not use this name'})
        assert post(url, frame(1, [Part(NOW)], host="oss07"), Authorization=f"Bearer {secret}")[0] == 200
    with pytest.raises(RequestError, match="only a token of role agent"):
        add_token(tokens, "x", Role.OPERATOR, host="oss07")


def test_limits_of_senders_can_be_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(tmp_path, monkeypatch, names_per_s=5)
    assert load().agents.names_per_s == 5
    settings(tmp_path, monkeypatch, names_per_s=0)
    with pytest.raises(RequestError, match="not a number above 0"):
        load()


def test_native_errors_distinguish_sender_and_collector(tmp_path: Path) -> None:
    intake = _native.MonitorIntake(tmp_path)
    whole, other = frame(1, [Part(BEGIN)]), frame(2, [Part(BEGIN)], host="oss02")
    taken = intake.take(b"no")
    assert (taken.refused, taken.kept, taken.spool) == (
        "not a push of samples: not a batch of samples",
        0,
        "",
    )
    # The collector has stored the batches before the invalid one, and counts their work.
    taken = intake.take(whole + b"no")
    assert taken.refused and (taken.kept, taken.full, taken.host) == (1, True, "oss01")
    assert taken.spool == (b"S" * 16).hex() and taken.work == (intake.take(whole).work[0], 1, 2)
    taken = intake.take(other, "oss01")
    assert taken.is_name_refused and taken.refused == '"oss02": this sender may not use this name'
    assert (taken.kept, taken.host) == (0, "")


def test_no_more_of_a_push_is_read_than_allowed(tmp_path: Path) -> None:
    intake = _native.MonitorIntake(tmp_path)
    many = [written(f"{job}", 7, BEGIN) for job in range(10)]
    frames = [frame(number, [Part(BEGIN + number, many)]) for number in range(1, 6)]
    first = intake.take(frames[0]).work
    # The batch has 31 values: the part, and ten entries with two values each. It has 12 names: the sender,
    # the target and ten jobs.
    assert first[1:] == (1 + 10 * 3, 1 + 1 + 10)
    # The same jobs add no new names, and a repeated batch adds nothing.
    assert intake.take(frames[1]).work[1:] == (31, 0)
    assert intake.take(frames[1]).work == (first[0], 0, 0)
    unlimited = 1 << 40
    for most in ((1, unlimited, unlimited), (unlimited, 1, unlimited)):
        assert intake.take(b"".join(frames), None, most).kept == (2 if most[0] == 1 else 3)
    long = frame(6, [Part(BEGIN, [written("x" * 640, 1, BEGIN)])])
    assert intake.take(b"".join([*frames, long])).work[2] == 11
