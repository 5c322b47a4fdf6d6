"""Lists the readers that get damaged inputs: each with its samples, and how its result is reported."""

from __future__ import annotations

import json
import lzma
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from places import FIXTURES, ROOT

PATIENCE_S = 60
"""A case takes a tenth of a second, or ten times that on a busy machine."""
MOST_BYTES = 1 << 30
_LARGEST = 96 << 10
"""Lines of a sample that are used; later ones are left out, so that a case is fast."""
AGENT = ROOT / "target" / "debug" / "iodock-agent"


@dataclass
class Seen:
    """The result of a reader."""

    status: int
    said: str
    amount: int = 0
    """Number of calls, values or rows that it read."""
    losses: dict[str, int] = field(default_factory=dict)
    """The losses that it reported, by name."""
    bug: str = ""
    """An error that is not one of iodock's own."""


@dataclass(frozen=True)
class Target:
    """A reader, and how to call it in this process."""

    name: str
    samples: Callable[[], dict[str, bytes]]
    read: Callable[[Path, bytes, str], Seen]
    """Reads content, in its own folder, that is a damaged form of the sample with this name."""
    weight: int = 1
    counts: bool = True
    """Whether `amount` and `losses` are known."""


def _verb(folder: Path, *words: object, standard_input: bytes | None = None) -> tuple[int, str, str]:
    """Runs a command in this process. The output, including that of Rust code, goes to files."""
    from iodock.cli.run import run

    kept = os.dup(0), os.dup(1), os.dup(2)
    (folder / "stdin").write_bytes(standard_input or b"")
    try:
        with ExitStack() as opened:
            for descriptor, (name, mode) in enumerate((("stdin", "rb"), ("out", "wb"), ("err", "wb"))):
                file = opened.enter_context((folder / name).open(mode))
                os.dup2(file.fileno(), descriptor)
            status = run([str(word) for word in words])
            sys.stdout.flush()
            sys.stderr.flush()
    finally:
        for descriptor, one in enumerate(kept):
            os.dup2(one, descriptor)
            os.close(one)
    texts = [(folder / name).read_bytes().decode("utf-8", "replace") for name in ("out", "err")]
    return status, texts[0], texts[1]


def _text_samples(*patterns: str) -> dict[str, bytes]:
    found = {}
    for pattern in patterns:
        for path in sorted(FIXTURES.glob(pattern)):
            content = path.read_bytes()
            content = lzma.decompress(content) if path.suffix == ".xz" else content
            end = len(content) if len(content) <= _LARGEST else content.rfind(b"\n", 0, _LARGEST) + 1
            found[str(path.relative_to(FIXTURES))] = content[:end]
    assert found, patterns
    return found


@cache
def _logs() -> dict[str, bytes]:
    return _text_samples(
        "cases/strace/*/log.xz",
        "cases/truss/*.truss",
        "truss/*.truss",
        "freebsd-truss/*.truss",
        "strace-c/*.table",
        "ltrace/*.ltrace",
        *(f"public/{tool}*/*.{end}" for tool in ("strace", "dtruss") for end in ("log", "txt")),
    )


def _import(folder: Path, content: bytes, sample: str) -> Seen:
    log, store = folder / "run.log", folder / "run.iodock"
    log.write_bytes(content)
    status, out, err = _verb(folder, "import", log, "-o", store)
    if status:
        return Seen(status, out + err)
    manifest = json.loads((store / "manifest.json").read_text())
    losses = {loss["name"]: loss["count"] for loss in manifest["losses"]}
    status, out, shown = _verb(folder, "show", "summary", store, "--format", "json")
    return Seen(status, err + shown, manifest["source"]["calls"], losses)


@cache
def _benchmarks() -> dict[str, bytes]:
    return {
        **_text_samples("bench/*.*", "bench/io500/*/*.txt"),
        **_text_samples(
            *(f"public/{name}*/*.*" for name in ("elbencho", "fio", "h5bench", "ior", "iozone", "mdtest"))
        ),
    }


def _bench(folder: Path, content: bytes, sample: str) -> Seen:
    path = folder / f"result{Path(sample).suffix}"
    path.write_bytes(content)
    status, out, err = _verb(folder, "bench", "show", path, "--format", "json")
    if status:
        return Seen(status, out[:2000] + err)
    found = json.loads(out)
    amount = sum(len(cell.get("values") or ()) or 1 for cell in found["cells"])
    return Seen(status, err, amount, {note.split(":")[0]: 1 for note in found["protocol"]["notes"]})


@cache
def _measurements() -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        status, out, err = _verb(
            Path(folder), "bench", "show", FIXTURES / "bench" / "elb.json", "--format", "json"
        )
    assert status == 0, err
    return {"measurements.json": out.encode()}


@cache
def _times() -> dict[str, bytes]:
    return _text_samples("ratio/*.*", "ratio/node1/pacct")


def _ratio(folder: Path, content: bytes, sample: str) -> Seen:
    path = folder / f"times{Path(sample).suffix}"
    path.write_bytes(content)
    by = () if sample.endswith(("pacct", "dump-acct.txt")) else ("--by", "record")
    status, out, err = _verb(folder, "ratio", path, *by, "--expect", "1TiB", "--format", "json")
    if status:
        return Seen(status, out[:2000] + err)
    found = json.loads(out)
    amount = sum(row["count"] or 1 for row in found["rows"])
    losses = {loss["name"]: loss["count"] for loss in found["losses"]}
    return Seen(status, err, amount, {**losses, "notes": len(found["notes"])})


@cache
def _readings() -> dict[str, bytes]:
    return _text_samples("monitor/sadf*.json")


def _sar(folder: Path, content: bytes, sample: str) -> Seen:
    path = folder / "sa.json"
    path.write_bytes(content)
    status, out, err = _verb(folder, "monitor", "import-sar", "--store", folder / "store", path)
    if status:
        return Seen(status, out + err)
    rows = sum(map(int, re.findall(r"readings ([\d,]+)", err.replace(",", ""))))
    return Seen(status, err, rows, {"notes": err.count("left out")})


_MOUNT_POINT = "mnt/job_5"


@cache
def _counters() -> dict[str, bytes]:
    """Returns files of the kernel, Lustre and MooseFS that the agent reads, by their path below the root."""
    folder = FIXTURES.parent / "crates" / "iodock-agent" / "tests" / "fixtures"
    lustre = "proc/fs/lustre"
    places = {
        f"{lustre}/mdt/x-MDT0000/md_stats": "lustre-2.12-mdt.md_stats",
        f"{lustre}/mdt/x-MDT0000/job_stats": "lustre-2.15-mdt.job_stats",
        f"{lustre}/obdfilter/x-OST0000/job_stats": "lustre-2.15-obdfilter.job_stats",
        f"{lustre}/llite/x-ffff8800/stats": "lustre-2.14-llite.stats",
        f"{lustre}/osc/x-OST0000-osc-ffff8800/rpc_stats": "lustre-2.12-osc.rpc_stats",
        f"{lustre}/mds/MDS/mdt/stats": "lustre-2.12-mds.stats",
        "proc/self/mountstats": "mountstats-5.2-and-5.3",
        f"{_MOUNT_POINT}/.stats": "moosefs-3.0.117.stats",
    }
    found = {
        place: (folder / name).read_bytes() for place, name in places.items() if (folder / name).is_file()
    }
    found["proc/diskstats"] = (
        b"   8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n   8 16 sdb 1 2 3 4 5 6 7 8 9 10 11 1 2 3 4\n"
    )
    found["proc/pressure/io"] = (
        b"some avg10=0.1 avg60=0.2 avg300=0 total=10\nfull avg10=0 avg60=0 avg300=0 total=9\n"
    )
    return found


def _agent(folder: Path, content: bytes, sample: str) -> Seen:
    path = folder / "root" / sample
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    name = folder / "root" / "proc" / "sys" / "kernel" / "hostname"
    name.parent.mkdir(parents=True, exist_ok=True)
    name.write_text("node7\n")
    mounts = folder / "root" / "proc" / "self" / "mountinfo"
    mounts.parent.mkdir(parents=True, exist_ok=True)
    mounts.write_text(f"45 27 0:39 / /{_MOUNT_POINT} rw - fuse mfs\\04310.0.0.1:9421 rw\n")
    done = subprocess.run(
        [str(AGENT), "once", "--root", str(folder / "root")],
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES)),
    )
    said = done.stderr.decode("utf-8", "replace")
    samples = [
        line for line in done.stdout.splitlines() if line[:1] != b"#" and b"unreadable_lines" not in line
    ]
    losses = sum(map(int, re.findall(rb"unreadable_lines\{[^}]*\} (\d+)", done.stdout)))
    return Seen(done.returncode, said, len(samples), {"lines": losses, "notes": said.count("note")})


_FRAMES = "pushed.frames"


@cache
def _pushes() -> dict[str, bytes]:
    from iodock.centre.monitor.sar import read

    (found,) = read(FIXTURES / "monitor" / "sadf-12.6.1.json")
    return {_FRAMES: b"".join(found.frames)}


def _push(folder: Path, content: bytes, sample: str) -> Seen:
    from iodock.centre.monitor.collector import Collector

    def push() -> None:
        collector = Collector(folder / "store")
        collector.push(content)
        collector.flush()

    return _called(folder, push)


def _called(folder: Path, function: Callable[[], object]) -> Seen:
    """Calls a function of iodock, which raises iodock's own errors."""
    from iodock.shared.errors import IodockError

    kept = os.dup(2)
    try:
        with (folder / "err").open("wb") as err:
            os.dup2(err.fileno(), 2)
            function()
        return Seen(0, (folder / "err").read_text(errors="replace"))
    except IodockError as error:
        return Seen(1, str(error))
    except BaseException as error:
        return Seen(1, str(error), bug=f"{type(error).__name__}: {error}")
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@cache
def _whole(kind: str) -> Path:
    """Creates a valid store, one file of which will be replaced by a damaged one."""
    folder = Path(tempfile.mkdtemp(prefix="mutated-"))
    if kind == "store":
        log = folder / "run.log"
        log.write_bytes(_logs()["cases/truss/t4_plain_no_times.truss"])
        status, _, err = _verb(folder, "import", log, "-o", folder / "store")
        assert status == 0, err
    elif kind == "recorded":
        _killed_recording(folder)
    else:
        sar = FIXTURES / "monitor" / "sadf-12.6.1.json"
        status, _, err = _verb(folder, "monitor", "import-sar", "--store", folder / "store", sar)
        assert status == 0, err
    return folder / "store"


def _killed_recording(folder: Path) -> None:
    """Kills the recorder of a recording, which leaves its journal."""
    command = [sys.executable, "-m", "iodock", "record", "-q", "-o", str(folder / "store"), "--"]
    work = "for i in 1 2 3 4 5 6 7 8 9; do cat /etc/passwd; done > /dev/null; touch $0; sleep 30"
    ready = folder / "ready"
    running = subprocess.Popen([*command, "sh", "-c", work, str(ready)], start_new_session=True)
    end = time.monotonic() + 30
    while not ready.exists() and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()


def _files_of(kind: str) -> dict[str, bytes]:
    store = _whole(kind)
    return {
        str(path.relative_to(store)): path.read_bytes()
        for path in sorted(store.rglob("*"))
        if path.is_file() and path.stat().st_size and path.name != "lock"
    }


def _damaged_copy(folder: Path, kind: str, content: bytes, sample: str) -> Path:
    copy = folder / "store"
    shutil.copytree(_whole(kind), copy)
    (copy / sample).write_bytes(content)
    return copy


def _store(folder: Path, content: bytes, sample: str) -> Seen:
    copy = _damaged_copy(folder, "store", content, sample)
    shown = [
        _verb(folder, *words)
        for words in (
            ("show", "summary", copy, "--format", "json"),
            ("diagnose", copy, "--format", "json"),
            ("query", copy, "SELECT count(*) FROM events"),
        )
    ]
    return Seen(max(status for status, _, _ in shown), "\n".join(err for _, _, err in shown))


def _recorded(folder: Path, content: bytes, sample: str) -> Seen:
    copy = _damaged_copy(folder, "recorded", content, sample)
    status, _, err = _verb(folder, "show", "summary", copy, "--format", "json")
    return Seen(status, err)


def _monitored(folder: Path, content: bytes, sample: str) -> Seen:
    from iodock.centre.monitor.collector import Collector
    from iodock.centre.store import MonitorStore

    copy = _damaged_copy(folder, "monitored", content, sample)

    def ask() -> None:
        store = MonitorStore(copy)
        store.table("SELECT * FROM targets", begin=0, end=time.time_ns(), resolution="fine")

    asked = _called(folder, ask)

    def collect() -> None:
        collector = Collector(copy)
        collector.flush()
        collector.tend(time.time_ns())

    collected = _called(folder, collect)
    return Seen(
        max(asked.status, collected.status), asked.said + collected.said, bug=asked.bug or collected.bug
    )


@cache
def _settings() -> dict[str, bytes]:
    page = (FIXTURES.parent / "docs" / "how-to" / "settings.md").read_text()
    found = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert found
    return {f"settings-{at}.toml": text.encode() for at, text in enumerate(found)}


def _set(folder: Path, content: bytes, sample: str) -> Seen:
    path = folder / "site.toml"
    path.write_bytes(content)
    status, out, err = _verb(folder, "ratio", FIXTURES / "ratio" / "pjm-ior.txt", "--settings", path)
    return Seen(status, out + err)


TARGETS = (
    Target("import", _logs, _import, 6),
    Target("bench", _benchmarks, _bench, 5),
    Target("measurements", _measurements, _bench),
    Target("ratio", _times, _ratio, 4),
    Target("sar", _readings, _sar, 2),
    # The agent silently leaves out an unknown counter, which may belong to a newer kernel.
    Target("agent", _counters, _agent, 2, counts=False),
    Target("push", _pushes, _push, counts=False),
    Target("store", lambda: _files_of("store"), _store, 2, counts=False),
    Target("recorded", lambda: _files_of("recorded"), _recorded, counts=False),
    Target("monitored", lambda: _files_of("monitored"), _monitored, counts=False),
    Target("settings", _settings, _set, counts=False),
)
