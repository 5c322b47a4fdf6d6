"""Runs the rules over a store: candidates become findings with severity, share and gain, ranked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from iodock import rules
from iodock.analyses.overview import PART
from iodock.errors import RequestError
from iodock.findings import (
    IO_FINE,
    MOST_FILES,
    Diagnosis,
    Finding,
    Gain,
    Message,
    Severity,
    Silence,
    Verdict,
)
from iodock.language import N_
from iodock.relations.filters import Filters
from iodock.relations.io_time import IO_CALLS, io_time
from iodock.relations.profile import Profile
from iodock.relations.selection import select
from iodock.rules import costs, slow_call, tracing, typical
from iodock.rules.asking import candidates_of
from iodock.rules.base import Candidate, Facts, Rule
from iodock.rules.languages import advice_for
from iodock.settings import Settings, SeverityLimits, load
from iodock.store import Store
from iodock.unseen import Unseen, says, unseen_of

LEAST_UNTRACED = 0.02
"""So much of a recorded run is the program's own at least, however much tracing added."""


def diagnose(store: Store, settings: Settings | None = None) -> Diagnosis:
    """What is wrong with a run's I/O. Raises RequestError for settings that don't fit, StoreError,
    QueryError."""
    return diagnosis_of(facts_of(store, settings or load()))


def diagnosis_of(facts: Facts) -> Diagnosis:
    """The same for one who needs a run's facts and derived tables too."""
    known = rules.every()
    _check_names(facts.settings)
    missing = {rule.name: [need for need in rule.needs if not facts.sees(need)] for rule in known}
    usual = typical.compare(facts)
    kept = _without_symptoms(_found(facts, [rule for rule in known if not missing[rule.name]], usual))
    return Diagnosis(
        store=facts.store.name,
        verdict=_verdict(facts, kept),
        findings=_ranked(kept, known),
        silent=tuple(Silence(name, needs[0].why) for name, needs in missing.items() if needs),
        remarks=(*_remarks(facts, kept), *usual.remarks(), *_probes(facts)),
        next_step=_next_step(facts, kept),
        losses=tuple((loss.name, loss.count, loss.cure) for loss in facts.store.manifest.losses),
    )


def facts_of(store: Store, settings: Settings) -> Facts:
    """What rules know of a store. Raises RequestError for one without calls."""
    store.need_calls()
    store.hold_small()
    profile = Profile(store)
    profile.need(["uses"])
    _name_folders(store)
    (sums,) = store.rows(_SUMS_SQL)
    everything = select(store, Filters.from_mapping({"kind": ["all"]}))
    spent = io_time(store, everything)
    total = {
        "io_time_ns": None if spent is None else spent.subset_ns,
        "waiting_time_ns": None if spent is None else spent.any_ns - spent.subset_ns,
        "summed_io_ns": sums["time_ns"] if store.manifest.durations else None,
        "calls": sums["calls"],
    }
    return Facts(store, settings, profile, total)


def _name_folders(store: Store) -> None:
    """A path that was only looked at may be a folder though no call said so: other files lie in it."""
    if store.rows(f"SELECT 1 FROM files WHERE {_IS_FOLDER} LIMIT 1"):
        store.keep(
            "files",
            f"SELECT * REPLACE (CASE WHEN {_IS_FOLDER} THEN 'directory' ELSE kind END AS kind) FROM files",
        )


_IS_FOLDER = """(kind IN ('file', 'unknown') AND name IN (SELECT rtrim(folder, '/') FROM files)
  AND file_id NOT IN (SELECT file_id FROM uses WHERE direction > 0 AND file_id IS NOT NULL))"""


# What the analysis `overview` counts, from the folded calls.
_SUMS_SQL = f"""WITH parts AS (SELECT u.count, u.time_ns, u.side, {PART} AS part
  FROM uses u JOIN calls c ON c.id = u.call_id LEFT JOIN files f ON f.file_id = u.file_id
  WHERE u.file_id IS NOT NULL OR {IO_CALLS})
SELECT CAST(coalesce(sum(count) FILTER (WHERE side IN (0, 1, 3)), 0) AS BIGINT) AS calls,
  CAST(sum(time_ns) FILTER (WHERE side IN (0, 1, 3) AND part <> 'waiting') AS BIGINT) AS time_ns FROM parts"""


def _check_names(settings: Settings) -> None:
    for name in settings.rules:
        try:
            rules.find(name)
        except RequestError as error:
            raise RequestError(f"{settings.source}: [rules.{name}]: {error}", error.hint) from None


def _found(
    facts: Facts, asked: Sequence[Rule], usual: typical.Comparison
) -> list[tuple[Finding, frozenset[str]]]:
    """Findings in the order of their rules, each with the names of all its files."""
    answers = list(zip(asked, candidates_of(asked, facts), strict=True))
    slow = next((hung for rule, hung in answers if rule is slow_call.RULE), [])
    metadata = _metadata(slow, facts) if slow else []
    found = []
    for rule, candidates in answers:
        hung = metadata if slow_call.RULE.name in rule.yields_to else []
        for candidate in candidates:
            spared = _without_hung(candidate, hung) if hung else candidate
            found.append((_finding(rule, spared, facts, usual), frozenset(candidate.files)))
    return found


def _metadata(slow: Sequence[Candidate], facts: Facts) -> list[Candidate]:
    """Those that the rules which yield to them count: these look at metadata calls."""
    names = {row["name"] for row in facts.rows("SELECT name FROM calls WHERE class = 'metadata'")}
    return [one for one in slow if one.call in names]


def _without_hung(candidate: Candidate, hung: Sequence[Candidate]) -> Candidate:
    """The same candidate at what its calls cost beside those that hung on its files."""
    if candidate.time_ns is None or candidate.wall_seconds is not None:
        return candidate
    lost = sum(one.time_ns or 0 for one in hung if not set(one.files).isdisjoint(candidate.files))
    return replace(candidate, time_ns=max(0, candidate.time_ns - lost))


def _finding(rule: Rule, candidate: Candidate, facts: Facts, usual: typical.Comparison) -> Finding:
    cost = candidate.wall_seconds if candidate.wall_seconds is not None else _cost(candidate, facts)
    wall = facts.wall_seconds
    cost = cost if cost is None or wall is None else min(cost, wall)
    share = cost / wall if cost is not None and wall else None
    files = candidate.files[:MOST_FILES]
    confidence = candidate.confidence + usual.change_of_confidence(rule.name, candidate.files)
    return Finding(
        rule=rule.name,
        severity=_severity(candidate, cost, facts, wall),
        confidence=round(min(0.95, max(0.1, confidence)), 2),
        cost_seconds=cost,
        cost_share=share,
        node_hours=cost * facts.nodes / 3600 if cost is not None and facts.nodes else None,
        gain=_gain(candidate, cost, facts),
        title=Message(candidate.title or rule.title),
        message=candidate.message,
        files=files,
        file_count=len(files) if candidate.file_count is None else candidate.file_count,
        call=candidate.call,
        evidence=candidate.evidence,
        query=candidate.query,
        advice=advice_for(candidate.advice or rule.advice, candidate, facts),
        fine_when=Message(rule.fine_when),
        case=rule.case,
    )


def _cost(candidate: Candidate, facts: Facts) -> float | None:
    """Wall time of the calls at fault, in a live recording with what tracing adds to each of them: both go
    with the call."""
    if candidate.time_ns is None:
        return None
    return facts.wall_of(candidate.time_ns + candidate.count * facts.tracing_ns)


def _gain(candidate: Candidate, cost: float | None, facts: Facts) -> Gain | None:
    if candidate.gain is None or cost is None:
        return None
    spared, wall = cost, facts.wall_seconds
    if candidate.work_goes:
        work = facts.wall_of(round(candidate.count * facts.work_ns)) or 0.0
        spared = max(cost, costs.WORK_GOES * (cost + work))
    low, high = (share * spared for share in candidate.gain)
    return Gain(low, high if wall is None else min(high, wall))


def _severity(candidate: Candidate, cost: float | None, facts: Facts, wall: float | None) -> Severity:
    share = cost / wall if cost is not None and wall else None
    found = _by_share(share, facts.settings.severity) if share is not None else _by_calls(candidate, facts)
    is_little = cost is not None and cost < facts.settings.severity.least_seconds
    if (is_little and found is Severity.LOW) or _is_tracing(candidate, facts, wall):
        return Severity.NOTE
    return found if candidate.at_most.at_least(found) else candidate.at_most


def _is_tracing(candidate: Candidate, facts: Facts, wall: float | None) -> bool:
    """Whether the calls themselves would take next to nothing of the run without a tracer."""
    if candidate.time_ns is None or not wall or candidate.wall_seconds is not None:
        return False
    # A tracer stops the program twice for each call: of logs only what one stop takes is known.
    each = facts.within_ns + (facts.tracing_ns or facts.within_ns)
    alone, added = facts.wall_of(_untraced_ns(candidate, facts)), facts.wall_of(facts.calls * each)
    if alone is None or not added:
        return False
    return alone < facts.settings.severity.low * max(wall - added, LEAST_UNTRACED * wall)


def _untraced_ns(candidate: Candidate, facts: Facts) -> int:
    """What the calls at fault would take without a tracer, with the work around those that go. If they take
    hardly longer than calls that do nothing, nothing more is known of them than their number."""
    time_ns, added = candidate.time_ns or 0, candidate.count * facts.within_ns
    work = round(candidate.count * facts.work_ns) if candidate.gain == costs.CALLS_GO and added else 0
    if time_ns < 2 * added:
        return min(time_ns, candidate.count * tracing.UNTRACED_NS) + work
    return time_ns - added + work


def _by_share(share: float, limits: SeverityLimits) -> Severity:
    if share >= limits.high:
        return Severity.HIGH
    if share >= limits.medium:
        return Severity.MEDIUM
    return Severity.LOW if share >= limits.low else Severity.NOTE


def _by_calls(candidate: Candidate, facts: Facts) -> Severity:
    """Without durations the share of calls stands in, and nothing is called high."""
    share = candidate.count / facts.calls if facts.calls else 0.0
    if share >= 0.3:
        return Severity.MEDIUM
    return Severity.LOW if share >= 0.05 else Severity.NOTE


def _without_symptoms(found: Sequence[tuple[Finding, frozenset[str]]]) -> list[Finding]:
    """Leaves out findings that only show the symptom of what another one names on the same files."""
    known = {rule.name: rule for rule in rules.every()}

    def left_by(number: int, asked: frozenset[int]) -> list[Finding]:
        """What is shown for a finding: those that explain it, or what is shown for these; else itself."""
        one, files = found[number]
        rule, left = known[one.rule], []
        for at, (other, others) in enumerate(found):
            if at not in asked and _same_place(files, others) and _explains(other, one, rule):
                left += left_by(at, asked | {at})
        return left if any(_covers(other, one, rule) for other in left) else [one]

    return [one for at, (one, _) in enumerate(found) if one in left_by(at, frozenset({at}))]


# Of all files, not of those shown: of many that cost alike, each rule shows others.
def _same_place(files: frozenset[str], others: frozenset[str]) -> bool:
    return not files or not others or not files.isdisjoint(others)


def _explains(other: Finding, one: Finding, rule: Rule) -> bool:
    return other.rule in rule.yields_to and _covers(other, one, rule)


# A chain of causes may end with one that is much cheaper than what it began with.
def _covers(other: Finding, one: Finding, rule: Rule) -> bool:
    # Without the calls that hung, what is left of the cost is no symptom of these.
    hung = other.rule == slow_call.RULE.name and one.rule not in _OF_WAITING
    if hung and one.severity is not Severity.NOTE:
        return False
    if one.cost_seconds is None or other.cost_seconds is None:
        return other.severity.at_least(one.severity)
    return other.cost_seconds >= rule.yields_at * one.cost_seconds


# What these cost is waiting, in which a call that hung may be all there is.
_OF_WAITING = frozenset({"straggler", "io-not-overlapped"})


def _ranked(found: Sequence[Finding], known: Iterable[Rule]) -> tuple[Finding, ...]:
    """Notes after all others, then by cost; what should be changed last comes last of either."""
    last = {rule.name for rule in known if rule.comes_last}

    def order(one: Finding) -> tuple[bool, bool, float, int, str]:
        is_note = one.severity is Severity.NOTE
        return (is_note, one.rule in last, -(one.cost_seconds or 0.0), one.severity.rank, one.rule)

    return tuple(sorted(found, key=order))


def _verdict(facts: Facts, found: Sequence[Finding]) -> Verdict:
    wall, io = facts.wall_seconds, facts.io_ns
    waiting = facts.overview.get("waiting_time_ns")
    share = io / facts.wall_ns if io is not None and facts.wall_ns else None
    return Verdict(
        wall_seconds=wall,
        io_seconds=None if io is None else io / 1e9,
        io_share=share,
        waiting_seconds=None if waiting is None else waiting / 1e9,
        unseen_calls=_unseen(facts).count,
        judges=_unseen(facts).judges,
        text=_verdict_text(facts, found, share),
    )


def _verdict_text(facts: Facts, found: Sequence[Finding], share: float | None) -> Message:
    worth = [one for one in found if one.severity is not Severity.NOTE]
    values = {"io_share": share, "things": len(worth)}
    unseen = _unseen(facts)
    if not worth and not unseen.judges:
        return says(unseen)
    if not facts.calls:
        return Message(N_("No file I/O was seen in this run."))
    if share is None:
        text = (
            N_("How long the I/O took is not known; worth changing: {things}.")
            if worth
            else N_("How long the I/O took is not known; nothing in its pattern is worth changing.")
        )
        return Message(text, values)
    if not worth:
        text = (
            N_("Your I/O is fine: it took {io_share} of the run. Nothing worth changing.")
            if share < IO_FINE
            else N_("{io_share} of the run was I/O, and it is done well: nothing worth changing.")
        )
        return Message(text, values)
    return Message(N_("{io_share} of the run was I/O; worth changing: {things}."), values)


def _next_step(facts: Facts, found: Sequence[Finding]) -> Message:
    """The method's next step (SS-ken report, 2.3): change and measure again, the administrator, or
    nothing."""
    share = facts.io_ns / facts.wall_ns if facts.io_ns is not None and facts.wall_ns else None
    if any(one.severity is not Severity.NOTE for one in found):
        return Message(
            N_("Next: make the first change, record again, and compare with iodock diff BEFORE AFTER.")
        )
    if not _unseen(facts).judges:
        return Message(
            N_(
                "Next: record what was not seen, as is said below: there may be more I/O than this, and some "
                "that is worth changing."
            )
        )
    if not facts.calls or (share is not None and share < IO_FINE):
        return Message(N_("Next: if the program is slow, look at its computation, not at its I/O."))
    return Message(
        N_(
            "Next, if this was slower than usual: iodock bundle collects what an administrator needs to "
            "see whether the file system was overloaded at that time."
        )
    )


def _unseen(facts: Facts) -> Unseen:
    return unseen_of(facts.store)


def _probes(facts: Facts) -> Iterable[Message]:
    """What the site's probes saw meanwhile, of the file systems that the run used."""
    known = {mount: one.probe_store for mount, one in facts.settings.file_systems.items() if one.probe_store}
    run = facts.store.manifest
    if not known or run.clock != "epoch" or run.first_ts is None or run.last_ts is None:
        return ()
    from iodock.probe.seen import during

    used = {row["mount_point"] for row in facts.rows("SELECT DISTINCT mount_point FROM files")} - {None}
    # Logs of other programs do not say what lies where.
    stores = {mount: folder for mount, folder in known.items() if mount in used or not used}
    return during(stores, run.first_ts, run.last_ts)


def _remarks(facts: Facts, found: Sequence[Finding]) -> Iterable[Message]:
    """Of a live recording: its seconds are not those of the program alone."""
    charged = any(one.cost_seconds is not None and one.severity is not Severity.NOTE for one in found)
    if facts.tracing_ns and charged:
        yield Message(
            N_(
                "Costs and gains are seconds of this recording: they hold the {pause_ns} or so that tracing "
                "adds to each call, which the share of I/O above does not. Without recording, the program "
                "and what a change saves take less."
            ),
            {"pause_ns": facts.tracing_ns},
        )
