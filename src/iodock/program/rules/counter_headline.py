"""Derives the verdict on a run with counters instead of calls, and the next step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from iodock.program.findings import Finding, Severity, Verdict
from iodock.program.rules import counted, gains
from iodock.program.rules.facts import Facts
from iodock.program.unseen import unseen_of
from iodock.shared.language import N_
from iodock.shared.message import Message


def verdict_of(facts: Facts, found: Sequence[Finding]) -> Verdict:
    """Describes the run in a few numbers, with their interpretation. FOUND contains the run's findings and
    notes."""
    io, unseen = facts.io_ns, unseen_of(facts.store)
    worth = _worth(found)
    return Verdict(
        wall_seconds=facts.wall_seconds,
        io_seconds=None if io is None else io / 1e9,
        io_share=_io_share(facts),
        waiting_seconds=None,
        unseen_calls=unseen.count,
        judges=_is_counted(facts) and unseen.judges,
        text=_text(facts, worth),
        alone_seconds=facts.wall_seconds,
        gain=gains.total([one.gain for one in worth]),
        before=tuple(_missing(facts)) if worth else (),
    )


def next_step_of(facts: Facts, found: Sequence[Finding]) -> Message:
    """Returns the next step: the user makes a change, obtains missing data, or records single calls."""
    if _worth(found):
        return Message(
            N_("Next: make the first change, run the job again, and compare the counters of both runs.")
        )
    if not _is_counted(facts) or not unseen_of(facts.store).judges:
        return Message(
            N_(
                "Next: import a complete log of the job, or record it with iodock record: this log "
                "shows only a part."
            )
        )
    return Message(
        N_(
            "Next, if I/O is slow nevertheless: record a short run with iodock record, which shows single "
            "calls, their order and the programs that make them."
        )
    )


def remarks_of(facts: Facts) -> tuple[Message, ...]:
    """Returns remarks on the meaning of the times, and on rules that were not checked."""
    return tuple(_remarks(facts))


def _remarks(facts: Facts) -> Iterator[Message]:
    if files := counted.counted_together(facts):
        yield Message(
            N_(
                "Files that were counted together: {files}. Only their sums are judged, not the use of "
                "each file."
            ),
            {"files": files},
        )
    if not facts.summed_io_ns:
        return
    text = N_(
        "The store has counters of files, not single calls. If several processes share a problem, its "
        "time is their mean. Savings are given only where counters show them."
    )
    yield Message(text)


def spoken_by(facts: Facts) -> Iterator[str]:
    """Yields the languages and interfaces for which advice is shown."""
    rows = facts.rows("SELECT DISTINCT interface FROM profiles")
    used = {str(row["interface"]).split("-")[0] for row in rows}
    yield "administrator"
    if facts.ranks > 1:
        yield "MPI-IO"
    if "hdf5" in used:
        yield "HDF5"


def _worth(found: Sequence[Finding]) -> list[Finding]:
    return [one for one in found if one.severity is not Severity.NOTE]


def _is_counted(facts: Facts) -> bool:
    return bool(facts.store.manifest.rows.get("profiles"))


def _io_share(facts: Facts) -> float | None:
    return _share(facts.io_ns, facts)


def _share(time_ns: int | None, facts: Facts) -> float | None:
    if time_ns is None or not facts.wall_ns:
        return None
    return min(1.0, time_ns / facts.wall_ns)


def _missing(facts: Facts) -> Iterator[Message]:
    if not unseen_of(facts.store).judges:
        yield Message(N_("An unknown number of counters is missing. This diagnosis covers the others."))


def _text(facts: Facts, worth: Sequence[Finding]) -> Message:
    share, most = _io_share(facts), _share(facts.overview.get("most_io_ns"), facts)
    values = {"io_share": share if share is not None else most, "things": len(worth)}
    known = "exact" if share is not None else "bound" if most is not None and most < 1 else "none"
    alone = "alone" if facts.rows("SELECT count(*) AS n FROM counted_work")[0]["n"] < 2 else "several"
    who = alone if facts.ranks < 2 else "several"
    if worth:
        return Message(_WORTH.get((known, who), _WORTH_UNTIMED), values)
    if not _is_counted(facts):
        if facts.store.manifest.is_light:
            return Message(_NO_COUNTERS)
        return Message(
            N_(
                "There are no counters of any file: Darshan kept none, or they could not be read. "
                "The job may have done I/O nevertheless."
            )
        )
    if not unseen_of(facts.store).judges:
        return Message(
            N_(
                "An unknown number of counters is missing, so the remaining ones can't show "
                "whether the I/O is fine. How to get the rest is explained below."
            )
        )
    return Message(_NOTHING.get((known, who), _NOTHING_UNTIMED), values)


_NO_COUNTERS = N_("No call on a file was counted. There may have been calls that were not counted.")
_WORTH = {
    ("exact", "several"): N_(
        "The process with most I/O spent {io_share} of the run in I/O. Things worth changing: {things}."
    ),
    ("exact", "alone"): N_(
        "The process spent {io_share} of the run in I/O. Things worth changing: {things}."
    ),
    ("bound", "several"): N_(
        "The process with most I/O spent at most {io_share} of the run in I/O, as the times of its "
        "threads are added up. Things worth changing: {things}."
    ),
    ("bound", "alone"): N_(
        "The process spent at most {io_share} of the run in I/O, as the times of its threads are added "
        "up. Things worth changing: {things}."
    ),
}
_WORTH_UNTIMED = N_("The time taken by I/O is unknown. Things worth changing: {things}.")
_NOTHING = {
    ("exact", "several"): N_(
        "The process with most I/O spent {io_share} of the run in I/O. Counters show nothing that is "
        "worth changing. Patterns that need single calls were not checked."
    ),
    ("exact", "alone"): N_(
        "The process spent {io_share} of the run in I/O. Counters show nothing that is worth changing. "
        "Patterns that need single calls were not checked."
    ),
    ("bound", "several"): N_(
        "The process with most I/O spent at most {io_share} of the run in I/O, as the times of its "
        "threads are added up. Counters show nothing that is worth changing. Patterns that need single "
        "calls were not checked."
    ),
    ("bound", "alone"): N_(
        "The process spent at most {io_share} of the run in I/O, as the times of its threads are added "
        "up. Counters show nothing that is worth changing. Patterns that need single calls were not "
        "checked."
    ),
}
_NOTHING_UNTIMED = N_(
    "The time taken by I/O is unknown. Counters show nothing that is worth changing. Patterns that "
    "need single calls were not checked."
)
