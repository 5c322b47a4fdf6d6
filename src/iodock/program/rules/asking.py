"""Runs the rules in parallel. This is faster because most queries are small, and the engine uses only one
thread to plan a query."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from iodock.program.rules import one_off
from iodock.program.rules.base import Candidate, Facts, Rule
from iodock.program.rules.excluded import may_find
from iodock.program.store import Store

AT_ONCE = 2


def candidates_of(rules: Sequence[Rule], facts: Facts) -> list[list[Candidate]]:
    """Returns the candidates of each of RULES. If a rule raises an exception, this function raises it, and
    starts no further query."""
    pool = ThreadPoolExecutor(AT_ONCE, "rules")
    answers: list[Future[list[Candidate]]] = []
    try:
        with _uninterrupted() as pressed:
            for rule in rules:
                answers.append(pool.submit(_candidates, rule, facts))
        if pressed:
            signal.raise_signal(pressed[0])
        return [answer.result() for answer in answers]
    except BaseException:
        with _uninterrupted():
            _stop(answers, facts.store)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _candidates(rule: Rule, facts: Facts) -> list[Candidate]:
    settings = facts.settings.of_rule(rule.name, rule.settings)
    if not facts.has_calls:
        return list(rule.counters(facts, settings)) if rule.counters else []
    found = rule.find(facts, settings) if may_find(rule.name, facts, settings) else ()
    return [one_off.judged(facts, candidate) for candidate in found]


def _stop(answers: Sequence[Future[list[Candidate]]], store: Store) -> None:
    """Stops the queries of the rules, because the caller is about to close the store."""
    for answer in answers:
        answer.cancel()
    while wait(answers, timeout=0.02).not_done:
        store.engine.interrupt()


@contextmanager
def _uninterrupted() -> Iterator[list[int]]:
    """Holds back Ctrl-C while threads start, or while they end after an earlier Ctrl-C. Yields a list.
    Each SIGINT that arrives in this time is appended to it."""
    pressed: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)
