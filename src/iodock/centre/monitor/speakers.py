"""Decides which of the pulled agents may send data for which machine."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable

from iodock.centre.monitor.targets import Target

_CURE = "add the machine's name after its address in --pull-list"


class Names:
    """Assigns names of machines to pulled agents. A name that the site gives to an address can be used only
    by the agent at this address, even if another agent reports it earlier. An agent whose address has no name
    keeps the first name that it reports until the collector ends, if no other agent uses that name."""

    def __init__(self, targets: Iterable[Target], spools: Callable[[str], Collection[str]]) -> None:
        """SPOOLS is a function that returns the ids of all spools that ever sent data for a machine, by push
        or pull."""
        self._spools = spools
        self._given: defaultdict[str, set[Target]] = defaultdict(set)
        for target in targets:
            for name in target.own_names:
                self._given[name].add(target)
        self._holders: dict[str, Target] = {}
        self._first: dict[Target, str] = {}

    def why_not(self, target: Target, machine: str, spool: str) -> str:
        """Returns the reason why the agent at TARGET may not send data for MACHINE. If it may, returns an
        empty text, and from now on no other agent may send data for MACHINE. Raises StoreError."""
        if why := self._why_refused(target, machine, spool):
            return why
        self._holders[machine] = target
        self._first.setdefault(target, machine)
        return ""

    def _why_refused(self, target: Target, machine: str, spool: str) -> str:
        """Returns the reason like `why_not`, but does not assign the name."""
        holder = self._holders.get(machine)
        if holder == target:
            return ""
        if target.own_names:
            if target.may_be(machine) and holder is None:
                return ""
            return f"{machine!r}: this sender may not use this name"
        if target in self._first:
            first = self._first[target]
            return f"{machine!r}: this sender may not use this name: it was {first!r} before; {_CURE}"
        known = self._spools(machine)
        if holder or machine.lower() in self._given or (known and spool not in known):
            return (
                f"{machine!r}: this sender may not use this name: used by another one, now or earlier; "
                f"{_CURE}"
            )
        return ""
