"""Contains the sentences of each kind of remark, which are marked for translation."""

from __future__ import annotations

from enum import StrEnum

from iodock.file_system.health.measurements import Cell, Unit
from iodock.shared.language import N_
from iodock.shared.units import number_text


class Kind(StrEnum):
    """The kinds of remarks, which docs/explanation/remarks.md explains."""

    LEVELS_OFF = "levels-off"
    DEGRADES = "degrades"
    GOOD_ONLY_ABOVE_SIZE = "good-only-above-size"
    PEAKS_ONLY_AT = "peaks-only-at"
    WRITE_FALLS_READ_GROWS = "write-falls-read-grows"
    IN_PROPORTION = "in-proportion"
    INDEPENDENT_OF_SIZE = "independent-of-size"
    LINK_LIMIT = "link-limit"
    APART = "apart"
    UNSTABLE = "unstable"
    GROWS_THROUGHOUT = "grows-throughout"
    FALLS_THROUGHOUT = "falls-throughout"
    VARIES = "varies"
    PAGE_CACHE = "page-cache"
    OTHER_LOAD = "other-load"


_PREFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def rate(cell: Cell) -> str:
    """Formats a rate, such as `64 MiB/s` or `12,000/s`. The format does not depend on the language."""
    if cell.unit is not Unit.BYTES_PER_S:
        return f"{number_text(float(f'{cell.value:.3g}'), 6)}/s"
    power = min(max(int(cell.value).bit_length() - 1, 0) // 10, len(_PREFIXES) - 1)
    return f"{number_text(float(f'{cell.value / (1 << (10 * power)):.3g}'), 6)} {_PREFIXES[power]}B/s"


LEVELS_OFF = N_(
    "levels off at {processes} processes: {growth_factor} times the value at {first_processes}, then no "
    "growth up to {last_processes}"
)
DEGRADES = N_("degrades beyond {processes} processes: at {last_processes} it is {loss_share} lower")
DEGRADES_FROM_ONE = N_(
    "degrades with the second process already: at {last_processes} processes it is {loss_share} lower"
)
DEGRADES_BY_SIZE = N_("degrades above an I/O size of {size_bytes}: at {last_bytes} it is {loss_share} lower")
GOOD_ONLY_ABOVE_SIZE = N_(
    "reaches at most {below_share} of its throughput below an I/O size of {size_bytes}: use requests of "
    "{size_bytes} or more"
)
PEAKS_ONLY_AT = N_("peaks only at {processes} processes: {above_factor} times as much as anywhere else")
WRITE_FALLS_READ_GROWS = N_(
    "as processes grow from {first_processes} to {last_processes}, writing falls to {write_share} while "
    "reading grows {read_factor} times: writes wait for the server, reads come from the client's cache"
)
IN_PROPORTION = N_("grows in proportion to processes, from {first_processes} to {last_processes}")
INDEPENDENT_OF_SIZE = N_(
    "is independent of the I/O size from {first_bytes} to {last_bytes}: it differs by at most {differs_share}"
)
LINK_LIMIT = N_("reaches {limit_share} of the limit of {limit}, {limit_bytes_per_s}")
ABOVE_LINK_LIMIT = N_(
    "is {limit_share} of the limit of {limit}, {limit_bytes_per_s}: the part above it comes from a cache, "
    "or the limit is wrong"
)
BELOW = N_("at {processes} processes the value lies {off_share} below its neighbours")
ABOVE = N_("at {processes} processes the value lies {off_share} above its neighbours")
BELOW_BY_SIZE = N_("at an I/O size of {size_bytes} the value lies {off_share} below its neighbours")
ABOVE_BY_SIZE = N_("at an I/O size of {size_bytes} the value lies {off_share} above its neighbours")
UNSTABLE = N_(
    "is unstable at {processes} processes: the repeats differ by {spread_share}, others by {usual_share}"
)
UNSTABLE_THROUGHOUT = N_(
    "is unreliable: repeats vary by {spread_share}. Measure again when the system is quiet"
)

GROWS_BY_SIZE = N_(
    "grows with the request size throughout ({first_bytes}: {first}, {last_bytes}: {last}): larger requests "
    "may be faster still"
)
FALLS_BY_SIZE = N_(
    "falls with the request size throughout ({first_bytes}: {first}, {last_bytes}: {last}): smaller requests "
    "may be faster still"
)
GROWS_BY_PROCESSES = N_(
    "grows with the number of processes up to the largest measured ({first_processes}: {first}, "
    "{last_processes}: {last}): even more processes may be faster"
)
FALLS_BY_PROCESSES = N_(
    "falls with the number of processes up to the largest measured ({first_processes}: {first}, "
    "{last_processes}: {last}): fewer processes may be even faster"
)
GROWS_BY_SIZE_SEVERAL = N_(
    "grows with the request size throughout ({first_bytes} to {last_bytes}: {least_factor} to {most_factor} "
    "times): larger requests may be faster still"
)
FALLS_BY_SIZE_SEVERAL = N_(
    "falls with the request size throughout ({first_bytes} to {last_bytes}: {least_factor} to {most_factor} "
    "times): smaller requests may be faster still"
)
GROWS_BY_PROCESSES_SEVERAL = N_(
    "grows with the number of processes up to the largest measured ({first_processes} to {last_processes}:"
    " {least_factor} to {most_factor} times): even more processes may be faster"
)
FALLS_BY_PROCESSES_SEVERAL = N_(
    "falls with the number of processes up to the largest measured ({first_processes} to {last_processes}:"
    " {least_factor} to {most_factor} times): fewer processes may be even faster"
)
SEVERAL = {
    GROWS_BY_SIZE: GROWS_BY_SIZE_SEVERAL,
    FALLS_BY_SIZE: FALLS_BY_SIZE_SEVERAL,
    GROWS_BY_PROCESSES: GROWS_BY_PROCESSES_SEVERAL,
    FALLS_BY_PROCESSES: FALLS_BY_PROCESSES_SEVERAL,
}
"""Sentences about several curves, at several sizes or numbers of processes. They contain no values, because
those of one curve would mislead."""
GROWS_BY_SETTING = N_(
    "grows with {setting} throughout ({first_setting}: {first}, {last_setting}: {last}): more may be faster "
    "still"
)
FALLS_BY_SETTING = N_(
    "falls with {setting} throughout ({first_setting}: {first}, {last_setting}: {last}): less may be faster "
    "still"
)
VARIES_BY_SIZE = N_("differs with the request size: {low} at {low_bytes}, {high} at {high_bytes}")
VARIES_BY_PROCESSES = N_(
    "differs with the number of processes: {low} at {low_processes}, {high} at {high_processes}"
)
VARIES_BY_SETTING = N_("differs with {setting}: {low} at {low_setting}, {high} at {high_setting}")
PAGE_CACHE = N_(
    "the measured time includes no waiting for the disk or server, so these rates are those of memory "
    "(cells: {cells}, up to {best_bytes_per_s}): measure with fsync or O_DIRECT"
)
OTHER_LOAD = N_(
    "The machine was busy with something else during {busy} of {cells} cells (other programs: up to "
    "{cpu_share} of the processors; other virtual machines: {steal_share}): measure again when it is quiet"
)
