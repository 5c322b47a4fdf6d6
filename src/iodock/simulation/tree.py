"""Writes the centre as the files that an agent reads: ROOT/SERVER/proc/... and an `lctl` for each server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

from iodock.shared.errors import RequestError
from iodock.simulation import forms
from iodock.simulation.centre import FILE_SYSTEM, Centre
from iodock.simulation.client import client_tallies
from iodock.simulation.machine import machine_files
from iodock.simulation.population import LOGIN_NODE
from iodock.simulation.server import Server
from iodock.simulation.target import Target
from iodock.simulation.truth import truth

MARK = "SYNTHETIC"
NOTE = """SYNTHETIC: nothing here was measured. These files were written by `iodock monitor simulate`, which
simulates the servers of a Lustre file system.
"""
TRUTH = "truth.json"
CLIENT_MOUNT = f"{FILE_SYSTEM}-ffff9d3c81a5f000"
"""Name of a mount in llite."""
VERSIONS = {"2.5": "2.5.5", "2.12": "2.12.8", "2.15": "2.15.4"}
_REQUESTS = "var/lib/simulation/requests"


class Tree:
    """Writes files below ROOT, which must be new, empty, or of a simulation, whose servers are removed. Every
    file is replaced atomically, so that no reader sees a partial one."""

    def __init__(self, root: Path, centre: Centre) -> None:
        """Raises RequestError and OSError."""
        self.root, self.centre = root, centre
        self._written: dict[Path, int] = {}
        """For each `job_stats`, the target's number of changes when it was written, if no id is active on the
        target."""
        self._debug = "proc/fs/lustre" if centre.scenario.release == "2.5" else "sys/kernel/debug/lustre"
        """Folders with statistics that are elsewhere in later releases."""
        _take(root)
        (root / MARK).write_text(NOTE)
        for name in (*(server.name for server in centre.servers), LOGIN_NODE):
            _replace(root / name / MARK, [NOTE])
            script = files("iodock.simulation").joinpath("lctl.sh").read_text()
            _replace(root / name / "usr/sbin/lctl", [script])
            (root / name / "usr/sbin/lctl").chmod(0o755)
        self.write()

    def write(self) -> None:
        """Executes commands that were given through `lctl`, then writes the present state. Raises OSError."""
        for server in self.centre.servers:
            self._obey(server)
        for server in self.centre.servers:
            if server.is_up:
                self._write_server(server)
            else:
                self._remove_server(server)
        self._write_client(self.root / LOGIN_NODE)

    def write_truth(self) -> None:
        """Writes ROOT/truth.json. Raises OSError."""
        _replace(self.root / TRUTH, [json.dumps(truth(self.centre), indent=1), "\n"])

    def lustre(self, server: Server) -> Path:
        return self.root / server.name / "proc/fs/lustre"

    def _obey(self, server: Server) -> None:
        requests = self.root / server.name / _REQUESTS
        taken = requests.with_suffix(".taken")
        names: set[str] = set()
        if requests.exists():
            requests.rename(taken)
            names = {line.removeprefix("clear ") for line in taken.read_text().splitlines()}
            taken.unlink()
        for target in server.targets:
            if target.name in names:
                target.clear(self.centre.now_ns)
            interval = self.lustre(server) / target.kind / target.name / "job_cleanup_interval"
            # A file that does not exist was not written yet, neither by this module nor by `lctl`.
            if interval.exists():
                target.cleanup_s = _interval(interval)

    def _write_server(self, server: Server) -> None:
        now_ns, release = self.centre.now_ns, self.centre.scenario.release
        server.update(now_ns)
        folder = self.root / server.name
        for name, text in machine_files(server, now_ns, VERSIONS[release]).items():
            _replace(folder / name, [text])
        if server.is_metadata_server:
            text = forms.stats(release, server.service, forms.SERVICE_UNITS, server.booted_ns, now_ns)
            _replace(folder / self._debug / "mds/MDS/mdt/stats", [text])
        self._remove_targets(server)
        for target in server.targets:
            self._write_target(server, target)

    def _write_target(self, server: Server, target: Target) -> None:
        folder = self.lustre(server) / target.kind / target.name
        interval = folder / "job_cleanup_interval"
        if not interval.exists():
            _replace(interval, [f"{target.cleanup_s}\n"])
        if target.kind == "mdt":
            text = forms.stats(
                self.centre.scenario.release,
                target.totals(self.centre.now_ns), {}, target.mounted_ns, self.centre.now_ns,
            )  # fmt: skip
            _replace(folder / "md_stats", [text])
        path = folder / "job_stats"
        if self._written.get(path) != target.changes or target.live or not path.exists():
            _replace(path, self._job_stats(target))
            self._written[path] = target.changes

    def _job_stats(self, target: Target) -> Iterator[str]:
        now_ns, release = self.centre.now_ns, self.centre.scenario.release
        yield "job_stats:\n"
        for entry in target.entries.values():
            text = entry.text
            if text is None or entry.stream.rates:
                text = forms.job_entry(
                    release, target.kind, entry.job_id,
                    entry.tallies_at(now_ns), entry.start_ns, entry.updated_ns(now_ns),
                )  # fmt: skip
                entry.text = None if entry.stream.rates else text
            yield text

    def _write_client(self, folder: Path) -> None:
        centre, release = self.centre, self.centre.scenario.release
        text = forms.client_stats(release, client_tallies(centre), centre.begin_ns, centre.now_ns)
        _replace(folder / self._debug / "llite" / CLIENT_MOUNT / "stats", [text])
        _replace(folder / "proc/fs/lustre/version", [f"{VERSIONS[release]}\n"])
        _replace(folder / "proc/sys/kernel/hostname", [f"{LOGIN_NODE}\n"])

    def _remove_targets(self, server: Server) -> None:
        """Removes the files of targets that are now on another server."""
        here = {target.name for target in server.targets}
        for kind in ("mdt", "obdfilter"):
            for folder in _folders(self.lustre(server) / kind):
                if folder.name not in here:
                    shutil.rmtree(folder)

    def _remove_server(self, server: Server) -> None:
        """Removes the files of a server that is down."""
        for name in ("proc", "sys"):
            shutil.rmtree(self.root / server.name / name, ignore_errors=True)


def _interval(path: Path) -> int:
    text = path.read_text(errors="replace").strip()
    if not (text.isascii() and text.isdigit()):
        raise RequestError(f"{path}: {text!r} is no number of seconds", "set it with the tree's own lctl")
    return int(text)


def _take(root: Path) -> None:
    if root.exists() and not root.is_dir():
        raise RequestError(f"{root}: not a folder", "give a new or empty folder")
    there = sorted(root.iterdir()) if root.is_dir() else []
    if there and not (root / MARK).is_file():
        raise RequestError(
            f"{root}: there are files that are not a simulation's", "give a new or empty folder"
        )
    root.mkdir(parents=True, exist_ok=True)
    for folder in there:
        if (folder / MARK).is_file() and not folder.is_symlink():
            shutil.rmtree(folder)
    (root / TRUTH).unlink(missing_ok=True)


def _folders(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []


def _replace(path: Path, parts: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.new")
    with temporary.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as out:
        out.writelines(parts)
    temporary.replace(path)
