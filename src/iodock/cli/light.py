"""Prints the result of a light recording (`iodock record --light`), which contains counters instead of
calls."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from iodock.program.relations.run_facts import TERMINAL_NAMES, UNFILED_KINDS
from iodock.shared.language import N_
from iodock.shared.units import BYTES, NANOSECONDS

if TYPE_CHECKING:
    from rich.console import Console

    from iodock.program.store import Store

_FILES = 5
_SUMS = (
    "sum(reads) AS reads, sum(writes) AS writes, sum(opens) AS opens, sum(read_bytes) AS read_bytes, "
    "sum(written_bytes) AS written_bytes, "
    "sum(coalesce(read_time_ns, 0) + coalesce(write_time_ns, 0) + coalesce(meta_time_ns, 0)) AS time_ns"
)
# Selects counters of files. Combined counters (with a pattern) belong to several files, so their kind is not
# known and they are included. Pipes, sockets and terminals are left out.
_OF_FILES = (
    "(SELECT p.*, f.name FROM profiles p LEFT JOIN files f USING (file_id) "
    f"WHERE coalesce(f.kind NOT IN ({UNFILED_KINDS}) OR f.kind = 'other' AND p.pattern IS NOT NULL, true) "
    f"AND NOT coalesce(regexp_matches(f.name, '{TERMINAL_NAMES}'), false))"
)
_TOTALS = (
    f"SELECT {_SUMS}, count(DISTINCT file_id) FILTER (pattern IS NULL) AS files, "
    f"count(DISTINCT upid) AS processes, sum(files) FILTER (pattern IS NOT NULL) AS folded FROM {_OF_FILES}"
)
_LARGEST = (
    f"SELECT name, {_SUMS} FROM {_OF_FILES} WHERE name IS NOT NULL GROUP BY name "
    f"ORDER BY sum(read_bytes) + sum(written_bytes) DESC, name LIMIT {_FILES}"
)

_NOTHING = N_(
    "Light recording: no call on a file was counted. There may have been calls that it can't count."
)
_RUN = N_("Light recording: {processes}, {files}, {wall}.")
_READ = N_("Read {bytes} in {calls} calls, written {written} in {writes} calls, {opens} opens.")
_TIME = N_("Time in calls on files: {time}, summed over all processes and threads.")
_FOLDED = N_("More files than memory had room for: some {files} are counted together by pattern or folder.")
_FILE = N_("  {name}: {read} read, {written} written, {time}")
_BY_BYTES = N_("The files with most bytes:")
_MORE = N_(
    "What to change: iodock diagnose {store}. More: iodock report {store}, iodock show profiles {store}. For "
    "the order of calls record without --light."
)


def print_counts(store: Store, console: Console, language: str) -> None:
    """Prints totals, times, and the files with most bytes."""
    from iodock.shared.language import language_in

    text = language_in(language)
    translated = text.gettext

    def say(message: str, **values: object) -> None:
        console.print(translated(message).format(**values), markup=False, soft_wrap=True)

    totals = store.rows(_TOTALS)[0]
    console.print()
    if not totals["processes"]:
        say(_NOTHING)
        return
    say(
        _RUN,
        processes=text.ngettext("{n} process", "{n} processes", totals["processes"]),
        files=text.ngettext("{n} file", "{n} files", totals["files"]),
        wall=NANOSECONDS.text(store.manifest.wall_ns),
    )
    say(
        _READ, bytes=BYTES.text(totals["read_bytes"] or 0), calls=totals["reads"], opens=totals["opens"],
        written=BYTES.text(totals["written_bytes"] or 0), writes=totals["writes"],
    )  # fmt: skip
    say(_TIME, time=NANOSECONDS.text(totals["time_ns"]))
    if totals["folded"]:
        say(_FOLDED, files=totals["folded"])
    say(_BY_BYTES)
    for row in store.rows(_LARGEST):
        say(_FILE, **_file(row))
    say(_MORE, store=shlex.quote(str(store.path)))


def _file(row: dict[str, Any]) -> dict[str, object]:
    return {
        "name": row["name"],
        "read": BYTES.text(row["read_bytes"] or 0),
        "written": BYTES.text(row["written_bytes"] or 0),
        "time": NANOSECONDS.text(row["time_ns"]),
    }
