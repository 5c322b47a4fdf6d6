"""Compares `iodock record --light`, which counts calls, with a full recording of the same program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from recorded import IODOCK, live, record, rows, run, wait_until

pytestmark = [live]

PROGRAM = """
import os, subprocess
for number in range(40):
    with open(f"part-{number}.txt", "w") as part:
        part.write("x" * (100 + number))
    os.stat(f"part-{number}.txt")
fd = os.open("data", os.O_RDWR | os.O_CREAT)
for number in range(300):
    os.pwrite(fd, b"y" * 4096, 4096 * number)
for number in range(0, 300, 3):
    os.pread(fd, 1000, 4096 * number)
os.fsync(fd)
os.close(fd)
subprocess.run(["cat", "data"], stdout=subprocess.DEVNULL)
"""
# Queries a full recording for the values of each file in the folder. Calls that failed do not count.
FULL = """
SELECT file AS name,
  count(*) FILTER (call IN ('open', 'openat', 'creat')) AS opens,
  count(*) FILTER (direction = 'read') AS reads, count(*) FILTER (direction = 'write') AS writes,
  coalesce(sum(bytes) FILTER (direction = 'read'), 0) AS read_bytes,
  coalesce(sum(bytes) FILTER (direction = 'write'), 0) AS written_bytes,
  count(*) FILTER (class = 'sync') AS syncs
FROM call_ends WHERE file LIKE '{folder}/%' AND result IS NOT NULL AND errno IS NULL
GROUP BY file HAVING opens + reads + writes > 0 ORDER BY file
"""
LIGHT = """
SELECT f.name AS name, sum(opens)::BIGINT AS opens, sum(reads)::BIGINT AS reads,
  sum(writes)::BIGINT AS writes, sum(read_bytes)::BIGINT AS read_bytes,
  sum(written_bytes)::BIGINT AS written_bytes, sum(syncs)::BIGINT AS syncs
FROM profiles JOIN files f USING (file_id) WHERE f.name LIKE '{folder}/%' AND opens + reads + writes > 0
GROUP BY f.name ORDER BY f.name
"""

WRITTEN = """
SELECT sum(written_bytes)::BIGINT AS n FROM profiles JOIN files USING (file_id) WHERE name = '{}'
"""


def recorded(folder: Path, *options: object) -> Path:
    folder.mkdir()
    done = record(folder, *options, "--", sys.executable, "-S", "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    return folder / "run.iodock"


def by_name(store: Path, sql: str) -> dict[str, dict[str, Any]]:
    found = rows(store, sql.format(folder=store.parent))
    return {Path(row.pop("name")).name: row for row in found}


def test_counts_and_bytes_per_file_equal_those_of_a_full_recording(tmp_path: Path) -> None:
    full = by_name(recorded(tmp_path / "full"), FULL)
    light = by_name(recorded(tmp_path / "light", "--light"), LIGHT)
    assert len(full) == 41
    assert light == full


def test_the_store_of_a_light_recording_has_processes_but_no_calls(tmp_path: Path) -> None:
    store = recorded(tmp_path / "light", "--light", "--light-first", 10)
    manifest = json.loads((store / "manifest.json").read_text())
    assert (manifest["state"], manifest["tables"]["events"]) == ("complete", 0)
    commands = [row["path"] for row in rows(store, "SELECT path FROM commands ORDER BY ts")]
    assert len(commands) == 2 and commands[1].endswith("/cat")
    unknown = "SELECT count(*) AS n FROM profiles WHERE upid IS NULL OR host IS NULL"
    assert rows(store, unknown) == [{"n": 0}]
    kept = "SELECT count(*) AS n FROM profile_accesses"
    assert rows(store, kept) == [{"n": 20}]
    refused = run([*IODOCK, "show", "errors", store], tmp_path)
    assert refused.returncode == 2 and "for other analyses record without --light" in refused.stderr


def test_files_beyond_the_limit_are_counted_together(tmp_path: Path) -> None:
    program = "for n in range(2000):\n    with open(f'f{n}', 'w') as f:\n        f.write('x' * 10)"
    done = record(tmp_path, "--light", "--light-memory", "256K", "--", sys.executable, "-S", "-c", program)
    assert done.returncode == 0, done.stderr
    store = tmp_path / "run.iodock"
    sums = "SELECT sum(opens)::BIGINT AS opens, sum(written_bytes)::BIGINT AS bytes FROM profiles "
    ours = r"JOIN files f USING (file_id) WHERE regexp_matches(f.name, '/f(\d+|\*)$')"
    assert rows(store, sums + ours) == [{"opens": 2000, "bytes": 20000}]
    # Digits in the folder's name become stars in the pattern, too.
    folded = rows(store, "SELECT pattern, files FROM profiles WHERE pattern LIKE '%/f*' AND opens > 0")
    assert len(folded) == 1
    assert 1500 < sum(row["files"] for row in folded) < 2000
    assert losses_of(store)["folded-files"] > 1500


def losses_of(store: Path) -> dict[str, int]:
    manifest = json.loads((store / "manifest.json").read_text())
    return {loss["name"]: loss["count"] for loss in manifest["losses"]}


def test_a_light_recording_ends_with_the_bytes_read_and_written(tmp_path: Path) -> None:
    command = [*IODOCK, "record", "--light", "-o", "run.iodock", "--", sys.executable, "-S", "-c", PROGRAM]
    done = run(command, tmp_path)
    assert "Light recording: 2 processes" in done.stderr
    assert f"{tmp_path}/data" in done.stderr
    for command in ("diagnose", "report", "show profiles"):
        assert f"iodock {command}" in done.stderr


def test_back_ends_that_cannot_count_are_refused(tmp_path: Path) -> None:
    for backend in ("ptrace", "bpf"):
        done = record(tmp_path, "--light", "--backend", backend, "--", "true")
        assert done.returncode != 0 and "--light" in done.stderr
    assert not (tmp_path / "run.iodock").exists()
    assert record(tmp_path, "--light-memory", "1M", "--", "true").returncode == 2
    assert record(tmp_path, "--light", "--light-memory", "1K", "--", "true").returncode == 2


def test_counts_of_a_killed_recorder_are_kept(tmp_path: Path) -> None:
    program = "import os, time\nfor n in range(500): os.write(3, b'x' * 10)\n"
    program += "open('ready', 'w').write(str(os.getpid()))\ntime.sleep(60)"
    command = ["sh", "-c", f'exec 3> out; exec {sys.executable} -S -c "{program}"']
    recording = [*IODOCK, "record", "--light", "-q", "-o", "run.iodock", "--", *command]
    with subprocess.Popen(recording, cwd=tmp_path) as recorder:
        wait_until((tmp_path / "ready").exists)
        wait_until(lambda: bool((tmp_path / "ready").read_text()))
        recorder.kill()
    store = tmp_path / "run.iodock"
    # A reader that opens the store too early must not end the counting.
    early = run([*IODOCK, "show", "profiles", store], tmp_path)
    assert early.returncode != 0 and "still counted" in early.stderr
    os.kill(int((tmp_path / "ready").read_text()), 9)
    wait_until(lambda: run([*IODOCK, "show", "profiles", store], tmp_path).returncode == 0)
    assert rows(store, WRITTEN.format(tmp_path / "out")) == [{"n": 5000}]


def test_programs_can_count_without_a_running_recorder(tmp_path: Path) -> None:
    begun = run([*IODOCK, "record", "--light", "--begin", "-o", "job.iodock"], tmp_path)
    assert begun.returncode == 0, begun.stderr
    script = f"{begun.stdout}\necho hello > out; cat out out > both"
    assert run(["sh", "-c", script], tmp_path).returncode == 0
    store = tmp_path / "job.iodock"
    assert run([*IODOCK, "show", "profiles", "job.iodock"], tmp_path).returncode == 0
    assert rows(store, WRITTEN.format(tmp_path / "both")) == [{"n": 12}]
    # The recorder does not count programs that start later, and does not change their output.
    late = run(["sh", "-c", script], tmp_path)
    assert (late.returncode, late.stdout, late.stderr) == (0, "", "")
    assert rows(store, WRITTEN.format(tmp_path / "both")) == [{"n": 12}]
    again = run([*IODOCK, "record", "--light", "--force", "-o", "job.iodock", "--", "true"], tmp_path)
    assert again.returncode == 0 and not (store / "journal").exists()


def test_listing_jobs_does_not_end_a_running_count(tmp_path: Path) -> None:
    begun = run([*IODOCK, "record", "--light", "--begin", "-o", "job.iodock"], tmp_path)
    listed = run([*IODOCK, "show", "jobs", tmp_path, "--json"], tmp_path)
    assert "left unfinished" in json.loads(listed.stdout)["rows"][0]["problem"]
    assert run(["sh", "-c", f"{begun.stdout}\necho hello | cat > out"], tmp_path).returncode == 0
    assert rows(tmp_path / "job.iodock", WRITTEN.format(tmp_path / "out")) == [{"n": 6}]


def test_a_static_child_of_a_light_recording_is_a_loss(tmp_path: Path) -> None:
    source = '#include <unistd.h>\nint main(void) { return write(1, "x", 1) != 1; }\n'
    (tmp_path / "child.c").write_text(source)
    subprocess.run(["cc", "-static", "-o", "child", "child.c"], cwd=tmp_path, check=True)
    done = record(tmp_path, "--light", "--", "sh", "-c", "./child; /bin/true; cat child.c")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "run.iodock" / "manifest.json").read_text())
    lost = {loss["name"]: loss["count"] for loss in manifest["losses"]}
    assert lost.get("unreached-programs") == 1


def test_a_light_diagnosis_excludes_system_files_and_ranks(tmp_path: Path) -> None:
    program = "import os\nfd = os.open('data', os.O_WRONLY | os.O_CREAT)\n"
    program += "for n in range(30000): os.pwrite(fd, b'y' * 40, 40 * n)\n"
    (tmp_path / "steps.py").write_text(program)
    # The run has several processes, one of which does nearly all the work, and a pipe that is read byte by
    # byte.
    line = f"for n in 1 2 3; do echo $n | cat > part-$n; done; {sys.executable} -S steps.py"
    done = record(tmp_path, "--light", "--", "sh", "-c", line)
    assert done.returncode == 0, done.stderr
    found = json.loads(run([*IODOCK, "diagnose", "run.iodock", "--format", "json"], tmp_path).stdout)
    first = found["findings"][0]
    assert first["rule"] == "small-requests" and first["evidence"]["count"] >= 30_000
    assert f"{tmp_path}/data" in first["files"] and "pipe" not in first["files"]
    silent = {one["rule"] for one in found["silent"]}
    assert {"rank-imbalance", "shared-file-contention", "file-per-process", "bytewise-read"} <= silent
    assert "small-requests" not in silent


def test_results_of_a_light_store_do_not_mention_darshan(tmp_path: Path) -> None:
    store = recorded(tmp_path / "light", "--light")
    commands = [["diagnose", store], ["report", store, "-o", "-"]]
    asked = (
        "overview",
        "summary",
        "files",
        "sizes",
        "timeline",
        "accesses",
        "offsets",
        "processes",
        "errors",
    )
    commands += [["show", name, store] for name in asked]
    for command in commands:
        done = run([*IODOCK, *command], tmp_path)
        assert done.returncode in (0, 2) and done.stdout + done.stderr, command
        assert "Darshan" not in done.stdout + done.stderr, command
        assert "--light" in done.stdout + done.stderr or command[0] == "diagnose", command


def test_successive_appends_do_not_count_as_rewrites(tmp_path: Path) -> None:
    line = "for n in $(seq 60); do /bin/echo $n >> log; done"
    assert record(tmp_path, "--light", "--", "sh", "-c", line).returncode == 0
    found = json.loads(run([*IODOCK, "diagnose", "run.iodock", "--format", "json"], tmp_path).stdout)
    assert "redundant-writes" not in {one["rule"] for one in found["findings"]}
    # The recorder missed the first calls of each program. They are few, so iodock still judges the run.
    assert found["verdict"]["judges"]
