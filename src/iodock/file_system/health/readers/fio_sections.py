"""Determines to which sections of a job file an entry of fio's output belongs, and how many processes it had.

With `group_reporting` fio combines all processes of a group into one entry (__show_run_stats in stat.c). The
entry has the name of the first section but the options of the last one, and often lacks the option
group_reporting itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from iodock.file_system.health.readers.base import number, size, whole
from iodock.file_system.health.readers.fio_json import DIRECTIONS, bytes_moved

Job = dict[str, Any]
SUM = "All clients"
MERGED = (
    "sections that group_reporting made one result; fio keeps the options of one, so request size, pattern, "
    "processes and caching are not known"
)
_USES = {
    "read": {"read"},
    "write": {"write"},
    "trim": {"trim"},
    "rw": {"read", "write"},
    "readwrite": {"read", "write"},
    "trimwrite": {"trim", "write"},
}
_MAY_USE_OTHERS = ("verify", "do_verify", "read_iolog", "replay_redirect")
_NO_SINGLE_SIZE = ("bsrange", "blocksize_range", "bssplit", "bs_is_seq_rand", "blocksize_unaligned")
_DECIMAL = str.maketrans("", "", "iI")


@dataclass(frozen=True)
class Shape:
    """Options and number of processes of one entry in fio's output, as far as they can be determined."""

    options: dict[str, str]
    """Options of the job and of all jobs. Empty if the output has none, or if it has the options of only one
    of several sections."""
    processes: int | None
    is_merged: bool = False
    """Whether the entry combines several different sections."""


def options_of(value: Any) -> dict[str, str]:
    """Returns the options in fio's JSON as text, or an empty mapping if VALUE is not an object."""
    return {str(name): str(said) for name, said in value.items()} if isinstance(value, dict) else {}


def shapes(jobs: Iterable[Job], common: dict[str, str]) -> list[Shape]:
    """Returns the shape of each entry in one document. COMMON contains the options that apply to all jobs."""
    given = list(jobs)
    named = [_name(job) for job in given]
    entries = Counter(named)
    alike = Counter((name, _own(job)) for name, job in zip(named, given, strict=True))
    return [
        _shape(job, common, entries[name], alike[name, _own(job)])
        for name, job in zip(named, given, strict=True)
    ]


def _name(job: Job) -> tuple[str, ...]:
    return tuple(str(job.get(name)) for name in ("hostname", "port", "groupid", "jobname"))


def _own(job: Job) -> str:
    return str(job.get("job options"))


def _shape(job: Job, common: dict[str, str], entries: int, alike: int) -> Shape:
    """Returns the shape of one entry. ENTRIES is the number of entries with the same name, and ALIKE is the
    number of those that also have the same options."""
    options = {**common, **options_of(job.get("job options"))}
    if "processes" in job:
        # JOB was read from fio's text, which contains the number of processes. Terse lines do not contain it.
        return Shape(options, job["processes"], bool(job.get("is_merged")))
    if job.get("jobname") == SUM:
        return Shape(options, None)
    if entries == 1 and _has_done_more(job, options):
        return Shape({}, None, True)
    asked = whole(options.get("numjobs", "1"))
    if not asked:
        return Shape(options, None)
    if entries == 1:
        return Shape(options, asked)
    return Shape(options, 1 if alike % asked == 0 else None)


def _has_done_more(job: Job, options: dict[str, str]) -> bool:
    """Returns whether the job's name, I/O directions or request sizes contradict its options. If they do,
    group_reporting has combined several sections, and the options are those of another section."""
    name = options.get("name")
    if name is not None and not name.startswith(str(job.get("jobname"))):
        return True
    used = [one for one in DIRECTIONS if bytes_moved(job.get(one))]
    pattern = (options.get("rw") or options.get("readwrite") or "").split(":")[0]
    uses = _USES.get(pattern.removeprefix("rand"))
    others = [one for one in used if one != "mixed" and one not in (uses or used)]
    if others and not any(one in options for one in _MAY_USE_OTHERS):
        return True
    return any(_is_of_another_size(job[one], options, one) for one in used if one in ("read", "write"))


def _is_of_another_size(done: dict[str, Any], options: dict[str, str], operation: str) -> bool:
    asked, requests = request_bytes(done, options, operation), number(done.get("total_ios"))
    if not asked or not requests:
        return False
    mean = (bytes_moved(done) or 0.0) / requests
    return mean > 1.01 * asked or (mean < 0.99 * asked and not done.get("short_ios"))


def request_bytes(done: dict[str, Any], options: dict[str, str], operation: str) -> int | None:
    """Returns the request size of an operation in bytes, from options such as `bs=4k` or `bs=4k,64k` (read,
    write). Returns None if the requests have no single size, as with `bsrange`."""
    if any(name in options for name in _NO_SINGLE_SIZE):
        return None
    given = (options.get("bs") or options.get("blocksize") or "4k").split(",")
    if operation == "mixed":
        return _size(given[0], done, options) if len(set(given)) == 1 else None
    at = min(DIRECTIONS.index(operation), len(given) - 1)
    return _size(given[at] or given[0], done, options)


def _size(text: str, done: dict[str, Any], options: dict[str, str]) -> int | None:
    """Converts a size to bytes. According to fio's manual `k` is 1024 and `ki` is 1000. The option
    `kb_base=1000` swaps them, but only for the options after it. With that option, the meaning is the one
    that agrees with the number of bytes per request."""
    binary, decimal = size(text.translate(_DECIMAL)), _thousands(text)
    if "kb_base" not in options:
        return decimal if "i" in text.lower() else binary
    requests, moved = number(done.get("total_ios")), bytes_moved(done)
    if not requests or moved is None:
        return binary if binary == decimal else None
    return next((one for one in (binary, decimal) if one == moved / requests), None)


def _thousands(text: str) -> int | None:
    letters = text.translate(_DECIMAL).lower().removesuffix("b")
    power = " kmgtp".find(letters[-1:] or " ")
    amount = number(letters[:-1] if power > 0 else letters)
    return None if amount is None else round(amount * 1000 ** max(power, 0))


@dataclass
class Setups:
    """Collects the lines at the beginning of fio's text, which describe the sections, by host and group. With
    `--output`, the file lacks the lines of the first sections on the command line."""

    of_group: dict[tuple[str | None, str], list[Setup]] = field(default_factory=dict)
    last: Setup | None = None

    def add(self, host: str | None, group: str, name: str, said: dict[str, Any]) -> None:
        self.last = Setup(name, said)
        self.of_group.setdefault((host, group), []).append(self.last)

    def more(self) -> None:
        """Processes a line `...`, which means that the section of the previous line has several processes."""
        if self.last is not None:
            self.last.has_several = True

    def of(self, job: Job) -> list[Setup]:
        """Returns the sections of the job's host and group."""
        group = str(job["groupid"])
        own = self.of_group.get((job.get("hostname"), group)) or self.of_group.get((None, group))
        # The host may have another name in these lines than in the results, so sections of the group on all
        # hosts are returned.
        return own or [one for (_, of), found in self.of_group.items() if of == group for one in found]


@dataclass
class Setup:
    """One section, as described at the beginning of fio's text."""

    name: str
    said: dict[str, Any]
    """The members `job options` and `block_bytes` that follow from the line."""
    has_several: bool = False


def set_up(jobs: list[Job]) -> None:
    """Adds to each result of fio's text the options of its section. They are in the lines at the beginning of
    the text."""
    groups: dict[tuple[str, ...], list[Job]] = {}
    for job in jobs:
        groups.setdefault((str(job.get("hostname")), str(job["groupid"])), []).append(job)
    for group in groups.values():
        _set_up_group(group, group[0]["setups"].of(group[0]))


def _set_up_group(jobs: list[Job], setups: list[Setup]) -> None:
    names = Counter(str(job["jobname"]) for job in jobs)
    own: dict[str, list[Setup]] = {}
    merged: dict[str, list[Setup]] = {}
    name = ""
    for one in setups:
        own.setdefault(one.name, []).append(one)
        # If fio combines the results of a group, only the first section has a result. A section without a
        # result therefore belongs to the section before it.
        name = one.name if one.name in names else name
        merged.setdefault(name, []).append(one)
    said = {(False, name): _common(found) for name, found in own.items()}
    said |= {(True, name): _common(found) for name, found in merged.items()}
    in_order = {name for name, found in own.items() if _is_one_each(found, names[name])}
    seen: Counter[str] = Counter()
    for job in jobs:
        name, is_merged = str(job["jobname"]), job["processes"] > 1
        if name in in_order and not is_merged:
            job |= own[name][seen[name]].said
            seen[name] += 1
        elif known := said.get((is_merged, name)):
            job |= known
        elif is_merged and (name in merged or "" in merged):
            job["processes"], job["is_merged"] = None, True


def _common(setups: list[Setup]) -> dict[str, Any] | None:
    """Returns the options of the sections if all sections have the same ones, and None otherwise."""
    return setups[0].said if all(one.said == setups[0].said for one in setups) else None


def _is_one_each(setups: list[Setup], results: int) -> bool:
    """Returns whether each section of one name has exactly one result. The results are then in the order of
    the sections."""
    return len(setups) == results and not any(one.has_several for one in setups)
