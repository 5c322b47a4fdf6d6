"""Job ids as file servers know them: `11317854:17627:r01c01` is job, user id and host by Lustre's
`jobid_name` `%j:%u:%H`. Where the site does not say its form, it is guessed by shape."""

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
    """Takes ids apart. `patterns`: the first that fits counts; of an id that fits none all is the job."""

    patterns: tuple[str, ...] = _SHAPES
    before: str | None = ":"
    """What follows the job's number where ids begin with it; None: they don't."""

    def number(self, column: str = "job") -> str:
        """The job, as an SQL expression: of work outside of jobs (without %j) the whole id."""
        return self._part("j", column, column)

    def user(self, column: str = "job") -> str:
        """The user's id in digits, or NULL."""
        return self._part("u", column, "NULL")

    def host(self, column: str = "job") -> str:
        """The client's name, or NULL."""
        return self._part("h", column, "NULL")

    def is_job(self, number: str, column: str = "job") -> str:
        """A condition: the id is one of this job's. Written so that files sorted by id are not read whole."""
        exact = f"{column} = {text(number)}"
        if self.before is None:
            return f"({exact} OR {self.number(column)} = {text(number)})"
        # One range that has the id itself too: alternatives are not looked up in the files' statistics.
        least, behind = text(number), text(number + chr(ord(self.before) + 1))
        within = f"{column} >= {least} AND {column} < {behind}"
        return f"({within} AND ({exact} OR {self.number(column)} = {text(number)}))"

    def pattern(self, number: str) -> str:
        """A regular expression (RE2) that all ids of this job fit; others may, too."""
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
    """By the servers' `jobid_name`; None: guessed by shape. Raises RequestError."""
    if jobid_name is None:
        return JobIds()
    pieces = re.split(r"(%.)", jobid_name)
    unknown = [piece for piece in pieces[1::2] if piece not in _PARTS]
    if unknown or len(pieces) == 1 or len(set(pieces[1::2])) < len(pieces[1::2]):
        raise RequestError(
            f"--jobid-name {jobid_name}: not a form of ids",
            "as lctl get_param jobid_name says, e.g. %j:%u:%H",
        )
    pattern = "".join(_PARTS[piece] if piece in _PARTS else re.escape(piece) for piece in pieces)
    # Outside of jobs %j is empty; such an id is all there is.
    shapes = () if jobid_name == "%j" else (pattern,)
    leads = jobid_name.startswith("%j") and len(pieces) > 2 and len(pieces[2]) > 0
    if jobid_name == "%j":
        return JobIds((), "\x01")
    return JobIds(shapes, pieces[2][0] if leads else None)
