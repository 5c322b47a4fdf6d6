"""Maps of files that are gone through at random: a page fault for each access."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from iodock.language import N_
from iodock.rules.base import Candidate, Facts, Need, Rule, advise


@dataclass(frozen=True, slots=True)
class Settings:
    """Thresholds of `mmap-random`."""

    least_faults: int = 1000
    """Fewer page faults in a map than this are not worth a word."""


def find(facts: Facts, settings: Settings) -> Iterator[Candidate]:
    """Nothing: no source shows page faults, and the rule says so (`needs`)."""
    return iter(())


RULE = Rule(
    name="mmap-random",
    title=N_("Random access through a memory map"),
    looks_for=N_(
        "Files that are mapped into memory and touched to and fro, with a page fault for each touch."
    ),
    why=N_(
        "Each page fault reads 4 KiB or a little more from the disk or server while the program waits, and "
        "no system call shows it."
    ),
    advice=advise(
        any=N_("Read the file into memory once with large reads if it fits, or touch it in rising order."),
        c=N_(
            "Say how the map is used: madvise(MADV_SEQUENTIAL) or MADV_WILLNEED, or map with MAP_POPULATE; "
            "for scattered records use pread."
        ),
        python=N_("Use numpy.fromfile in place of numpy.memmap where the array fits into memory."),
    ),
    fine_when=N_("The file stays in memory between the touches, or only a few pages of it are needed."),
    settings=Settings,
    find=find,
    needs=(Need.PAGE_FAULTS,),
    case="mmap-viewer",
)
