"""Parses job ids in the form in which file servers report them. If the parameter `jobid_name` of Lustre is
`%j:%u:%H`, the id `11317854:17627:r01c01` has the job's number, the user id and the host. If the site does
not give the format, it is inferred from the form of the id."""

from __future__ import annotations

import re
from dataclasses import dataclass

from iodock.centre.monitor.questions.counted import text
from iodock.shared.engine.need import literally
from iodock.shared.errors import RequestError

_PARTS = {"%j": "(?P<j>[^:]+?)", "%u": "(?P<u>[0-9]+)", "%H": "(?P<h>[^:]+?)", "%h": "(?P<h>[^:]+?)",
          "%e": "(?P<e>.+?)", "%g": "[0-9]+", "%p": "[0-9]+"}  # fmt: skip
_SHAPES = (r"(?P<j>[0-9][^:]*):(?P<u>[0-9]+):(?P<h>[^:]+)", r"(?P<e>[^0-9:].*)\.(?P<u>[0-9]+)")


@dataclass(frozen=True)
class JobIds:
    """Builds SQL that parses ids with the first of `patterns` that matches. If no pattern matches an id, the
    whole id is the job's number."""

    patterns: tuple[str, ...] = _SHAPES
    before: str | None = ":"
    """The character after the job's number, if ids begin with the number; None: they do not."""

    def number(self, column: str = "job") -> str:
        """Returns SQL for the job's number. If the id has no part %j, because it belongs to work outside of
        jobs, this is the whole id."""
        return self._part("j", column, column)

    def user(self, column: str = "job") -> str:
        """Returns SQL for the numeric user id, or NULL."""
        return self._part("u", column, "NULL")

    def host(self, column: str = "job") -> str:
        """Returns SQL for the name of the client, or NULL."""
        return self._part("h", column, "NULL")

    def is_job(self, number: str, column: str = "job") -> str:
        """Returns the SQL condition that the id in COLUMN belongs to the job NUMBER. Files are sorted by id.
        If ids begin with the number, the condition contains a range of ids, so that the engine reads only the
        matching part of a file."""
        exact = f"{column} = {text(number)}"
        if self.before is None:
            return f"({exact} OR {self.number(column)} = {text(number)})"
        # The range is the outermost condition, because the engine uses the minimum and maximum of each part
        # of a file only for conditions that are not inside an `OR`.
        least, behind = text(number), text(number + chr(ord(self.before) + 1))
        within = f"{column} >= {least} AND {column} < {behind}"
        return f"({within} AND ({exact} OR {self.number(column)} = {text(number)}))"

    def pattern(self, number: str) -> str:
        """Returns a regular expression (RE2) that matches all ids of this job. It may also match ids of other
        jobs."""
        exact = literally(number)
        if self.before is None:
            return f"(?s:.*{exact}.*)"
        return f"(?s:{exact}({literally(self.before)}.*)?)"

    def _part(self, name: str, column: str, otherwise: str) -> str:
        cases = []
        for pattern in self.patterns:
            names = re.findall(r"\?P<(\w)>", pattern)
            plain = text("^(?s:" + re.sub(r"\?P<\w>", "", pattern) + ")$")
            found = (
                f"regexp_extract({column}, {plain}, {names.index(name) + 1})" if name in names else otherwise
            )
            cases.append(f"WHEN regexp_full_match({column}, {plain}) THEN {found}")
        return f"CASE {' '.join(cases)} ELSE {otherwise} END" if cases else otherwise


def job_ids(jobid_name: str | None) -> JobIds:
    """Builds the parser from the parameter `jobid_name` of the file servers. If it is None, the format is
    inferred from the form of each id. Raises RequestError."""
    if jobid_name is None:
        return JobIds()
    pieces = re.split(r"(%.)", jobid_name)
    unknown = [piece for piece in pieces[1::2] if piece not in _PARTS]
    if unknown or len(pieces) == 1 or len(set(pieces[1::2])) < len(pieces[1::2]):
        raise RequestError(
            f"--jobid-name {jobid_name}: not a valid form of job ids",
            "as printed by lctl get_param jobid_name, e.g. %j:%u:%H",
        )
    pattern = "".join(_PARTS[piece] if piece in _PARTS else re.escape(piece) for piece in pieces)
    # If `jobid_name` is only `%j`, the whole id is the job's number, so no pattern is needed.
    shapes = () if jobid_name == "%j" else (pattern,)
    leads = jobid_name.startswith("%j") and len(pieces) > 2 and len(pieces[2]) > 0
    if jobid_name == "%j":
        return JobIds((), "\x01")
    return JobIds(shapes, pieces[2][0] if leads else None)
