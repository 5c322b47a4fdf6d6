"""Derives the headline of a run: how much of it was I/O, and whether a change is worthwhile. All views
show the same headline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iodock.program.analyses.counters.ranks import counted_ranks_sql
from iodock.program.findings import IO_FINE, Finding, Severity, Verdict
from iodock.program.rules import gains
from iodock.program.rules.facts import LEAST_OWN, Facts
from iodock.program.unseen import says, unseen_of
from iodock.shared.language import N_
from iodock.shared.message import Message


def verdict_of(facts: Facts, found: Sequence[Finding]) -> Verdict:
    """Describes the run in a few numbers, with their interpretation. FOUND contains the run's findings and
    notes."""
    io, unseen = facts.io_ns, unseen_of(facts.store)
    waiting = facts.overview.get("waiting_time_ns")
    worth = _worth(found)
    return Verdict(
        wall_seconds=facts.wall_seconds,
        io_seconds=None if io is None else io / 1e9,
        io_share=_io_share(facts),
        waiting_seconds=None if waiting is None else waiting / 1e9,
        unseen_calls=unseen.count,
        judges=unseen.judges,
        text=_text(facts, worth),
        alone_seconds=facts.alone_seconds,
        gain=gains.total([one.gain for one in worth]),
        before=(*_going_on(facts), *_ended(facts), *_untraced(facts)),
    )


def remarks_of(facts: Facts) -> tuple[Message, ...]:
    """Returns remarks that readers need to interpret the times. The result is empty if there are none."""
    if not facts.store.manifest.is_partly_counted:
        return ()
    counted = facts.one(f"SELECT count(*) AS n FROM ({counted_ranks_sql(facts.store)})")["n"]
    if not counted:
        return (Message(_PROCESSES_COUNTED),)
    return (Message(_RANKS_COUNTED, {"counted": counted, "ranks": facts.ranks}),)


_RANKS_COUNTED = N_(
    "{counted} of {ranks} ranks were counted but not recorded. The statements here are about the "
    "others; comparisons between ranks were not made."
)
_PROCESSES_COUNTED = N_(
    "Processes without a rank were counted but not recorded. The statements here are about the others."
)


def next_step_of(facts: Facts, found: Sequence[Finding]) -> Message:
    """Returns the next step of the method (SS-ken report, 2.3): the user changes the program and measures
    it again, contacts the administrator, or does nothing."""
    share = _io_share(facts)
    if _worth(found):
        return Message(
            N_("Next: make the first change, record again, and compare with iodock diff BEFORE AFTER.")
        )
    if not unseen_of(facts.store).judges:
        return Message(
            N_(
                "Next: record the missing calls, as explained below. There may be more I/O than "
                "shown here, and some of it may be worth changing."
            )
        )
    if facts.store.manifest.in_progress is not None:
        return Message(
            N_("Next: diagnose again when the program has ended. This covers only what was recorded so far.")
        )
    if facts.failed:
        return Message(N_("Next: find out why the program ended in this way, and record a complete run."))
    if not facts.calls or (share is not None and share < IO_FINE):
        return Message(N_("Next: if the program is slow, look at its computation, not at its I/O."))
    return Message(
        N_(
            "Next, if this was slower than usual: iodock bundle collects what an administrator needs to "
            "see whether the file system was overloaded at that time."
        )
    )


def _worth(found: Sequence[Finding]) -> list[Finding]:
    return [one for one in found if one.severity is not Severity.NOTE]


def _io_share(facts: Facts) -> float | None:
    return facts.io_ns / facts.wall_ns if facts.io_ns is not None and facts.wall_ns else None


def _text(facts: Facts, worth: Sequence[Finding]) -> Message:
    unseen, share = unseen_of(facts.store), _io_share(facts)
    if not worth and not unseen.judges:
        return says(unseen)
    if not facts.calls and facts.store.manifest.in_progress is not None:
        return Message(N_("No file I/O was seen so far."))
    if not facts.calls or facts.only_starts:
        return Message(N_("No file I/O was seen in this run."))
    values = {"io_share": share, "things": len(worth)}
    if share is None:
        text = (
            N_("The time taken by I/O is unknown. Things worth changing: {things}.")
            if worth
            else N_("The time taken by I/O is unknown. Nothing in the I/O pattern is worth changing.")
        )
        return Message(text, values)
    if worth:
        return Message(_beside_share(facts, worth), values)
    if facts.store.manifest.in_progress is not None:
        return Message(
            N_("So far {io_share} of the run was I/O, and nothing in it is worth changing."), values
        )
    if facts.is_traced and share >= IO_FINE:
        return Message(
            N_(
                "{io_share} of the traced run was I/O (without the tracer it may be more or less); nothing "
                "worth changing."
            ),
            values,
        )
    if facts.failed:
        return Message(
            N_("{io_share} of the run until then was I/O; nothing in it is worth changing."), values
        )
    if share < IO_FINE:
        return Message(N_("Your I/O is fine: it took {io_share} of the run. Nothing worth changing."), values)
    return Message(N_("I/O took {io_share} of the run and is efficient: nothing worth changing."), values)


def _beside_share(facts: Facts, worth: Sequence[Finding]) -> str:
    """Returns the text that follows the share of I/O. The program may work longer around the calls than in
    them. The share alone would then seem to contradict the findings."""
    if facts.is_traced:
        return N_(
            "I/O took {io_share} of the traced run (without the tracer it may be more or less). Things "
            "worth changing: {things}."
        )
    gain = gains.total([one.gain for one in worth])
    io = facts.alone_io_seconds
    if gain is not None and io is not None and gain.middle_seconds > io:
        return N_(
            "I/O took {io_share} of the run, and the work around these calls takes longer than the "
            "calls. Things worth changing: {things}."
        )
    return N_("I/O took {io_share} of the run. Things worth changing: {things}.")


def _going_on(facts: Facts) -> Iterator[Message]:
    now = facts.store.manifest.in_progress
    if now is None:
        return
    text = N_("Still being recorded: {so_far} so far, including calls up to {behind} ago.")
    yield Message(text, {"so_far": now.so_far, "behind": now.behind})


def _ended(facts: Facts) -> Iterator[Message]:
    if facts.exit_signal:
        text = N_("The program was killed by {signal}: this diagnosis covers the run until then.")
        yield Message(text, {"signal": facts.exit_signal})
    elif facts.exit_status:
        text = N_("The program ended with status {status}: this diagnosis covers the run until then.")
        yield Message(text, {"status": facts.exit_status})


def _untraced(facts: Facts) -> Iterator[Message]:
    if facts.is_tracer_unknown and facts.calls:
        yield Message(
            N_(
                "The overhead of the tracer is not known: times may be many times as long as without "
                "it, so no savings in seconds are given."
            )
        )
    wall, alone = facts.wall_seconds, facts.alone_seconds
    if wall and alone is not None and alone < LEAST_OWN * wall:
        text = N_(
            "Without the tracer this run takes about {alone_s}, not {wall_s}. Savings are given for a run "
            "without the tracer; all other times are as recorded."
        )
        yield Message(text, {"alone_s": float(f"{alone:.2g}"), "wall_s": wall})
