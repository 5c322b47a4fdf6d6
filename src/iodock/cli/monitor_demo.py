"""Implements `iodock monitor demo`. It simulates a busy computing centre, and runs agents, collector and
portal for it on this machine."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from iodock.cli.ending import told_to_end
from iodock.cli.monitor_serve import installed
from iodock.cli.opening import open_address
from iodock.cli.options import examples
from iodock.cli.progress import ProgressBar
from iodock.cli.streams import say
from iodock.shared.errors import RequestError

if TYPE_CHECKING:
    from iodock.centre.monitor.collector import Collector
    from iodock.cli.demo_events import Happenings
    from iodock.shared.settings import Settings
    from iodock.simulation.centre import Centre
    from iodock.simulation.history import Names
    from iodock.simulation.scenarios import Scenario
    from iodock.simulation.tree import Tree

READ_EVERY_S = 10.0
_ENDS_IN_S = 5.0
_FIRST_EVENT_S = 30.0
"""Events begin this long after the start. Agents have read every counter once by then, so all later growth is
reported."""
_MOST_NODES = 1008
"""Largest number of nodes of one job. Each node has an entry on every target, and agents read all entries
every 10 s."""
_USUAL_JOBS = 60


@click.command(epilog=examples(("iodock monitor demo", "iodock monitor demo --scenario stall --days 0.1")))
@click.option("--listen", default="127.0.0.1:9847", show_default=True, metavar="ADDRESS", help="the portal's")
@click.option(
    "--scenario", default="healthy", show_default=True, metavar="NAME",
    help="scenario from now on; its special event, if any, begins half a minute after the start. iodock "
         "monitor simulate --list shows the names",
)  # fmt: skip
@click.option(
    "--days", type=click.FloatRange(0.01, 40), default=1, show_default=True, metavar="N",
    help="length of the generated history, which is ordinary",
)  # fmt: skip
@click.option(
    "--jobs", type=click.IntRange(1, 2000), metavar="N",
    help=f"run at once; default: {_USUAL_JOBS}, and of a scenario with other kinds of jobs as many as it has",
)  # fmt: skip
@click.option(
    "--seed", type=int, default=1, show_default=True, metavar="N", help="the same seed, the same history"
)
@click.option("--open", "opens", is_flag=True, help="open the portal in a browser")
def demo(listen: str, scenario: str, days: float, jobs: int | None, seed: int, opens: bool) -> None:
    """Try the portal with a simulated centre: the file system and jobs are synthetic, the agents and the
    collector are real. Everything is on this machine, in a folder that is removed at the end (Ctrl-C)."""
    installed()
    from iodock.centre.monitor.access import Access
    from iodock.centre.monitor.collector import Collector
    from iodock.centre.portal.app import address_of, application, listening, places, serve
    from iodock.centre.portal.shown.page import Site
    from iodock.centre.watch.responder import Responder
    from iodock.centre.watch.watching import Watching
    from iodock.cli.demo_events import Happenings
    from iodock.shared.settings import load
    from iodock.simulation.history import Names
    from iodock.simulation.tree import Tree

    agent, chosen = agent_binary(), _for_demo(scenario)
    door = listening(listen, Access(), None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="iodock-demo-")))
        collector = Collector(folder / "store")
        centre = _past(collector, chosen, days, jobs or _USUAL_JOBS, seed)
        wake = stack.enter_context(told_to_end())
        stack.enter_context(collector.running(say))
        note = _scenario_note(chosen, centre.turn(chosen, _FIRST_EVENT_S, jobs), centre.now_ns)
        tree = Tree(folder / "lustre", centre)
        names = Names(centre, collector.writer)
        stack.enter_context(_simulated(tree, Happenings(tree), names))
        stack.enter_context(_agents(agent, tree, address_of(door, None), folder))
        room = places(load().connections, Access())
        responder = Responder(folder / "store.response", _responds(load()), time.time_ns())
        stack.callback(responder.close)
        stack.enter_context(responder.running(say))
        # The scheduler of this machine, if there is one, does not know the simulated jobs, so it is not
        # queried.
        limits = replace(load().states, scheduler="none")
        watching = Watching(collector.store, limits=limits, listener=responder.respond)
        stack.enter_context(watching.running(say))
        site = Site(limits=limits, is_synthetic=True, watching=watching, responder=responder)
        serve(
            application(collector, Access(), site, places=room), door, None, wake,
            lambda url: _say_the_begin(url, note, collector.store.folder, opens),
            room,
        )  # fmt: skip


def _responds(site: Settings) -> Settings:
    """Changes the settings for the demonstration. Episodes are stored, and commands that would help are
    shown, but no notices are sent and no real jobs are changed."""
    from iodock.shared.response import Intervention, Notices

    return replace(site, response=Intervention(mode="suggest", scheduler="slurm"), notices=Notices())


def _for_demo(scenario: str) -> Scenario:
    """Returns the scenario with two changes for the demonstration: job ids contain owner and node, and no job
    has more nodes than this machine can simulate. Raises RequestError if there is no such scenario."""
    from iodock.simulation.scenarios import named

    chosen = named(scenario)
    specials = tuple(
        replace(one, application=one.application.on_fewer_nodes(_MOST_NODES)) for one in chosen.specials
    )
    return replace(chosen, jobid_name=named("healthy").jobid_name, specials=specials)


def _scenario_note(scenario: Scenario, passed_s: float, now_ns: int) -> str:
    """Describes when the events of the scenario happen. PASSED_S is the time of the scenario at NOW_NS, in
    seconds."""
    if not (scenario.specials or scenario.spells):
        return f"note: scenario {scenario.name}: {scenario.sentence}"
    minute = (passed_s + _FIRST_EVENT_S) / 60
    clock = time.strftime("%H:%M:%S", time.localtime(now_ns / 1e9 + _FIRST_EVENT_S))
    return f"note: scenario {scenario.name}, whose minute {minute:.0f} is at {clock}: {scenario.sentence}"


def _say_the_begin(url: str, scenario_note: str, store: Path, opens: bool) -> None:
    say(f"note: synthetic: {url} in a browser; Ctrl-C ends it")
    say(scenario_note)
    say(f"note: in a terminal: iodock monitor top --store {store}")
    if opens:
        open_address(url)


def _past(collector: Collector, scenario: Scenario, days: float, jobs: int, seed: int) -> Centre:
    """Returns a centre with the servers of the scenario, and fills the store with an ordinary history up to
    the present."""
    from iodock.simulation.centre import Centre
    from iodock.simulation.history import begin_before, write_days, write_up_to_now
    from iodock.simulation.scenarios import named

    ordinary = replace(
        named("healthy"), servers=scenario.servers, targets_per_server=scenario.targets_per_server,
        release=scenario.release,
    )  # fmt: skip
    centre = Centre(ordinary, seed=seed, begin_ns=begin_before(time.time_ns(), days), jobs=jobs)
    with ProgressBar("generating past data", quiet=False, noun="minutes", rated=False) as tell:
        minutes = int(days * 1440)
        write_days(
            centre, collector.writer, days, lambda share: tell(int(share * 1000), 1000, int(share * minutes))
        )
    collector.tend(time.time_ns())
    write_up_to_now(centre, collector.writer, time.time_ns)
    return centre


@contextmanager
def _simulated(tree: Tree, happenings: Happenings, names: Names) -> Iterator[None]:
    """Advances the simulated time as fast as real time, and writes the files that agents read. A thread does
    this until the context ends."""
    end = threading.Event()

    def run() -> None:
        while not end.wait(READ_EVERY_S / 2):
            late = time.time_ns() - tree.centre.now_ns
            if late > 0:
                tree.centre.advance(late / 1e9)
            tree.write()
            happenings.write()
            names.tell()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join(_ENDS_IN_S)


@contextmanager
def _agents(binary: Path, tree: Tree, url: str, folder: Path) -> Iterator[None]:
    """Runs an agent for each simulated machine until the context ends. An agent ends when its standard input
    is closed, which the kernel does if this process is killed."""
    from iodock.cli.demo_events import LOG, PROBE_LIMIT_S, PROBES
    from iodock.simulation.population import LOGIN_NODE

    names = sorted(path.name for path in tree.root.iterdir() if path.is_dir())
    agents = []
    try:
        for name in names:
            command: list[str | Path] = [
                binary,
                "run",
                "--root",
                tree.root / name,
                "--listen",
                "127.0.0.1:0",
                "--push",
                url,
            ]
            command += ["--spool", folder / f"spool-{name}", "--log", LOG, "--end-with-input"]
            if name == LOGIN_NODE:
                command += ["--probe-store", PROBES, "--probe-limit", str(PROBE_LIMIT_S)]
            with (folder / f"{name}.log").open("w") as log:
                agents.append(subprocess.Popen(command, stdin=subprocess.PIPE, stderr=log))
        yield
    finally:
        for agent in agents:
            agent.terminate()
        for agent in agents:
            try:
                agent.communicate(timeout=_ENDS_IN_S)
            except subprocess.TimeoutExpired:
                agent.kill()


def agent_binary() -> Path:
    """Returns the path of `iodock-agent`. It is searched next to this Python, then among the builds of cargo
    (the latest one), then in PATH. Raises RequestError if it is not found."""
    beside = Path(sys.executable).parent / "iodock-agent"
    target = Path(__file__).parents[3] / "target"
    built = [path for path in target.glob("*/iodock-agent") if path.is_file()]
    newest = sorted(built, key=_built_at, reverse=True)
    in_path = shutil.which("iodock-agent")
    found = [path for path in (beside, *newest) if path.is_file()]
    found += [Path(in_path)] if in_path else []
    if not found:
        raise RequestError(
            "iodock-agent was not found", "build it with: cargo build --release -p iodock-agent"
        )
    return found[0]


def _built_at(path: Path) -> float:
    return path.stat().st_mtime
