"""Gives advice about a server that has problems, for the owner of a job and for operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from iodock.centre.watch import tbf
from iodock.centre.watch.schedulers.desk import SchedulerDesk
from iodock.centre.watch.verdict import Evidence, State, Suspect
from iodock.shared.language import N_, Language
from iodock.shared.response import Intervention
from iodock.shared.units import BYTES_PER_SECOND

Pattern = Literal["opens", "creates", "objects", "bytes"]
_PATTERNS: dict[str, Pattern] = {
    "opens": "opens", "creates": "creates", "object-creates": "objects", "moved": "bytes",
}  # fmt: skip
"""Maps an observation of a job (suspects.py) to what the job did."""
_FIRST: dict[State, tuple[Pattern, ...]] = {"stall": ("objects", "creates", "opens", "bytes")}
_OTHERWISE: tuple[Pattern, ...] = ("creates", "opens", "objects", "bytes")
_OF_OBJECTS: tuple[Pattern, ...] = ("bytes", "objects", "creates", "opens")
_FEW_CREATES = 0.3
"""If creates are a smaller share of the opens, the job mostly opens existing files."""
MOST_OWNER_CURES = 2

_SEEN = {
    "opens": N_("The job opens {rate} files per second."),
    "creates": N_("The job creates {rate} files per second."),
    "objects": N_(
        "Creating the job's files creates {rate} objects per second: number of files times stripe count."
    ),
    "bytes": N_("The job transfers {rate}."),
}
_OWNER = {
    "opens": N_(
        "Open each file once and keep it open; let one rank read small input files and broadcast them."
    ),
    "creates": N_(
        "Write fewer and larger files: one for each node or one in all, with MPI-IO, "
        "HDF5 or NetCDF, not one for each process and step."
    ),
    "objects": N_(
        "Set a stripe count of 1 on the directory before the files are created: lfs "
        "setstripe -c 1 DIRECTORY. Do not use -c -1 (all targets) for many files."
    ),
    "bytes": N_(
        "Write less often and in requests of 1 MiB or more, and let fewer processes "
        "write at the same time. For one large shared file a larger stripe count spreads "
        "the load."
    ),
}
_NODE_LOCAL = N_(
    "Keep files that only one rank or node uses in a directory on the node itself{place}, and copy the "
    "files that you need at the end. A separate directory for each rank on the shared file system does "
    "not help."
)
_NAMED: dict[State, str] = {
    "overload": N_(
        "The server works at its limit, and only fewer requests help. Suspend the job or limit it, and talk "
        "to its owner."
    ),
    "stall": N_("Suspend the job, so that it sends no further requests, and talk to its owner."),
}
"""Advice for operators if a job is suspected, by state."""
_NOT_NAMED = N_(
    "The server works at its limit, and only fewer requests help. See which jobs send most requests."
)
_STALLED = {
    True: N_(
        "A stalled metadata server mostly waits for object servers, with an idle CPU. If it does not "
        "resume, check the object servers."
    ),
    False: N_(
        "A stalled server mostly waits for its disks. If it does not resume, check the disks and "
        "their events."
    ),
}
"""Advice on a stalled server; True: it is a metadata server."""
_OPERATOR = {
    "failover": N_(
        "Clients reconnect and recover. Wait until they have, and check lctl get_param "
        "*.*.recovery_status on the server before anything else."
    ),
    "degraded": N_(
        "Hardware or a path has failed or is being rebuilt. No job caused this: see the events of "
        "this server."
    ),
}


@dataclass(frozen=True)
class OperatorCures:
    advice: str
    commands: tuple[tuple[str, tuple[str, ...]], ...]
    """Commands: each a title and lines to copy."""


def patterns(state: State, kind: str, suspect: Suspect) -> list[Pattern]:
    """Returns the patterns of I/O that a suspect's evidence shows, the most important first."""
    rates = rates_of(suspect.evidence)
    order = _OF_OBJECTS if kind == "object" else _FIRST.get(state, _OTHERWISE)
    found = [one for one in order if one in rates]
    if found[:2] == ["creates", "opens"] and (rates["creates"] or 0) < _FEW_CREATES * (rates["opens"] or 0):
        found[:2] = ["opens", "creates"]
    return found


def rates_of(evidence: Sequence[Evidence]) -> dict[Pattern, float | None]:
    """Returns the largest rate per second of each observed pattern. The rate is None if it is not known."""
    found: dict[Pattern, float | None] = {}
    for one in evidence:
        pattern = _PATTERNS.get(one.what)
        if pattern and (found.get(pattern) is None or (one.value or 0) > (found[pattern] or 0)):
            found[pattern] = one.value
    return found


def for_owner(state: State, kind: str, suspect: Suspect, rules: Intervention, text: Language) -> list[str]:
    """Returns advice for the job's owner as sentences. The list is empty if the job's patterns are not
    known."""
    found = patterns(state, kind, suspect)[:MOST_OWNER_CURES]
    said = [text.gettext(_OWNER[pattern]) for pattern in found]
    if any(pattern in ("opens", "creates") for pattern in found):
        place = f" ({rules.node_local})" if rules.node_local else ""
        said.append(text.gettext(_NODE_LOCAL, place=place))
    return said


def for_pattern(pattern: Pattern, text: Language) -> str:
    """Returns advice for the owner of a job with this pattern as one sentence."""
    return text.gettext(_OWNER[pattern])


def seen(suspect: Suspect, text: Language) -> list[str]:
    """Returns sentences that describe the job's I/O with its rates."""
    rates = rates_of(suspect.evidence)
    return [
        text.gettext(_SEEN[pattern], rate=_amount(pattern, rate))
        for pattern, rate in rates.items() if rate is not None
    ]  # fmt: skip


def for_operators(
    state: State, kind: str, suspects: Sequence[Suspect], rules: Intervention, desk: SchedulerDesk | None,
    text: Language,
) -> OperatorCures:  # fmt: skip
    """Returns advice for operators with commands. The commands apply to the first suspect. If there is no
    suspect, there are no commands."""
    advice = _advice(state, kind, bool(suspects), text)
    if not suspects or state not in ("overload", "stall"):
        return OperatorCures(advice, ())
    first = suspects[0]
    commands = [*_of_scheduler(first, rules, desk, text), *_of_lustre(kind, first, rules, text)]
    return OperatorCures(advice, tuple(commands))


def _advice(state: State, kind: str, is_named: bool, text: Language) -> str:
    if state not in _NAMED:
        return text.gettext(_OPERATOR.get(state, ""))
    first = _NAMED[state] if is_named else _NOT_NAMED if state == "overload" else ""
    more = _STALLED[kind == "metadata"] if state == "stall" else ""
    return " ".join(text.gettext(one) for one in (first, more) if one)


def _of_scheduler(
    suspect: Suspect, rules: Intervention, desk: SchedulerDesk | None, text: Language
) -> list[tuple[str, tuple[str, ...]]]:
    if desk is None:
        return []
    lines = tuple(filter(None, (desk.shown(kind, suspect.job) for kind in desk.scheduler.ways)))
    return (
        [
            (
                text.gettext(
                    "Hold the job while it is queued, suspend it, or end it and hold it in the queue"
                ),
                lines,
            )
        ]
        if lines
        else []
    )


def _of_lustre(
    kind: str, suspect: Suspect, rules: Intervention, text: Language
) -> list[tuple[str, tuple[str, ...]]]:
    titles = {
        "jobid": text.gettext("Limit the job on the Lustre server, by JobID. The rate is for each JobID "
                              "and CPU partition; a server without a TBF policy for JobIDs gets one"),
        "projid": text.gettext("Or limit it by project: replace PROJECT with its number"),
        "nodemap": text.gettext("Or limit it by nodemap: replace NODEMAP with its name"),
    }  # fmt: skip
    rates = rates_of(suspect.evidence)
    # A rule of Lustre limits requests per second to this server. Only rates of opens and creates are in this
    # unit; those of objects and bytes are not.
    requests = max(rates.get("opens") or 0, rates.get("creates") or 0)
    asked = requests or None if kind == "metadata" else None
    version = tbf.version_of(rules.lustre_version)
    made = tbf.rules(kind, suspect.job, asked, suspect.job_ids, version)
    ends = text.gettext("# after the problem has ended:")
    found = [(titles[rule.by], (*rule.start, ends, *rule.stop)) for rule in made]
    has_rules = kind != "client" and (version is None or version >= tbf.JOB_IDS)
    return [*_without_job_id(has_rules, suspect, asked, text), *found]


def _without_job_id(
    has_rules: bool, suspect: Suspect, asked: float | None, text: Language
) -> list[tuple[str, tuple[str, ...]]]:
    """Returns a remark that explains why there is no rule by JobID, if that is so."""
    if not has_rules or not tbf.is_too_divided(asked, suspect.job_ids):
        return []
    why = text.gettext(
        "No Lustre rule by JobID: jobid_name gives this job {n} JobIDs, one for each node, and the "
        "lowest rate is 1 per second for each of them. That would hardly slow the job down. Suspend it "
        "instead",
        n=f"{suspect.job_ids or 0:,}",
    )
    return [(why, ())]


def _amount(pattern: Pattern, rate: float) -> str:
    if pattern == "bytes":
        return BYTES_PER_SECOND.text(rate)
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
