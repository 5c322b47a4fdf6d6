"""Limits how much data one sender may push. The limits are higher than any machine needs, and low enough that
one sender does not slow down the others."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

from iodock.shared.settings import AgentLimits

Work = tuple[int, int, int]
"""Describes an amount of data: bytes of batches after decompression, number of values, and number of new
names (of owners, targets and machines)."""
_MOST_SENDERS = 10_000
"""When budgets of this number of senders exist, the full ones are dropped before a budget is added: a new
budget is full as well."""


@dataclass(frozen=True)
class Refusal:
    """Describes data that the collector refused, by its sender and the reason, so that refusals can be
    counted."""

    sender: str
    why: str
    wait_s: float = 0.0
    """Seconds after which the sender should retry; 0 if a retry is useless."""


class Budget:
    """The budget of one sender. It grows at a constant rate up to a maximum, and the size of each push is
    subtracted from it. The push that exhausts the budget may be larger than the rest of the budget, so the
    budget can become negative."""

    def __init__(self, limits: AgentLimits, now: float) -> None:
        """Creates a full budget. NOW is the time of a monotonic clock in s, as in all methods."""
        self._rates = (limits.bytes_per_s, limits.values_per_s, limits.names_per_s)
        saved = limits.saved_s
        self._most = (saved * self._rates[0], saved * self._rates[1], limits.names_at_once)
        self._left = list(self._most)
        self._time = now

    def left(self, now: float) -> Work | None:
        """Returns the size that the next push may have, or None if the sender has to wait."""
        self._refill(now)
        if min(self._left) < 1:
            return None
        return int(self._left[0]), int(self._left[1]), int(self._left[2])

    def spend(self, work: Work) -> None:
        """Subtracts the size of a push from the budget."""
        self._left = [left - done for left, done in zip(self._left, work, strict=True)]

    def wait_s(self, now: float) -> float:
        """Returns the seconds until the sender may push again."""
        self._refill(now)
        pairs = zip(self._left, self._rates, strict=True)
        return max((1 - left) / max(rate, 1e-9) for left, rate in pairs if left < 1)

    def is_full(self, now: float) -> bool:
        """Returns whether the budget has its maximum, as if the sender had sent nothing."""
        self._refill(now)
        return all(left >= most for left, most in zip(self._left, self._most, strict=True))

    def _refill(self, now: float) -> None:
        passed, self._time = now - self._time, now
        triples = zip(self._left, self._rates, self._most, strict=True)
        self._left = [min(most, left + rate * passed) for left, rate, most in triples]


class Budgets:
    """The budgets of all senders."""

    def __init__(self, limits: AgentLimits, clock: Callable[[], float]) -> None:
        self._limits, self._clock = limits, clock
        self._known: dict[str, Budget] = {}

    def left(self, sender: str) -> Work | Refusal:
        """Returns the size that this sender's next push may have, or a refusal."""
        now, budget = self._clock(), self._of(sender)
        if left := budget.left(now):
            return left
        return Refusal(sender, "more samples than one machine can have", budget.wait_s(now))

    def spend(self, sender: str, work: Work) -> None:
        """Subtracts a push from the sender's budget."""
        self._of(sender).spend(work)

    def _of(self, sender: str) -> Budget:
        if sender not in self._known:
            self._forget()
            self._known[sender] = Budget(self._limits, self._clock())
        return self._known[sender]

    def _forget(self) -> None:
        """Removes full budgets if there are too many. A removed sender that pushes again gets a new budget,
        which is full as well."""
        if len(self._known) >= _MOST_SENDERS:
            now = self._clock()
            self._known = {name: budget for name, budget in self._known.items() if not budget.is_full(now)}


def sender_of(token: str, address: str) -> str:
    """Returns the name under which a sender has its budget. All addresses of an IPv6 network count as one
    machine."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return f"{token} {address}".strip()
    if found.version == 6 and not found.is_loopback:
        address = str(ipaddress.ip_network((int(found), 64), strict=False))
    return f"{token} {address}".strip()
