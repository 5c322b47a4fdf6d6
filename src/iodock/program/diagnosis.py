"""Runs the rules over a store. Turns the candidates that they return into findings with severity, share and
gain, and ranks these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from iodock.program import rules
from iodock.program.analyses.overview import PART
from iodock.program.findings import MOST_FILES, Advice, Diagnosis, Finding, Gain, Location, Severity, Silence
from iodock.program.relations.filters import Filters
from iodock.program.relations.io_time import IO_CALLS, io_time
from iodock.program.relations.locations import locations_of
from iodock.program.relations.patterns import PATTERNED, in_lines
from iodock.program.relations.profile import Profile
from iodock.program.relations.run_facts import LEAST_FILES
from iodock.program.relations.selection import select
from iodock.program.rules import counter_headline, gains, headline, typical
from iodock.program.rules.asking import candidates_of
from iodock.program.rules.base import Candidate, Facts, Rule, needs_of
from iodock.program.rules.counter_facts import counter_facts_of
from iodock.program.rules.languages import advice_for
from iodock.program.store import Store
from iodock.shared.errors import RequestError
from iodock.shared.message import Message
from iodock.shared.settings import Settings, load

if TYPE_CHECKING:
    from iodock.shared.meanwhile import Servers


def diagnose(store: Store, settings: Settings | None = None, servers: Servers | None = None) -> Diagnosis:
    """Finds the problems in the I/O of a run. SERVERS provides the state of file servers during the run; if
    it is None, no server is queried. Raises RequestError for settings of a wrong type or with unknown names,
    StoreError and QueryError."""
    if settings is not None and not isinstance(settings, Settings):
        message = f"settings must be those of iodock.load_settings, not {settings!r}"
        raise RequestError(message, 'settings=iodock.load_settings("site.toml")')
    known = counter_facts_of if store.manifest.profiles_only else facts_of
    return diagnosis_of(known(store, settings or load()), servers)


def diagnosis_of(facts: Facts, servers: Servers | None = None) -> Diagnosis:
    """Makes the diagnosis from facts that the caller has collected. The caller can then use the facts and
    their tables for other purposes."""
    known = rules.every()
    _check_names(facts.settings)
    asked = [rule for rule in known if all(map(facts.sees, needs_of(rule, facts)))]
    usual = typical.compare(facts) if facts.has_calls else typical.Comparison()
    found = _found(facts, asked, usual)
    # Counters are sums over the calls on a file. They do not show whether two findings are about the same
    # calls, so no finding is left out as a symptom of another.
    kept = _fitted(_without_symptoms(found) if facts.has_calls else found, facts)
    said = headline if facts.has_calls else counter_headline
    return Diagnosis(
        store=facts.store.name,
        verdict=said.verdict_of(facts, kept),
        findings=tuple(_with_servers(one, facts, servers) for one in _ranked(kept, known)),
        silent=tuple(_silent(facts, known)),
        remarks=(*said.remarks_of(facts), *usual.remarks(), *_probes(facts), *_run_of(servers)),
        next_step=said.next_step_of(facts, kept),
        losses=tuple((loss.name, loss.count, loss.cure) for loss in facts.store.manifest.losses),
    )


def _run_of(servers: Servers | None) -> Iterable[Message]:
    """Returns sentences on the state of the file servers during the whole run."""
    if servers is None:
        return ()
    from iodock.program.meanwhile.sentences import of_run

    return of_run(servers)


def _with_servers(finding: Finding, facts: Facts, servers: Servers | None) -> Finding:
    """Adds the state of the file server to a finding about a call that hung. It is the state at the time of
    that call."""
    began, longest = finding.evidence.get("began_ts"), finding.evidence.get("longest_ns")
    if servers is None or not isinstance(began, int) or not isinstance(longest, int) or not finding.files:
        return finding
    from iodock.program.meanwhile.sentences import of_call

    name = finding.files[0].replace("'", "''")
    mounts = facts.rows(f"SELECT mount_point FROM files WHERE name = '{name}' LIMIT 1")
    mount = mounts[0]["mount_point"] if mounts else None
    return replace(finding, meanwhile=of_call(servers, finding.files[0], (began, began + longest), mount))


def _silent(facts: Facts, known: Iterable[Rule]) -> Iterable[Silence]:
    """Yields the rules that could not run because the store lacks data, or that could not run on all
    files."""
    for rule in known:
        needs = needs_of(rule, facts) + (rule.needs_for_some if facts.has_calls else ())
        missing = [need for need in needs if not facts.sees(need)]
        if missing:
            yield Silence(rule.name, missing[0].why)


def facts_of(store: Store, settings: Settings) -> Facts:
    """Collects the facts about a run that the rules use. Raises RequestError for a store without calls."""
    store.need_calls()
    store.hold_small()
    profile = Profile(store, settings)
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
    """Changes the kind of a path to directory if other files are inside it. The calls alone may not show that
    the path is a directory."""
    if store.rows(f"SELECT 1 FROM files WHERE {_IS_FOLDER} LIMIT 1"):
        store.keep(
            "files",
            f"SELECT * REPLACE (CASE WHEN {_IS_FOLDER} THEN 'directory' ELSE kind END AS kind) FROM files",
        )


_IS_FOLDER = """(kind IN ('file', 'unknown') AND name IN (SELECT rtrim(folder, '/') FROM files)
  AND file_id NOT IN (SELECT file_id FROM uses WHERE direction > 0 AND file_id IS NOT NULL))"""


# This SQL computes the same counts as the analysis `overview`, but from `uses`, which has one row for many
# calls.
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


@dataclass(frozen=True, slots=True)
class _Found:
    """Holds a finding, and the candidate and rule from which it was derived."""

    finding: Finding
    files: frozenset[str]
    """The names of all its files."""
    candidate: Candidate
    is_counted: bool = False
    """Whether the finding comes from counters, which have only times inside calls."""
    direction: str | None = None
    """`read` or `write`, if the finding is about calls in one direction only."""

    @property
    def is_io(self) -> bool:
        """Returns whether the finding's cost is time inside calls. Other costs are time around calls."""
        return self.candidate.wall_seconds is None or self.is_counted


def _found(facts: Facts, asked: Sequence[Rule], usual: typical.Comparison) -> list[_Found]:
    """Runs the rules and returns their findings in the order of the rules."""
    answers = list(zip(asked, candidates_of(asked, facts), strict=True))
    telling = {rule.name for rule in asked if rule.tells_hung_calls}
    slow = [one for rule, hung in answers if rule.name in telling for one in hung]
    metadata = _metadata(slow, facts) if slow else []
    directions = _directions(facts) if facts.has_calls else {}
    found = []
    for rule, candidates in answers:
        hung = [] if telling.isdisjoint(rule.yields_to) else metadata
        for candidate in candidates:
            spared = _without_hung(candidate, hung) if hung else candidate
            one = _finding(rule, spared, facts, usual)
            direction = directions.get(candidate.call or "") if rule.one_direction else None
            found.append(replace(one, direction=direction))
    return found


def _directions(facts: Facts) -> dict[str, str]:
    """Maps the name of each call that reads or writes to `read` or `write`."""
    rows = facts.rows("SELECT name, family FROM calls WHERE family IN ('read', 'write')")
    return {row["name"]: row["family"] for row in rows}


def _metadata(slow: Sequence[Candidate], facts: Facts) -> list[Candidate]:
    """Returns the slow calls that are metadata calls. Rules for metadata calls leave their cost out."""
    names = {row["name"] for row in facts.rows("SELECT name FROM calls WHERE class = 'metadata'")}
    return [one for one in slow if one.call in names]


def _without_hung(candidate: Candidate, hung: Sequence[Candidate]) -> Candidate:
    """Returns the candidate without the time of calls that hung on its files."""
    if candidate.time_ns is None or candidate.wall_seconds is not None:
        return candidate
    lost = sum(one.time_ns or 0 for one in hung if not set(one.files).isdisjoint(candidate.files))
    return replace(candidate, time_ns=max(0, candidate.time_ns - lost))


def _finding(rule: Rule, candidate: Candidate, facts: Facts, usual: typical.Comparison) -> _Found:
    cost = candidate.wall_seconds if candidate.wall_seconds is not None else _cost(candidate, facts)
    wall = facts.wall_seconds
    cost = cost if cost is None or wall is None else min(cost, wall)
    share = cost / wall if cost is not None and wall else None
    files = candidate.files[:MOST_FILES]
    confidence = candidate.confidence + usual.change_of_confidence(rule.name, candidate.files)
    gain, work_seconds = gains.gain_of(candidate, cost, facts)
    finding = Finding(
        rule=rule.name,
        severity=gains.severity_of(candidate, gain, cost, facts),
        confidence=round(min(0.95, max(0.1, confidence)), 2),
        cost_seconds=cost,
        cost_share=share,
        node_hours=cost * facts.nodes / 3600 if cost is not None and facts.nodes else None,
        gain=gain,
        work_seconds=work_seconds,
        title=Message(candidate.title or rule.title),
        message=candidate.message,
        files=_lines(candidate.files, facts),
        file_count=len(files) if candidate.file_count is None else candidate.file_count,
        call=candidate.call,
        evidence=candidate.evidence,
        query=candidate.query,
        advice=_advice(candidate.advice or rule.advice, candidate, facts),
        fine_when=Message(rule.fine_when),
        case=rule.case,
        locations=_locations(candidate, facts) if facts.has_calls else (),
    )
    return _Found(finding, frozenset(candidate.files), candidate, not facts.has_calls)


def _locations(candidate: Candidate, facts: Facts) -> tuple[Location, ...]:
    call = candidate.placed_by or candidate.call
    return locations_of(facts.store, call, candidate.files, candidate.authors)


def _advice(known: Sequence[Advice], candidate: Candidate, facts: Facts) -> tuple[Advice, ...]:
    """Returns the advice that suits the languages of the candidate's programs. Counters name no program, so
    for them the interface decides which advice suits."""
    if facts.has_calls:
        return advice_for(known, candidate, facts)
    return tuple(one for one in known if one.language in ("any", *counter_headline.spoken_by(facts)))


def _lines(names: Sequence[str], facts: Facts) -> tuple[str, ...]:
    """Returns the names of at most MOST_FILES files, in which files with similar names are replaced by a
    pattern."""
    if len(names) >= LEAST_FILES or any("*" in name for name in names):
        facts.profile.need((PATTERNED,))
        names = in_lines(facts.store, names)
    return tuple(names[:MOST_FILES])


def _cost(candidate: Candidate, facts: Facts) -> float | None:
    """Returns the wall time of the candidate's calls in seconds, or None if it is not known. For a live
    recording this includes the overhead of tracing, which would disappear together with the calls."""
    if candidate.time_ns is None:
        return None
    return facts.wall_of(candidate.time_ns + candidate.count * facts.tracing_ns)


def _without_symptoms(found: Sequence[_Found]) -> list[_Found]:
    """Returns the findings without those that are only a symptom of another finding on the same files."""
    known = {rule.name: rule for rule in rules.every()}

    def left_by(number: int, asked: frozenset[int]) -> list[Finding]:
        """Returns the findings that explain the finding NUMBER. If one of these is itself explained by
        others, the others are returned in its place. If nothing explains the finding, it is returned
        itself."""
        first = found[number]
        one, files = first.finding, first.files
        rule, left = known[one.rule], []
        for at, other in enumerate(found):
            is_near = at not in asked and _same_place(files, other.files) and not _are_opposite(first, other)
            if is_near and other.finding.rule in rule.yields_to and covers(other.finding, one, rule):
                left += left_by(at, asked | {at})
        return left if any(covers(other, one, rule) for other in left) else [one]

    def covers(other: Finding, one: Finding, rule: Rule) -> bool:
        # The cost of this finding no longer contains calls that hung. What remains of the cost is therefore
        # no symptom of them.
        is_judged_without = known[other.rule].tells_hung_calls and not rule.is_of_waiting
        if is_judged_without and one.severity is not Severity.NOTE:
            return False
        return _covers(other, one, rule)

    return [one for at, one in enumerate(found) if one.finding in left_by(at, frozenset({at}))]


def _fitted(found: Sequence[_Found], facts: Facts) -> list[Finding]:
    """Limits the gains of findings. Their sum must not exceed the duration of the run, and the sum of gains
    from I/O must not exceed the time of the I/O and of the work around it. The severity is then computed from
    the limited gain."""
    io_seconds = facts.alone_io_seconds
    charged = [one.finding for one in found if one.is_io]
    limit = None if io_seconds is None else io_seconds + sum(one.work_seconds for one in charged)
    of_io = iter(gains.within([one.gain for one in charged], limit))
    fitting = [next(of_io) if one.is_io else one.finding.gain for one in found]
    together = gains.within(fitting, facts.alone_seconds)
    return [_with_gain(one, gain, facts) for one, gain in zip(found, together, strict=True)]


def _with_gain(one: _Found, gain: Gain | None, facts: Facts) -> Finding:
    severity = gains.severity_of(one.candidate, gain, one.finding.cost_seconds, facts)
    return replace(one.finding, gain=gain, severity=severity)


# The sets contain all files of both findings, and not only those that a report lists. If many files have
# equal cost, two findings may list different ones although they are about the same files.
def _same_place(files: frozenset[str], others: frozenset[str]) -> bool:
    return not files or not others or not files.isdisjoint(others)


def _are_opposite(one: _Found, other: _Found) -> bool:
    """Returns whether one finding is about reads and the other about writes. Such findings do not explain
    each other."""
    return None not in (one.direction, other.direction) and one.direction != other.direction


# A finding explains another only if it costs nearly as much. Otherwise a chain of explanations could replace
# an expensive finding by a cheap one.
def _covers(other: Finding, one: Finding, rule: Rule) -> bool:
    if one.cost_seconds is None or other.cost_seconds is None:
        return other.severity.at_least(one.severity)
    if one.gain and other.gain and other.gain.high_seconds < rule.yields_at * one.gain.low_seconds:
        return False
    return other.cost_seconds >= rule.yields_at * one.cost_seconds


def _ranked(found: Sequence[Finding], known: Iterable[Rule]) -> tuple[Finding, ...]:
    """Sorts findings by gain, with notes after all other findings. In both groups, findings come last whose
    change should be made after the other changes."""
    last = {rule.name for rule in known if rule.comes_last}

    def order(one: Finding) -> tuple[bool, bool, float, int, str]:
        is_note = one.severity is Severity.NOTE
        saved = one.cost_seconds or 0.0 if one.gain is None else one.gain.middle_seconds
        return (is_note, one.rule in last, -saved, one.severity.rank, one.rule)

    return tuple(sorted(found, key=order))


def _probes(facts: Facts) -> Iterable[Message]:
    """Yields sentences on the measurements of the site's probes during the run. Only the file systems that
    the run used are included."""
    known = {mount: one.probe_store for mount, one in facts.settings.file_systems.items() if one.probe_store}
    run = facts.store.manifest
    if not known or run.clock != "epoch" or run.first_ts is None or run.last_ts is None:
        return ()
    from iodock.file_system.probe.seen import during

    used = {row["mount_point"] for row in facts.rows("SELECT DISTINCT mount_point FROM files")} - {None}
    # Logs of other tracers do not contain mount points. For them all probes are used.
    stores = {mount: folder for mount, folder in known.items() if mount in used or not used}
    return during(stores, run.first_ts, run.last_ts)
