"""What a site sets about unwell servers: what may be done, who is told, and what is kept of jobs and users.

[response]
mode = "ask"                    # suggest, ask or act
scheduler = "slurm"
[notices]
smtp = "127.0.0.1:25"
[notices.to.operators]
who = "operators"
by = "mail"
address = "hpc-ops@example.org"
[privacy]
episodes_days = 400
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Mode = Literal["suggest", "ask", "act"]
SchedulerName = Literal["slurm", "pbs", "grid-engine", "pjm", "nqsv"]
ActionKind = Literal["hold", "suspend", "requeue"]
ActedState = Literal["overload", "stall"]
Who = Literal["operators", "users", "owner", "digest"]
Channel = Literal["mail", "webhook", "syslog"]
CHANNELS: tuple[Channel, ...] = ("mail", "webhook", "syslog")
LanguageCode = Literal["en", "ja"]


@dataclass(frozen=True, slots=True)
class Intervention:
    """When a job may be held, suspended or requeued because of what it does to a server."""

    mode: Mode = "suggest"
    """suggest: say what would help. ask: an operator confirms on the portal. act: without asking."""
    scheduler: SchedulerName | None = None
    action: ActionKind = "suspend"
    states: tuple[ActedState, ...] = ("overload", "stall")
    """Only these states of a server ask for an action."""
    least_confidence: float = 0.9
    """Of the verdict, and of the suspicion against the job."""
    least_share: float = 0.5
    """Of what the server was asked for, from this one job."""
    least_samples: int = 6
    """In a row that say so."""
    fresh_s: float = 60.0
    """An older verdict counts as missing samples."""
    most_an_hour: int = 2
    """Automatic actions, in the whole site."""
    settle_s: float = 120.0
    """After an action on a file system, before the next one there."""
    quiet_after_start_s: float = 600.0
    """No automatic action in this time after the collector's start."""
    confirm_within_s: float = 900.0
    """Until then an operator may confirm, counted from the last verdict with enough evidence."""
    longest_s: float = 21_600.0
    """An action is undone after this time, even if the server has not recovered."""
    protected_users: tuple[str, ...] = ("root",)
    protected_jobs: tuple[str, ...] = ()
    command_s: float = 20.0
    """For one command of the scheduler."""
    prefix: tuple[str, ...] = ()
    """Words before every command of the scheduler, as `sudo -n`."""
    lustre_version: str = ""
    """Of the servers, as 2.15.3: rules for them are written so."""
    node_local: str = ""
    """Where a job's files on its own nodes go, as `$TMPDIR`: told to owners of jobs."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """Who is told, and how."""

    who: Who = "operators"
    """operators: all. users: that a file system suffers. owner: of the job that is suspected.
    digest: the owner of a job that is over, of what it did."""
    by: Channel = "mail"
    address: str = ""
    """A mail address, a URL, or a place of syslog; `{user}` in a mail address is the login name."""
    language: LanguageCode = "en"
    file_systems: tuple[str, ...] = ()
    """Only about these; empty: all."""
    token_file: str = ""
    """Of a webhook: its bearer token."""


@dataclass(frozen=True, slots=True)
class Notices:
    """How notices are sent."""

    sender: str = "iodock@localhost"
    smtp: str = "127.0.0.1:25"
    security: Literal["none", "starttls", "tls"] = "none"
    smtp_user: str = ""
    smtp_password_file: str = ""
    portal: str = ""
    """Address of the portal, for links."""
    least_samples: int = 3
    """In a row, before anybody is told."""
    owner_confidence: float = 0.8
    """Of the suspicion, before the job's owner is told."""
    timeout_s: float = 10.0
    retry_s: float = 15.0
    """Before the second try; each further wait is twice as long, ten minutes at most."""
    give_up_s: float = 21_600.0
    most_waiting: int = 10_000
    """Further notices are lost, and counted."""
    most_users: int = 500
    """Users that one episode is told to, one by one."""
    to: Mapping[str, Recipient] = field(default_factory=dict)
    languages: Mapping[str, LanguageCode] = field(default_factory=dict)
    """Login name -> language; others have their recipient's."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """What is kept of jobs and users, and who sees it."""

    episodes_days: float = 400.0
    suspects_days: float = 90.0
    """Then owners and names of jobs are removed from episodes and actions."""
    audit_days: float = 400.0
    job_names: bool = True
    """Show what jobs are called, and keep it in the store; false: neither."""
    job_names_days: float = 400.0
    """In the store."""
    events_days: float = 400.0
    """In the store: lines of logs, with names of machines and whatever else is in them."""
    suspects_in_webhooks: bool = True
    """Also send jobs and owners to operators' webhooks and syslog."""
