"""Tests that the check-up after `record`, the bundle and Python query the monitor's store like `diagnose`,
and wait for at most half a second. Servers, node and run are synthetic."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import iodock
from alongside_site import centre_store, node_rows, plot5
from in_process import asked, printed
from iodock.cli.checkup import print_checkup_of
from places import ROOT


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a folder with a monitor's store with a hiccup, plot5's run, and a site's settings."""
    folder = tmp_path_factory.mktemp("site")
    node_rows(centre_store(folder / "m", 30.0), others=[("777", "alice", 50_000_000)])
    plot5(folder / "run.iodock")
    (folder / "site.toml").write_text(
        f'[servers]\nstore = "{folder / "m"}"\n[states]\nscheduler = "none"\nusual_hours = 1\n'
    )
    return folder


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises the time limit, because the test machine may be busy."""
    monkeypatch.setattr("iodock.cli.patience.LONGEST_S", 60.0)


@pytest.fixture
def silent() -> Iterator[str]:
    """Yields the address of a Prometheus that accepts connections and never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        yield f"prometheus://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.usefixtures("patient")
def test_the_check_up_names_the_server(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("IODOCK_SETTINGS", str(place / "site.toml"))
    print_checkup_of(place / "run.iodock", "en")
    said = " ".join(capsys.readouterr().err.split())
    assert "At that time mds01, which serves lfs, had stalled" in said
    assert said.count("lfs: while the program ran, mds01 was stalled for") == 1
    assert "clock" not in said.partition("mds01 was stalled for")[2].partition("iodock diagnose")[0]


@pytest.mark.usefixtures("patient")
def test_the_bundle_contains_the_servers(place: Path, tmp_path: Path) -> None:
    options = ("--settings", place / "site.toml", "--quiet")
    printed("bundle", place / "run.iodock", "-o", tmp_path / "b.tar.gz", *options)
    found = " ".join(member(tmp_path / "b.tar.gz", "findings.txt").split())
    assert "At that time mds01, which serves lfs, had stalled" in found
    assert re.search(r',"server","mds01","waiting","level",', member(tmp_path / "b.tar.gz", "machine.csv"))
    assert '"mds01"' in member(tmp_path / "b.tar.gz", "report.html")


def test_an_anonymous_bundle_queries_no_server(place: Path, tmp_path: Path) -> None:
    """Answers contain names of servers, jobs and users, which an anonymous bundle must not contain."""
    options = ("--settings", place / "site.toml", "--quiet", "--anonymous")
    printed("bundle", place / "run.iodock", "-o", tmp_path / "b.tar.gz", *options)
    for name in ("findings.txt", "findings.json", "machine.csv", "report.html"):
        content = member(tmp_path / "b.tar.gz", name)
        assert "mds01" not in content and "alice" not in content


def member(archive: Path, name: str) -> str:
    with tarfile.open(archive) as opened:
        (path,) = [one for one in opened.getnames() if one.endswith(f"/{name}")]
        file = opened.extractfile(path)
        assert file is not None
        return file.read().decode()


@pytest.mark.usefixtures("patient")
def test_the_python_interface_reads_the_servers_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with iodock.open(place / "run.iodock") as run:
        found = run.diagnose(iodock.load_settings(str(place / "site.toml")))
        assert any("servers" in one.text or "mds01" in str(one.values) for one in found.remarks)
        monkeypatch.setenv("IODOCK_SETTINGS", str(place / "site.toml"))
        rows = run.show("machine").to_arrow().to_pylist()
    assert any(row["source"] == "server" and row["target"] == "mds01" for row in rows)


def test_a_silent_monitor_store_gives_a_message_of_one_line(place: Path, tmp_path: Path, silent: str) -> None:
    (tmp_path / "site.toml").write_text(f'[servers]\nstore = "{silent}"\n')
    options = ("--settings", tmp_path / "site.toml", "--quiet")
    status, _, said = asked("bundle", place / "run.iodock", "-o", tmp_path / "b.tar.gz", *options)
    assert status == 0, said
    found = " ".join(member(tmp_path / "b.tar.gz", "findings.txt").split())
    assert found.count("The state of the servers is unknown:") == 1


def test_a_silent_monitor_store_does_not_change_the_exit_status_of_record(
    tmp_path: Path, silent: str
) -> None:
    (tmp_path / "site.toml").write_text(f'[servers]\nstore = "{silent}"\nclocks_agree_s = 1\n')
    (tmp_path / "data").write_bytes(bytes(100_000))
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "iodock", "record", "-o", tmp_path / "run.iodock", "--"),
            *("sh", "-c", "cat data > copy; exit 3"),
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "IODOCK_SETTINGS": str(tmp_path / "site.toml")},
    )  # fmt: skip
    assert ended.returncode == 3, ended.stderr
    assert " ".join(ended.stderr.split()).count("The state of the servers is unknown:") == 1
    assert "Traceback" not in ended.stderr
    assert "iodock report" in ended.stderr
