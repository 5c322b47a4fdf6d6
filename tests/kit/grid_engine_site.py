"""Runs a real Grid Engine on one machine, from Debian's packages. It runs in namespaces with its own host
name, network and process numbers, and with copies of its folders. Needs root. An installed Grid Engine is not
changed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

PROGRAMS = ("sge_qmaster", "sge_execd", "qsub", "qconf", "unshare", "nsenter", "setpriv", "ip")
ROOT = Path("/var/lib/gridengine")
SPOOL = Path("/var/spool/gridengine")
USER = ("--reuid=nobody", "--regid=nogroup", "--clear-groups")
PATIENCE_S = 90.0
_ENVIRONMENT = {**os.environ, "SGE_ROOT": str(ROOT), "SGE_CELL": "default", "SGE_ND": "1"}
_UNSHARE = ("unshare", "--pid", "--fork", "--mount", "--uts", "--net", "--ipc", "--mount-proc")
_ADDRESS = "10.98.76.1"
_NODE = """\
set -e
hostname ge1
ip link set lo up
ip addr add {address}/32 dev lo
mount --bind {d}/root {root}
mount --bind {d}/spool {spool}
mount --bind {d}/hosts /etc/hosts
mount --bind {d}/services /etc/services
mkdir -p /run/gridengine
mount -t tmpfs tmpfs /run/gridengine
chown sgeadmin: /run/gridengine
sge_qmaster &
until qconf -sh; do sleep 0.3; done
qconf -as ge1
qconf -Ae {d}/host
qconf -Ahgrp {d}/group
qconf -Aq {d}/queue
qconf -ssconf | sed 's/^schedule_interval.*/schedule_interval 0:0:1/; s/^flush_[a-z]*_sec.*/&1/' >{d}/schedule
qconf -Msconf {d}/schedule
sge_execd &
while true; do sleep 1; done
"""
_NONE = {
    "host": "load_scaling complex_values user_lists xuser_lists projects xprojects usage_scaling "
    "report_variables",
    "queue": "load_thresholds suspend_thresholds ckpt_list pe_list prolog starter_method suspend_method "
    "resume_method terminate_method owner_list user_lists xuser_lists subordinate_list complex_values "
    "projects xprojects calendar",
}
_LIMITS = "rt cpu fsize data stack core rss vmem"
_QUEUE = """\
qname all.q
hostlist @allhosts
seq_no 0
nsuspend 1
suspend_interval 00:05:00
priority 0
min_cpu_interval 00:05:00
processors UNDEFINED
qtype BATCH INTERACTIVE
rerun TRUE
slots 2
tmpdir /tmp
shell /bin/sh
epilog root@{epilog}
shell_start_mode unix_behavior
notify 00:00:60
initial_state default
"""


def missing() -> str:
    """Returns why Grid Engine cannot run here, or an empty string if it can."""
    if os.geteuid() != 0:
        return "needs root"
    programs = [name for name in PROGRAMS if shutil.which(name) is None]
    if programs:
        return f"not installed: {', '.join(programs)} (Debian: gridengine-master -exec -client)"
    if not (ROOT / "default/common/bootstrap").exists():
        return f"no cell in {ROOT}: Debian's package makes it as it is installed"
    tried = subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False)
    return "" if tried.returncode == 0 else f"no namespaces: {tried.stderr.decode().strip()}"


class GridEngineSite:
    """A running Grid Engine. The constructor starts it, and the caller must call `end`."""

    def __init__(self, folder: Path, epilog: Path, first_job: int = 1) -> None:
        """EPILOG: the program that Grid Engine runs as root at a job's end."""
        self.folder = folder
        folder.chmod(0o755)
        (folder / "jobs").mkdir(mode=0o777)
        (folder / "jobs").chmod(0o777)
        self._copy(first_job)
        self._describe(epilog)
        script = _NODE.format(d=folder, root=ROOT, spool=SPOOL, address=_ADDRESS)
        with (folder / "node.log").open("wb") as log:
            self._node = subprocess.Popen(
                [*_UNSHARE, "--kill-child", "bash", "-c", script], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=_ENVIRONMENT,
            )  # fmt: skip
        try:
            self._wait()
        except BaseException:
            self.end()
            raise

    def _copy(self, first_job: int) -> None:
        for source, name in ((ROOT, "root"), (SPOOL, "spool")):
            subprocess.run(["cp", "-a", source, self.folder / name], check=True)
        (self.folder / "root/default/common/act_qmaster").write_text("ge1\n")
        number = self.folder / "spool/qmaster/jobseqnum"
        number.write_text(f"{first_job - 1}\n")
        shutil.chown(number, "sgeadmin", "sgeadmin")

    def _describe(self, epilog: Path) -> None:
        folder = self.folder
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n{_ADDRESS} ge1\n")
        (folder / "services").write_text("sge_qmaster 6444/tcp\nsge_execd 6445/tcp\n")
        (folder / "group").write_text("group_name @allhosts\nhostlist ge1\n")
        (folder / "host").write_text("hostname ge1\n" + _none("host"))
        limits = "".join(f"{kind}_{name} INFINITY\n" for name in _LIMITS.split() for kind in "sh")
        (folder / "queue").write_text(_QUEUE.format(epilog=epilog) + _none("queue") + limits)

    def _wait(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            assert self._node.poll() is None, self.log()
            # The pattern matches a queue with two free slots that is in no error state.
            if re.search(r"all\.q@ge1 .* 0/0/2 +[0-9.]+ +\S+ *$", self.run("qstat", "-f"), re.MULTILINE):
                return
            time.sleep(0.3)
        raise AssertionError(f"no queue: {self.run('qstat', '-f')} {self.log()}")

    def run(self, *words: str) -> str:
        """Runs a program on the simulated machine and returns its output."""
        done = subprocess.run(
            self._inside(words), capture_output=True, text=True, env=_ENVIRONMENT, check=False, timeout=60
        )
        return done.stdout + done.stderr

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Starts a program on the simulated machine. The program ends with the machine at the latest."""
        with (self.folder / "started.log").open("ab") as log:
            return subprocess.Popen(self._inside(words), stdout=log, stderr=log, env=_ENVIRONMENT)

    def _inside(self, words: tuple[str, ...]) -> list[str]:
        text = Path(f"/proc/{self._node.pid}/task/{self._node.pid}/children").read_text()
        child = text.split()[0] if text.split() else str(self._node.pid)
        return ["nsenter", "-t", child, "--pid", "--mount", "--uts", "--net", "--ipc", *words]

    def submit(self, script: str, *options: str) -> int:
        """Submits a job of the user `nobody` and returns its number. `output` returns what the job prints."""
        path = self.folder / "jobs" / f"job{time.monotonic_ns()}.sh"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        words = ["qsub", "-terse", "-wd", "/tmp", "-j", "y", "-o", str(path.parent), "-N", "ocean"]
        said = self.run("setpriv", *USER, *words, *options, str(path))
        assert re.match(r"\d+", said), said
        return int(re.match(r"\d+", said)[0])  # type: ignore[index]

    def wait(self) -> None:
        """Waits until Grid Engine has no jobs."""
        until = time.monotonic() + PATIENCE_S
        while said := self.run("qstat", "-u", "*").strip():
            assert time.monotonic() < until, said
            time.sleep(0.3)

    def output(self, job: int, task: str = "") -> str:
        path = self.folder / "jobs" / f"ocean.o{job}{task}"
        return path.read_text() if path.exists() else ""

    def status(self, job: int) -> int:
        """Returns a job's exit status. Grid Engine writes it some seconds after the job's end."""
        until = time.monotonic() + PATIENCE_S
        while not (found := re.search(r"exit_status +(\d+)", self.run("qacct", "-j", str(job)))):
            assert time.monotonic() < until, self.log()
            time.sleep(0.5)
        return int(found[1])

    def log(self) -> str:
        messages = self.folder / "spool/qmaster/messages"
        more = messages.read_text(errors="replace") if messages.exists() else ""
        return (self.folder / "node.log").read_text(errors="replace")[-2000:] + more[-2000:]

    def end(self) -> None:
        # Killing process 1 of the namespace ends all processes in it.
        self._node.kill()
        self._node.wait()


def _none(what: str) -> str:
    return "".join(f"{name} NONE\n" for name in _NONE[what].split())
