"""Templates of sentences about the servers during a run. A server that no agent read is never called
healthy."""

from __future__ import annotations

from iodock.shared.language import N_
from iodock.shared.meanwhile import NotJoined, ServerState

AT_ALL_HEALTHY = N_(
    "The file server was healthy at that time: {server} of {file_system}, based on samples of {sample_s}."
)
AT_SEVERAL_HEALTHY = N_(
    "The file servers were healthy at that time: all {servers} of {file_system}, based on samples of "
    "{sample_s}."
)
AT_UNREAD = N_(
    "There are no readings of the servers of {file_system} at that time, so it is not known whether "
    "they were healthy."
)
AT_PARTLY = N_(
    "Of the {servers} servers of {file_system}, {read} were read at that time and were healthy. The "
    "state of the others is not known."
)
AT_NO_USUAL = N_(
    "No problem of {file_system} was seen at that time, but there are not enough samples from before the "
    "run to know whether the servers were healthy. Servers with too few samples: {unsure} of {servers}."
)
AT_TOO_COARSE = N_(
    "Over the {sample_s} around the call the servers of {file_system} were in their normal state. "
    "A sample that long would not show a problem as short as the call, so it is unknown whether "
    "they were healthy."
)
AT_ALSO_UNREAD = N_("Servers without readings at that time: {unread} of {servers}.")
AT_NOT_MONITORED = N_(
    "No server of {mount} is in the monitor's store, so the state of the server at that time is unknown."
)
AT_STATES: dict[ServerState, str] = {
    "stall": N_(
        "At that time {server}, which serves {file_system}, had stalled: requests waited and hardly any "
        "was handled."
    ),
    "overload": N_(
        "At that time {server}, which serves {file_system}, was overloaded: requests waited long."
    ),
    "failover": N_(
        "At that time {server}, which serves {file_system}, was failing over: it was down, restarting, "
        "or served from elsewhere."
    ),
    "degraded": N_(
        "At that time {server}, which serves {file_system}, was degraded: it was slower than usual, or "
        "a part of it was missing."
    ),
}
AT_BRIEFLY: dict[ServerState, str] = {
    "stall": N_(
        "At that time one sample of {server}, which serves {file_system}, suggests a stall: requests "
        "waited and hardly any was handled. A single sample is weak evidence."
    ),
    "overload": N_(
        "At that time one sample of {server}, which serves {file_system}, suggests an overload: "
        "requests waited long. A single sample is weak evidence."
    ),
    "failover": N_(
        "At that time one sample of {server}, which serves {file_system}, suggests a failover. A single "
        "sample is weak evidence."
    ),
    "degraded": N_(
        "At that time one sample of {server}, which serves {file_system}, suggests a degraded server. A "
        "single sample is weak evidence."
    ),
}
SAMPLED = N_("Readings of {server} from {begin} to {end} follow.")
HANDLED = N_("Requests handled per second: {handled}.")
HANDLED_USUALLY = N_("Requests handled per second: {handled}, usually {usual}.")
WAITING = N_("Requests waiting: {waiting}.")
WAITED = N_("The requests that were handled had waited for {wait_s}.")
CPU = N_("CPU use of the server: {cpu_share}.")
RUN_HEALTHY = N_(
    "{file_system}: the file servers were healthy while the program ran ({servers} read for {of_s}, by "
    "samples of {sample_s})."
)
RUN_COARSE_HEALTHY = N_(
    "{file_system}: by samples of {sample_s} the servers were as usual while the program ran ({servers} read "
    "for {of_s}). Trouble shorter than a sample may not show in them."
)
RUN_KEPT = N_("For that time the monitor's store has only sums of {kept_s}.")
RUN_NO_USUAL = N_(
    "{file_system}: no trouble was seen while the program ran, but there are not enough samples from before "
    "it to know whether the servers were healthy ({unsure} of {servers} servers, samples of {sample_s})."
)
RUN_UNREAD = N_(
    "{file_system}: there are no readings of the servers while the program ran, so it is not known "
    "whether they were healthy."
)
RUN_PARTLY = N_(
    "{file_system}: no trouble was seen while the program ran, but {server} was not read for {part_s} "
    "of {of_s}. Servers that were not read all the time: {unread} of {servers}."
)
RUN_BRIEF = N_(
    "{file_system}: no trouble lasted for two samples while the program ran, but a single sample of "
    "{server} suggests some."
)
RUN_STATES: dict[ServerState, str] = {
    "stall": N_(
        "{file_system}: while the program ran, {server} was stalled for {part_s} of {of_s}, first at "
        "{when} (by samples of {sample_s})."
    ),
    "overload": N_(
        "{file_system}: while the program ran, {server} was overloaded for {part_s} of {of_s}, first at "
        "{when} (by samples of {sample_s})."
    ),
    "failover": N_(
        "{file_system}: while the program ran, {server} was failing over for {part_s} of {of_s}, first "
        "at {when} (by samples of {sample_s})."
    ),
    "degraded": N_(
        "{file_system}: while the program ran, {server} was degraded for {part_s} of {of_s}, first at "
        "{when} (by samples of {sample_s})."
    ),
}
RUN_NO_SYSTEM = N_("The monitor's store has no server of a file system that this program used.")
RUN_NO_SERVER = N_(
    "The monitor's store has no server at that time, so the state of the servers is not known."
)
RUN_NOT_CHOSEN = N_(
    "The recording does not name the file systems that it used: all those in the monitor's store are shown."
)
CLOCK_SAME = N_(
    "Times of the servers: {host}'s clock was compared with its agent's by counters that both read; no "
    "difference was found, to within {within_s}. Clocks of servers and agents are assumed to agree."
)
CLOCK_MEASURED = N_(
    "Times of the servers: {host}'s clock was compared with its agent's by counters that both read; the "
    "agent's is ahead by {offset_s}, known to within {within_s}. Clocks of servers and agents are "
    "assumed to agree."
)
CLOCK_BEHIND = N_(
    "Times of the servers: {host}'s clock was compared with its agent's by counters that both read; the "
    "agent's is behind by {offset_s}, known to within {within_s}. Clocks of servers and agents are "
    "assumed to agree."
)
CLOCK_ASSUMED = N_(
    "Times of the servers: not compared. The site's settings say that clocks agree to within "
    "{within_s}, so no difference is assumed."
)
NOT_JOINED: dict[NotJoined, str] = {
    "no-date": N_("The servers' readings were not used: the recording's times have no date."),
    "no-host": N_(
        "The servers' readings were not used: the recording does not say on which machine it was made, "
        "so clocks can't be compared. If the site keeps them equal, set clocks_agree_s in [servers]."
    ),
    "no-agent": N_(
        "The servers' readings were not used: no agent ran on the recording's machine then, so clocks "
        "can't be compared. If the site keeps them equal, set clocks_agree_s in [servers]."
    ),
    "too-few": N_(
        "The servers' readings were not used: the recording and the agent on its machine have too few "
        "counters in common to compare clocks. If the site keeps them equal, set clocks_agree_s in "
        "[servers]."
    ),
    "too-coarse": N_(
        "The servers' readings were not used: the monitor's store keeps only sums of that time, too coarse "
        "to compare clocks. If the site keeps them equal, set clocks_agree_s in [servers]."
    ),
    "too-vague": N_(
        "The servers' readings were not used: disks and mounts were too steady to compare clocks to "
        "within some seconds. If the site keeps them equal, set clocks_agree_s in [servers]."
    ),
    "no-match": N_(
        "The servers' readings were not used: the counters of the recording and of the agent on its "
        "machine do not match for any clock difference up to ten minutes."
    ),
}
BROKEN = N_("The state of the servers is unknown: {error}.")
AT_ARRAY = N_(
    "{server}, behind {file_system}, was busy for {busy_share} of the time then, and for {median_share} "
    "over the run (median; imported counters)."
)
OTHERS_UNKNOWN = N_(
    "No agent on that machine recorded which other programs used its disks and mounts at that time."
)
OTHERS_NONE = N_("The agent on that machine saw no I/O of another job or session at that time.")
OTHERS_OWN = N_("The recorded program itself may be one of them: the recording names no job.")
OTHER_RUNS = N_("This job or session ran {commands}.")
OTHER = N_(
    "From the same machine {name} read {read_bytes} and wrote {written_bytes} from {begin} to {end} (the "
    "agent's count)."
)
OTHER_OF = N_(
    "From the same machine {name} of {user} read {read_bytes} and wrote {written_bytes} from {begin} to "
    "{end} (the agent's count)."
)
