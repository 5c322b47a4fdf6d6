"""Tests that several threads can query one store concurrently."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iodock.program import capture, rules
from iodock.program.diagnosis import diagnose
from iodock.program.rules import asking
from iodock.program.rules.base import Candidate, Facts
from iodock.program.store import Store
from iodock.shared.errors import QueryError

ENDLESS = "SELECT count(*) AS n FROM range(1000000) a, range(1000000) b WHERE (a.range + b.range) % 7 = 3"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    log = tmp_path / "log"
    lines = (f'7 10:00:00.{n:06} read(3, "x"..., 4096) = {n} <0.000010>\n' for n in range(900))
    log.write_text('7 10:00:00.000000 openat(AT_FDCWD, "/data/a", O_RDONLY) = 3 <0.00001>\n' + "".join(lines))
    capture.import_logs([str(log)], tmp_path / "run.iodock")
    with Store.open(tmp_path / "run.iodock") as opened:
        yield opened


def elsewhere(work: Callable[[], Any]) -> Any:
    """Returns the result of WORK, computed in another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_a_table_kept_by_one_thread_is_visible_to_all(store: Store) -> None:
    elsewhere(lambda: store.keep("few", "SELECT * FROM events WHERE bytes < 10"))
    assert store.rows("SELECT count(*) AS n FROM few") == [{"n": 10}]
    store.keep("few", "SELECT * FROM few WHERE bytes < 5")
    assert elsewhere(lambda: store.rows("SELECT count(*) AS n FROM few")) == [{"n": 5}]


def test_a_kept_table_replaces_the_stored_one_for_every_thread(store: Store) -> None:
    assert elsewhere(lambda: len(store.rows("FROM files"))) > 0
    store.keep("files", "SELECT * FROM files WHERE false")
    assert elsewhere(lambda: store.rows("FROM files")) == []


def test_results_of_many_threads_are_not_mixed(store: Store) -> None:
    def asked(number: int) -> int:
        found = store.rows(f"SELECT count(*) AS n, {number} AS number FROM events WHERE bytes < {number}")
        assert found[0]["number"] == number
        return int(found[0]["n"])

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(asked, range(300))) == list(range(300))


def test_an_interrupt_reaches_every_thread(store: Store) -> None:
    started = threading.Barrier(3)

    def asked() -> str:
        store.rows("SELECT 1")
        started.wait(60)
        with pytest.raises(QueryError) as caught:
            store.rows(ENDLESS)
        return str(caught.value)

    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(asked) for _ in range(2)]
        started.wait(60)
        while not all(answer.done() for answer in answers):
            store.engine.interrupt()
            time.sleep(0.01)
        assert all("nterrupt" in answer.result() for answer in answers)


def test_a_rule_that_fails_ends_the_diagnosis_with_its_error(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(facts: Facts, settings: object) -> list[Candidate]:
        facts.rows("SELECT nothing FROM nowhere")
        return []

    broken = tuple(replace(rule, find=failing, needs=()) for rule in rules.every())
    monkeypatch.setattr(rules, "every", lambda: broken)
    with pytest.raises(QueryError, match="nowhere"):
        diagnose(store)


def test_a_second_interrupt_waits_for_running_queries(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, ending, pressed = (threading.Event() for _ in range(3))

    def endless(facts: Facts, settings: object) -> list[Candidate]:
        asked.set()
        try:
            facts.rows(ENDLESS)
        finally:
            ending.set()
            pressed.wait(60)
        return []

    def press() -> None:
        for moment in (asked, ending):
            moment.wait(60)
            os.kill(os.getpid(), signal.SIGINT)
        pressed.set()

    slow = tuple(replace(rule, find=endless, needs=()) for rule in rules.every()[:4])
    monkeypatch.setattr(asking, "may_find", lambda *_: True)
    monkeypatch.setattr(rules, "every", lambda: slow)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    presser = threading.Thread(target=press)
    presser.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            diagnose(store)
        presser.join()
    finally:
        signal.signal(signal.SIGINT, before)
    # The interrupted query reads no further rows, so the next query runs.
    assert store.rows("SELECT 1 AS one") == [{"one": 1}]
    store.close()


def test_an_interrupt_while_rules_start_leaves_no_running_rule(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(facts: Facts, settings: object) -> list[Candidate]:
        os.kill(os.getpid(), signal.SIGINT)
        facts.rows(ENDLESS)
        return []

    slow = tuple(replace(rule, find=endless, needs=()) for rule in rules.every()[:4])
    monkeypatch.setattr(asking, "may_find", lambda *_: True)
    monkeypatch.setattr(rules, "every", lambda: slow)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            diagnose(store)
    finally:
        signal.signal(signal.SIGINT, before)
    store.close()


def test_damage_is_reported_while_another_thread_queries(store: Store) -> None:
    (part,) = (store.path / "events").glob("*.parquet")

    def busy() -> None:
        with pytest.raises(QueryError):
            store.rows(ENDLESS)

    with ThreadPoolExecutor(1) as pool:
        # The pool's thread opens the store's first connection.
        pool.submit(store.rows, "SELECT 1").result()
        answer = pool.submit(busy)
        content = part.read_bytes()
        part.write_bytes(content[:4] + b"x" * (len(content) // 2) + content[len(content) // 2 + 4 :])
        with pytest.raises(QueryError, match=part.name):
            store.rows("SELECT sum(hash(COLUMNS(*))) FROM events")
        while not answer.done():
            store.engine.interrupt()
            time.sleep(0.01)
        answer.result()


@pytest.mark.whole
def test_a_diagnosis_is_the_same_each_time(store: Store) -> None:
    first = diagnose(store)
    assert [diagnose(store) for _ in range(2)] == [first] * 2
