"""How much one sender may send: more than any machine has to tell, and little enough that others go on."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

from iodock.shared.settings import AgentLimits

Work = tuple[int, int, int]
"""Bytes of batches as they are unpacked; values; names (owners, targets, machines) that were not known
before."""
_MOST_SENDERS = 10_000
"""Whose budgets are kept; beyond that, those who have not sent for long are forgotten."""


@dataclass(frozen=True)
class Refusal:
    """What is not taken, and counted: who sent it, and why."""

    sender: str
    why: str
    wait_s: float = 0.0
    """When to come again; 0 if that is no use."""


class Budget:
    """What one sender has left: it grows by a rate, up to a bound, and each push takes from it. The last push
    before it is spent may take more than was left, so it can be below zero."""

    def __init__(self, limits: AgentLimits, now: float) -> None:
        """NOW: seconds of a clock that only goes forward."""
        self._rates = (limits.bytes_per_s, limits.values_per_s, limits.names_per_s)
        saved = limits.saved_s
        self._most = (saved * self._rates[0], saved * self._rates[1], limits.names_at_once)
        self._left = list(self._most)
        self._time = now

    def left(self, now: float) -> Work | None:
        """How much the next push may take; None: nothing yet."""
        self._refill(now)
        if min(self._left) < 1:
            return None
        return int(self._left[0]), int(self._left[1]), int(self._left[2])

    def spend(self, work: Work) -> None:
        """Takes what a push was."""
        self._left = [left - done for left, done in zip(self._left, work, strict=True)]

    def wait_s(self, now: float) -> float:
        """Until something is left."""
        self._refill(now)
        pairs = zip(self._left, self._rates, strict=True)
        return max((1 - left) / max(rate, 1e-9) for left, rate in pairs if left < 1)

    def is_full(self, now: float) -> bool:
        """Is it as if nothing had been sent?"""
        self._refill(now)
        return all(left >= most for left, most in zip(self._left, self._most, strict=True))

    def _refill(self, now: float) -> None:
        passed, self._time = now - self._time, now
        triples = zip(self._left, self._rates, self._most, strict=True)
        self._left = [min(most, left + rate * passed) for left, rate, most in triples]


class Budgets:
    """One for each sender."""

    def __init__(self, limits: AgentLimits, clock: Callable[[], float]) -> None:
        self._limits, self._clock = limits, clock
        self._known: dict[str, Budget] = {}

    def left(self, sender: str) -> Work | Refusal:
        """How much its next push may take."""
        now, budget = self._clock(), self._of(sender)
        if left := budget.left(now):
            return left
        return Refusal(sender, "more samples than one machine can have", budget.wait_s(now))

    def spend(self, sender: str, work: Work) -> None:
        """Takes what a push was."""
        self._of(sender).spend(work)

    def _of(self, sender: str) -> Budget:
        if sender not in self._known:
            self._forget()
            self._known[sender] = Budget(self._limits, self._clock())
        return self._known[sender]

    def _forget(self) -> None:
        """Of a sender with a full budget nothing need be known."""
        if len(self._known) >= _MOST_SENDERS:
            now = self._clock()
            self._known = {name: budget for name, budget in self._known.items() if not budget.is_full(now)}


def sender_of(token: str, address: str) -> str:
    """Who sends, as it is counted. One machine has all addresses of an IPv6 network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return f"{token} {address}".strip()
    if found.version == 6 and not found.is_loopback:
        address = str(ipaddress.ip_network((int(found), 64), strict=False))
    return f"{token} {address}".strip()
