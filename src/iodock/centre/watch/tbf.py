"""Makes rules for Lustre's token bucket filter (TBF) that slow one job down on a server, as commands that an
operator can run.

Sources: Lustre Operations Manual, "Network Request Scheduler (NRS) Tuning"; `nrs_tbf.h` (names have at most
15 letters); `sanityn.sh` 77e to 77k, where rules have `jobid=` and `rate=` from 2.8.54 on; LU-17166 (ProjID),
LU-17902 (nodemap). `nrs_tbf.c`: each different JobID (project, nodemap) has its own bucket in each CPU
partition (LU-17158), and a rate is an integer of at least 1. The developers of iodock have not tried the
rules on a Lustre server."""

from __future__ import annotations

import re
from dataclasses import dataclass

Version = tuple[int, int]
JOB_IDS: Version = (2, 7)
_NAMED_ARGUMENTS: Version = (2, 9)
PROJECTS: Version = (2, 16)
NODEMAPS: Version = (2, 17)
"""The first Lustre release that has each kind of rule."""
_SERVICES = {"metadata": "mds.MDS.mdt", "object": "ost.OSS.ost_io"}
_PLAIN = re.compile(r"[A-Za-z0-9_.@+-]{1,31}", re.ASCII)
"""Characters that are safe in a rule's list: no blank, brace, wildcard or quote."""
_VERSION = re.compile(r"([0-9]+)\.([0-9]+)([._-].*)?", re.ASCII)
_ABOUT = 10
"""A rule reduces the requests to about a tenth."""
_UNKNOWN = 100
"""Requests per second that are assumed if the job's rate is not known."""
_MOST = 65_535
"""The largest rate that Lustre before 2.15 accepts."""
_STILL_SLOWS = 0.5
"""A rule must reduce the requests at least to this share. Otherwise it does not help."""


@dataclass(frozen=True)
class Rule:
    """The commands that start a rule on the server, and the commands that stop it."""

    by: str
    """What the rule selects by: jobid, projid or nodemap."""
    start: tuple[str, ...]
    stop: tuple[str, ...]


def version_of(text: str) -> Version | None:
    """Parses a version such as `2.15.3` and returns its first two numbers, or None if the text is not a
    version."""
    found = _VERSION.fullmatch(text.strip())
    return (int(found[1]), int(found[2])) if found else None


def rules(kind: str, job: str, rate: float | None, ids: int | None, version: Version | None) -> list[Rule]:
    """Returns the rules that the Lustre version supports for a server of this KIND. RATE is the number of
    requests per second of the whole job. IDS is the number of JobIDs under which the server counts the job;
    the rate of a rule applies to each JobID. Rules by project or nodemap contain a placeholder that the
    operator replaces by its name. If VERSION is None, only the rule by JobID is returned, in the form for 2.9
    and later."""
    service = _SERVICES.get(kind)
    if service is None or (version is not None and version < JOB_IDS):
        return []
    found = []
    if _PLAIN.fullmatch(job) and not is_too_divided(rate, ids):
        # The parameter jobid_name of a server determines whether the JobID is JOB or JOB:USER:HOST, so the
        # rule lists both forms.
        wanted = f"{job} {job}:*"
        found.append(_rule(service, "jobid", _name(job), wanted, _limit(rate, ids or 1), version))
    limit = _limit(rate, 1)
    if version is not None and version >= PROJECTS:
        found.append(_rule(service, "projid", "iodock_p", "PROJECT", limit, version))
    if version is not None and version >= NODEMAPS:
        found.append(_rule(service, "nodemap", "iodock_n", "NODEMAP", limit, version))
    return found


def is_too_divided(rate: float | None, ids: int | None) -> bool:
    """Returns whether the job has so many JobIDs that even the lowest rate, one request per second for each,
    would hardly slow it down."""
    return ids is not None and ids > 1 and ids > _STILL_SLOWS * (rate or _UNKNOWN * _ABOUT)


def _limit(rate: float | None, ids: int) -> int:
    whole = rate / _ABOUT if rate else _UNKNOWN
    return min(_MOST, max(1, round(whole / ids)))


def _rule(service: str, by: str, name: str, wanted: str, limit: int, version: Version | None) -> Rule:
    is_old = version is not None and version < _NAMED_ARGUMENTS
    arguments = f"{{{wanted}}} {limit}" if is_old else f"{by}={{{wanted}}} rate={limit}"
    start = (
        f'lctl set_param {service}.nrs_policies="tbf {by}"',
        f'lctl set_param {service}.nrs_tbf_rule="start {name} {arguments}"',
    )
    stop = (
        f'lctl set_param {service}.nrs_tbf_rule="stop {name}"',
        f'lctl set_param {service}.nrs_policies="fifo"',
    )
    return Rule(by, start, stop)


def _name(job: str) -> str:
    """Returns the name of a job's rule, which has at most 15 letters, digits and underscores."""
    return "j" + re.sub(r"[^A-Za-z0-9]", "_", job)[:14]
