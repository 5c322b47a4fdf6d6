"""Defines the names of states and kinds of servers that pages, `top` and mails show."""

from __future__ import annotations

from collections.abc import Mapping

from iodock.centre.watch.verdict import State
from iodock.shared.language import N_

STATES: Mapping[State, str] = {
    "healthy": N_("healthy"),
    "busy": N_("busy"),
    "overload": N_("overloaded"),
    "stall": N_("stalled"),
    "failover": N_("failing over"),
    "degraded": N_("degraded"),
    "no-samples": N_("no samples"),
}
KINDS: Mapping[str, str] = {
    "metadata": N_("metadata server"),
    "object": N_("object server"),
    "client": N_("clients' view of the server"),
}
