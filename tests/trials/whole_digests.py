"""Digests in the output of jobs of a real Slurm of two nodes: short, failed, killed and daemonised jobs,
arrays, many short processes; and with the portal dead or silent. Needs root and Slurm's packages, and is no
part of `make test`: `pytest -s tests/trials/whole_digests.py`."""

from __future__ import annotations

import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from places import ROOT
from slurm_site import NODES, SlurmSite, missing

MB = 1_000_000
DIGEST = ROOT / "integrations/digest/iodock-job-digest"
EPILOG = ROOT / "integrations/slurm/iodock_digest_epilog"
_KNOWN = ROOT / "tests" / "kit" / "known_io.c"
_TIMED = """\
#!/bin/sh
export IODOCK_JOB_DIGEST={digest} IODOCK_DIGEST_CONF={conf} SLURM_CONF={slurm}
[ -e {patient} ] && export IODOCK_DIGEST_S=20
begin=$(date +%s%N)
{epilog}
status=$?
echo "$SLURM_JOB_ID $status $(( $(date +%s%N) - begin ))" >> {log}
exit $status
"""
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_EXACT = re.compile(r"^iodock: exactly, on n[12]: read ([0-9.e+]+) (\w+) in \d+ calls, wrote", re.MULTILINE)

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no Slurm can be tried here: {missing()}"),
    pytest.mark.timeout(600),
]


class Site:
    """Slurm with the epilog; the portal that nodes ask is `conf`'s."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.conf, self.log = folder, folder / "digest.conf", folder / "epilogs"
        folder.chmod(0o755)
        self.known, self.jobs = folder / "known_io", folder / "jobs"
        self.jobs.mkdir()
        self.jobs.chmod(0o777)
        static = ["gcc", "-O2", "-Wall", "-static", "-pthread", "-o", self.known, _KNOWN]
        subprocess.run(static, check=True)
        for program in (DIGEST, EPILOG):
            shutil.copy(program, folder / program.name)
        epilog = folder / "epilog"
        slurm = folder / "slurm"
        epilog.write_text(
            _TIMED.format(
                digest=folder / DIGEST.name, conf=self.conf, epilog=folder / EPILOG.name, log=self.log,
                slurm=slurm / "slurm.conf", patient=folder / "patient",
            )
        )  # fmt: skip
        epilog.chmod(0o755)
        self.slurm = SlurmSite(slurm, plugin="digest=yes", epilog=str(epilog))

    def ask(self, script: str, *options: str) -> tuple[int, str, str]:
        """A job's number, its state and its output after the epilog; of an array the first task's."""
        path = self.jobs / f"job{time.monotonic_ns()}.sh"
        path.write_text("#!/bin/bash\n" + script)
        command = ["sbatch", "--parsable", "-o", f"{path}.%a.out", *options, str(path)]
        done = self._run(command)
        job = int(done.split(";")[0])
        return job, self._state(job), self._output(path, job)

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command, capture_output=True, text=True, env=self.slurm.environment, check=True, timeout=60
        )
        return done.stdout.strip()

    def start_portal(self, agent: Path) -> None:
        """A collector and an agent on each node, whom nodes ask from then on."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        words = [sys.executable, "-m", "iodock", "monitor", "serve", "--listen", address]
        self.slurm.start("collector", [*words, "--store", str(self.folder / "store")])
        for node in NODES:
            words = [str(agent), "run", "--listen", "127.0.0.1:0", "--interval", "1", "--push"]
            words += [f"http://{address}", "--spool", str(self.folder / f"spool-{node}")]
            self.slurm.start_in(node, f"agent-{node}", words)
        self.conf.write_text(f"PORTAL=http://{address}\n")

    def _state(self, job: int) -> str:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            said = self._run(["scontrol", "show", "job", str(job)])
            states = set(re.findall(r"JobState=(\w+)", said))
            if not states & {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING"}:
                return (
                    ",".join(sorted(states))
                    + " "
                    + ",".join(sorted(set(re.findall(r"ExitCode=(\S+)", said))))
                )
            time.sleep(0.2)
        raise AssertionError(said)

    def _output(self, path: Path, job: int) -> str:
        until = time.monotonic() + 20
        while str(job) not in self.times() and time.monotonic() < until:
            time.sleep(0.1)
        outputs = sorted(path.parent.glob(f"{path.name}.*.out"))
        while not all("iodock:" in one.read_text() for one in outputs) and time.monotonic() < until:
            time.sleep(0.1)
        return "".join(one.read_text() for one in outputs)

    def times(self) -> dict[str, tuple[int, float]]:
        """Of each job that the epilog was run for: its status and seconds."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        rows = (line.split() for line in lines)
        return {job: (int(status), int(took) / 1e9) for job, status, took in rows}


@pytest.fixture(scope="module")
def site(agent: Path) -> Iterator[Site]:
    # Below /tmp, which a job of another user can enter.
    folder = Path(tempfile.mkdtemp(prefix="iodock-digests-"))
    made = Site(folder)
    try:
        made.start_portal(agent)
        time.sleep(5)
        yield made
    finally:
        made.slurm.end()
        shutil.rmtree(folder)


def read_of(output: str) -> float:
    found = _EXACT.search(output)
    assert found, output
    return float(found[1]) * _UNITS[found[2]]


def jobs(site: Site) -> dict[str, tuple[str, tuple[str, ...], int | None, str]]:
    """Name -> script, options, bytes read, state."""
    forty = f"{site.known} {40 * MB} 0 - 1 1 0"
    many = f"for n in $(seq 200); do {site.known} {2 * MB} 0 - 1 1 0; done"
    daemon = f"(setsid {site.known} {20 * MB} 0 - 1 2 200 &) ; sleep 1"
    return {
        "short": (forty, (), 40 * MB, "COMPLETED 0:0"),
        "200 short processes": (many, (), 400 * MB, "COMPLETED 0:0"),
        "a daemon": (daemon, (), 40 * MB, "COMPLETED 0:0"),
        "srun": (f"srun {forty}", (), 40 * MB, "COMPLETED 0:0"),
        "failed": (f"{forty}; exit 3", (), 40 * MB, "FAILED 3:0"),
        "killed": (f"{forty}; kill -9 $$", (), 40 * MB, "FAILED 0:9"),
        "cancelled": (f"{forty}; scancel $SLURM_JOB_ID; sleep 60", (), 40 * MB, "CANCELLED 0:15"),
        "another user's": (forty, ("--uid=nobody", "-D/tmp"), 40 * MB, "COMPLETED 0:0"),
        "no output": (forty, ("-o", "/dev/null"), None, "COMPLETED 0:0"),
    }


def test_the_epilog_tells_and_changes_nothing(site: Site) -> None:
    for name, (script, options, read, state) in jobs(site).items():
        job, found, output = site.ask(f"echo begin\n{script}\n", *options)
        status, took = site.times()[str(job)]
        more = "" if read is None else f"{read_of(output) / read - 1:+.3%} "
        print(f"{name:20} {found:15} {more}epilog {status}, {took:.3f} s", flush=True)
        assert found == state and status == 0, (name, found, output)
        assert read is None or (output.startswith("begin\n") and output.count("exactly, on") == 1)
        assert read is None or read_of(output) == pytest.approx(read, rel=0.003)


def test_each_task_of_an_array_has_its_own(site: Site) -> None:
    # How many are told in time depends on the machine; here, whether each is told its own.
    patient = site.folder / "patient"
    patient.touch()
    _, state, output = site.ask(f"{site.known} {40 * MB} 0 - 1 1 0\n", "--array=0-14")
    patient.unlink()
    assert state == "COMPLETED 0:0"
    assert [round(float(one[0])) for one in _EXACT.findall(output)] == [38] * 15


def test_sixty_jobs_are_not_held_up(site: Site) -> None:
    before = len(site.times())
    _, state, output = site.ask(f"{site.known} {40 * MB} 0 - 1 1 0\n", "--array=0-59%2")
    took = [seconds for _, seconds in list(site.times().values())[before:]]
    told = len(_EXACT.findall(output))
    load = os.getloadavg()[0]
    print(
        f"60 jobs, {told} told in time; epilogs: median {statistics.median(took):.3f} s, "
        f"longest {max(took):.3f} s; load {load:.1f} on {os.cpu_count()} cores",
        flush=True,
    )
    assert state == "COMPLETED 0:0" and len(took) == 60
    assert {status for status, _ in site.times().values()} == {0}


@pytest.mark.parametrize("portal", ["dead", "silent"])
def test_without_an_answer_there_is_one_line(site: Site, portal: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1] if portal == "silent" else 9
        before = site.conf.read_text()
        site.conf.write_text(f"PORTAL=http://127.0.0.1:{port}\n")
        job, state, output = site.ask(f"{site.known} {40 * MB} 0 - 1 1 0; sleep 16\n")
        site.conf.write_text(before)
    status, took = site.times()[str(job)]
    print(f"portal {portal}: epilog {status}, {took:.3f} s", flush=True)
    assert state == "COMPLETED 0:0" and status == 0
    # The sums are written before the portal is asked.
    assert output.startswith("iodock: exactly, on n1: read 38.1") and output.count("\n") == 1


def test_a_portal_tells_what_it_knows_by_then(site: Site) -> None:
    # What is told is looked at here, however busy this machine is.
    patient = site.folder / "patient"
    patient.touch()
    site.conf.write_text(f"{site.conf.read_text()}LIMIT_S=15\n")
    job, state, output = site.ask(f"{site.known} {2 * MB} 0 - 1 40 1000\n", "-J", "ocean")
    print(output)
    assert state == "COMPLETED 0:0" and output.count("exactly, on") == 1
    assert f"\niodock: Job {job} (ocean) of root" in output and "Processes: read at least" in output
    patient.unlink()
    # All of it dead: the line of the exact sums only.
    for name in ("collector", *(f"agent-{node}" for node in NODES)):
        site.slurm.kill(name)
    _, state, output = site.ask(f"{site.known} {40 * MB} 0 - 1 1 0\n")
    assert state == "COMPLETED 0:0" and output.count("\n") == 1
