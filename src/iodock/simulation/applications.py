"""Declares the kinds of programs that run on a busy centre. Rates are per node."""

from __future__ import annotations

from iodock.simulation.jobs import KIB, MIB, Application, Phase

_QUIET = Phase("compute", (200, 900), {"statfs": 0.02})

CHECKPOINTS = Application(
    "cfd",
    (Phase("read-input", (30, 120), {"open": 2, "close": 2, "getattr": 4}, read=(60, MIB)),),
    (
        _QUIET,
        Phase(
            "checkpoint",
            (20, 90),
            {"open": 0.5, "close": 0.5, "mknod": 0.4, "setattr": 0.2, "unlink": 0.2},
            {"punch": 0.1},
            write=(120, 4 * MIB),
        ),
    ),
    nodes=(2, 8),
    stripes=(2, 4),
)
"""Writes a burst of large requests every few minutes."""

METADATA_STORM = Application(
    "genome",
    (),
    (
        Phase(
            "storm",
            (30, 240),
            {"open": 120, "close": 120, "getattr": 300, "mknod": 30, "unlink": 28, "setattr": 10},
            {"setattr": 5, "destroy": 10},
            read=(40, 4 * KIB),
            write=(15, 4 * KIB),
        ),
        Phase("quiet", (60, 300), {"getattr": 2}),
    ),
    nodes=(1, 4),
    stripes=(1, 2),
)
"""Opens, stats and removes many small files."""

TRAINING = Application(
    "training",
    (),
    (
        Phase("epoch", (300, 900), {"open": 20, "close": 20, "getattr": 8}, read=(400, 128 * KIB)),
        Phase(
            "save", (10, 30), {"open": 0.3, "close": 0.3, "mknod": 0.3, "rename": 0.1}, write=(90, 4 * MIB)
        ),
    ),
    nodes=(1, 4),
    stripes=(2, 4),
)
"""Reads nearly all of the time."""

SMALL_WRITES = Application(
    "ensemble",
    (),
    (Phase("log", (120, 600), {"open": 0.2, "close": 0.2, "getattr": 0.5}, write=(30, 4 * KIB)), _QUIET),
    nodes=(1, 2),
    stripes=(1, 1),
)

ANALYSIS = Application(
    "postprocess",
    (),
    (
        Phase("scan", (60, 300), {"open": 6, "close": 6, "getattr": 20}, read=(80, MIB)),
        Phase("result", (10, 60), {"open": 1, "close": 1, "mknod": 1, "mkdir": 0.1}, write=(40, MIB)),
    ),
    nodes=(1, 2),
    stripes=(1, 3),
    seconds=(120, 2400),
)

SLEEPER = Application(
    "idle", (), (Phase("wait", (300, 900), {"getattr": 0.01}),), nodes=(1, 2), stripes=(1, 1)
)
"""Does nearly nothing."""

PAUSES = Application(
    "coupled",
    (),
    (
        Phase("work", (20, 90), {"open": 3, "close": 3, "mknod": 1}, write=(40, MIB)),
        Phase("pause", (900, 1600)),
    ),
    nodes=(1, 2),
    stripes=(1, 2),
    seconds=(7200, 14_400),
)
"""Pauses for longer than servers keep entries, then continues."""

VISITOR = Application(
    "short",
    (),
    (Phase("work", (20, 60), {"open": 1, "close": 1, "getattr": 2}, read=(20, MIB)),),
    nodes=(1, 1),
    stripes=(1, 2),
    seconds=(20, 60),
)
"""Starts and ends often, so that servers see new ids."""

TINY = Application(
    "array",
    (),
    (
        Phase("task", (60, 600), {"open": 0.05, "close": 0.05, "getattr": 0.1}, write=(0.05, 64 * KIB)),
        Phase("compute", (300, 3000)),
    ),
    nodes=(1, 1),
    stripes=(1, 1),
    seconds=(3600, 86_400),
)
"""One task of an array with tens of thousands of tasks."""

SHARED_FOLDER = Application(
    "shared-dir",
    (),
    (
        Phase(
            "open-close",
            (600, 600),
            {"open": 12, "close": 12, "mknod": 2, "unlink": 2, "getattr": 4},
            write=(1, 64 * KIB),
            is_exact=True,
        ),
    ),
    nodes=(1008, 1008),
    stripes=(4, 4),
    seconds=(82_800, 82_800),
)
"""As on the K computer in 2017: 8,000 processes on 1,008 nodes open and close files in one shared directory,
for 23 hours."""

WIDE_STRIPES = Application(
    "wide-stripes",
    (),
    (
        Phase(
            "stage-in-and-open",
            (1080, 1080),
            # Each of 12,096 processes, one per node, creates 7 files. The server handles requests in only 5
            # of the 18 minutes of the job, in which about 84,000 files are created. Each file has 12 objects,
            # which object servers create during the whole job.
            {"open": 7 / 300, "mknod": 7 / 300, "close": 7 / 300, "setattr": 7 / 300},
            {"create": 7 * 12 / 1080},
            write=(7 / 1080, MIB),
            is_exact=True,
        ),
    ),
    nodes=(12_096, 12_096),
    stripes=(12, 12),
    seconds=(1080, 1080),
)
"""As on the K computer in 2017: about 84,000 files with 12 stripes each, about 1,000,000 objects, in 18
minutes."""

USUAL = (
    (CHECKPOINTS, 5.0),
    (METADATA_STORM, 1.5),
    (TRAINING, 2.0),
    (SMALL_WRITES, 3.0),
    (ANALYSIS, 2.5),
    (SLEEPER, 1.0),
)
"""Applications of an ordinary day, with their relative frequencies."""
