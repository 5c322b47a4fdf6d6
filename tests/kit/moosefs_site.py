"""Runs a real MooseFS on this machine: a master, a chunk server, and four mounts for four jobs. It uses two
namespaces as machines, with their own process numbers, host name, mounts and network, an agent on each, and a
collector. Needs root, and must be run by `inside`.

Everything is in one temporary folder. An installed MooseFS is neither read nor changed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import socketserver
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path

from places import ROOT

PROGRAMS = ("mfsmaster", "mfschunkserver", "mfsmount", "unshare", "nsenter", "ip", "mount")
_PACKAGES = "Debian: moosefs-master moosefs-chunkserver moosefs-client"
EMPTY = Path("/var/lib/mfs/metadata.mfs.empty")
"""First bytes of a master's metadata."""
JOBS = ("7001", "7002", "7003", "7004")
PATIENCE_S = 60.0
MASTER, NODE = "10.77.1.2", "10.77.2.2"
_CENTRE = {"mds01": "10.77.1.1", "n1": "10.77.2.1"}
SHARE = 0.02
"""The master's share of a processor."""
_CGROUPS = Path("/sys/fs/cgroup")
_PORT = 9847
_CLONE_NEWNET = 0x40000000
_INSIDE = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc")
_MACHINE = ("unshare", "--net", "--pid", "--fork", "--kill-child", "--mount", "--uts", "--mount-proc")
_WAITS = "hostname {name}; ip link set lo up; while true; do sleep 1; done"
"""Runs as process 1 of a machine, and adopts orphans like init."""
_EXPORTS = "* / rw,alldirs,maproot=0\n* . rw\n"
_MASTER_CONF = """\
WORKING_USER = root
WORKING_GROUP = root
DATA_PATH = {d}/master
EXPORTS_FILENAME = {d}/exports.cfg
TOPOLOGY_FILENAME = {d}/topology.cfg
IPMAP_FILENAME = {d}/ipmap.cfg
MATOML_LISTEN_HOST = {ip}
MATOCS_LISTEN_HOST = {ip}
MATOCL_LISTEN_HOST = {ip}
"""
_CHUNK_CONF = """\
WORKING_USER = root
WORKING_GROUP = root
DATA_PATH = {d}/chunk
HDD_CONF_FILENAME = {d}/hdd.cfg
MASTER_HOST = {ip}
CSSERV_LISTEN_HOST = {ip}
"""
_SETTINGS = '[states]\nsample_s = {sample_s:g}\nusual_hours = 1\nscheduler = "none"\n'


def missing() -> str:
    """Returns why MooseFS cannot run here, or an empty string if it can."""
    if os.geteuid() != 0:
        return "needs root"
    programs = [name for name in PROGRAMS if shutil.which(name) is None]
    if programs:
        return f"not installed: {', '.join(programs)} ({_PACKAGES})"
    if not Path("/dev/fuse").exists():
        return "no /dev/fuse"
    if not EMPTY.exists():
        return f"no {EMPTY} (Debian: moosefs-master)"
    links = "ip link add name a type veth peer name b"
    tried = subprocess.run([*_INSIDE, "sh", "-c", links], capture_output=True, check=False, timeout=60)
    return "" if tried.returncode == 0 else f"no namespaces: {tried.stderr.decode().strip()}"


def inside(words: Sequence[str]) -> list[str]:
    """Returns the command line that runs WORDS, a program that uses a site, in new namespaces. When it ends,
    all processes of the site end."""
    return [*_INSIDE, *words]


class _Relay(socketserver.ThreadingTCPServer):
    """Forwards connections to a machine's loopback interface. Each namespace has its own, and a collector
    without tokens and certificates listens only there."""

    daemon_threads = True

    def __init__(self, process: int) -> None:
        """PROCESS: a process in the network namespace to which connections go."""
        super().__init__(("127.0.0.1", _PORT), _Pass, bind_and_activate=False)
        self.socket.close()
        # A socket belongs to the network namespace of the thread that created it.
        thread = threading.Thread(target=self._listen, args=(process,))
        thread.start()
        thread.join()

    def _listen(self, process: int) -> None:
        with Path(f"/proc/{process}/ns/net").open() as network:
            assert ctypes.CDLL(None).setns(network.fileno(), _CLONE_NEWNET) == 0
        self.socket = socket.socket()
        self.server_bind()
        self.server_activate()


class _Pass(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", _PORT)) as beyond:
            back = threading.Thread(target=_copy, args=(beyond, self.request), daemon=True)
            back.start()
            _copy(self.request, beyond)
            back.join()


def _copy(source: socket.socket, to: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while some := source.recv(1 << 16):
            to.sendall(some)
        to.shutdown(socket.SHUT_WR)


class _Limit:
    """Limits the processor time of the MooseFS master with a cgroup. Without it, the clients on the same few
    processors would reach their limit before the master does."""

    def __init__(self) -> None:
        is_new = (_CGROUPS / "cgroup.controllers").exists()
        self._folder = (_CGROUPS if is_new else _CGROUPS / "cpu") / f"iodock-moosefs-{time.monotonic_ns()}"
        self._folder.mkdir()
        period_us = 50_000
        if is_new:
            (self._folder / "cpu.max").write_text(f"{int(SHARE * period_us)} {period_us}")
        else:
            (self._folder / "cpu.cfs_period_us").write_text(str(period_us))
            (self._folder / "cpu.cfs_quota_us").write_text(str(int(SHARE * period_us)))

    def hold(self, process: int) -> None:
        (self._folder / "cgroup.procs").write_text(str(process))

    def end(self) -> None:
        """Removes the cgroup once its processes have ended."""
        with contextlib.suppress(AssertionError):
            until(self._is_gone, "the cgroup stays", 10.0)

    def _is_gone(self) -> bool:
        with contextlib.suppress(OSError):
            self._folder.rmdir()
        return not self._folder.exists()


class MooseFsSite:
    """A running MooseFS with agents and a collector. The constructor starts it, and the caller must call
    `end`."""

    def __init__(self, folder: Path, agent: Path, sample_s: float) -> None:
        self.folder, self.agent, self.sample_s = folder, agent, sample_s
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("master", "chunk", "data", "log"):
            (folder / name).mkdir(parents=True)
        shutil.copy(EMPTY, folder / "master" / "metadata.mfs")
        for name, text in {
            "exports.cfg": _EXPORTS, "topology.cfg": "", "ipmap.cfg": "", "hdd.cfg": f"{folder}/data\n",
            "master.cfg": _MASTER_CONF.format(d=folder, ip=MASTER),
            "chunk.cfg": _CHUNK_CONF.format(d=folder, ip=MASTER),
            "settings.toml": _SETTINGS.format(sample_s=sample_s),
        }.items():  # fmt: skip
            (folder / name).write_text(text)
        self._limit = _Limit()
        try:
            self._start_all()
        except BaseException:
            self.end()
            raise

    def _start_all(self) -> None:
        _run("ip", "link", "set", "lo", "up")
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        for name, address in (("mds01", MASTER), ("n1", NODE)):
            self._start_machine(name, address)
        self.service("mfsmaster", "master.cfg", "start")
        self.service("mfschunkserver", "chunk.cfg", "start")
        self._mount()
        self._start_centre()

    def _start_machine(self, name: str, address: str) -> None:
        self.start(name, [*_MACHINE, "bash", "-c", _WAITS.format(name=name)])
        until(lambda: _child(self.running[name].pid) != self.running[name].pid, f"{name} does not start")
        _run("ip", "link", "add", f"c-{name}", "type", "veth", "peer", "name", "v0")
        _run("ip", "link", "set", "v0", "netns", str(self.inside_of(name)))
        _run("ip", "addr", "add", f"{_CENTRE[name]}/24", "dev", f"c-{name}")
        _run("ip", "link", "set", f"c-{name}", "up")
        self.run_on(name, "ip", "addr", "add", f"{address}/24", "dev", "v0")
        self.run_on(name, "ip", "link", "set", "v0", "up")
        self.run_on(name, "ip", "route", "add", "default", "via", _CENTRE[name])

    def _mount(self) -> None:
        """Mounts MooseFS for each job, so that each has its own client process."""
        self.run_on("n1", "mount", "-t", "tmpfs", "tmpfs", "/mnt")
        # Uses the host's fusectl mount if there is one.
        connections = (
            "ls /sys/fs/fuse/connections/* >/dev/null 2>&1 || mount -t fusectl none /sys/fs/fuse/connections"
        )
        self.run_on("n1", "sh", "-c", connections)
        for job in JOBS:
            self.run_on("n1", "mkdir", f"/mnt/job_{job}")
            self.run_on("n1", "mfsmount", f"/mnt/job_{job}", "-H", MASTER)

    def _start_centre(self) -> None:
        words = [*_IODOCK, "monitor", "serve", "--store", str(self.folder / "store")]
        self.start("collector", [*words, "--listen", f"127.0.0.1:{_PORT}"])
        for name in _CENTRE:
            relay = _Relay(self.inside_of(name))
            threading.Thread(target=relay.serve_forever, daemon=True).start()
            spool = f"{self.folder}/spool-{name}"
            words = [str(self.agent), "run", "--listen", "127.0.0.1:0", "--spool", spool]
            words += ["--interval", f"{self.sample_s:g}", "--deadline", f"{min(0.8, 0.7 * self.sample_s):g}"]
            self.start_on(name, f"agent-{name}", [*words, "--push", f"http://127.0.0.1:{_PORT}"])
        until(lambda: bool(self.servers()), "no server is known")

    def servers(self) -> list[dict[str, object]]:
        """Returns the current states of servers on the collector's page; empty if there are none."""
        return self._rows("servers")

    def suspects(self) -> list[dict[str, object]]:
        """Returns the jobs that the page names, the most likely first."""
        return self._rows("suspects")

    def _rows(self, table: str) -> list[dict[str, object]]:
        address = f"http://127.0.0.1:{_PORT}/now?format=json&table={table}"
        try:
            with urllib.request.urlopen(address, timeout=20) as answer:
                found: list[dict[str, object]] = json.load(answer)["rows"]
        except (OSError, ValueError):
            return []
        return found

    def inside_of(self, machine: str) -> int:
        """Returns the host's number of process 1 of a machine."""
        return _child(self.running[machine].pid)

    def on(self, machine: str, words: Sequence[str]) -> list[str]:
        """Returns the command line that runs WORDS on a machine."""
        return ["nsenter", "-t", str(self.inside_of(machine)), "--net", "--pid", "--mount", "--uts", *words]

    def run_on(self, machine: str, *words: str) -> None:
        _run(*self.on(machine, words))

    def service(self, program: str, conf: str, what: str) -> None:
        """Runs PROGRAM with `start`, `stop` or `restart` and waits until it is done."""
        self.run_on("mds01", program, "-c", str(self.folder / conf), what)
        if program == "mfsmaster" and what != "stop":
            self._limit.hold(self.master())

    def signal_master(self, number: signal.Signals) -> None:
        os.kill(self.master(), number)

    def master(self) -> int:
        """Returns the process number of the master itself, not of its children."""
        found = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            stat = re.match(r"(\d+) \((.*)\) . (\d+)", path.read_text())
            if stat and stat[2] == "mfsmaster":
                found[int(stat[1])] = int(stat[3])
        return next(number for number, parent in found.items() if parent not in found)

    def start_on(self, machine: str, name: str, words: Sequence[str]) -> None:
        self.start(name, self.on(machine, words))

    def start(self, name: str, words: Sequence[str]) -> None:
        environment = {
            **os.environ, "IODOCK_SETTINGS": str(self.folder / "settings.toml"),
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests" / "kit"))),
        }  # fmt: skip
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self.running[name] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
            )

    def stop(self, name: str) -> None:
        """Kills the program, which is the child of nsenter, and waits until nsenter has ended."""
        process = self.running.pop(name)
        if process.poll() is None:
            os.kill(_child(process.pid), signal.SIGKILL)
        process.wait()

    def log(self, name: str) -> str:
        return (self.folder / "log" / f"{name}.out").read_text(errors="replace")[-4000:]

    def end(self) -> None:
        for name in reversed(list(self.running)):
            self.stop(name)
        self._limit.end()


_IODOCK = (sys.executable, "-m", "iodock")


def until(is_so: Callable[[], bool], what: str, patience_s: float = PATIENCE_S) -> None:
    ends = time.monotonic() + patience_s
    while not is_so():
        assert time.monotonic() < ends, what
        time.sleep(0.1)


def _run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"


def _child(parent: int) -> int:
    text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return int(text.split()[0]) if text.split() else parent
