"""All verbs: the module of each in this folder has a click command `command`.

The one-line help texts are here so that `iodock --help` imports no verb.
"""

from __future__ import annotations

VERBS: dict[str, tuple[str, str]] = {
    "record": ("iodock.cli.record", "Record a program's I/O, then show where the time went"),
    "live": ("iodock.cli.live", "Watch a recording in progress: rates, largest files and calls"),
    "import": ("iodock.cli.import_logs", "Turn logs of strace, Darshan or another tracer into a store"),
    "merge": ("iodock.cli.merge", "Make one store of a run's parts, recorded by node or by rank"),
    "show": ("iodock.cli.show", "Show an analysis of a store: table, CSV, JSON, chart, ..."),
    "diagnose": ("iodock.cli.diagnose", "Say what is wrong, what it costs, and what to change"),
    "volume": ("iodock.cli.volume", "Compare the bytes a program moves with what its files hold"),
    "diff": ("iodock.cli.diff", "Say what changed between two runs, or several of each"),
    "report": ("iodock.cli.report", "Write the whole check-up as one HTML page"),
    "export": ("iodock.cli.export", "Write a run for Perfetto, speedscope, pprof and other viewers"),
    "symbolize": ("iodock.cli.symbolize", "Name functions and lines of a run with stacks, after the run"),
    "ratio": ("iodock.cli.ratio", "Step 1: from times or job records, is I/O likely the problem?"),
    "health": ("iodock.cli.health", "What a file system can do: the check-up, with remarks"),
    "bench": ("iodock.cli.bench", "Read results of IOR, mdtest, fio, IO500, ...; run sweeps"),
    "bundle": ("iodock.cli.bundle", "Pack what an administrator needs to know of a run"),
    "fs": ("iodock.cli.fs", "Describe a file system: mount options explained, stripes, quota, limits"),
    "probe": ("iodock.cli.probe", "Watch a file system with a few small operations, all day long"),
    "monitor": ("iodock.cli.monitor", "Which job does what to the file systems"),
    "query": ("iodock.cli.query", "Ask a store in SQL"),
    "cases": ("iodock.cli.cases", "The casebook: see patterns and their cures on small programs"),
    "explain": ("iodock.cli.explain", "Say what a column, a call or a loss means"),
    "completion": (
        "iodock.cli.completion",
        "Complete command lines by Tab: the script for bash, zsh or fish",
    ),
    "doctor": ("iodock.cli.doctor", "Say what this machine allows, and what follows"),
}
"""Verb -> (module, one-line help), in the order in which help lists them."""
