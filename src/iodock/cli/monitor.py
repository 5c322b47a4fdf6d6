"""Implements `iodock monitor`, whose subcommands collect and show the load of jobs on file systems, and
`iodock monitor simulate`."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.ending import told_to_end
from iodock.cli.helps import equipped
from iodock.cli.options import examples, quiet
from iodock.cli.streams import say
from iodock.shared.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Callable

    from iodock.simulation.centre import Centre
    from iodock.simulation.tree import Tree

_FAST_EVERY_S = 600.0
"""If simulated time runs faster than the clock, the tree is written at this interval, simulated seconds."""


_VERBS = {
    "backup": ("iodock.cli.monitor_backup", "backup"),
    "demo": ("iodock.cli.monitor_demo", "demo"),
    "digest": ("iodock.cli.monitor_digest", "digest"),
    "heavy": ("iodock.cli.monitor_heavy", "heavy"),
    "import-counters": ("iodock.cli.monitor_counters", "import_counters"),
    "import-sar": ("iodock.cli.monitor_sar", "import_sar"),
    "restore": ("iodock.cli.monitor_backup", "restore"),
    "serve": ("iodock.cli.monitor_serve", "serve"),
    "token": ("iodock.cli.monitor_serve", "token"),
    "top": ("iodock.cli.monitor_top", "top"),
}
"""Maps the name of a command to its module, and to the function there."""


class _Verbs(click.Group):
    """A click group that imports a subcommand only when it is used."""

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted([*super().list_commands(context), *_VERBS])

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _VERBS:
            return super().get_command(context, name)
        module, its_name = _VERBS[name]
        found: click.Command = getattr(import_module(module), its_name)
        return equipped(found)


@click.group(
    cls=_Verbs,
    epilog=examples(
        ("iodock monitor simulate --list", "iodock monitor simulate /tmp/lustre --scenario stall")
    ),
)
def command() -> None:
    """The load of each job on the file systems, now and before."""


@command.command(
    epilog=examples(
        (
            "iodock monitor simulate --list",
            "iodock monitor simulate /tmp/lustre --scenario overload",
            "iodock monitor simulate /tmp/lustre --scenario stall --seconds 900 --speed 0",
            "iodock-agent once --root /tmp/lustre/mds01 --format json",
        )
    )
)
@click.argument("folder", metavar="DIR", required=False)
@click.option("--list", "listed", is_flag=True, help="only list the scenarios")
@click.option("--scenario", default="healthy", show_default=True, metavar="NAME", help="what happens")
@click.option(
    "--seconds", type=click.FloatRange(0), metavar="N",
    help="simulated time after which the simulation ends; default: a day with --speed 0, else never",
)  # fmt: skip
@click.option(
    "--speed", type=click.FloatRange(0), default=1.0, show_default=True, metavar="X",
    help="simulated seconds per second; 0: as fast as possible",
)  # fmt: skip
@click.option(
    "--every", type=click.FloatRange(0.01), metavar="N",
    help="simulated seconds between writes of the files; default: once a second, with --speed 0 every 600",
)  # fmt: skip
@click.option(
    "--seed", type=int, default=1, show_default=True, metavar="N", help="the same seed, the same jobs"
)
@click.option(
    "--servers",
    type=click.IntRange(2),
    metavar="N",
    help="number of servers; the first is the metadata server",
)
@click.option("--jobs", type=click.IntRange(0), metavar="N", help="number of jobs that run at once")
@click.option(
    "--release",
    type=click.Choice(("2.5", "2.12", "2.15")),
    help="version of Lustre whose file format is used",
)
@quiet
def simulate(
    folder: str | None,
    listed: bool,
    scenario: str,
    seconds: float | None,
    speed: float,
    every: float | None,
    seed: int,
    servers: int | None,
    jobs: int | None,
    release: str | None,
    quiet: bool,
) -> None:
    """Simulate a centre with a Lustre file system below DIR: DIR/SERVER holds the files that an agent
    finds on that server, and an lctl. All of it is synthetic, as DIR/SYNTHETIC states. At the end, or at
    Ctrl-C, DIR/truth.json has the actual I/O of every job."""
    from iodock.simulation.play import play

    if listed:
        _list()
        return
    if folder is None:
        raise RequestError("monitor simulate needs a folder", "iodock monitor simulate DIR --scenario NAME")
    length = seconds if seconds is not None else (float("inf") if speed else 86_400.0)
    every_s = every if every is not None else (speed or _FAST_EVERY_S)
    begin_ns = time.time_ns() - (0 if speed else int(length * 1e9))
    tree = _tree(folder, scenario, release, begin_ns, seed, servers, jobs)
    with told_to_end() as wake:
        play(tree, length, speed, every_s, wake, _teller(quiet))
    _say_the_end(tree, quiet)


def _list() -> None:
    from iodock.simulation.scenarios import SCENARIOS

    for one in SCENARIOS:
        click.echo(f"{one.name:<10} {one.sentence}")


def _tree(
    folder: str,
    scenario: str,
    release: str | None,
    begin_ns: int,
    seed: int,
    servers: int | None,
    jobs: int | None,
) -> Tree:
    from iodock.simulation.centre import Centre
    from iodock.simulation.scenarios import in_release, named
    from iodock.simulation.tree import Tree

    chosen = named(scenario) if release is None else in_release(named(scenario), release)
    return Tree(Path(folder), Centre(chosen, seed=seed, begin_ns=begin_ns, servers=servers, jobs=jobs))


def _teller(quiet: bool) -> Callable[[Centre], None]:
    """Returns a function that shows the progress in a line that is overwritten each time. It shows nothing
    with --quiet, or if stderr is not a terminal."""
    from iodock.simulation.play import status

    def tell(centre: Centre) -> None:
        print(f"\r\x1b[K{status(centre)}", end="", file=sys.stderr, flush=True)

    return (lambda centre: None) if quiet or not sys.stderr.isatty() else tell


def _say_the_end(tree: Tree, quiet: bool) -> None:
    from iodock.simulation.play import status

    if quiet:
        return
    if sys.stderr.isatty():
        print(file=sys.stderr)
    say(f"{status(tree.centre)}; actual I/O of the jobs: {tree.root / 'truth.json'}")
