"""Writes the texts of notices for each kind of recipient, in two languages. Names of jobs and other texts
that do not come from iodock are shortened and their control characters replaced, so that they can't end a
line, begin a header or change the text direction."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from iodock.centre.watch import cures
from iodock.centre.watch.episodes import Episode
from iodock.centre.watch.names import KINDS, STATES
from iodock.centre.watch.schedulers.desk import SchedulerDesk
from iodock.centre.watch.verdict import State, Suspect
from iodock.shared.language import N_, Language
from iodock.shared.response import Intervention, Privacy
from iodock.shared.text import shorten
from iodock.shared.units import NANOSECONDS, share_text

Phase = Literal["begin", "end"]
_SECOND = 1_000_000_000
_LONGEST = 120
_MOST_SERVERS = 10
_MOST_SUSPECTS = 3
_USERS_NOTICE = {
    "overload": N_("Programs that open, create or stat files there are slow. You need not do anything."),
    "stall": N_(
        "Programs that open or create files there may hang until it resumes. You need not do anything."
    ),
    "failover": N_("Programs may hang for a few minutes and then continue. You need not do anything."),
    "degraded": N_("File access may be slower than usual. You need not do anything."),
}


@dataclass(frozen=True)
class Occasion:
    """The event that a notice reports: the begin or end of one episode, or of several episodes of a file
    system."""

    phase: Phase
    episode: Episode
    servers: tuple[str, ...]
    at_ns: int
    """Time of the notice."""

    @property
    def group(self) -> int:
        """Returns the number of the first episode in the same notice, which is the episode itself if it has
        its own notice."""
        return self.episode.told or self.episode.number

    @property
    def worst(self) -> State:
        return self.episode.worst if self.phase == "end" else self.episode.state


@dataclass(frozen=True)
class Message:
    """The text of one notice. `facts` has the same information for programs."""

    subject: str
    text: str
    facts: Mapping[str, object]


@dataclass(frozen=True)
class Writer:
    """Writes the messages of notices."""

    rules: Intervention
    privacy: Privacy
    desk: SchedulerDesk | None
    portal: str

    def for_operators(self, occasion: Occasion, text: Language) -> Message:
        """Returns the message for operators, with suspects, evidence and commands."""
        lines = [_what(occasion, text), *self._servers(occasion, text)]
        if occasion.phase == "begin":
            lines += [
                "",
                *self._suspects(occasion.episode, text),
                "",
                *self._commands(occasion.episode, text),
            ]
        lines += self._link(text)
        return Message(_subject(occasion, text), _joined(lines), self._facts(occasion, with_suspects=True))

    def for_users(self, occasion: Occasion, text: Language) -> Message:
        """Returns the message for users, without the names of other users and of servers."""
        lines = [_what(occasion, text)]
        if occasion.phase == "begin":
            lines.append(text.gettext(_USERS_NOTICE[occasion.worst]))
        return Message(_subject(occasion, text), _joined(lines), self._facts(occasion, with_suspects=False))

    def for_owner(self, occasion: Occasion, suspect: Suspect, text: Language) -> Message:
        """Returns the message for the owner of a suspected job. It is only about that job."""
        job, episode = self._job(suspect), occasion.episode
        if occasion.phase == "end":
            subject = text.gettext(
                "{file_system} has recovered (your job {job})",
                file_system=_name(episode.file_system),
                job=job,
            )
            return Message(
                subject, _joined([_what(occasion, text)]), self._facts(occasion, with_suspects=False)
            )
        subject = text.gettext(
            "Your job {job} and {file_system}", job=job, file_system=_name(episode.file_system)
        )
        share = text.gettext(
            "About {share} of the requests to this server came from your job {job}.",
            share=share_text(suspect.share),
            job=job,
        )
        helps = cures.for_owner(episode.state, episode.kind, suspect, self.rules, text)
        what = ["", text.gettext("What helps:"), *(f"- {line}" for line in helps)] if helps else []
        asks = text.gettext("Please talk to your operators if this is not what your job does.")
        lines = [_what(occasion, text), share, *cures.seen(suspect, text), *what, "", asks]
        return Message(subject, _joined(lines), self._facts(occasion, with_suspects=False))

    def _servers(self, occasion: Occasion, text: Language) -> list[str]:
        if len(occasion.servers) < 2:
            return []
        named = text.listed(_name(server) for server in occasion.servers[:_MOST_SERVERS])
        more = len(occasion.servers) - _MOST_SERVERS
        if more <= 0:
            return [text.gettext("Servers: {servers}", servers=named)]
        return [
            text.ngettext(
                "Servers: {servers} and {n} more", "Servers: {servers} and {n} more", more, servers=named
            )
        ]

    def _suspects(self, episode: Episode, text: Language) -> list[str]:
        if not episode.suspects:
            return [text.gettext("No job stands out.")]
        lines = [text.gettext("Jobs that may have caused it:")]
        for suspect in episode.suspects[:_MOST_SUSPECTS]:
            lines += [self._suspect(suspect, text), *(f"  {line}" for line in cures.seen(suspect, text))]
        return lines

    def _suspect(self, suspect: Suspect, text: Language) -> str:
        owner = _name(suspect.owner) if suspect.owner else text.gettext("owner unknown")
        return text.gettext(
            "- {job}, {owner}: {share} of the requests, confidence {confidence}", job=self._job(suspect),
            owner=owner, share=share_text(suspect.share), confidence=share_text(suspect.confidence),
        )  # fmt: skip

    def _job(self, suspect: Suspect) -> str:
        if suspect.name and self.privacy.job_names:
            return f"{_name(suspect.job)} ({_name(suspect.name)})"
        return _name(suspect.job)

    def _commands(self, episode: Episode, text: Language) -> list[str]:
        found = cures.for_operators(
            episode.state, episode.kind, episode.suspects, self.rules, self.desk, text
        )
        lines = [found.advice]
        for title, commands in found.commands:
            lines += [
                "",
                f"{title}:" if commands else f"{title}.",
                *(f"    {command}" for command in commands),
            ]
        return lines

    def _link(self, text: Language) -> list[str]:
        return ["", f"{self.portal.rstrip('/')}/actions?lang={text.code}"] if self.portal else []

    def _facts(self, occasion: Occasion, with_suspects: bool) -> dict[str, object]:
        episode = occasion.episode
        facts: dict[str, object] = {
            "event": occasion.phase, "episode": occasion.group, "file_system": _name(episode.file_system),
            "kind": episode.kind, "servers": list(map(_name, occasion.servers)), "state": occasion.worst,
            "begin": _iso(episode.begin_ns), "end": None if episode.end_ns is None else _iso(episode.end_ns),
            "confidence": episode.confidence,
        }  # fmt: skip
        if with_suspects and self.privacy.suspects_in_webhooks:
            facts["suspects"] = [self._told(suspect) for suspect in episode.suspects]
        return facts

    def _told(self, suspect: Suspect) -> dict[str, object]:
        name = suspect.name if self.privacy.job_names else None
        return {
            "job": _name(suspect.job), "owner": suspect.owner and _name(suspect.owner),
            "name": name and _name(name), "nodes": suspect.nodes, "share": suspect.share,
            "confidence": suspect.confidence,
        }  # fmt: skip


def _subject(occasion: Occasion, text: Language) -> str:
    name = _name(occasion.episode.file_system)
    if occasion.phase == "end":
        return text.gettext("{file_system} has recovered", file_system=name)
    state, kind = text.gettext(STATES[occasion.worst]), text.gettext(KINDS[occasion.episode.kind])
    return text.gettext("{file_system}: {kind} {state}", file_system=name, kind=kind, state=state)


def _what(occasion: Occasion, text: Language) -> str:
    episode = occasion.episode
    named = {
        "file_system": _name(episode.file_system), "server": _name(episode.server),
        "kind": text.gettext(KINDS[episode.kind]), "state": text.gettext(STATES[occasion.worst]),
        "since": _moment(episode.begin_ns),
    }  # fmt: skip
    if occasion.phase == "end":
        lasted = NANOSECONDS.text((episode.end_ns or occasion.at_ns) - episode.begin_ns)
        return text.gettext(
            "The {kind} {server} of {file_system} has recovered. It was {state} for {lasted}, from "
            "{since} on.",
            **named,
            lasted=lasted,
        )
    return text.gettext("The {kind} {server} of {file_system} has been {state} since {since}.", **named)


def _name(name: str) -> str:
    return shorten(name, _LONGEST)


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _moment(ns: int) -> str:
    """Formats a time (ns since the epoch) in the collector's time zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(ns / _SECOND))


def _iso(ns: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ns / _SECOND))
