"""Tests scripts that append a job's digest to its output. PBS, PJM and Grid Engine are simulated here, from
what their manuals say about arguments and variables. Slurm is real in `tests/trials/whole_digests.py`."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from places import ROOT
from portal_site import OTHER, OWN, Server, fill, portal, with_tokens

SCRIPT = ROOT / "integrations/digest/iodock-job-digest"
SLURM = ROOT / "integrations/slurm/iodock_digest_epilog"
EPILOGS = {
    "grid_engine_epilog": ((), {"JOB_ID": OTHER}),
    "pbs_epilogue": ((OTHER, "alice", "users"), {}),
    "pjm_epilogue": ((), {"PJM_JOBID": OTHER}),
}
RECORD = """\
iodock-step 1
job 700
step {step}
uid 1000
began 1795961874824659317
ended 17959618{ended}824659317
rchar: 104857600
wchar: 1024
syscr: 26627
syscw: 2
read_bytes: 0
write_bytes: 0
cancelled_write_bytes: 0
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("scripts")
    access, secrets = with_tokens(folder)
    with portal(folder / "store", access) as server:
        server.secrets = secrets
        fill(server.collector)
        yield server


def settings(folder: Path, url: str, secret: str, *more: str) -> dict[str, str]:
    """Returns the environment with these settings. The script's time limit is long, because this machine may
    be busy."""
    token = folder / "token"
    token.write_text(secret + "\n")
    lines = [f"PORTAL={url}  # the portal", f"TOKEN_FILE={token}", "LIMIT_S=20", *more, ""]
    (folder / "digest.conf").write_text("\n".join(lines))
    return {**os.environ, "IODOCK_DIGEST_CONF": str(folder / "digest.conf"), "IODOCK_JOB_DIGEST": str(SCRIPT)}


def ran(script: Path, *words: str, env: dict[str, str]) -> str:
    done = subprocess.run([script, *words], capture_output=True, text=True, check=True, env=env, timeout=60)
    assert done.stderr == ""
    return done.stdout


def test_the_script_prints_the_digest_of_the_portal(site: Server, tmp_path: Path) -> None:
    env = settings(tmp_path, site.url, site.secrets["digest"])
    said = ran(SCRIPT, OTHER, env=env)
    assert (
        said.startswith(f"iodock: Job {OTHER} of ") and said == site.get(f"/digests/{OTHER}", "operator")[1]
    )
    env = settings(tmp_path, site.url, site.secrets["digest"], "LANGUAGE=ja")
    assert f"ジョブ {OTHER}" in ran(SCRIPT, OTHER, env=env)
    # The job is not slower than usual, so the script prints nothing.
    assert ran(SCRIPT, OTHER, env=settings(tmp_path, site.url, site.secrets["digest"], "ONLY=slower")) == ""


def test_a_digest_token_gives_access_to_digests_only(site: Server) -> None:
    assert site.get(f"/digests/{OTHER}", "digest")[0] == site.get(f"/digests/{OWN}", "digest")[0] == 200
    for path in ("/", "/jobs", f"/jobs/{OWN}", "/events", "/use", "/machines", "/actions"):
        assert site.get(path, "digest")[0] == 401, path
    assert site.ask("POST", "/api/v1/samples", "digest", b"x")[0] == 403
    assert site.ask("POST", "/login", "", f"token={site.secrets['digest']}".encode())[0] == 401


def test_without_a_portal_the_script_prints_nothing(site: Server, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        env = settings(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}", "x", "LIMIT_S=0.3")
        assert ran(SCRIPT, OTHER, env=env) == ""
    assert ran(SCRIPT, OTHER, env=settings(tmp_path, "http://127.0.0.1:9", "x")) == ""
    # Neither a page that requires a token nor an unknown job adds text.
    assert ran(SCRIPT, OTHER, env=settings(tmp_path, site.url, "wrong")) == ""
    assert ran(SCRIPT, "999", env=settings(tmp_path, site.url, site.secrets["digest"])) == ""
    assert ran(SCRIPT, OTHER, env={**os.environ, "IODOCK_DIGEST_CONF": "/nonexistent"}) == ""


@pytest.mark.parametrize("job", ["", "-o/tmp/x", "$(id)", "1;id", "../x", "1\n2", "@/etc/passwd"])
def test_an_invalid_job_id_causes_no_request(site: Server, tmp_path: Path, job: str) -> None:
    env = settings(tmp_path, site.url, site.secrets["digest"])
    assert ran(SCRIPT, job, str(tmp_path), env=env) == ""


def test_exact_sums_include_all_steps_of_the_job(tmp_path: Path) -> None:
    env = {**os.environ, "IODOCK_DIGEST_CONF": "/nonexistent"}
    for step in ("batch", "0"):
        (tmp_path / f"700.{step}.1.step.digest").write_text(RECORD.format(step=step, ended=99) + "end\n")
    (tmp_path / "7001.batch.1.step.digest").write_text(RECORD.format(step="batch", ended=99) + "end\n")
    (tmp_path / "700.batch.1.step").write_text(RECORD.format(step="batch", ended=99) + "end\n")
    said = ran(SCRIPT, "700", str(tmp_path), env=env)
    assert "read 200 MiB in 53254 calls, wrote 2 KiB in 4 calls" in said and said.count("\n") == 1


@pytest.mark.parametrize(("ended", "is_asked_for"), [(88, False), (98, True)])
def test_a_short_job_causes_no_request(site: Server, tmp_path: Path, ended: int, is_asked_for: bool) -> None:
    """The job's last step ended 14 or 24 s after its first step began."""
    env = settings(tmp_path, site.url, site.secrets["digest"])
    for step, end in (("batch", ended), ("0", 87)):
        (tmp_path / f"{OWN}.{step}.1.step.digest").write_text(RECORD.format(step=step, ended=end) + "end\n")
    said = ran(SCRIPT, OWN, str(tmp_path), env=env)
    assert said.startswith("iodock: exactly") and (f"iodock: Job {OWN}" in said) == is_asked_for


def test_a_truncated_step_gives_no_exact_figures(tmp_path: Path) -> None:
    env = {**os.environ, "IODOCK_DIGEST_CONF": "/nonexistent"}
    (tmp_path / "700.batch.1.step.digest").write_text(RECORD.format(step="batch", ended=99) + "end\n")
    (tmp_path / "700.0.1.step.digest").write_text(RECORD.format(step="0", ended=99))
    assert ran(SCRIPT, "700", str(tmp_path), env=env) == ""


def epilog(name: str, folder: Path, told: Path) -> Path:
    """Writes a copy of the epilog script that runs the program TOLD."""
    usual = "DIGEST=/usr/local/libexec/iodock-job-digest\n"
    text = SCRIPT.with_name(f"iodock_{name}").read_text()
    assert text.count(usual) == 1
    script = folder / name
    script.write_text(text.replace(usual, f"DIGEST={told}\n"))
    script.chmod(0o755)
    return script


@pytest.mark.parametrize("name", EPILOGS)
def test_epilogs_of_other_schedulers_print_the_digest_and_succeed(
    site: Server, tmp_path: Path, name: str
) -> None:
    words, variables = EPILOGS[name]
    conf = settings(tmp_path, site.url, site.secrets["digest"])["IODOCK_DIGEST_CONF"]
    env, told = {**os.environ, **variables}, tmp_path / "digest"
    script = epilog(name, tmp_path, told)
    told.write_text(f'#!/bin/sh\nIODOCK_DIGEST_CONF={conf} exec {SCRIPT} "$@"\n')
    told.chmod(0o755)
    said = ran(script, *words, env=env)
    # On a busy machine the time limit may pass, and then the script prints nothing.
    assert said == "" or said.startswith(f"iodock: Job {OTHER}")
    told.write_text('#!/bin/sh\necho "told of $1"; exit 7\n')
    assert ran(script, *words, env=env) == f"told of {OTHER}\n"
    told.write_text("#!/bin/sh\nsleep 60\n")
    assert ran(script, *words, env=env) == ""
    told.unlink()
    assert ran(script, env={**env, "JOB_ID": "", "PJM_JOBID": ""}) == ""


@pytest.mark.parametrize("name", EPILOGS)
def test_environment_variables_of_users_do_not_reach_the_root_process(tmp_path: Path, name: str) -> None:
    # Grid Engine passes the variables of `qsub -v` to an epilog.
    words, variables = EPILOGS[name]
    told, evil = tmp_path / "digest", tmp_path / "evil"
    told.write_text("#!/bin/sh\nenv\n")
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/done\n")
    for one in (told, evil):
        one.chmod(0o755)
    env = {**os.environ, **variables, "IODOCK_JOB_DIGEST": str(evil), "IODOCK_DIGEST_CONF": str(evil),
           "DIGEST": str(evil), "PATH": f"{tmp_path}:{os.environ['PATH']}"}  # fmt: skip
    (tmp_path / "timeout").symlink_to(evil)
    said = ran(epilog(name, tmp_path, told), *words, env=env)
    assert "evil" not in said and "IODOCK" not in said and not (tmp_path / "done").exists()


@pytest.mark.parametrize("job", ["", "x", "1 2"])
def test_slurms_epilog_succeeds_outside_a_job(job: str) -> None:
    assert ran(SLURM, env={**os.environ, "SLURM_JOB_ID": job, "SLURM_JOB_UID": "0"}) == ""
