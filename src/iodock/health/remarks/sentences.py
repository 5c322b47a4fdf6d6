"""What each kind of remark says, as sentences to be translated: one place, so that they sound alike."""

from __future__ import annotations

from enum import StrEnum

from iodock.language import N_


class Kind(StrEnum):
    """The kinds of remarks; docs/explanation/remarks.md explains each."""

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


LEVELS_OFF = N_(
    "levels off at {processes} processes: {growth_factor} times the value at {first_processes}, then no more "
    "up to {last_processes}"
)
DEGRADES = N_("degrades beyond {processes} processes: at {last_processes} it is {loss_share} lower")
DEGRADES_FROM_ONE = N_(
    "degrades with the second process already: at {last_processes} processes it is {loss_share} lower"
)
DEGRADES_BY_SIZE = N_("degrades above an I/O size of {size_bytes}: at {last_bytes} it is {loss_share} lower")
GOOD_ONLY_ABOVE_SIZE = N_(
    "is good only from an I/O size of {size_bytes} on: below, it reaches at most {below_share} of that"
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
    "is {limit_share} of the limit of {limit}, {limit_bytes_per_s}: what is above it comes from a cache, "
    "or the limit is wrong"
)
BELOW = N_("at {processes} processes the value lies {off_share} below its neighbours")
ABOVE = N_("at {processes} processes the value lies {off_share} above its neighbours")
BELOW_BY_SIZE = N_("at an I/O size of {size_bytes} the value lies {off_share} below its neighbours")
ABOVE_BY_SIZE = N_("at an I/O size of {size_bytes} the value lies {off_share} above its neighbours")
UNSTABLE = N_(
    "is unstable where processes are {processes}: its repeats differ by {spread_share}, others by "
    "{usual_share}"
)
UNSTABLE_THROUGHOUT = N_("is unstable throughout: repeats differ by {spread_share}")
