"""Prepares the states and curves of the file servers on the run's time axis for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iodock.program.meanwhile.sentences import of_run
from iodock.program.views.report.times import Axis
from iodock.shared.clock import NS
from iodock.shared.errors import IodockError
from iodock.shared.labels import SERVER_STATES
from iodock.shared.language import Language
from iodock.shared.meanwhile import TROUBLE, Meanwhile, ServerCurve, Servers, ServerStretch
from iodock.shared.sentences import say

MOST_SERVERS = 6
"""Number of servers whose states are drawn. Servers in trouble come first."""
MOST_CURVES = 18
_MOST_POINTS = 400
_UNITS = {
    "handled_per_s": ("rate", 1.0),
    "waiting": ("count", 1.0),
    "wait_s": ("time", 1e9),
    "cpu_share": ("share", 1.0),
    "moved_bytes_per_s": ("byterate", 1.0),
    "load": ("count", 1.0),
    "busy_share": ("share", 1.0),
    "response_s": ("time", 1e9),
    "operations_per_s": ("rate", 1.0),
    "reads_per_s": ("rate", 1.0),
    "writes_per_s": ("rate", 1.0),
    "read_bytes_per_s": ("byterate", 1.0),
    "written_bytes_per_s": ("byterate", 1.0),
}
"""Format and factor of each kind of value on the page, in drawing order."""


def servers_data(servers: Servers | None, axis: Axis, text: Language) -> dict[str, Any] | None:
    """Returns states and curves of the servers. Returns None if no monitor is configured; the page then
    does not mention servers."""
    if servers is None:
        return None
    said = [say(one, text) for one in of_run(servers)]
    nothing: dict[str, Any] = {"said": said, "states": [], "curves": []}
    try:
        found = servers.meanwhile()
    except IodockError:
        return nothing
    if found is None or axis.start is None:
        return nothing
    chosen = _chosen(found)
    whole = axis.intervals * axis.every_ns
    return {
        "said": said,
        "states": [_states(server, found, axis.start, text) for server in chosen],
        "curves": [
            _curve(one, axis.start, whole, int(found.sample_s * NS))
            for one in _curves(found, chosen)[:MOST_CURVES]
        ],
    }


def _chosen(found: Meanwhile) -> Sequence[str]:
    """Returns the names of the servers to show. Servers in the worst states come first. Among servers in
    the same state, those with curves of metadata requests come first."""
    worst: dict[str, int] = {}
    for one in found.stretches:
        rank = TROUBLE.index(one.state) if one.state in TROUBLE else len(TROUBLE)
        worst[one.server] = min(worst.get(one.server, rank), rank)
    metadata = {one.server for one in found.curves if one.metric == "waiting"}
    return sorted(worst, key=lambda name: (worst[name], name not in metadata, name))[:MOST_SERVERS]


def _states(server: str, found: Meanwhile, start: int, text: Language) -> dict[str, Any]:
    own = [one for one in found.stretches if one.server == server]
    parts = [_part(one, start, text) for one in own]
    return {"server": server, "file_system": own[0].file_system, "parts": parts}


def _part(one: ServerStretch, start: int, text: Language) -> list[Any]:
    """Returns the begin, end, state and translated state of one part of a server's time. Times are in ns
    since START."""
    called = text.gettext(SERVER_STATES[one.state])
    return [max(0, one.begin_ns - start), max(0, one.end_ns - start), one.state, called]


def _curves(found: Meanwhile, chosen: Sequence[str]) -> list[ServerCurve]:
    """Returns the curves that are not always zero, ordered by server and metric."""
    order = list(_UNITS)
    # Storage arrays have curves but no states, so they are added here.
    judged = {one.server for one in found.stretches}
    shown = [*chosen, *sorted({one.server for one in found.curves} - judged)]
    own = [one for one in found.curves if one.server in shown and any(value > 0 for _, value in one.points)]
    return sorted(own, key=lambda one: (shown.index(one.server), order.index(one.metric)))


def _curve(one: ServerCurve, start: int, whole: int, sample: int) -> dict[str, Any]:
    """Returns a curve for the page. Its first point is at the beginning of the first sample. A sample that
    extends beyond the run ends at the run's end."""
    unit, factor = _UNITS[one.metric]
    every = -(-len(one.points) // _MOST_POINTS)
    groups = [one.points[at : at + every] for at in range(0, len(one.points), every)]
    # Several samples are combined to one point, which has their maximum, so that no peak is lost.
    points = [
        [min(whole, max(0, group[-1][0] - start)), max(value for _, value in group) * factor]
        for group in groups
    ]
    first = min(whole, max(0, one.points[0][0] - sample - start))
    points.insert(0, [first, one.points[0][1] * factor])
    return {"source": "server", "target": one.server, "metric": one.metric, "unit": unit, "points": points}
