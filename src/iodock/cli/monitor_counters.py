"""Implements `iodock monitor import-counters`, which imports the counters of a storage array."""

from __future__ import annotations

from pathlib import Path

import click

from iodock.cli.monitor_sar import clock, goes, goes_to, pushes
from iodock.cli.options import examples, quiet
from iodock.cli.streams import say

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(
    name="import-counters",
    epilog=examples(
        (
            "iodock monitor import-counters array07.csv --map array07.toml --store /scratch/monitor",
            "iodock monitor import-counters walks.txt --map snmp.toml --url http://127.0.0.1:9847",
        )
    ),
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=_FILE)
@click.option(
    "--map", "map_file", metavar="MAP.toml", required=True, type=_FILE,
    help="declares for each column or object the quantity, unit and target",
)  # fmt: skip
@goes_to
@quiet
def import_counters(
    files: tuple[Path, ...],
    map_file: Path,
    url: str | None,
    folder: Path | None,
    token_file: Path | None,
    ca: Path | None,
    cert: Path | None,
    key: Path | None,
    quiet: bool,
) -> None:
    """Add counters of a storage array or its controllers to the data of agents.

    FILE is CSV, or text of snmpwalk with a line that gives the time before each walk. Values that were
    imported before are not counted twice."""
    from iodock.centre.monitor.arrays.frames import imported
    from iodock.centre.monitor.arrays.mapping import read_map

    mapped = read_map(map_file)
    with goes(url, folder, token_file, ca, cert, key) as push:
        for path in files:
            found = imported(path, mapped)
            for frames in pushes(found.frames):
                push(frames)
            if not quiet:
                say(
                    f"note: {path}: {found.host}: readings {found.readings:,} "
                    f"from {clock(found.begin)} to {clock(found.end)}"
                )
            for note in found.notes:
                say(f"note: {path}: {found.host}: {note}")
