"""Determines for which languages a finding shows advice: those of the programs that made the calls at
fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from iodock.program.findings import Advice
from iodock.program.rules.base import Candidate, Facts
from iodock.shared.engine.sql import quoted
from iodock.shared.language import N_
from iodock.shared.message import Message

MOST_OF_CALLS = 0.8
"""Programs get advice until this share of the calls at fault is covered. Programs with fewer calls get
none."""
MOST_NAMES = 300
"""Number of a candidate's files that are examined, the most expensive first."""
WRITTEN = frozenset({"C", "C++", "Fortran", "Python", "shell"})
"""Languages for which there is advice."""


@dataclass(frozen=True, slots=True)
class Author:
    """Describes programs in the same languages that made a part of the calls at fault."""

    program: str
    """Name of the program with the most calls; empty if unknown."""
    languages: frozenset[str]
    libraries: frozenset[str]
    count: int
    is_unclear: bool
    """Whether the program's file was examined and does not show a language."""


def advice_for(advice: Sequence[Advice], candidate: Candidate, facts: Facts) -> tuple[Advice, ...]:
    """Returns the advice for the programs that made the calls at fault and for their libraries. If no
    language is known, it is the advice for C. If programs in several languages share the calls, the advice
    names the program that it is for."""
    authors = authors_of(candidate, facts)
    libraries = _libraries(frozenset().union(*(one.libraries for one in authors)), candidate)
    spoken = frozenset().union(*(one.languages for one in authors)) & WRITTEN
    several = len({one.languages & WRITTEN for one in authors}) > 1
    found: list[Advice] = []
    for one in advice:
        if one.language in ("any", "administrator") or one.language in libraries:
            found.append(one)
        elif one.language in spoken and (one.library is None or one.library in libraries):
            found += _named(one, authors) if several else [one]
    unclear = next((one for one in authors if one.is_unclear and one.program), None)
    if unclear is not None and any(one.language == "C" for one in found):
        found.append(Advice("any", Message(_UNCLEAR, {"program": unclear.program})))
    return tuple(found)


def authors_of(candidate: Candidate, facts: Facts) -> list[Author]:
    """Returns the programs that made most of the calls at fault. The program with the most calls comes
    first."""
    rows = _rows(candidate, facts)
    made: dict[frozenset[str], list[dict[str, Any]]] = {}
    for row in rows:
        made.setdefault(_languages(row), []).append(row)
    authors = [_author(languages, group, facts) for languages, group in made.items()]
    authors.sort(key=lambda one: (-one.count, one.program))
    wanted, found = MOST_OF_CALLS * sum(one.count for one in authors), list[Author]()
    for one in authors:
        if found and sum(two.count for two in found) >= wanted:
            break
        found.append(one)
    return found or [Author("", frozenset({"C"}), frozenset(), 0, False)]


def _languages(row: dict[str, Any]) -> frozenset[str]:
    return frozenset({"C"} if row["languages"] is None else row["languages"])


def _author(languages: frozenset[str], rows: Sequence[dict[str, Any]], facts: Facts) -> Author:
    most = max(rows, key=lambda row: (row["count"], row["path"] or ""))
    return Author(
        _program(most, facts),
        languages,
        frozenset(name for row in rows for name in row["libraries"] or ()),
        sum(row["count"] for row in rows),
        bool(most["is_unclear"]),
    )


def _program(row: dict[str, Any], facts: Facts) -> str:
    """Returns the name by which a user knows the program. For an interpreter this is the script that it
    runs, if the run opened that script."""
    if row["path"] is None:
        return ""
    if row["is_interpreted"] and not row["is_script"]:
        script = next((one for one in (row["argv"] or [])[1:] if not one.startswith("-")), "")
        name = PurePosixPath(script).name
        known = (
            f"SELECT 1 FROM files WHERE name = {quoted(script)} OR suffix(name, {quoted(f'/{name}')}) LIMIT 1"
        )
        if name and facts.rows(known):
            return name
    return PurePosixPath(row["path"]).name


def _rows(candidate: Candidate, facts: Facts) -> list[dict[str, Any]]:
    """Returns the number of calls of each program. It counts the calls of the processes that the candidate
    names. Without such processes, it counts calls similar to the candidate's, or if there are none, calls
    on its files, then all calls that move data, then all calls."""
    if candidate.authors is not None:
        return facts.rows(_SQL.format(at_fault=_of_processes(candidate.authors)))
    ways = [_of_calls(candidate), _of_files(candidate), "u.direction > 0", "true"]
    for way in dict.fromkeys(way for way in ways if way):
        rows = facts.rows(_SQL.format(at_fault=_AT_FAULT.format(where=way)))
        if rows:
            return rows
    return []


def _of_files(candidate: Candidate) -> str:
    names = ", ".join(quoted(name) for name in candidate.files[:MOST_NAMES])
    if not names:
        return ""
    return f"""u.file_id IN (SELECT file_id FROM files WHERE name IN ({names})
  UNION SELECT file_id FROM places WHERE name IN ({names}))"""


def _of_calls(candidate: Candidate) -> str:
    """Returns an SQL condition for calls similar to the candidate's. For calls that move data, these are
    all calls in the same direction; for other calls, all calls of the same family."""
    if candidate.call is None:
        return ""
    like = f"""(SELECT k.id FROM calls k JOIN calls c ON c.name = {quoted(candidate.call)}
    OR c.family = {quoted(candidate.call)} WHERE k.family = c.family)"""
    same = f"""u.call_id IN {like} OR (u.direction > 0 AND u.direction IN (SELECT direction FROM image_uses
  WHERE call_id IN {like}))"""
    return " AND ".join(f"({one})" for one in (_of_files(candidate), same) if one)


def _of_processes(sql: str) -> str:
    return f"""SELECT i.image, CAST(sum(a.count) AS BIGINT) AS count FROM ({sql}) a
  JOIN images i ON i.upid = a.upid AND i.until_ts IS NULL GROUP BY i.image"""


_AT_FAULT = (
    "SELECT u.image, CAST(sum(u.count) AS BIGINT) AS count FROM image_uses u WHERE {where} GROUP BY u.image"
)
_SQL = """WITH at_fault AS ({at_fault}),
used AS (SELECT image, list(library) AS libraries FROM image_libraries WHERE library IS NOT NULL
  GROUP BY image)
SELECT a.path, a.languages, a.is_unclear, a.is_script, a.is_interpreted, arg_max(a.argv, f.count) AS argv,
  list_distinct(flatten(list(coalesce(l.libraries, [])))) AS libraries, CAST(sum(f.count) AS BIGINT) AS count
FROM at_fault f JOIN authors a ON a.image = f.image LEFT JOIN used l ON l.image = f.image
GROUP BY a.path, a.languages, a.is_unclear, a.is_script, a.is_interpreted"""


def _libraries(used: frozenset[str], candidate: Candidate) -> frozenset[str]:
    """Selects libraries for which advice is shown. Other libraries load numpy, so numpy counts only if
    none of them is used, or if the candidate has files in its format."""
    if "NetCDF" in used or "h5py" in used:
        used |= {"HDF5"}
    own = any(name.endswith((".npy", ".npz")) for name in candidate.files)
    return used if own or not used & {"pandas", "zarr", "h5py"} else used - {"numpy"}


def _named(one: Advice, authors: Sequence[Author]) -> list[Advice]:
    programs = [author.program for author in authors if one.language in author.languages and author.program]
    return [replace(one, program=", ".join(programs) or None)]


_UNCLEAR = N_("The language of {program} can't be determined from its file; C is only a guess.")
