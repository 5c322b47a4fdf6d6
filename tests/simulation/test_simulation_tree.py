"""Tests the files of the simulated Lustre: the samples that `iodock-agent` reads there equal the truth."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from iodock.shared.errors import RequestError
from iodock.simulation.centre import Centre
from iodock.simulation.play import play
from iodock.simulation.scenarios import RELEASES, in_release, named
from iodock.simulation.tree import Tree
from places import ROOT
from simulated import played, read_by, read_from, wanted

PROJECT = ROOT


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["healthy", "overload"])
def test_the_agent_reads_the_simulated_values(agent: Path, tmp_path: Path, name: str, release: str) -> None:
    tree = played(tmp_path / "centre", name, 1500, cleanup_s=0, release=release)
    read = {
        (sample["job"], sample["target"], sample["metric"]): sample["value"]
        for sample in read_by(agent, tree)
        if sample["source"].endswith("_job_stats") and not sample["metric"].endswith("_by_size")
    }
    assert read == wanted(tree, release != "2.5")


def test_histograms_contain_every_sample(agent: Path, tmp_path: Path) -> None:
    tree = played(tmp_path / "centre", "healthy", 900, cleanup_s=0)
    by_size: Counter[tuple[str, str, str]] = Counter()
    for sample in read_by(agent, tree):
        if sample["metric"].endswith("_by_size"):
            name = sample["metric"].removesuffix("_by_size") + "_count"
            by_size[sample["job"], sample["target"], name] += sample["value"]
    true = {key: value for key, value in wanted(tree, True).items() if key[2].endswith("_bytes_count")}
    assert by_size == true != {}


def test_times_of_entries_equal_those_of_the_model(agent: Path, tmp_path: Path) -> None:
    tree = played(tmp_path / "centre", "cleanup", 4000)
    centre = tree.centre
    model = {
        (entry.job_id, target.name): (entry.start_ns, entry.updated_ns(centre.now_ns))
        for target, entry, _ in centre.readings()
    }
    read = {
        (sample["job"], sample["target"]): (sample["start_ts"], sample["updated_ts"])
        for sample in read_by(agent, tree)
        if sample["job"] is not None
    }
    assert read == model != {}


def test_statistics_of_targets_and_services_contain_all_requests(agent: Path, tmp_path: Path) -> None:
    tree = played(tmp_path / "centre", "healthy", 900)
    true = wanted(tree, True)
    read = {(sample["source"], sample["metric"]): sample for sample in read_by(agent, tree)}
    opened = sum(value for (_, _, counter), value in true.items() if counter == "open")
    requests = sum(
        value for (_, target, counter), value in true.items() if "MDT" in target and "_time" not in counter
    )
    assert read["mdt_md_stats", "open"]["value"] == opened
    assert read["mds_stats", "ldlm_ibits_enqueue"]["value"] == opened
    assert read["mds_stats", "req_waittime"]["value"] == requests
    assert {sample["host"] for sample in read.values()} <= {server.name for server in tree.centre.servers}


@pytest.mark.parametrize("release", RELEASES)
def test_the_login_node_counts_the_io_of_its_users(agent: Path, tmp_path: Path, release: str) -> None:
    tree = played(tmp_path / "centre", "reboot", 1500, release=release)
    true: Counter[str] = Counter()
    for (job_id, _, counter), value in wanted(tree, True).items():
        if job_id in ("rsync.17004", "python3.17008"):
            true[counter] += value
    samples = read_from(agent, tree.root / "login01")
    read = {one["metric"]: one["value"] for one in samples if one["source"] == "llite_stats"}
    assert {"open", "close", "read_bytes", "read_bytes_count", "write_bytes"} <= set(read)
    assert ("open_time" in read) == (release == "2.15")
    assert read == {name: true[name] for name in read}
    assert {(one["host"], one["file_system"]) for one in samples if one["target"]} >= {("login01", "lfs")}


def test_a_failed_server_has_no_files(agent: Path, tmp_path: Path) -> None:
    tree = played(tmp_path / "centre", "failover", 610)
    dead, heir = (tree.root / name / "proc/fs/lustre/obdfilter" for name in ("oss01", "oss02"))
    assert not dead.exists() and len(list(heir.iterdir())) == 2
    tree.centre.advance(60)
    tree.write()
    assert not dead.exists() and len(list(heir.iterdir())) == 4
    tree.centre.advance(1200)
    tree.write()
    assert len(list(dead.iterdir())) == len(list(heir.iterdir())) == 2
    assert {sample["target"] for sample in read_by(agent, tree) if "OST" in (sample["target"] or "")} == {
        f"lfs-OST000{n}" for n in range(4)
    }


@pytest.mark.whole
@pytest.mark.parametrize("name", ["cleanup", "reboot"])
def test_files_are_up_to_date_after_every_step(tmp_path: Path, name: str) -> None:
    tree = played(tmp_path / "centre", name, 10)
    for _ in range(150):
        tree.centre.advance(20)
        tree.write()
        model = Counter(
            (target.name, "write_bytes", entry.job_id, counters["write_bytes"])
            for target, entry, counters in tree.centre.readings()
            if target.kind == "obdfilter" and counters.get("write_bytes")
        )
        written: Counter[tuple[str, str, str, int]] = Counter()
        for path in tree.root.glob("oss*/proc/fs/lustre/obdfilter/*/job_stats"):
            for text in path.read_text().split("- job_id:")[1:]:
                job_id = text.splitlines()[0].strip()
                if found := re.search(r"  write_bytes: .* sum: +([1-9][0-9]*),", text):
                    written[path.parent.name, "write_bytes", job_id, int(found[1])] += 1
        assert written == model != {}


def test_a_stall_is_visible_in_the_files(tmp_path: Path) -> None:
    tree = played(tmp_path / "centre", "stall", 660)
    stat = tree.root / "mds01/proc/stat"
    service = tree.root / "mds01/sys/kernel/debug/lustre/mds/MDS/mdt/stats"

    def busy_and_all() -> tuple[int, int]:
        numbers = [int(word) for word in stat.read_text().splitlines()[0].split()[1:]]
        return numbers[2], sum(numbers)

    def handled() -> int:
        line = next(line for line in service.read_text().splitlines() if line.startswith("req_waittime"))
        return int(line.split()[1])

    (busy, total), before = busy_and_all(), handled()
    tree.centre.advance(600)
    tree.write()
    after = busy_and_all()
    assert (after[0] - busy) / (after[1] - total) < 0.02
    assert handled() - before < 0.02 * before
    assert "some avg10=99.00" in (tree.root / "mds01/proc/pressure/io").read_text()


def test_every_folder_is_marked_as_synthetic(tmp_path: Path) -> None:
    tree = played(tmp_path / "centre", "idle", 10)
    for folder in (tree.root, *(tree.root / server.name for server in tree.centre.servers)):
        assert (folder / "SYNTHETIC").read_text().startswith("SYNTHETIC: nothing here was measured")
    tree.write_truth()
    assert json.loads((tree.root / "truth.json").read_text())["synthetic"] is True


def test_only_a_folder_of_a_simulation_is_overwritten(tmp_path: Path) -> None:
    root = tmp_path / "centre"
    played(root, "failover", 10, servers=5)
    (root / "mine").mkdir()
    played(root, "idle", 10, servers=2)
    assert sorted(path.name for path in root.iterdir()) == ["SYNTHETIC", "login01", "mds01", "mine", "oss01"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other/precious").write_text("x")
    with pytest.raises(RequestError, match="not a simulation's"):
        played(tmp_path / "other", "idle", 10)
    with pytest.raises(RequestError, match="precious: not a folder"):
        played(tmp_path / "other/precious", "idle", 10)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["precious"]


@pytest.mark.whole
def test_files_are_replaced_atomically(tmp_path: Path) -> None:
    tree = played(tmp_path / "centre", "healthy", 300)
    path = tree.root / "mds01/proc/fs/lustre/mdt/lfs-MDT0000/job_stats"
    ended = threading.Event()

    def write() -> None:
        try:
            for _ in range(60):
                tree.centre.advance(10)
                tree.write()
        finally:
            ended.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while not ended.is_set() or not seen:
        text = path.read_text()
        assert text.startswith("job_stats:\n- job_id:") and text.endswith("}\n")
        seen += 1
    writer.join()


# The following tests run the command `iodock monitor simulate`.


def iodock(*words: object) -> list[str]:
    return [sys.executable, "-m", "iodock", "monitor", "simulate", *map(str, words)]


def test_the_command_simulates_a_scenario(tmp_path: Path) -> None:
    before_ns = time.time_ns()
    words = ("--scenario", "reboot", "--seconds", 1200, "--speed", 0, "--seed", 3, "--release", "2.12")
    told = subprocess.run(
        iodock(tmp_path / "t", *words, "--servers", 4, "--jobs", 5), capture_output=True, text=True,
        timeout=120, check=True,
    )  # fmt: skip
    assert told.stdout == "" and told.stderr.startswith("synthetic ") and len(told.stderr.splitlines()) == 1
    truth = json.loads((tmp_path / "t/truth.json").read_text())
    assert (truth["scenario"], truth["seed"]) == ("reboot", 3)
    # The simulated time ends now, as if an agent had just read everything.
    assert truth["now_ns"] - truth["begin_ns"] == 1200 * 10**9
    assert before_ns <= truth["now_ns"] <= time.time_ns()
    assert sorted(path.name for path in (tmp_path / "t").glob("[mo]*")) == [
        "mds01",
        "oss01",
        "oss02",
        "oss03",
    ]
    assert (tmp_path / "t/mds01/proc/fs/lustre/version").read_text() == "2.12.8\n"


def test_the_command_lists_scenarios() -> None:
    told = subprocess.run(iodock("--list"), capture_output=True, text=True, timeout=120, check=True)
    names = [line.split()[0] for line in told.stdout.splitlines()]
    assert {"healthy", "idle", "overload", "stall", "failover", "reboot", "cleanup", "many-jobs"} == set(
        names
    )


@pytest.mark.whole
def test_after_ctrl_c_the_truth_matches_the_files(tmp_path: Path, agent: Path) -> None:
    root = tmp_path / "t"
    running = subprocess.Popen(
        iodock(root, "--speed", 100, "--every", 20, "--jobs", 8), stderr=subprocess.PIPE, text=True
    )
    stats = root / "mds01/proc/fs/lustre/mdt/lfs-MDT0000/job_stats"
    limit = time.monotonic() + 60
    first = ""
    while time.monotonic() < limit:
        now = stats.read_text() if stats.exists() else ""
        first = first or now
        if first and now != first:
            break
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 0 and said.startswith("synthetic ")
    opened = sum(
        targets["lfs-MDT0000"]["open"]["samples"]
        for job in json.loads((root / "truth.json").read_text())["jobs"]
        for targets in job["work"].values()
        if "open" in targets.get("lfs-MDT0000", {})
    )
    told = subprocess.run(
        [agent, "once", "--root", root / "mds01", "--format", "json"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    samples = json.loads(told.stdout)["samples"]
    read = [one["value"] for one in samples if (one["source"], one["metric"]) == ("mdt_md_stats", "open")]
    assert read == [opened]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--scenario", "x"), "there is no scenario 'x'"),
        (("--servers", "1"), "--servers"),
        (("--speed", "-1"), "--speed"),
    ],
)
def test_the_command_refuses_invalid_options(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    told = subprocess.run(
        iodock(tmp_path / "t", *words), capture_output=True, text=True, timeout=60, check=False
    )
    assert told.returncode == 2 and said in told.stderr
    nowhere = subprocess.run(iodock(), capture_output=True, text=True, timeout=60, check=False)
    assert nowhere.returncode == 2 and "needs a folder" in nowhere.stderr


@pytest.mark.whole
def test_a_simulation_follows_the_clock_and_ends_on_request(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "t", Centre(in_release(named("idle"), "2.15")))
    reading, writing = os.pipe()
    seen: list[int] = []

    def tell(centre: Centre) -> None:
        seen.append(centre.now_ns - centre.begin_ns)
        if len(seen) == 3:
            os.write(writing, b"x")

    begun = time.monotonic()
    play(tree, 1000.0, 50.0, 5.0, reading, tell)
    passed_s = time.monotonic() - begun
    os.close(reading)
    os.close(writing)
    assert len(seen) == 3
    assert 15 * 10**9 <= seen[-1] <= (passed_s * 50 + 5) * 10**9
