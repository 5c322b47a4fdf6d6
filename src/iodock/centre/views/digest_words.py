"""Describes a digest in words: a headline, and then one line for each kind of evidence. Unknown values have
no line."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator

from iodock.centre.monitor.questions.counted import PROCESSES
from iodock.centre.monitor.usual import Verdict
from iodock.centre.views.amounts import amount, duration
from iodock.centre.views.runs_text import evidence
from iodock.centre.watch import cures
from iodock.centre.watch.digest import Digest, Recorded, Sums, Trouble
from iodock.centre.watch.names import STATES
from iodock.shared.language import N_, Language
from iodock.shared.sentences import say
from iodock.shared.text import shorten, visible

Line = tuple[str, str]
"""A line of the digest: a label and a sentence."""
LONGEST_NAME = 80
_MOST_KINDS = 4
_PLACES = {
    "servers": N_("File servers"),
    "processes": N_("Processes"),
    "cgroups": N_("Nodes' devices"),
}
_ALL_OF_IT = N_("{file_system} was {state} for {took} of {of}")
_AT_WORST = N_("{file_system} was in trouble for {took} of {of}, at worst {state}")
_SMALL_REQUEST = 32 << 10
_SMALL_FILE = 1 << 20
_MANY = 10_000
"""Below this number of calls or files, their size does not matter."""


def title(digest: Digest, text: Language) -> str:
    """Returns the title of a digest, such as `Job 4711 (ocean) of alice`."""
    job = shorten(digest.written or digest.job, LONGEST_NAME)
    if digest.name:
        name = shorten(digest.name, LONGEST_NAME)
        called = text.gettext("Job {job} ({name})", job=job, name=name)
    else:
        called = text.gettext("Job {job}", job=job)
    if not digest.users:
        return called
    users = text.listed(shorten(user, LONGEST_NAME) for user in digest.users)
    return text.gettext("{job} of {owner}", job=called, owner=users)


def headline(digest: Digest, text: Language) -> str:
    """Returns the headline of a digest, such as `3.1 times slower than usual; lfs was overloaded for 24 min
    of 41 min`. It is empty if nothing is known."""
    return text.joined(part for part in (_speed(digest, text), *_suffered(digest, text)) if part)


def lines(digest: Digest, text: Language) -> list[Line]:
    """Returns all lines except the title and the headline, each with its label."""
    found = [
        (text.gettext("Active"), _times(digest, text)),
        (text.gettext("Run again"), _again(digest, text)),
    ]
    found += [(text.gettext(_PLACES[one.place]), _counted(one, text)) for one in digest.sums]
    if digest.recorded:
        found += of_recording(digest.recorded, text)
    if digest.run and digest.judgement:
        found.append((text.gettext("Earlier runs of the job"), evidence(digest.run, digest.judgement, text)))
    if any(one.by_clients for one in digest.troubles or ()):
        found.append((text.gettext("Servers"), text.gettext("Based on client measurements only.")))
    if advised := advice(digest, text):
        found.append((text.gettext("Advice"), advised))
    found.append((text.gettext("For the help desk"), f"iodock bundle {shell_word(digest.id)}"))
    return [(label, sentence) for label, sentence in found if sentence]


def times_slower(digest: Digest) -> float | None:
    """Returns the duration of the run divided by the usual duration, or None if the usual duration is not
    known."""
    if digest.run is None or digest.judgement is None or not digest.judgement.usual_s:
        return None
    return digest.run.seconds / digest.judgement.usual_s


def advice(digest: Digest, text: Language) -> str:
    """Returns one or two sentences with the next step for the job's owner. The text is empty if nothing is
    unusual."""
    recorded = digest.recorded
    if recorded and recorded.advice:
        return say(recorded.advice, text)
    if digest.blame:
        blame = digest.blame
        cured = cures.for_owner(blame.state, blame.kind, blame.suspect, digest.rules, text)
        if cured:
            return cured[0]
    is_slow = digest.judgement is not None and digest.judgement.verdict is Verdict.SLOWER
    if is_slow and digest.troubles:
        return text.gettext(
            "Run the job again before you change the program, because the file system had "
            "problems. If it stays slow, send the help desk the archive that the command in the "
            "last line creates."
        )
    if said := _of_shape(digest, text):
        return said
    if is_slow and recorded is None:
        return text.gettext(
            "Record the next run to see which parts of the program take the time: iodock record -- PROGRAM"
        )
    return ""


def _of_shape(digest: Digest, text: Language) -> str:
    """Returns advice that follows only from the sizes of the job's requests and files, or an empty text."""
    for one in digest.sums:
        if one.place == PROCESSES:
            for moved, count in ((one.write_bytes, one.writes), (one.read_bytes, one.reads)):
                if moved and count and count >= _MANY and moved / count < _SMALL_REQUEST:
                    return text.gettext(
                        "The job's requests have a mean size of {size}. Read and write through a buffer, "
                        "in requests of 1 MiB or more.",
                        size=amount(moved / count, "bytes"),
                    )
        if _has_small_files(one):
            return cures.for_pattern("opens", text)
    return ""


def _has_small_files(sums: Sums) -> bool:
    opened = dict(sums.operations).get("open", 0)
    if sums.read_bytes is None or sums.write_bytes is None or opened < _MANY:
        return False
    return (sums.read_bytes + sums.write_bytes) / opened < _SMALL_FILE


def _speed(digest: Digest, text: Language) -> str:
    judgement, times = digest.judgement, times_slower(digest)
    if judgement is None or judgement.verdict is Verdict.FEW:
        return ""
    if judgement.verdict is Verdict.SLOWER and times is not None:
        if not digest.is_over:
            return text.gettext("so far {times} times the usual time", times=f"{times:.1f}")
        return text.gettext("{times} times slower than usual", times=f"{times:.1f}")
    return text.gettext(judgement.verdict.value)


def _suffered(digest: Digest, text: Language) -> Iterator[str]:
    for one in digest.troubles or ():
        yield suffered(one, digest, text)


def suffered(trouble: Trouble, digest: Digest, text: Language) -> str:
    """Returns a description of a file system's problems, such as `lfs was overloaded for 24 min of 41
    min`."""
    return text.gettext(
        _ALL_OF_IT if trouble.is_all else _AT_WORST,
        file_system=shorten(trouble.file_system, LONGEST_NAME), state=text.gettext(STATES[trouble.state]),
        took=duration(trouble.seconds), of=duration(digest.seconds),
    )  # fmt: skip


def _times(digest: Digest, text: Language) -> str:
    begin, end = (time.localtime(moment / 1e9) for moment in (digest.begin, digest.end))
    clock = "%Y-%m-%d %H:%M:%S"
    is_one_day = time.strftime("%F", begin) == time.strftime("%F", end)
    until = time.strftime("%H:%M:%S" if is_one_day else clock, end)
    values = {
        "begin": time.strftime(clock, begin), "end": f"{until} {time.strftime('%Z', end)}",
        "took": duration(digest.seconds),
    }  # fmt: skip
    if digest.is_over:
        return text.gettext("{begin} to {end}, {took}", **values)
    return text.gettext("from {begin}, last seen {end}, {took} so far", **values)


def _again(digest: Digest, text: Language) -> str:
    if digest.again:
        return text.ngettext(
            "The scheduler has restarted this job. Only its last run is reported.",
            "The scheduler has restarted this job {n} times. Only its last run is reported.",
            digest.again,
        )
    if digest.earlier is None:
        return ""
    since = time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime(digest.earlier / 1e9))
    return text.gettext(
        "This job number was used before, since {time}. That earlier use is not included here.", time=since
    )


def _counted(sums: Sums, text: Language) -> str:
    return text.listed(
        part for part in (_read(sums, text), _written(sums, text), _metadata(sums, text)) if part
    )


def _read(sums: Sums, text: Language) -> str:
    if sums.read_bytes is None or _says_nothing(sums.read_bytes, sums):
        return ""
    size = _at_least(amount(sums.read_bytes, "bytes"), sums, text)
    if not sums.reads:
        return text.gettext("read {amount}", amount=size)
    count = round(sums.reads)
    return text.ngettext("read {amount} in {n} request", "read {amount} in {n} requests", count, amount=size)


def _written(sums: Sums, text: Language) -> str:
    if sums.write_bytes is None or _says_nothing(sums.write_bytes, sums):
        return ""
    size = _at_least(amount(sums.write_bytes, "bytes"), sums, text)
    if not sums.writes:
        return text.gettext("wrote {amount}", amount=size)
    count = round(sums.writes)
    return text.ngettext(
        "wrote {amount} in {n} request", "wrote {amount} in {n} requests", count, amount=size
    )


def _metadata(sums: Sums, text: Language) -> str:
    if sums.metadata is None or _says_nothing(sums.metadata, sums):
        return ""
    count = round(sums.metadata)
    total = _at_least(amount(sums.metadata, "integer"), sums, text)
    said = text.ngettext("{total} metadata operation", "{total} metadata operations", count, total=total)
    kinds = [f"{name} {amount(one, 'integer')}" for name, one in sums.operations[:_MOST_KINDS]]
    more = len(sums.operations) - len(kinds)
    kinds += [text.ngettext("{n} more kind", "{n} more kinds", more)] if more else []
    return (
        text.gettext("{operations} ({kinds})", operations=said, kinds=text.listed(kinds)) if kinds else said
    )


def _says_nothing(value: float, sums: Sums) -> bool:
    """Returns whether the value is a lower bound of 0, which contains no information."""
    return value == 0 and not sums.is_exact


def _at_least(shown: str, sums: Sums, text: Language) -> str:
    return shown if sums.is_exact else text.gettext("at least {amount}", amount=shown)


def of_recording(recorded: Recorded, text: Language) -> Iterator[Line]:
    """Yields lines with the results of a recording, without its advice."""
    if recorded.io_share is not None:
        share = amount(recorded.io_share, "share")
        shown = share if recorded.is_whole else text.gettext("at least {amount}", amount=share)
        yield text.gettext("I/O"), text.gettext("{share} of the recorded program's time", share=shown)
    if recorded.finding:
        heading, seen = (say(one, text) for one in recorded.finding)
        yield text.gettext("Largest finding"), text.gettext("{title}: {seen}", title=heading, seen=seen)


def shell_word(name: str) -> str:
    """Quotes a name as one word for a shell. Control characters are replaced, so that the name can't move the
    cursor."""
    return shlex.quote(visible(name))
