"""Describes verdicts on servers in words. Names of jobs, users and servers are not escaped in this module;
its callers must escape them."""

from __future__ import annotations

from collections.abc import Iterable

from iodock.centre.monitor.event_kinds import TITLES
from iodock.centre.views.amounts import amount, duration
from iodock.centre.watch.verdict import Evidence, State, Suspect, Verdict
from iodock.shared.language import N_, Language
from iodock.shared.text import shorten

HEADS: dict[State, str] = {
    "overload": N_("{file_system} is overloaded"),
    "stall": N_("{file_system} has stopped responding"),
    "failover": N_("{file_system}: a server is down or restarting"),
    "degraded": N_("{file_system} is degraded"),
}
_MEANS: dict[tuple[State, bool], str] = {
    ("overload", True): N_(
        "The metadata server {server} receives more requests than it can handle. Programs that open, "
        "create or remove files are slow."
    ),
    ("overload", False): N_(
        "The server {server} receives more reads and writes than it can handle. Programs that use files "
        "there are slow."
    ),
    ("stall", True): N_(
        "The metadata server {server} handles hardly any requests, although requests are waiting. "
        "Programs that open or create files hang until it resumes."
    ),
    ("stall", False): N_(
        "The server {server} handles hardly any requests, although requests are waiting. Programs that "
        "use files there hang until it resumes."
    ),
    ("failover", True): N_("The metadata server {server} is down, restarting or waiting for its clients."),
    ("failover", False): N_(
        "The server {server} is down, restarting or waiting for its clients, or another server has "
        "its targets."
    ),
    ("degraded", True): N_("The metadata server {server} is slower than usual, or a part of it is missing."),
    ("degraded", False): N_("The server {server} is slower than usual, or a part of it is missing."),
}
"""Sentences on the effect of a state, by state and whether the server is a metadata server."""
EVIDENCE = {
    "handled": N_("requests handled"),
    "opens": N_("files opened"),
    "closes": N_("files closed"),
    "creates": N_("files created"),
    "object-creates": N_("objects created on object servers"),
    "moved": N_("bytes read and written"),
    "waiting": N_("requests waiting"),
    "wait": N_("wait of a request"),
    "last-waiting": N_("requests waiting when the last one was handled"),
    "last-wait": N_("wait of the last request that was handled"),
    "drain": N_("time that the waiting requests would take at the current rate"),
    "operation": N_("time of one operation"),
    "threads": N_("busy service threads"),
    "cpu": N_("CPU use of the server"),
    "pressure": N_("time in which tasks waited for I/O"),
    "load": N_("load"),
    "probe": N_("time of a probe's round"),
    "answer": N_("time until clients get an answer"),
    "backlog": N_("client requests without an answer"),
    "lost": N_("machines that lost their connection to the server"),
    "evictions": N_("clients that the server evicted"),
    "no-answer": N_("a probe failed or got no answer"),
    "away": N_("the server's targets are on another server"),
    "guests": N_("the server serves targets of another server"),
    "recovery": N_("a target waits for its clients"),
    "uptime": N_("time since it started"),
    "metadata": N_("metadata operations"),
    "requests": N_("reads and writes"),
    "node-bytes": N_("bytes of the job's processes on any file system, as counted by nodes"),
}
_LONGEST = 60
"""Longest name that is shown in full."""
_MOST = 4
"""Largest number of observations in a sentence."""
NOBODY = N_("No job stands out.")
BY_CLIENTS = N_("Based on client measurements only, so this is less certain.")


def what(one: Evidence, text: Language) -> str:
    """Returns the name of an observation. If the observation is an event of a kind that the site defined,
    this is the name of the kind."""
    named = EVIDENCE.get(one.what) or TITLES.get(one.what)
    return text.gettext(named) if named else one.what


def value(number: float | None, unit: str) -> str:
    """Formats the value of an observation with its unit, or returns an empty text if there is no number."""
    kind = {"1/s": "rate", "bytes/s": "bytes_rate", "s": "short_seconds", "share": "share"}.get(
        unit, "number"
    )
    return amount(number, kind)


def piece(one: Evidence, text: Language) -> str:
    """Formats an observation: `requests handled: 12 /s (usually 1.8 k/s)`."""
    shown = value(one.value, one.unit)
    if not shown:
        return what(one, text)
    if one.usual is None:
        return text.gettext("{what}: {value}", what=what(one, text), value=shown)
    usual = value(one.usual, one.unit)
    return text.gettext("{what}: {value} (usually {usual})", what=what(one, text), value=shown, usual=usual)


def head(verdict: Verdict, text: Language) -> str:
    return text.gettext(HEADS[verdict.state], file_system=verdict.file_system)


def sentence(verdict: Verdict, text: Language) -> str:
    """Returns a sentence on the effect of a server's state on programs, with the most important evidence. It
    must be one of the states in which a server has problems."""
    means = _MEANS[verdict.state, verdict.kind == "metadata"]
    pieces = [piece(one, text) for one in verdict.evidence[:_MOST]]
    certain = [text.gettext(BY_CLIENTS)] if verdict.kind == "client" else []
    told = [text.gettext("Observed: {evidence}.", evidence="; ".join(pieces))] if pieces else []
    return " ".join([text.gettext(means, server=verdict.server), *told, *certain])


def suspect(one: Suspect, text: Language) -> str:
    """Describes a suspect: `job 700 (shared-dir) of alice on 1,008 nodes: 93 %`. Names are shortened, because
    users choose them."""
    job = shorten(one.job, _LONGEST)
    called = text.gettext("job {job} ({name})", job=job, name=shorten(one.name, _LONGEST)) if one.name else ""
    named = called or text.gettext("job {job}", job=job)
    if one.owner:
        named = text.gettext("{job} of {owner}", job=named, owner=shorten(one.owner, _LONGEST))
    if one.nodes:
        named = text.ngettext(
            "{job} on {n} node", "{job} on {n} nodes", one.nodes, job=named, n=f"{one.nodes:,}"
        )
    return text.gettext("{job}: {share} of the requests", job=named, share=amount(one.share, "share"))


def health_line(verdicts: Iterable[Verdict], text: Language, now: int) -> str:
    """Returns one line about all servers for a terminal. It names the worst state, its begin and the first
    suspect. If no server has problems or none is known, it says so."""
    every = list(verdicts)
    unwell = [one for one in every if one.state in HEADS]
    silent = sum(one.state == "no-samples" for one in every)
    if not every:
        return text.gettext("no servers known")
    if unwell:
        worst = unwell[0]
        since = duration(max(0.0, (now - worst.since_ns) / 1e9))
        line = text.gettext(
            "{head}: {server}, for {since}", head=head(worst, text), server=worst.server, since=since
        )
        named = [suspect(one, text) for one in worst.suspects[:1]]
        return " · ".join([line, *named])
    if silent:
        return text.ngettext(
            "{n} of {of} server sends no samples", "{n} of {of} servers send no samples", silent,
            n=silent, of=len(every),
        )  # fmt: skip
    busy = sum(one.state == "busy" for one in every)
    if busy:
        return text.ngettext(
            "{n} server is busy, none is in trouble", "{n} servers are busy, none is in trouble", busy, n=busy
        )
    return text.ngettext("{n} server, healthy", "{n} servers, all healthy", len(every), n=len(every))
