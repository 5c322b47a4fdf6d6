"""Recognises work that fills a cache for later runs, such as a font list, compiled modules or translated
code."""

from __future__ import annotations

from dataclasses import replace

from iodock.program.findings import Severity
from iodock.program.relations.run_facts import SYSTEM_NAMES
from iodock.program.rules.base import Candidate, Facts, advise
from iodock.shared.engine.sql import quoted
from iodock.shared.language import N_

_CACHE = "(^|/)(__pycache__|[.]?[A-Za-z_-]*[Cc]ache)/"
_PROGRAMS = f"{SYSTEM_NAMES}|/(site|dist)-packages/|/node_modules/"
LEAST_BEFORE = 0.7
"""Share of the time with a candidate's files that must concern files of programs and caches before the last
write into a cache. A part of these files may be used in each run, too."""
TITLE = N_("A cache is created, which happens once")
ADVICE = advise(
    any=N_(
        "Nothing needs to change if the cache is kept: the next run uses it. If it is lost between runs "
        "(a container, a scratch home folder), create it once and keep it."
    )
)


def judged(facts: Facts, candidate: Candidate) -> Candidate:
    """Returns the candidate. It becomes a note if its calls are on files of programs and caches, and came
    before the program wrote a cache."""
    if not candidate.files:
        return candidate
    names = ", ".join(quoted(name) for name in candidate.files)
    row = facts.one(
        f"""WITH made AS (SELECT max(u.last_ts) AS ts FROM uses u JOIN files f ON f.file_id = u.file_id
  WHERE u.direction = 2 AND u.bytes > 0 AND {_is_in(_CACHE, "f")})
SELECT sum(coalesce(u.time_ns, u.count)) FILTER (WHERE u.last_ts <= made.ts
    AND ({_is_in(_CACHE, "p")} OR {_is_in(_PROGRAMS, "p")})) / nullif(sum(coalesce(u.time_ns, u.count)), 0)
  AS before
FROM uses u JOIN places p ON p.file_id = u.file_id, made WHERE p.name IN ({names})"""
    )
    if float(row["before"] or 0.0) < LEAST_BEFORE:
        return candidate
    return replace(candidate, at_most=Severity.NOTE, gain=None, title=TITLE, advice=ADVICE)


def _is_in(pattern: str, place: str) -> str:
    return f"regexp_matches({place}.name, '{pattern}')"
