"""Tests digests in the output of jobs of a real Slurm with two nodes: short, failed, killed, cancelled,
requeued and daemonised jobs, arrays, many short processes; and with agent, collector or network down. Needs
root and Slurm's packages, and is no part of `make test`: `pytest -s tests/trials/whole_digests.py`."""

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
from contextlib import contextmanager
from email import message_from_bytes
from email.policy import default
from pathlib import Path

import pytest

from notice_sinks import mail_sink
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
_MAILED = """\
#!/bin/sh
[ -e {settings} ] || exit 0
export IODOCK_SETTINGS={settings} HOME=/nonexistent LANG=C
setsid sh -c 'sleep 20; exec {python} -m iodock monitor digest "$1" --portal "$2" --mail always' \\
    mail "$SLURM_JOB_ID" "$(cat {settings}.portal)" >{folder}/mailed 2>&1 &
sleep 1
"""
"""As in docs/how-to/job-digest.md, with shorter waits."""
_MAIL_SETTINGS = """\
[notices]
smtp = "{smtp}"
sender = "io@hpc.example.org"
[notices.to.digests]
who = "digest"
address = "{{user}}@users.example.org"
"""
_UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_EXACT = re.compile(
    r"^iodock: ([0-9_]+, )?(run \d+, )?exactly, on n[12]: read ([0-9.e+]+) (\w+) in \d+ calls, wrote",
    re.MULTILINE,
)
_OVER = ("BOOT_FAIL", "CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "TIMEOUT")
_REQUEUED_AFTER_S = 20

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no Slurm can be tried here: {missing()}"),
    pytest.mark.timeout(300),
]


class Site:
    """A Slurm with iodock's epilog. Nodes query the portal that `conf` names."""

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
        self.mail = folder / "mail.toml"
        mailed = folder / "controller_epilog"
        mailed.write_text(_MAILED.format(settings=self.mail, python=sys.executable, folder=folder))
        mailed.chmod(0o755)
        self.slurm = SlurmSite(
            slurm,
            plugin="digest=yes",
            epilog=str(epilog),
            controller_epilog=str(mailed),
            expire=_REQUEUED_AFTER_S,
        )

    def ask(self, script: str, *options: str) -> tuple[int, str, str]:
        """Runs a job. Returns its number, its state, and its output after the epilog; for an array, those of
        all tasks."""
        job, path = self.submit(script, *options)
        return job, self.state(job), self.output(path, job)

    def submit(self, script: str, *options: str) -> tuple[int, Path]:
        """Submits a job. Returns its number, and the path with which the names of its outputs begin. Two jobs
        run at a time."""
        path = self.jobs / f"job{time.monotonic_ns()}.sh"
        path.write_text("#!/bin/bash\n" + script)
        command = ["sbatch", "--parsable", "--exclusive", "-o", f"{path}.%a.out", *options, str(path)]
        return int(self._run(command).split(";")[0]), path

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command, capture_output=True, text=True, env=self.slurm.environment, check=True, timeout=60
        )
        return done.stdout.strip()

    def start_portal(self, agent: Path) -> None:
        """Starts a collector, and an agent on each node. From then on, nodes query this collector."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = f"127.0.0.1:{free.getsockname()[1]}"
        words = [sys.executable, "-m", "iodock", "monitor", "serve", "--listen", address]
        self.slurm.start("collector", [*words, "--store", str(self.folder / "store")])
        for node in NODES:
            words = [str(agent), "run", "--listen", "127.0.0.1:0", "--interval", "1", "--push"]
            words += [f"http://{address}", "--spool", str(self.folder / f"spool-{node}")]
            self.slurm.start_in(node, f"agent-{node}", words)
        self.portal = f"PORTAL=http://{address}"
        Path(f"{self.mail}.portal").write_text(f"http://{address}")
        self.ask_for(self.portal)

    def state(self, job: int) -> str:
        """Waits until the job is over and returns its state, such as `COMPLETED 0:0`; for an array, that of
        all tasks."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            said = self._run(["scontrol", "show", "job", str(job)])
            states = set(re.findall(r"JobState=(\w+)", said))
            if states and states <= set(_OVER):
                exits = set(re.findall(r"ExitCode=(\S+)", said))
                return f"{','.join(sorted(states))} {','.join(sorted(exits))}"
            time.sleep(0.3)
        raise AssertionError(said)

    def output(self, path: Path, job: int, runs: int = 1) -> str:
        """Returns the job's output after the epilogs of all RUNS."""
        until = time.monotonic() + 30
        while self.runs(job) < runs and time.monotonic() < until:
            time.sleep(0.1)
        outputs = sorted(path.parent.glob(f"{path.name}.*.out"))
        while not all("iodock:" in one.read_text() for one in outputs) and time.monotonic() < until:
            time.sleep(0.1)
        return "".join(one.read_text() for one in outputs)

    def runs(self, job: int) -> int:
        """Returns how many of the job's epilogs have ended."""
        return sum(one == str(job) for one, _, _ in self.rows())

    def rows(self) -> list[tuple[str, int, float]]:
        """Returns job, status and seconds of each epilog, in the order of their ends."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        rows = (line.split() for line in lines)
        return [(job, int(status), int(took) / 1e9) for job, status, took in rows]

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Raises the time limits within the context, so that digests appear even if this machine is busy."""
        sign = self.folder / "patient"
        sign.touch()
        try:
            yield
        finally:
            sign.unlink()

    def ask_for(self, *lines: str) -> None:
        """Writes these settings of the digest's script."""
        self.conf.write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture(scope="module")
def site(agent: Path) -> Iterator[Site]:
    # The folder is below /tmp, because a job of another user must be able to enter it.
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
    return float(found[3]) * _UNITS[found[4]]


def kinds(site: Site, total: int) -> dict[str, tuple[str, tuple[str, ...], str]]:
    """Returns kinds of jobs: name -> script that reads TOTAL bytes, options, expected state."""
    plain = f"{site.known} {total} 0 - 1 1 0"
    many = f"for n in $(seq 200); do {site.known} {total // 200} 0 - 1 1 0; done"
    daemon = f"(setsid {site.known} {total // 2} 0 - 1 2 200 &) ; sleep 1"
    return {
        "short": (plain, (), "COMPLETED 0:0"),
        "200 short processes": (many, (), "COMPLETED 0:0"),
        "a daemon": (daemon, (), "COMPLETED 0:0"),
        "srun": (f"srun {plain}", (), "COMPLETED 0:0"),
        "failed": (f"{plain}; exit 3", (), "FAILED 3:0"),
        "killed": (f"{plain}; kill -9 $$", (), "FAILED 0:9"),
        "cancelled": (f"{plain}; scancel $SLURM_JOB_ID; sleep 60", (), "CANCELLED 0:15"),
        "another user's": (plain, ("--uid=nobody", "-D/tmp"), "COMPLETED 0:0"),
    }


def test_each_kind_of_job_is_counted_exactly_without_changing_its_output(site: Site) -> None:
    """27 jobs read 40 MB each. The I/O of the shell, srun and scancel is known from the same jobs without
    reading."""
    with site.patient():
        own = {
            name: site.submit(f"echo begin\n{kind[0]}\n", *kind[1]) for name, kind in kinds(site, 0).items()
        }
        begun = [
            (name, kind[2], site.submit(f"echo begin\n{kind[0]}\n", *kind[1]))
            for _ in range(3)
            for name, kind in kinds(site, 40 * MB).items()
        ]
        begun += [
            ("no output", "COMPLETED 0:0", site.submit("echo begin\n", "-o", "/dev/null")) for _ in range(3)
        ]
        rest = {
            name: (site.state(job), read_of(site.output(path, job)))[1] for name, (job, path) in own.items()
        }
        found = [(name, state, site.state(job), job, path) for name, state, (job, path) in begun]
        for name, wanted, state, job, path in found:
            assert state == wanted, (name, state)
            output = site.output(path, job)
            if name == "no output":
                assert output == ""
                continue
            others = re.sub("slurmstepd.*CANCELLED.*\n", "", re.sub(f"(?m){_EXACT.pattern}.*\n", "", output))
            assert others == "begin\n" and output.count("exactly") == 1, output
            more = (read_of(output) - rest[name]) / (40 * MB) - 1
            print(
                f"{name:20} {state:15} {more:+.4%} beside {rest[name] / 1000:.1f} kB of its own", flush=True
            )
            assert abs(more) < 0.001 and rest[name] < 400_000, name
    statuses = {job: status for job, status, _ in site.rows()}
    assert {statuses[str(job)] for _, _, _, job, _ in found} == {0}


def test_each_array_task_has_its_own_digest(site: Site) -> None:
    with site.patient():
        job, state, output = site.ask(f"{site.known} {40 * MB} 0 - 1 1 0\n", "--array=0-8")
    assert state == "COMPLETED 0:0"
    told = _EXACT.findall(output)
    # The digest shows task ids in the notation of users.
    assert sorted(one[0] for one in told) == [f"{job}_{task}, " for task in range(9)]
    assert [round(float(one[2])) for one in told] == [38] * 9


def test_digests_do_not_delay_jobs(site: Site) -> None:
    before = len(site.rows())
    job, path = site.submit(f"{site.known} {40 * MB} 0 - 1 1 0\n", "--array=0-23")
    assert site.state(job) == "COMPLETED 0:0"
    time.sleep(2)
    took = [seconds for _, _, seconds in site.rows()[before:]]
    told = len(_EXACT.findall("".join(one.read_text() for one in path.parent.glob(f"{path.name}.*.out"))))
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    median, longest = statistics.median(took), max(took)
    print(f"24 jobs, {told} told in time; load {load:.0f}")
    print(f"epilogs: median {median:.3f} s, longest {longest:.3f} s", flush=True)
    assert len(took) == 24 and {status for _, status, _ in site.rows()} == {0}
    # On a busy machine the times would be those of other load.
    assert load > cores or (median < 0.2 and longest < 0.6 and told == 24)


def test_digest_covers_the_last_run_of_a_requeued_job(site: Site) -> None:
    site.ask_for(site.portal, "LIMIT_S=15", "SHORT_S=0")
    script = f"""
        {site.known} {2 * MB} 0 - 1 $(( ${{SLURM_RESTART_COUNT:-0}} ? 25 : 10 )) 1000
        [ -n "$SLURM_RESTART_COUNT" ] || {{ scontrol requeue $SLURM_JOB_ID; sleep 60; }}
    """
    with site.patient():
        job, path = site.submit(script, "-J", "ocean", "--requeue")
        until = time.monotonic() + 120
        while site.runs(job) < 2 and time.monotonic() < until:
            time.sleep(0.3)
        state, output = site.state(job), site.output(path, job, 2)
    site.ask_for(site.portal)
    print(output)
    assert state == "COMPLETED 0:0"
    assert "iodock: run 2, exactly, on n" in output and read_of(output) == pytest.approx(50 * MB, rel=0.01)
    assert f"\niodock: Job {job} (ocean) of root" in output and "restarted this job" in output
    # The earlier run ended half a minute before and read 20 MB.
    sampled = re.search(r"Processes: read at least ([0-9.]+) MiB", output)
    assert sampled and 0 < float(sampled[1]) * _UNITS["MiB"] < 1.01 * read_of(output)


def test_the_owner_gets_a_mail_from_the_controllers_epilog(site: Site) -> None:
    with mail_sink() as mails:
        site.mail.write_text(_MAIL_SETTINGS.format(smtp=mails.address))
        job, _ = site.submit(f"{site.known} {40 * MB} 0 - 1 1 0; sleep 5\n", "-J", "mailed")
        assert site.state(job) == "COMPLETED 0:0"
        until = time.monotonic() + 60
        while not mails.mails and time.monotonic() < until:
            time.sleep(0.5)
        site.mail.unlink()
    said = (site.folder / "mailed").read_text()
    assert [(sender, to) for sender, to, _ in mails.mails] == [
        ("io@hpc.example.org", ["root@users.example.org"])
    ], said
    mail = message_from_bytes(mails.mails[0][2], policy=default)
    print(mail["Subject"])
    assert f"Job {job} (mailed) of root" in mail["Subject"]


@pytest.mark.parametrize("portal", ["dead", "silent", "out of reach"])
def test_without_an_answer_the_script_prints_one_line(site: Site, portal: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        # The last address is in a network that does not exist (RFC 5737).
        places = {
            "dead": "127.0.0.1:9",
            "silent": f"127.0.0.1:{door.getsockname()[1]}",
            "out of reach": "192.0.2.1",
        }
        site.ask_for(f"PORTAL=http://{places[portal]}", "SHORT_S=0")
        # The script's own time limit for the portal must end the script, not the epilog's limit.
        with site.patient():
            _, state, output = site.ask(f"echo begin; {site.known} {40 * MB} 0 - 1 1 0; exit 4\n")
        site.ask_for(site.portal)
    status, took = site.rows()[-1][1:]
    print(f"portal {portal}: epilog {status}, {took:.3f} s", flush=True)
    assert state == "FAILED 4:0" and status == 0
    # The script writes the sums before it queries the portal.
    assert re.fullmatch(r"begin\niodock: exactly, on n[12]: read 38\.1.*\n", output)


def test_killed_services_do_not_change_job_output(site: Site) -> None:
    site.ask_for(site.portal, "LIMIT_S=15", "SHORT_S=0")
    for dies in ("agent-n1", "agent-n2", "collector"):
        site.slurm.kill(dies)
        with site.patient():
            _, state, output = site.ask(f"echo begin; {site.known} {40 * MB} 0 - 1 1 0; exit 4\n")
        print(f"without {dies}: {state}")
        assert state == "FAILED 4:0" and site.rows()[-1][1] == 0
        assert re.fullmatch(r"begin\niodock: exactly, on n[12]: read 38\.1.*\n", output)
