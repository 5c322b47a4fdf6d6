"""Rules of Lustre's token bucket filter (TBF) that slow one job down on a server, as text for an operator.

Sources: Lustre Operations Manual, "Network Request Scheduler (NRS) Tuning"; `nrs_tbf.h` (names have 15
letters at most); `sanityn.sh` 77e to 77k, where rules have `jobid=` and `rate=` from 2.8.54 on; LU-17166
(ProjID), LU-17902 (nodemap). No rule was tried on a Lustre here."""

from __future__ import annotations

import re
from dataclasses import dataclass

Version = tuple[int, int]
JOB_IDS: Version = (2, 7)
_NAMED_ARGUMENTS: Version = (2, 9)
PROJECTS: Version = (2, 16)
NODEMAPS: Version = (2, 17)
"""The first release with rules of a kind."""
_SERVICES = {"metadata": "mds.MDS.mdt", "object": "ost.OSS.ost_io"}
_PLAIN = re.compile(r"[A-Za-z0-9_.@+-]{1,31}", re.ASCII)
"""What a rule's list can carry without being read as something else: no blank, brace, wildcard or quote."""
_VERSION = re.compile(r"([0-9]+)\.([0-9]+)([._-].*)?", re.ASCII)
_ABOUT = 10
"""A rule lets a tenth of what was asked through."""


@dataclass(frozen=True)
class Rule:
    """Commands for the server, and how to take them back."""

    by: str
    """jobid, projid or nodemap."""
    start: tuple[str, ...]
    stop: tuple[str, ...]


def version_of(text: str) -> Version | None:
    """Of `2.15.3`; None: not known."""
    found = _VERSION.fullmatch(text.strip())
    return (int(found[1]), int(found[2])) if found else None


def rules(kind: str, job: str, rate: float | None, nodes: int | None, version: Version | None) -> list[Rule]:
    """For a server of this KIND. RATE: what the job asks for a second. The rule by project or nodemap has a
    place for its name. Of a VERSION that is not known only the rule by JobID, as of 2.9 and later."""
    service = _SERVICES.get(kind)
    if service is None or (version is not None and version < JOB_IDS):
        return []
    limit = max(1, round((rate or 0) / _ABOUT / max(1, nodes or 1))) if rate else 100
    found = []
    if _PLAIN.fullmatch(job):
        # Servers may know the job as JOB or, by jobid_name, as JOB:USER:HOST.
        wanted = f"{job} {job}:*"
        found.append(_rule(service, "jobid", _name(job), wanted, limit, version))
    if version is not None and version >= PROJECTS:
        found.append(_rule(service, "projid", "iodock_p", "PROJECT", limit, version))
    if version is not None and version >= NODEMAPS:
        found.append(_rule(service, "nodemap", "iodock_n", "NODEMAP", limit, version))
    return found


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
    """Of a rule: letters, digits and _, 15 at most."""
    return "j" + re.sub(r"[^A-Za-z0-9]", "_", job)[:14]
