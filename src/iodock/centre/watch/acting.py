"""Decides whether to act on a job, and gives the reason if not. The functions have no side effects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from iodock.centre.watch.schedulers.base import Scheduler
from iodock.centre.watch.verdict import Suspect, Verdict
from iodock.shared.language import N_
from iodock.shared.response import Intervention

SECOND = 1_000_000_000
HOUR = 3600 * SECOND
WHY = {
    "no-scheduler": N_("no scheduler is configured"),
    "state": N_("no action is taken for this state of the server"),
    "client-view": N_("the verdict is based on client measurements only"),
    "missing-samples": N_("samples are missing"),
    "few-samples": N_("too few samples in a row"),
    "low-confidence": N_("the verdict is not certain enough"),
    "just-started": N_("the collector has just started"),
    "settling": N_("an action on this file system has just been taken"),
    "hourly-limit": N_("the hourly limit is reached"),
    "nobody": N_("no job stands out"),
    "small-share": N_("the job's share is too small"),
    "unsure-suspect": N_("the evidence that this job is the cause is not certain enough"),
    "job-id": N_("the id that the server reports is not a job id"),
    "protected-job": N_("the job is protected"),
    "protected-user": N_("the job's owner is protected"),
    "acted-before": N_("this job already had an action or a proposed action in this episode"),
    "owner-unknown": N_("the scheduler does not name an owner"),
    "job-over": N_("the job is over"),
    "job-state": N_("the job is in another state"),
    "no-mark": N_("later changes of the job would not be noticed, so the action could not be undone safely"),
    "no-effect": N_("the command had no effect"),
    "changed-since": N_("the job has been changed since"),
    "no-answer": N_("the scheduler does not answer, or rejects the request"),
    "restart": N_("the collector was restarted before the action was done"),
    "episode-over": N_("the server has recovered"),
    "not-confirmed": N_("the action was not confirmed in time"),
    "declined": N_("an operator declined the action"),
}
"""Reasons why an action was not taken or not undone."""


@dataclass(frozen=True)
class Past:
    """Earlier actions, on which a decision depends."""

    started_ns: int
    """Time of the collector's start."""
    jobs: frozenset[str] = frozenset()
    """Jobs with an action, or a proposed action, in this episode."""
    last_hour: int = 0
    """Number of automatic actions in the last hour."""
    last_ns: int | None = None
    """Time of the latest action on this file system."""


@dataclass(frozen=True)
class Choice:
    suspect: Suspect | None
    """The job to act on; None: no action."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Why no action is taken: a key of WHY for each job, or for all jobs under the key ""."""


def choice(
    verdict: Verdict, rules: Intervention, scheduler: Scheduler | None, past: Past, now: int
) -> Choice:
    """Chooses the job to act on, or gives the reasons for not acting. NOW is in ns since the epoch.
    `rules.mode` must be ask or act."""
    reason = refused(verdict, rules, scheduler, past, now)
    if reason or scheduler is None:
        return Choice(None, {"": reason or "no-scheduler"})
    why: dict[str, str] = {}
    for suspect in verdict.suspects:
        reason = _spared(suspect, rules, scheduler, past)
        if not reason:
            return Choice(suspect, why)
        why[suspect.job] = reason
    return Choice(None, why or {"": "nobody"})


def refused(verdict: Verdict, rules: Intervention, scheduler: Scheduler | None, past: Past, now: int) -> str:
    """Returns the reason for not acting on any job, which is a key of WHY, or an empty text. `past.jobs` is
    not used."""
    tests = (
        ("no-scheduler", scheduler is None),
        (
            "missing-samples",
            abs(now - verdict.at_ns) > rules.fresh_s * SECOND
            or verdict.state == "no-samples"
            or verdict.missed > 0,
        ),
        ("state", verdict.state not in rules.states),
        ("client-view", verdict.kind == "client"),
        ("few-samples", verdict.samples < rules.least_samples),
        ("low-confidence", verdict.confidence < rules.least_confidence),
    )
    unasked = (
        ("just-started", now - past.started_ns < rules.quiet_after_start_s * SECOND),
        ("settling", past.last_ns is not None and now - past.last_ns < rules.settle_s * SECOND),
        ("hourly-limit", past.last_hour >= rules.most_an_hour),
    )
    told = (*tests, *(unasked if rules.mode == "act" else ()))
    return next((name for name, is_so in told if is_so), "")


def _spared(suspect: Suspect, rules: Intervention, scheduler: Scheduler, past: Past) -> str:
    tests = (
        ("job-id", not scheduler.is_id(suspect.job)),
        ("acted-before", suspect.job in past.jobs),
        ("protected-job", is_protected_job(suspect.job, rules)),
        ("protected-user", suspect.owner is not None and suspect.owner in rules.protected_users),
        ("small-share", suspect.share < rules.least_share),
        ("unsure-suspect", suspect.confidence < rules.least_confidence),
    )
    return next((name for name, is_so in tests if is_so), "")


def is_protected_job(job: str, rules: Intervention) -> bool:
    """Returns whether the site's settings protect the job, by its id or by the number of the array or job to
    which it belongs."""
    whole = re.split(r"[^0-9]", job, maxsplit=1)[0]
    return job in rules.protected_jobs or whole in rules.protected_jobs
