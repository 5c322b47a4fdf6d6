"""Thresholds of `serial-phases`, which several modules find parts of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `serial-phases`."""

    least_alone: float = 0.85
    """Share of all workers' bytes that one of them must have."""
    least_alone_time: float = 0.6
    """The same of their time in I/O: the others may spend theirs on files that hold little."""
    least_bytes: int = 1048576
    """It must have moved at least so much: a log of one rank is no phase."""
    most_part: float = 0.01
    """Of the mean of all workers' bytes: from so much on in the same files, another worker has a part of its
    own there. Where half of the others have, the parts are uneven (`rank-imbalance`)."""
    least_wall: float = 0.03
    """Of the run, in which one must work alone, where the others have I/O of other kinds or none at all."""
    most_beside: float = 0.25
    """I/O of the others in the same moments, of that of the one who works alone: more is side by side."""
    least_wait: float = 0.6
    """Of the time in which a process does the I/O of the workers that it started: so long they must wait for
    it at their pipes, where they live at that time. Who computes meanwhile does not wait."""
    least_stretches: int = 3
    """Stretches of I/O by one thread, between which it starts others that compute."""
    least_stretch_ns: int = 5000000
    """Up from this length it is a stretch, and so is the pause between two."""
    most_beside_threads: float = 0.1
    """Of the time of these stretches, in which the threads may live already, or still."""
    least_prepared: float = 0.1
    """Of the run, that helpers could spare which don't work while one reads and takes apart what it reads, or
    puts together what it writes."""
    least_prepared_cpu: float = 0.2
    """Of that time, that the one must compute; processors are shared on a busy machine."""
    least_prepared_share: float = 0.5
    """Of what the one and its helpers read, or write, that it must work on: less is a list of what to do."""
    least_worked: float = 0.6
    """Of that time, that must be spent beside the calls: who mostly waits for the disk is told by those."""
    text_after_ns: float = 200.0
    """Of that time, for each byte of what may be text by its name: what lies between the last call and the
    helpers' begin, or between their end and the first call."""
    least_helping: float = 0.2
    """Of the CPU time of the thread that computes most: who has less is a runtime's own."""
    most_edge: float = 0.01
    """Of the bytes: what was moved long before and after, as settings and a last line of a log."""
    most_worked_ns: float = 500.0
    """Of that time, for each byte that is read or written: to take its text apart. More is another work."""
