"""Lists all commands. Each command is in a module of this package that defines a click command named
`command`.

The one-line help texts are here as well, so that `iodock --help` need not import the modules.
"""

from __future__ import annotations

VERBS: dict[str, tuple[str, str]] = {
    "record": ("iodock.cli.record", "Record a program's I/O, then show where the time went"),
    "live": ("iodock.cli.live", "Watch a recording in progress: rates, largest files and calls"),
    "import": ("iodock.cli.import_logs", "Convert logs of strace, Darshan or another tracer to a store"),
    "merge": (
        "iodock.cli.merge",
        "Create one store from the parts of a run that were recorded by node or by rank",
    ),
    "show": ("iodock.cli.show", "Show an analysis of a store: table, CSV, JSON, chart, ..."),
    "diagnose": ("iodock.cli.diagnose", "Report problems of a run's I/O, their cost, and what to change"),
    "volume": ("iodock.cli.volume", "Compare the bytes that a program transfers with the sizes of its files"),
    "diff": ("iodock.cli.diff", "Report what changed between two runs, or several runs of each side"),
    "report": ("iodock.cli.report", "Write the whole check-up as one HTML page"),
    "export": ("iodock.cli.export", "Write a run for Perfetto, speedscope, pprof and other viewers"),
    "symbolize": ("iodock.cli.symbolize", "Add functions and lines to a run with stacks, after the run"),
    "ratio": ("iodock.cli.ratio", "Step 1: from times or job records, is I/O likely the problem?"),
    "health": ("iodock.cli.health", "The performance of a file system: the check-up, with remarks"),
    "bench": ("iodock.cli.bench", "Read results of IOR, mdtest, fio, IO500, ...; run sweeps"),
    "bundle": ("iodock.cli.bundle", "Pack the data that an administrator needs about a run"),
    "fs": ("iodock.cli.fs", "Describe a file system: mount options explained, stripes, quota, limits"),
    "probe": ("iodock.cli.probe", "Watch a file system with a few small operations, all day long"),
    "monitor": ("iodock.cli.monitor", "Jobs and their load on the file systems"),
    "query": ("iodock.cli.query", "Ask a store in SQL"),
    "cases": ("iodock.cli.cases", "The casebook: patterns and their remedies in small programs"),
    "explain": ("iodock.cli.explain", "Explain a column, a call, a loss or a rule"),
    "completion": (
        "iodock.cli.completion",
        "Complete command lines by Tab: the script for bash, zsh or fish",
    ),
    "doctor": ("iodock.cli.doctor", "Report what this machine allows, and what follows"),
}
"""Maps each verb to (module, one-line help), in the order in which the help lists them."""
