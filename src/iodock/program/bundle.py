"""Writes an archive with everything that an administrator needs to know about a run. This is step 4 of the
method."""

from __future__ import annotations

import io
import json
import re
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from iodock.program.analyses import find
from iodock.program.analyses.base import request
from iodock.program.analyses.machine import with_servers
from iodock.program.diagnosis import diagnose
from iodock.program.findings import Diagnosis
from iodock.program.relations.profile import Profile
from iodock.program.store import Store
from iodock.program.store.anonymous import anonymiser_of, anonymous_copy
from iodock.program.store.renaming import renaming_of
from iodock.shared.bounded.packed import UNPACK_ERRORS, unpacked
from iodock.shared.errors import IodockError
from iodock.shared.language import N_, Language
from iodock.shared.meanwhile import Servers
from iodock.shared.settings import Settings

MOST_ROWS = 10_000
_ENDING = re.compile(r"(\.tar\.gz|\.tgz|\.taz|\.tar|\.gz)$", re.IGNORECASE)
_TABLES: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("summary", {"kind": ["all"]}, N_("calls: count, failures, time, bytes")),
    ("files", {"top": MOST_ROWS}, N_("files: the files that were used, the costliest first")),
    ("volume", {"top": MOST_ROWS}, N_("bytes transferred, compared with the sizes of files")),
    ("sizes", {}, N_("how many reads and writes of each size")),
    ("timeline", {}, N_("bytes and calls per second")),
    ("errors", {}, N_("failed calls by call, error and file")),
    ("processes", {}, N_("the tree of processes")),
    ("machine", {}, N_("the machine's own state during the run")),
)
_SLOW_SQL = f"""SELECT s.ts, s.dur, c.name AS call, f.name AS file, f.mount_point, f.fs_type, p.host, p.rank,
  p.pid, s.bytes
FROM slow_calls s JOIN calls c ON c.id = s.call_id LEFT JOIN files f ON f.file_id = s.file_id
  LEFT JOIN processes p ON p.utid = s.utid ORDER BY s.dur DESC LIMIT {MOST_ROWS}"""
_MOUNTS_SQL = """SELECT m.mount_point, m.fs_type, m.source, m.options, m.host, count(f.file_id) AS files
FROM mounts m LEFT JOIN files f ON f.mount_point = m.mount_point GROUP BY ALL ORDER BY files DESC, 1"""

Progress = Callable[[int, int | None, int], None]
ServersOf = Callable[[Store, Settings], Servers | None]


def write_bundle(
    store: Path,
    target: Path,
    text: Language,
    settings: Settings,
    anonymous: bool,
    progress: Progress,
    servers_of: ServersOf = lambda store, settings: None,
) -> None:
    """Writes the archive TARGET. If ANONYMOUS is true, it contains an anonymised copy of the store.
    SERVERS_OF is a function that returns the state of file servers during the run. It is not called if
    ANONYMOUS is true, because its answers contain names. Raises StoreError, QueryError or OSError."""
    if not anonymous:
        with Store.open(store) as opened:
            servers = servers_of(opened, settings)
            found = diagnose(opened, settings, servers)
            _write(opened, target, text, found, False, progress, servers)
        return
    with tempfile.TemporaryDirectory(prefix="iodock-") as folder:
        # The original is opened before the copy is made. This gives an interrupted recording its tables, and
        # errors about damage name the original instead of the temporary copy.
        with Store.open(store) as opened:
            opened.check()
            # Some rules depend on names, and would give other findings for made-up names. So the rules run on
            # the original, and the names in their findings are replaced.
            found = diagnose(opened, settings)
            names = anonymiser_of(opened.tables)
            copy = anonymous_copy(opened.tables, Path(folder) / "run.iodock", names)
            listed = (name for one in found.findings for name in one.files)
            found = found.with_texts(renaming_of(opened, names, found.texts(), listed), copy.name)
        try:
            with Store.open(copy) as opened:
                _write(opened, target, text, found, True, progress)
        except IodockError as error:
            # Events are copied unchanged, so damage in the copy is also in the original, which the user knows
            # by its name.
            raise type(error)(str(error).replace(str(copy), str(store)), error.hint) from error


def is_bundle(path: Path) -> bool:
    """Returns whether the path is a regular file (not a link) that `iodock bundle` wrote for a run or a
    job."""
    if path.is_symlink() or not path.is_file():
        return False
    try:
        with path.open("rb") as file, unpacked(file) as stream:
            # In a tar archive, each member begins with a block of 512 bytes that contains its name (POSIX
            # ustar).
            first = tarfile.TarInfo.frombuf(stream.read(512), "utf-8", "replace")
            said = stream.read(min(first.size, 64 << 10))
    except (*UNPACK_ERRORS, tarfile.TarError):
        return False
    return first.name.endswith("/READ-ME.txt") and (b"findings.json" in said or b"digest.json" in said)


def _write(
    store: Store,
    target: Path,
    text: Language,
    found: Diagnosis,
    anonymous: bool,
    progress: Progress,
    servers: Servers | None = None,
) -> None:
    root = _ENDING.sub("", target.name) or "bundle"
    part = target.with_name(f".{target.name}.part")
    try:
        with tarfile.open(part, "w:gz") as archive:
            for done, (name, content) in enumerate(_members(store, text, found, anonymous, servers), 1):
                progress(done, len(_TABLES) + 9, done)
                entry = tarfile.TarInfo(f"{root}/{name}")
                entry.size = len(content)
                entry.mtime = (store.manifest.raw.get("created_ns") or 0) // 1_000_000_000
                archive.addfile(entry, io.BytesIO(content))
        part.replace(target)
    except OSError as error:
        # An error about a file other than the archive is passed on unchanged, because it names that file.
        if error.errno is None or error.filename not in (None, str(part)):
            raise
        message = f"{target}: can't be written: {error.strerror}"
        raise IodockError(message, "name a file in another folder with -o") from error
    finally:
        with suppress(OSError):
            part.unlink()


def _members(
    store: Store, text: Language, found: Diagnosis, anonymous: bool, servers: Servers | None
) -> Iterator[tuple[str, bytes]]:
    from iodock.program.views.diagnosis_json import diagnosis_json
    from iodock.program.views.diagnosis_text import diagnosis_text
    from iodock.program.views.report import report_html
    from iodock.program.views.report.target import page_bytes

    yield "READ-ME.txt", _read_me(store, text, anonymous).encode("utf-8", "backslashreplace")
    yield "findings.txt", diagnosis_text(found, text, False).encode("utf-8", "backslashreplace")
    yield "findings.json", diagnosis_json(found, text).encode("utf-8", "backslashreplace")
    yield "environment.json", _environment(store).encode("utf-8", "backslashreplace")
    yield (
        "manifest.json",
        json.dumps(store.manifest.raw, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace"),
    )
    yield "mounts.csv", _csv(store, _MOUNTS_SQL)
    Profile(store).need(["slow_calls"])
    yield "slow-calls.csv", _csv(store, _SLOW_SQL)
    for name, arguments, _ in _TABLES:
        yield f"{name}.csv", _analysis(store, name, arguments, servers, text)
    yield "report.html", page_bytes(report_html(store, text.code, found, servers))


def _analysis(
    store: Store, name: str, arguments: dict[str, Any], servers: Servers | None, text: Language
) -> bytes:
    from iodock.shared.tables import csv

    analysis = find(name)
    out = io.BytesIO()
    answer = analysis.run(store, request(analysis, arguments))
    csv.write(with_servers(answer, servers, text) if servers and name == "machine" else answer, out)
    return out.getvalue()


def _csv(store: Store, sql: str) -> bytes:
    from iodock.shared.tables.csv import write_batches

    table = store.table(sql)
    out = io.BytesIO()
    write_batches(table.schema, table.to_batches(), out)
    return out.getvalue()


def _environment(store: Store) -> str:
    raw = store.manifest.raw
    document = {
        "host": raw.get("host"),
        "hosts": raw.get("hosts"),
        "ranks": raw.get("ranks"),
        "started": _moment(store, store.manifest.first_ts),
        "ended": _moment(store, store.manifest.last_ts),
        "wall_seconds": None if store.manifest.wall_ns is None else store.manifest.wall_ns / 1e9,
        "captured": raw.get("captured"),
        "file_systems": store.rows(
            "SELECT mount_point, fs_type, count(*) AS files FROM files WHERE mount_point IS NOT NULL "
            "GROUP BY ALL ORDER BY files DESC"
        ),
        "losses": raw.get("losses"),
        "writer": raw.get("writer"),
    }
    return json.dumps(document, indent=1, ensure_ascii=False)


def _moment(store: Store, ts: int | None) -> str | None:
    """Formats a time as ISO 8601 with this machine's offset from UTC, or as time of day if the source has no
    dates. Returns None if the source has neither."""
    if ts is None or store.manifest.clock not in ("epoch", "day"):
        return None
    if store.manifest.clock == "day":
        seconds = ts // 1_000_000_000 % 86400
        return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return datetime.fromtimestamp(ts / 1e9).astimezone().isoformat(timespec="milliseconds")


_NAMED = N_(
    "The archive contains names of files and hosts, and the command line. Check it before you pass it on."
)
_UNNAMED = N_(
    "Names of files, hosts and programs are replaced by invented ones; mount points and system folders "
    "are not."
)


def _read_me(store: Store, text: Language, anonymous: bool) -> str:
    start, end = (_moment(store, ts) or "?" for ts in (store.manifest.first_ts, store.manifest.last_ts))
    lines = [
        text.gettext("I/O check-up of a run, for the administrator of its file systems."),
        text.gettext("Store: {name}", name=store.name),
        text.gettext("Times: {start} to {end}", start=start, end=end),
        "",
        text.gettext(_UNNAMED if anonymous else _NAMED),
        "",
        text.gettext("findings.txt, findings.json: problems, their cost, and what to change"),
        text.gettext("report.html: an overview of the run in a browser"),
        text.gettext("environment.json, mounts.csv: machine, times, file systems"),
        text.gettext("slow-calls.csv: the longest calls with their time"),
        *(f"{name}.csv: {text.gettext(doc)}" for name, _, doc in _TABLES),
    ]
    return "\n".join(lines) + "\n"
