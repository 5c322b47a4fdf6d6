"""Runs a real Slurm with two nodes on this machine. Each node has its own process numbers, host name and
folder of records (namespaces), so that an agent sees the same as on a separate machine. Needs root.

Everything is in one temporary folder and on the loopback interface. An installed Slurm is neither read nor
changed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from places import ROOT

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "srun", "scontrol", "munged", "unshare", "nsenter", "gcc")
HEADER = Path("/usr/include/slurm/spank.h")
PLUGIN = ROOT / "integrations/slurm/iodock_step.c"
RECORDS = Path("/run/iodock-steps")
"""Where the plugin writes; each node has its own file system there."""
NODES = ("n1", "n2")
PATIENCE_S = 90.0
_UNSHARE = ("unshare", "--pid", "--fork", "--mount", "--uts", "--mount-proc")
_CONF = """\
ClusterName=iodock
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={d}/munge/munge.socket,cred_expire={expire}
CredType=cred/munge
SlurmctldPort={port}
SlurmctldPidFile={d}/slurmctld.pid
SlurmdPidFile={d}/slurmd.%n.pid
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool/%n
SlurmctldLogFile={d}/log/slurmctld.log
SlurmdLogFile={d}/log/slurmd.%n.log
ProctrackType=proctrack/{tracking}
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
MailProg=/bin/true
PrologFlags=Alloc,Contain
PlugStackConfig={d}/plugstack.conf
SchedulerType=sched/backfill
NodeName=n[1-2] NodeHostname=localhost NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=2 RealMemory=1000
PartitionName=debug Nodes=ALL Default=YES State=UP MaxTime=INFINITE OverSubscribe=FORCE:4
"""
_CGROUP = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n"
FREEZER = Path("/sys/fs/cgroup/freezer")
"""Where proctrack/cgroup of cgroup v1 keeps processes."""
_NODE = """\
hostname {name}
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -m 0700 {records}
slurmd -D -N {name} -f {conf} &
while true; do sleep 1; done
"""
"""Runs as process 1 of a node, and adopts orphans like init."""


def missing() -> str:
    """Returns why Slurm cannot run here, or an empty string if it can."""
    if os.geteuid() != 0:
        return "needs root"
    programs = [name for name in PROGRAMS if shutil.which(name) is None]
    if programs:
        return f"not installed: {', '.join(programs)} (Debian: slurmctld slurmd slurm-client munge)"
    if not HEADER.exists():
        return f"no {HEADER} (Debian: libslurm-dev)"
    tried = subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else f"no namespaces: {tried.stderr.decode().strip()}"


class SlurmSite:
    """A running Slurm. The constructor starts it, and the caller must call `end`."""

    def __init__(
        self,
        folder: Path,
        tracking: str = "linuxproc",
        plugin: str = "",
        *,
        epilog: str = "",
        controller_epilog: str = "",
        expire: int = 120,
    ) -> None:
        """PLUGIN: options of the plugin. EPILOG and CONTROLLER_EPILOG: programs that each node and slurmctld
        run at a job's end. EXPIRE: seconds that a requeued job must wait at least."""
        self.folder, self.options = folder, plugin
        self.conf = folder / "slurm.conf"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        # The lock allows one site at a time, because sites would share the groups of the cgroup freezer.
        self._turn = Path(f"{RECORDS}.lock").open("w")  # noqa: SIM115 - until the end
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        self.environment = {**os.environ, "SLURM_CONF": str(self.conf)}
        for name in ("state", "spool/n1", "spool/n2", "log", "munge", "jobs"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        shutil.chown(folder / "munge", "munge")
        folder.chmod(0o755)
        port = _free_ports(3)
        ports = {"port": port, "first": port + 1, "last": port + 2}
        ends = f"Epilog={epilog}\n" if epilog else ""
        ends += f"EpilogSlurmctld={controller_epilog}\n" if controller_epilog else ""
        self.conf.write_text(_CONF.format(d=folder, tracking=tracking, expire=expire, **ports) + ends)
        (folder / "cgroup.conf").write_text(_CGROUP)
        self._build_plugin()
        try:
            self._start_all()
        except BaseException:
            self.end()
            raise

    def _build_plugin(self) -> None:
        plugin = self.folder / "iodock_step.so"
        command = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", plugin, PLUGIN]
        subprocess.run(command, check=True)
        (self.folder / "plugstack.conf").write_text(f"optional {plugin} {self.options}\n")

    def _start_all(self) -> None:
        d = self.folder / "munge"
        munged = (
            f"exec munged -F --socket={d}/munge.socket --pid-file={d}/munged.pid --log-file={d}/munged.log"
        )
        munged += f" --seed-file={d}/munged.seed"
        self._start("munged", ["su", "-s", "/bin/sh", "munge", "-c", munged])
        _until(lambda: (d / "munge.socket").exists(), "munged has no socket")
        self._start("slurmctld", ["slurmctld", "-D", "-c", "-f", str(self.conf)])
        for name in NODES:
            script = _NODE.format(name=name, records=RECORDS, conf=self.conf)
            self._start(name, [*_UNSHARE, "--kill-child", "bash", "-c", script])
        _until(self._is_ready, "the nodes do not become idle")

    def _start(self, name: str, words: list[str]) -> None:
        with (self.folder / "log" / f"{name}.out").open("ab") as log:
            self.running[name] = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment
            )

    def _is_ready(self) -> bool:
        command = ["sinfo", "-h", "-N", "-o", "%t"]
        done = subprocess.run(command, capture_output=True, env=self.environment, check=False, timeout=60)
        return done.stdout.split() == [b"idle", b"idle"]

    def start_in(self, node: str, name: str, words: list[str]) -> None:
        """Starts a program on a node."""
        inside = str(_child(self.running[node].pid))
        self._start(name, ["nsenter", "-t", inside, "--pid", "--mount", "--uts", *words])

    def start(self, name: str, words: list[str]) -> None:
        """Starts a program outside of the nodes."""
        self._start(name, words)

    def kill(self, name: str) -> None:
        """Kills a program with SIGKILL, as a crash does. Fails if the program has ended before."""
        process = self.running[name]
        assert process.poll() is None, f"{name} has ended before: {self.log(name)}"
        self._end(name)

    def _end(self, name: str) -> None:
        process = self.running.pop(name)
        if process.poll() is None:
            # nsenter and su wait for their child, which is the program to kill.
            is_inside = process.args[0] in ("nsenter", "su")  # type: ignore[index]
            os.kill(_child(process.pid) if is_inside else process.pid, signal.SIGKILL)
        process.wait()

    def log(self, name: str) -> str:
        return (self.folder / "log" / f"{name}.out").read_text(errors="replace")[-4000:]

    def run(self, script: str, *options: str) -> int:
        """Runs a job with that script on one or more nodes until it ends. Returns its number; fails if the
        job failed."""
        path = self.folder / "jobs" / f"job{time.monotonic_ns()}.sh"
        path.write_text("#!/bin/bash\n" + script)
        command = ["sbatch", "-W", "--parsable", "-o", f"{path}.out", *options, str(path)]
        done = subprocess.run(
            command, capture_output=True, text=True, env=self.environment, check=False, timeout=300
        )
        said = f"{done.stderr}\n{Path(f'{path}.out').read_text() if Path(f'{path}.out').exists() else ''}"
        assert done.returncode == 0, said
        return int(done.stdout.strip().split(";")[0])

    def records(self, node: str) -> dict[str, str]:
        """Returns the plugin's current records on a node: file name -> text."""
        inside = _child(self.running[node].pid)
        folder = Path(f"/proc/{inside}/root{RECORDS}")
        return {path.name: path.read_text() for path in sorted(folder.glob("*.step"))}

    def end(self) -> None:
        for name in reversed(list(self.running)):
            self._end(name)
        for name in NODES:
            for folder in (FREEZER / f"slurm_{name}").rglob("uid_*"):
                folder.rmdir()
            if (FREEZER / f"slurm_{name}").exists():
                (FREEZER / f"slurm_{name}").rmdir()
        self._turn.close()


def _child(parent: int) -> int:
    text = Path(f"/proc/{parent}/task/{parent}/children").read_text()
    return int(text.split()[0]) if text.split() else parent


def _free_ports(count: int) -> int:
    """Returns the first of several consecutive free ports."""
    for first in range(16_817, 17_817, count):
        taken = []
        for port in range(first, first + count):
            with socket.socket() as one:
                taken.append(one.connect_ex(("127.0.0.1", port)) == 0)
        if not any(taken):
            return first
    raise OSError("no free ports")


def _until(is_so: object, what: str) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < ends, what
        time.sleep(0.2)
