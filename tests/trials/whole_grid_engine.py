"""Tests digests in the output of jobs of a real Grid Engine on one machine. The portal's data about them are
made up. Needs root and Debian's packages gridengine-master, -exec and -client, and is no part of `make test`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from grid_engine_site import GridEngineSite, missing
from iodock.centre.monitor.collector import Collector
from places import ROOT
from portal_site import fill

FIRST = 4001
PORT = 9847
_SCRIPTS = ROOT / "integrations/digest"
_TIMED = """\
#!/bin/sh
begin=$(date +%s%N)
{epilog}
status=$?
echo "$JOB_ID $SGE_TASK_ID $status $(( $(date +%s%N) - begin ))" >> {log}
exit $status
"""

pytestmark = [
    pytest.mark.skipif(bool(missing()), reason=f"no Grid Engine can be tried here: {missing()}"),
    pytest.mark.timeout(400),
]


class Site:
    """A Grid Engine with the epilog of integrations/digest, and a portal that knows the jobs FIRST to FIRST +
    9."""

    def __init__(self, folder: Path) -> None:
        self.log, self.conf = folder / "epilogs", folder / "digest.conf"
        fill(Collector(folder / "store"), [f"{number}:65534:ge1" for number in range(FIRST, FIRST + 10)])
        digest, epilog = self._installed(folder)
        timed = folder / "timed"
        timed.write_text(_TIMED.format(epilog=epilog, log=self.log))
        for program in (digest, epilog, timed):
            program.chmod(0o755)
        self.engine = GridEngineSite(folder / "engine", timed, FIRST)
        words = [sys.executable, "-m", "iodock", "monitor", "serve", "--store", str(folder / "store")]
        self.portal = self.engine.start(*words, "--listen", f"127.0.0.1:{PORT}")
        self._wait_for_portal()

    def _installed(self, folder: Path) -> tuple[Path, Path]:
        """Installs both scripts with the paths of this test. The patient version is for a busy machine."""
        (folder / "engine").mkdir()
        digest, epilog = folder / "iodock-job-digest", folder / "epilog"
        text = (_SCRIPTS / "iodock-job-digest").read_text()
        digest.write_text(text.replace("/etc/iodock/digest.conf}", f"{self.conf}}}"))
        text = (_SCRIPTS / "iodock_grid_engine_epilog").read_text()
        text = text.replace("DIGEST=/usr/local/libexec/iodock-job-digest", f"DIGEST={digest}")
        epilog.write_text(text.replace("timeout -k 0.02 0.47", f"timeout -k 0.02 $(cat {folder}/limit)"))
        self.limit = folder / "limit"
        self.ask_for(f"http://127.0.0.1:{PORT}", limit_s=20)
        return digest, epilog

    def ask_for(self, url: str, limit_s: float) -> None:
        self.conf.write_text(f"PORTAL={url}\nLIMIT_S={limit_s if limit_s > 1 else 0.35}\n")
        self.limit.write_text(str(limit_s))

    def _wait_for_portal(self) -> None:
        until = time.monotonic() + 60
        while not self.engine.run("curl", "-s", f"http://127.0.0.1:{PORT}/digests/{FIRST}").startswith(
            "iodock"
        ):
            assert time.monotonic() < until and self.portal.poll() is None, "no portal"
            time.sleep(0.3)

    def epilogs(self) -> list[tuple[str, str, int, float]]:
        """Returns job, task, status and seconds of each epilog."""
        rows = (line.split() for line in self.log.read_text().splitlines())
        return [(job, task, int(status), int(took) / 1e9) for job, task, status, took in rows]


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    # The folder is below /tmp, because a job of another user must be able to enter it.
    folder = Path(tempfile.mkdtemp(prefix="iodock-engine-"))
    folder.chmod(0o755)
    made = Site(folder)
    try:
        yield made
    finally:
        made.engine.end()
        made.portal.wait()
        shutil.rmtree(folder)


def test_ten_jobs_of_grid_engine_get_their_digests(site: Site) -> None:
    engine = site.engine
    ok, failed = (engine.submit(f"echo begin; exit {status}\n") for status in (0, 3))
    killed = engine.submit("echo begin; kill -9 $$\n")
    array = engine.submit("echo begin $SGE_TASK_ID\n", "-t", "1-3")
    nowhere = engine.submit("echo begin\n", "-o", "/dev/null")
    deleted = engine.submit("echo begin; sleep 600\n")
    evil = engine.submit("echo begin\n", "-v", f"IODOCK_JOB_DIGEST={site.limit},IODOCK_DIGEST_CONF=/dev/null")
    last = engine.submit("echo begin; sleep 1\n")
    until = time.monotonic() + 60
    while not engine.output(deleted):
        assert time.monotonic() < until
        time.sleep(0.3)
    engine.run("qdel", str(deleted))
    engine.wait()
    for job in (ok, failed, killed, deleted, evil, last):
        assert engine.output(job).startswith("begin\niodock: Job "), (job, engine.output(job))
        assert f"iodock: Job {job} " in engine.output(job) and "File servers: read" in engine.output(job)
    for task in (1, 2, 3):
        assert engine.output(array, f".{task}").startswith(f"begin {task}\niodock: Job {array} of ")
    assert engine.output(nowhere) == ""
    rows = site.epilogs()
    print("".join(f"{job}.{task}: epilog {status}, {took:.3f} s\n" for job, task, status, took in rows))
    assert len(rows) == 10 and {status for _, _, status, _ in rows} == {0}
    assert [engine.status(job) for job in (ok, failed, killed)] == [0, 3, 137]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://192.0.2.1:9847"])
def test_without_a_portal_the_job_output_is_unchanged(site: Site, url: str) -> None:
    site.ask_for(url, limit_s=0.47)
    job = site.engine.submit("echo begin; exit 5\n")
    site.engine.wait()
    _, _, status, took = site.epilogs()[-1]
    print(f"{url}: epilog {status}, {took:.3f} s")
    assert site.engine.output(job) == "begin\n" and status == 0
    assert site.engine.status(job) == 5
    # The queue is not in an error state, so it accepts further jobs.
    assert " E" not in site.engine.run("qstat", "-f")
