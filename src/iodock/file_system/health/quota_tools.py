"""Queries quotas with the commands of the file systems, as an ordinary user. The commands are `lfs quota` for
Lustre and FEFS, `mmlsquota -Y` for GPFS, and `quota` of the Linux quota tools, which queries NFS servers
through the protocol rquota.

Sources: `print_quota` in lustre/utils/lfs.c, the manual page of mmlsquota, `showquotas` in quota.c.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from iodock.file_system.health.commands import LIMIT_S, asked
from iodock.file_system.health.mounts import Mount
from iodock.file_system.health.quotas import Allowance, Grace, Kind, Quota, Quotas
from iodock.shared.language import N_
from iodock.shared.message import Message

_MISSING = N_("your quota is unknown, because {program} is not installed here")
_SILENT = N_("your quota is unknown, because `{command}` did not answer within {limit_s}")
_FAILED = N_("your quota is unknown, because `{command}` failed: {said}")
_NOTHING = N_("your quota is unknown, because `{command}` does not report it")
_WHICH_FILESET = N_(
    "your quota is unknown, because the fileset of the folder is unknown and each fileset has its own quota"
)
GPFS_PROGRAMS = "/usr/lpp/mmfs/bin"
"""Folder of the programs of GPFS, in case PATH lacks it."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The user and the group that will own new files in a folder, by number."""

    user: int
    group: int

    @classmethod
    def of(cls, folder: str) -> Owner:
        """Returns the owners of files that this process would create in FOLDER. If FOLDER has the
        set-group-ID bit, new files get the folder's group. Raises OSError."""
        status = Path(folder).stat()
        return cls(os.geteuid(), status.st_gid if status.st_mode & stat.S_ISGID else os.getegid())


@dataclass
class _Asking:
    """Runs the quota commands one after the other. If one of them exceeds the time limit, the following ones
    are not run."""

    limit_s: float
    unknown: list[Message] = field(default_factory=list)
    hangs: bool = False

    def rows(self, command: Sequence[str], is_of_interest: re.Pattern[str]) -> str:
        """Returns a command's output if IS_OF_INTEREST matches it, and an empty text otherwise. The exit
        status is ignored, because `quota` fails if a limit is exceeded, and `lfs quota` fails if a target is
        missing."""
        said = self.said(command)
        if said is None:
            return ""
        if not is_of_interest.search(said):
            self.unknown.append(Message(_NOTHING, {"command": " ".join(command)}))
            return ""
        return said

    def said(self, command: Sequence[str], quietly: bool = False) -> str | None:
        """Returns the output of a command, or None if it printed nothing. The reason is added to `unknown`.
        If QUIETLY is set, it is added only for a command that exceeded the time limit."""
        if self.hangs:
            return None
        answer = asked(command, self.limit_s)
        self.hangs = answer.outcome == "silent"
        shown = " ".join(command)
        if answer.outcome == "silent":
            self.unknown.append(Message(_SILENT, {"command": shown, "limit_s": self.limit_s}))
        elif answer.outcome == "missing" and not quietly:
            self.unknown.append(Message(_MISSING, {"program": Path(command[0]).name}))
        elif not answer.said.strip() and not quietly:
            complaint = answer.complained.strip().splitlines()
            values = {"command": shown, **({"said": complaint[-1]} if complaint else {})}
            self.unknown.append(Message(_FAILED if complaint else _NOTHING, values))
        return answer.said if answer.said.strip() else None


def quotas_of(mount: Mount, folder: str, owner: Owner, limit_s: float = LIMIT_S) -> Quotas:
    """Returns the quotas of OWNER in FOLDER, which is on MOUNT. The type of the file system determines the
    command. LIMIT_S is the time limit of each command in seconds. After a command that exceeds it, no further
    one is run."""
    asking = _Asking(limit_s)
    if mount.fs_type in ("lustre", "fefs"):
        known = _of_lustre(mount, folder, owner, asking)
    elif mount.fs_type == "gpfs":
        known = _of_gpfs(mount, folder, owner, asking)
    elif mount.fs_type in ("nfs", "nfs4") or {name for name, _ in mount.options} & _QUOTA_OPTIONS:
        known = _of_rquota(mount, owner, asking)
    else:
        return Quotas()
    return Quotas(tuple(known), tuple(asking.unknown))


ONLY_TOOLS_TELL = frozenset(("lustre", "fefs", "gpfs", "nfs", "nfs4"))
"""Types of file systems whose quotas only a tool reports. For local file systems the kernel itself reports
them."""
_QUOTA_OPTIONS = frozenset(("quota", "usrquota", "grpquota", "uquota", "gquota", "usrjquota", "grpjquota"))


def _of_lustre(mount: Mount, folder: str, owner: Owner, asking: _Asking) -> list[Quota]:
    wanted: list[tuple[Kind, str, int]] = [("user", "-u", owner.user), ("group", "-g", owner.group)]
    project = project_in(asking.said(["lfs", "project", "-d", folder], quietly=True) or "")
    if project:
        wanted.append(("project", "-p", project))
    found: list[Quota] = []
    for kind, option, number in wanted:
        said = asking.rows(["lfs", "quota", option, str(number), mount.point], ROW)
        found += list(quotas_in(said, kind, str(number)))[:1]
    return found


def project_in(said: str) -> int | None:
    """Parses the output of `lfs project -d`, such as `1001 P /scratch/x`, and returns the number of the
    project. Returns None without the flag `P`, because new files do not inherit the project then."""
    first = re.match(r"\s*(\d+)\s+P\s", said)
    return int(first[1]) or None if first else None


def _of_rquota(mount: Mount, owner: Owner, asking: _Asking) -> list[Quota]:
    # The option -v also lists owners that use nothing yet, and -p prints the ends of grace periods as
    # numbers.
    common = ["-v", "-w", "-p", "-f", mount.point]
    said = asking.rows(["quota", "-u", *common], _ROW_OR_NONE)
    found = list(quotas_in(said, "user", str(owner.user)))[:1]
    # `quota -g` lists all groups of the user, but only the group of new files matters. A server may have no
    # group quotas, so a failure is not reported.
    said = asking.said(["quota", "-g", *common], quietly=True) or ""
    groups = quotas_in(said, "group", "")
    return found + [one for one in groups if _group_number(said, one.owner) == owner.group][:1]


def _group_number(said: str, name: str) -> int | None:
    heading = re.search(rf"^Disk quotas for \w+ {re.escape(name)} \(\w?id (\d+)\):", said, re.MULTILINE)
    return int(heading[1]) if heading else None


_USED, _LIMIT, _GRACE = r"(\[?\d[\d.]*[kKMGTPE]?\]?\*{0,2}|-)", r"(\[?\d[\d.]*[kKMGTPE]?\]?|-)", r"(\S+)"
_HALF = rf"{_USED}\s+{_LIMIT}\s+{_LIMIT}\s+{_GRACE}"
ROW = re.compile(rf"(?:^|\s){_HALF}\s+{_HALF}\s*$", re.MULTILINE)
"""Used, soft, hard and grace, for KiB and then for files. The name of the file system before them may contain
blanks, or be on a separate line."""
_ROW_OR_NONE = re.compile(rf"{ROW.pattern}|: none$", re.MULTILINE)
_HEADING = re.compile(r"Disk quotas for \w+ (.+?) \(\w?id \d+\):")


def quotas_in(said: str, kind: Kind, owner: str) -> Iterator[Quota]:
    """Parses the output of `lfs quota` and `quota -wp`. OWNER is the owner of the rows before the first
    heading that names another owner."""
    for line in said.splitlines():
        if heading := _HEADING.match(line):
            owner = heading[1]
        elif row := ROW.search(line):
            cells = row.groups()
            yield Quota(kind, owner, _allowance(cells[:4], 1024), _allowance(cells[4:], 1))


def _allowance(cells: Sequence[str], unit: int) -> Allowance:
    used, soft, hard, grace = cells
    known = all("[" not in one and _number(one, unit) is not None for one in (used, soft, hard))
    is_exact = known and "**" not in used
    is_over = used.endswith("*") and _has_ended(grace)
    state = Grace.OVER if is_over else Grace.RUNNING if _is_running(grace) else Grace.NONE
    amount = _number(used, unit)
    # The brackets mean that some servers did not respond. `[0]` means that no server responded that has part
    # of the amount, so the amount is not known.
    if amount == 0 and "[" in used:
        amount = None
    return Allowance(amount, _number(soft, unit) or None, _number(hard, unit) or None, state, is_exact)


def _has_ended(grace: str) -> bool:
    """Returns whether the grace period has ended. GRACE is the text in the output: `none` means that no time
    is left, and a number is the end in seconds since the epoch."""
    return grace == "none" or (grace.isdigit() and 0 < int(grace) <= time.time())


def _is_running(grace: str) -> bool:
    return grace not in ("-", "none", "0") and not _has_ended(grace)


_AMOUNT = re.compile(r"(\d{1,20}(?:\.\d{0,20})?)([kKMGTPEkmgtpe]?)")


def _number(cell: str, unit: int) -> int | None:
    """Parses an amount. A number without a suffix counts in multiples of UNIT, which is 1024 (bytes) or 1
    (files). `lfs quota -h` prints suffixes such as `k` and `M`. Returns None for `-`."""
    found = _AMOUNT.fullmatch(cell.strip("[]*"))
    if found is None:
        return None
    if found[2]:
        return round(float(found[1]) * (1 << 10 * ("kmgtpe".index(found[2].lower()) + 1)))
    return round(float(found[1])) * unit


def _of_gpfs(mount: Mount, folder: str, owner: Owner, asking: _Asking) -> list[Quota]:
    device = mount.source.removeprefix("/dev/")
    said = asking.rows([_gpfs("mmlsquota"), "-Y", device], re.compile(":HEADER:"))
    fileset = fileset_in(asking.said([_gpfs("mmlsattr"), "-L", folder], quietly=True) or "") if said else None
    if fileset and fileset != "root":
        said += asking.said([_gpfs("mmlsquota"), "-Y", "-j", fileset, device], quietly=True) or ""
    rows = [one for one in gpfs_rows(said) if one.is_of(owner, fileset)]
    ours = [one for one in rows if fileset is None or one.fileset in ("", fileset)]
    found = []
    for kind in dict.fromkeys(one.kind for one in ours):
        of_kind = [one for one in ours if one.kind == kind]
        if fileset is None and len({one.fileset for one in of_kind}) > 1:
            asking.unknown.append(Message(_WHICH_FILESET))
        else:
            found.append(of_kind[0].quota)
    return found


def _gpfs(program: str) -> str:
    usual = f"{GPFS_PROGRAMS}/{program}"
    return usual if shutil.which(program) is None and os.access(usual, os.X_OK) else program


def fileset_in(said: str) -> str | None:
    """Parses the output of `mmlsattr -L`, such as `fileset name: scratch`, and returns the name of the
    fileset."""
    found = re.search(r"^fileset name:\s*(\S+)\s*$", said, re.MULTILINE)
    return found[1] if found else None


@dataclass(frozen=True, slots=True)
class GpfsRow:
    """One line of the output of `mmlsquota -Y`."""

    kind: Kind
    number: str
    fileset: str
    """Fileset in which the quota of a user or group applies; empty: in all filesets."""
    quota: Quota

    def is_of(self, owner: Owner, fileset: str | None) -> bool:
        """Returns whether the quota limits OWNER or the fileset FILESET."""
        if self.kind == "fileset":
            return fileset is not None and self.quota.owner == fileset
        return self.number == str(owner.user if self.kind == "user" else owner.group)


_GPFS_KINDS: dict[str, Kind] = {"USR": "user", "GRP": "group", "FILESET": "fileset"}


def gpfs_rows(said: str) -> Iterator[GpfsRow]:
    """Parses the output of `mmlsquota -Y`. Colons separate the fields of a row, the fields are escaped as in
    URLs, and a HEADER line before the rows names the fields. Space that other nodes may have allocated but
    have not yet reported (in doubt) counts as used."""
    names: list[str] = []
    for line in said.splitlines():
        cells = [unquote(cell) for cell in line.split(":")]
        if "HEADER" in cells:
            names = [cell.lower() for cell in cells]
            continue
        row = dict(zip(names, cells, strict=False))
        kind = _GPFS_KINDS.get(row.get("quotatype", ""))
        if kind is None:
            continue
        try:
            quota = Quota(
                kind,
                row.get("name") or row["id"],
                _gpfs_part(row, "block", 1024),
                _gpfs_part(row, "files", 1),
            )
        except (KeyError, ValueError):
            continue
        fileset = "" if kind == "fileset" else row.get("filesetname", "")
        yield GpfsRow(kind, row.get("id", ""), fileset, quota)


def _gpfs_part(row: dict[str, str], part: str, unit: int) -> Allowance:
    used, soft, hard, doubt = (
        int(row[f"{part}{name}"]) * unit for name in ("usage", "quota", "limit", "indoubt")
    )
    grace = row[f"{part}grace"].strip().lower()
    state = {"": Grace.NONE, "none": Grace.NONE, "expired": Grace.OVER}.get(grace, Grace.RUNNING)
    return Allowance(used + doubt, soft or None, hard or None, state)
