"""Defines a site's settings for unwell servers: which actions on jobs are allowed, who receives notices, and
how long data about jobs and users is kept.

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
    """Settings for actions on jobs: when a job is held, suspended or requeued because of its load on a
    server."""

    mode: Mode = "suggest"
    """suggest: only name what would help. ask: an operator confirms in the portal. act: act without
    confirmation."""
    scheduler: SchedulerName | None = None
    action: ActionKind = "suspend"
    states: tuple[ActedState, ...] = ("overload", "stall")
    """States of a server that lead to an action."""
    least_confidence: float = 0.9
    """Minimum confidence of the verdict, and of the suspicion against the job."""
    least_share: float = 0.5
    """Minimum share of the server's requests that come from this one job."""
    least_samples: int = 6
    """Number of consecutive samples that must agree."""
    fresh_s: float = 60.0
    """A verdict that is older than this counts as missing."""
    most_an_hour: int = 2
    """Largest number of automatic actions in an hour, in the whole site."""
    settle_s: float = 120.0
    """Time after an action on a file system before the next action there."""
    quiet_after_start_s: float = 600.0
    """Time after the collector's start without automatic actions."""
    confirm_within_s: float = 900.0
    """Time in which an operator may still confirm, counted from the last verdict with enough evidence."""
    longest_s: float = 21_600.0
    """An action is undone after this time, even if the server has not recovered."""
    protected_users: tuple[str, ...] = ("root",)
    protected_jobs: tuple[str, ...] = ()
    command_s: float = 20.0
    """Time limit for one command of the scheduler."""
    prefix: tuple[str, ...] = ()
    """Words before every command of the scheduler, such as `sudo -n`."""
    lustre_version: str = ""
    """Version of Lustre on the servers, such as 2.15.3. The syntax of their rules depends on it."""
    node_local: str = ""
    """Folder on the nodes for a job's temporary files, such as `$TMPDIR`. Advice for owners of jobs names
    it."""


@dataclass(frozen=True, slots=True)
class Recipient:
    """A recipient of notices, and how the notices are sent."""

    who: Who = "operators"
    """operators: all notices. users: that a file system is slow. owner: the owner of the suspected job.
    digest: the owner of a finished job, with a summary of its I/O."""
    by: Channel = "mail"
    address: str = ""
    """A mail address, a URL, or a syslog address; `{user}` in a mail address is the login name."""
    language: LanguageCode = "en"
    file_systems: tuple[str, ...] = ()
    """File systems whose notices are sent; empty: all."""
    token_file: str = ""
    """File that contains the bearer token of a webhook."""


@dataclass(frozen=True, slots=True)
class Notices:
    """Settings for sending notices."""

    sender: str = "iodock@localhost"
    smtp: str = "127.0.0.1:25"
    security: Literal["none", "starttls", "tls"] = "none"
    smtp_user: str = ""
    smtp_password_file: str = ""
    portal: str = ""
    """Address of the portal, for links in notices."""
    least_samples: int = 3
    """Number of consecutive samples before a notice is sent."""
    owner_confidence: float = 0.8
    """Minimum confidence of the suspicion before the job's owner is notified."""
    timeout_s: float = 10.0
    retry_s: float = 15.0
    """Time before the second try. Each further wait is twice as long, ten minutes at most."""
    give_up_s: float = 21_600.0
    most_waiting: int = 10_000
    """Largest number of notices that wait. Further ones are dropped and counted."""
    most_users: int = 500
    """Largest number of users that are notified individually about one episode."""
    to: Mapping[str, Recipient] = field(default_factory=dict)
    languages: Mapping[str, LanguageCode] = field(default_factory=dict)
    """Language of each login name. Others get the language of their recipient."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """Settings for what is stored about jobs and users, and who may see it."""

    episodes_days: float = 400.0
    suspects_days: float = 90.0
    """Time after which owners and names of jobs are removed from episodes and actions."""
    audit_days: float = 400.0
    job_names: bool = True
    """Whether the names of jobs are shown and stored."""
    job_names_days: float = 400.0
    """Time for which the store keeps names of jobs."""
    events_days: float = 400.0
    """Time for which the store keeps events. They are lines of logs, with names of machines and whatever else
    is in them."""
    suspects_in_webhooks: bool = True
    """Whether jobs and owners are also sent to operators' webhooks and syslog."""
