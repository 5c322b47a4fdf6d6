"""Formats the verdict in sentences: the share of I/O in a run, its kinds, and the largest costs.

The analysis `overview` computes the numbers; this module only makes sentences from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from iodock.program.findings import IO_FINE, IO_HEAVY
from iodock.program.unseen import ALL_SEEN, Unseen, says
from iodock.shared.language import N_, Language
from iodock.shared.units import BYTES, NANOSECONDS, share_text

Level = Literal["fine", "unjudged", "some", "heavy", "no_durations", "no_wall", "no_io"]
HEADLINES: Mapping[Level, str] = {
    "unjudged": "",  # See `iodock.program.unseen.says`, which writes this headline.
    "fine": N_("Your I/O is fine: {share} of the run was spent in it."),
    "some": N_("{share} of the run was spent in I/O."),
    "heavy": N_("I/O dominates this run: {share} of the time was spent in it."),
    "no_durations": N_("The time taken by I/O is unknown, because no call has a duration."),
    "no_wall": N_("The calls took {io}; how long the run took is not known."),
    "no_io": N_("No file I/O was seen in this run."),
}
_HIDDEN = N_(
    "Not all calls were recorded, so there may be more I/O than shown here. How to record the rest is "
    "explained further down."
)


_WAITING = N_(
    "Another {time} passed only in waiting on pipes and sockets: for other processes of the run, or other "
    "programs or machines, but not for the file system."
)
_STOPPED = N_(
    "Tracing itself adds a few µs to every call: without it short calls take less time than shown here."
)
_FINE_ADVICE = N_(
    "There is little to gain from tuning it; if the program is slow, look at its computation first."
)


MUCH_FAILED = 0.25
"""If a smaller share of calls failed, the headline does not mention it."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Shares of the wall time from which I/O is worth attention (`some`), and from which it dominates the
    run (`heavy`)."""

    some: float = IO_FINE
    heavy: float = IO_HEAVY


@dataclass(frozen=True, slots=True)
class Part:
    """Describes one kind of I/O: `data metadata seek sync map other`, or `waiting` on pipes and sockets."""

    name: str
    time_ns: int | None
    """Time summed over its calls; None: calls have no durations."""
    count: int


@dataclass(frozen=True, slots=True)
class Cost:
    """Describes the calls of one name on one file or file pattern, if they are among the most expensive."""

    call: str
    file: str | None
    time_ns: int | None
    longest_ns: int | None
    count: int
    failed: int
    bytes: int | None
    """Bytes read and written; None: the call moves no bytes."""
    files: int = 1
    """Number of files. If it is above one, `file` is the pattern."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Holds the few numbers from which the verdict is derived."""

    wall_ns: int | None
    io_ns: int | None
    """Wall time in which at least one thread was in a call on a file; None if calls have no durations."""
    waiting_ns: int | None
    """Wall time in which threads were only in calls on pipes and sockets."""
    calls: int
    failed: int
    read_bytes: int
    written_bytes: int
    durations: bool
    parts: Sequence[Part] = ()
    costs: Sequence[Cost] = ()
    cure: str | None = None
    """Hint that is shown if durations are missing."""
    stopped: bool = False
    """Whether the tracer stopped the program at each call, which makes calls appear longer than they are."""
    unseen: Unseen = ALL_SEEN
    """Calls that were not recorded."""

    @property
    def summed_io_ns(self) -> int:
        """Returns the time in ns in calls on files, summed over threads. Waiting on pipes and sockets is
        left out, and so are calls that are not I/O."""
        return sum(part.time_ns or 0 for part in self.parts if part.name not in ("waiting", "other"))

    @property
    def io_share(self) -> float | None:
        """Returns `io_ns` divided by `wall_ns`; None if one of them is unknown."""
        if self.io_ns is None or not self.wall_ns:
            return None
        return self.io_ns / self.wall_ns


@dataclass(frozen=True, slots=True)
class Verdict:
    """Holds the verdict as one headline and further sentences."""

    level: Level
    headline: str
    sentences: tuple[str, ...]


def judge(
    overview: Overview,
    text: Language,
    thresholds: Thresholds | None = None,
    is_worth_changing: bool = False,
) -> Verdict:
    """Judges a run, in the language of `text`. IS_WORTH_CHANGING states that a finding has a worthwhile
    gain."""
    level = level_of(overview, thresholds or Thresholds())
    share = "" if overview.io_share is None else share_text(overview.io_share)
    io = NANOSECONDS.text(overview.io_ns) if overview.io_ns is not None else ""
    if level == "unjudged":
        said = says(overview.unseen)
        headline = text.gettext(said.text, **{name: f"{count:,}" for name, count in said.values.items()})
    else:
        headline = text.gettext(HEADLINES[level], share=share, io=io)
    return Verdict(level, headline, tuple(_sentences(overview, level, text, is_worth_changing)))


def level_of(overview: Overview, thresholds: Thresholds) -> Level:
    """Returns the level of the verdict. It is `unjudged` if calls that were not recorded could change it."""
    judged = _level_of_seen(overview, thresholds)
    # If the recorded I/O already dominates the run, calls that were not recorded can't change this.
    hangs_on_all = judged in ("fine", "some", "no_io")
    return "unjudged" if hangs_on_all and not overview.unseen.judges else judged


def _level_of_seen(overview: Overview, thresholds: Thresholds) -> Level:
    if overview.calls == 0:
        return "no_io"
    if not overview.durations or overview.io_ns is None:
        return "no_durations"
    if overview.io_share is None:
        return "no_wall"
    if overview.io_share < thresholds.some:
        return "fine"
    return "heavy" if overview.io_share >= thresholds.heavy else "some"


def cost_figures(cost: Cost, overview: Overview, text: Language) -> str:
    """Formats a cost as `4,001 files, 3.2 s (26 % of the run) in 120,000 calls, 8 KiB each, longest 0.4
    s`."""
    calls = text.ngettext("{n} call", "{n} calls", cost.count)
    share = _cost_share(cost, overview, text)
    if cost.time_ns is None:
        figures = [f"{calls} ({share})"]
    else:
        time = NANOSECONDS.text(cost.time_ns)
        figures = [text.gettext("{time} ({share}) in {calls}", time=time, share=share, calls=calls)]
    if cost.bytes and cost.count > cost.failed:
        size = BYTES.text(cost.bytes / (cost.count - cost.failed))
        figures.append(text.gettext("{bytes} each", bytes=size))
    if cost.longest_ns is not None and cost.count > 1:
        figures.append(text.gettext("longest {time}", time=NANOSECONDS.text(cost.longest_ns)))
    if cost.files > 1:
        figures.insert(0, text.ngettext("{n} file", "{n} files", cost.files))
    if cost.failed:
        figures.append(text.ngettext("{n} failed", "{n} failed", cost.failed))
    return text.listed(figures)


def wall_parts(overview: Overview) -> dict[str, int]:
    """Returns the wall time of each part in ns. The parts on files add up to `io_ns`, as in the headline,
    and waiting is `waiting_ns`. If the run's duration is not known, the times are sums over threads."""
    summed = {part.name: part.time_ns or 0 for part in overview.parts}
    if not overview.wall_ns or overview.io_ns is None:
        return summed
    of_files = sum(time for name, time in summed.items() if name != "waiting")
    walls = {"waiting": (overview.waiting_ns or 0, summed.get("waiting", 0))}
    shares = {name: walls.get(name, (overview.io_ns, of_files)) for name in summed}
    return {
        name: round(time * min(1.0, shares[name][0] / max(1, shares[name][1])))
        for name, time in summed.items()
    }


def whole_ns(overview: Overview) -> int:
    """Returns the length in ns that the verdict's bar stands for: the wall time, or the sum of the parts
    if that is larger."""
    return max(1, sum(wall_parts(overview).values()), overview.wall_ns or 0)


def _is_shared(overview: Overview) -> bool:
    """Returns whether calls of several threads ran at the same time, so that the sum of their times
    exceeds the wall time."""
    summed = sum(part.time_ns or 0 for part in overview.parts if part.name != "waiting")
    return overview.io_ns is None or summed > 1.1 * overview.io_ns


def _cost_share(cost: Cost, overview: Overview, text: Language) -> str:
    if cost.time_ns is None:
        return text.gettext("{share} of all calls", share=share_text(cost.count / max(1, overview.calls)))
    if overview.wall_ns and not _is_shared(overview):
        return text.gettext("{share} of the run", share=share_text(cost.time_ns / overview.wall_ns))
    return text.gettext(
        "{share} of the I/O time",
        share=share_text(cost.time_ns / max(1, overview.summed_io_ns, cost.time_ns)),
    )


def figures(overview: Overview, text: Language, with_volume: bool = True) -> str:
    """Formats the run's figures in one sentence, such as `4.4 s of 12 s in calls on files; 390,424 I/O
    calls: 13.3 GiB read, ...`."""
    parts = []
    if overview.io_ns is not None and overview.io_share is not None:
        times = N_("{io} of {wall} in calls on files")
        parts.append(text.gettext(times, io=_time(overview.io_ns), wall=_time(overview.wall_ns)))
    if _waits(overview):
        waiting = N_("{time} only waiting on pipes and sockets")
        parts.append(text.gettext(waiting, time=_time(overview.waiting_ns)))
    if overview.calls and with_volume:
        parts.append(_volume(overview, text))
    return text.joined(parts)


def remarks(overview: Overview, text: Language, judged: bool) -> list[str]:
    """Returns facts that readers need to interpret a run's figures. JUDGED states that the headline does
    not say that calls are missing."""
    said = []
    if judged and not overview.unseen.judges:
        said.append(text.gettext(_HIDDEN))
    if overview.stopped and overview.durations and overview.calls:
        said.append(text.gettext(_STOPPED))
    if _level_of_seen(overview, Thresholds()) == "no_durations" and overview.cure:
        said.append(
            text.gettext("To find out how long the I/O took: {cure}.", cure=text.gettext(overview.cure))
        )
    return said


def _sentences(overview: Overview, level: Level, text: Language, is_worth_changing: bool) -> list[str]:
    said = []
    if overview.io_ns is not None and overview.io_share is not None:
        times = N_("File I/O was in progress for {io} of {wall}.")
        said.append(text.gettext(times, io=_time(overview.io_ns), wall=_time(overview.wall_ns)))
    if overview.calls:
        said.append(_volume(overview, text))
    if _waits(overview):
        said.append(text.gettext(_WAITING, time=_time(overview.waiting_ns)))
    if level == "fine" and not is_worth_changing:
        said.append(text.gettext(_FINE_ADVICE))
    return [*said, *remarks(overview, text, judged=level != "unjudged")]


def _waits(overview: Overview) -> bool:
    """Returns whether waiting on pipes and sockets took more than 1 % of the run."""
    return bool(overview.waiting_ns and overview.wall_ns and overview.waiting_ns > 0.01 * overview.wall_ns)


def _volume(overview: Overview, text: Language) -> str:
    moved = {"read": BYTES.text(overview.read_bytes), "written": BYTES.text(overview.written_bytes)}
    calls = text.ngettext("{n} I/O call", "{n} I/O calls", overview.calls)
    # Look-ups along search paths and terminal checks fail in every healthy run, so a small number of failures
    # is not mentioned.
    if overview.failed < MUCH_FAILED * overview.calls:
        return text.gettext("{calls}: {read} read, {written} written.", calls=calls, **moved)
    failed = text.ngettext("{n} failed", "{n} failed", overview.failed)
    return text.gettext(
        "{calls} ({failed}): {read} read, {written} written.", calls=calls, failed=failed, **moved
    )


def _time(nanoseconds: int | None) -> str:
    return NANOSECONDS.text(nanoseconds)
