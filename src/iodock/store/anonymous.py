"""A copy of a store in which nobody's names are left: for passing on what a run did, not what it was about.

Every component of a path gets a made-up name, the same one wherever it occurs; endings and folders of the
system stay, and so do mount points, which an administrator has to know. Arguments of commands are left out.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from iodock.bounded import files
from iodock.bounded.documents import from_json
from iodock.bounded.limits import MANIFEST
from iodock.errors import StoreError
from iodock.store.checksums import with_checksums
from iodock.store.schema import FOLDS

_SYSTEM = re.compile(r"/(usr|lib|lib32|lib64|bin|sbin|etc|proc|sys|dev|boot)(/|$)")
_ENDING = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}$")
_KNOWN = re.compile(
    r"(ba|da|z|k|tc|c)?sh|python[0-9.]*|perl|awk|gawk|site-packages|mpi(run|exec)|lib[a-z0-9]*\.so.*"
)
"""Components that say in which language or with which library a program works."""
_NUMBERED = re.compile(r"[a-z_]+(:\[\d+\])?|fd:\d+")


class Anonymiser:
    """Made-up names that can't be turned back without the key, which is not kept."""

    def __init__(self, mount_points: Iterable[str] = (), key: bytes | None = None) -> None:
        self._key = key or os.urandom(32)
        self._mounts = sorted((one for one in mount_points if one != "/"), key=len, reverse=True)
        self.component = lru_cache(1 << 16)(self._component)

    def path(self, name: str) -> str:
        """A file's name, or the pattern of names."""
        if _SYSTEM.match(name) or (not name.startswith("/") and _NUMBERED.fullmatch(name)):
            return name
        kept = next((one for one in self._mounts if name == one or name.startswith(f"{one}/")), "")
        rest = name[len(kept) :]
        return kept + "/".join(self.component(part) if part else part for part in rest.split("/"))

    def word(self, text: str, prefix: str) -> str:
        """A made-up word: `host-1a2b3c`."""
        return f"{prefix}-{self._digest(text)}"

    def _component(self, part: str) -> str:
        if part in (".", "..", "*") or _KNOWN.fullmatch(part):
            return part
        ending = _ENDING.search(part)
        stem, tail = (part[: ending.start()], ending.group()) if ending and ending.start() else (part, "")
        return f"{self._digest(stem)}{'*' if '*' in stem else ''}{tail}"

    def _digest(self, text: str) -> str:
        return hmac.new(self._key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:8]


def anonymiser_of(store: Path) -> Anonymiser:
    """One that keeps the store's mount points. Raises OSError and ArrowInvalid."""
    return Anonymiser(_mount_points(store))


def anonymous_copy(store: Path, into: Path, anonymiser: Anonymiser | None = None) -> Path:
    """Copies a complete store to INTO with all names made up; gives INTO. Raises OSError and
    ArrowInvalid."""
    raw = from_json(files.content(store / "manifest.json", MANIFEST, StoreError))
    names = anonymiser or anonymiser_of(store)
    into.mkdir(parents=True)
    (into / "events").mkdir()
    parts = (f"events/{part.name}" for part in sorted((store / "events").glob("*.parquet")))
    for table in ("calls.parquet", "errnos.parquet", *parts):
        shutil.copy(store / table, into / table)
    # Numbers only.
    for fold in FOLDS:
        # One that can't be read is not needed.
        if (store / fold.files).is_file():
            (into / fold.files).parent.mkdir(exist_ok=True)
            shutil.copy(store / fold.files, into / fold.files)
    for table in ("faults", "pages"):
        if (store / table).exists():
            shutil.copytree(store / table, into / table)
    _rewrite(store, into, "files.parquet", {"name": names.path, "folder": names.path, "pattern": names.path,
                                            "name_raw": _nothing, "host": _host(names)})  # fmt: skip
    _rewrite(store, into, "processes.parquet", {"host": _host(names)})
    _rewrite(store, into, "commands.parquet", {"path": names.path, "argv": _nothing})
    _rewrite(store, into, "mounts.parquet", {"source": _nothing, "options": _nothing, "host": _host(names)})
    for part in sorted((store / "samples").glob("*.parquet")):
        _rewrite(store, into, f"samples/{part.name}", {"host": _host(names)})
    manifest = _manifest(raw, names)
    # What is copied of a store without checksums may be damaged.
    said = with_checksums(manifest, into) if raw.get("checksums") else json.dumps(manifest, indent=1)
    (into / "manifest.json").write_text(said, encoding="utf-8")
    return into


def _mount_points(store: Path) -> set[str]:
    """Of the table of mounts and of the files."""
    tables = [one for one in (store / "mounts.parquet", store / "files.parquet") if one.exists()]
    read = (_read(one, ["mount_point"])["mount_point"].unique().to_pylist() for one in tables)
    return {one for mounts in read for one in mounts if one}


def _host(names: Anonymiser) -> Callable[[str], str]:
    return lambda text: names.word(text, "host")


def _nothing(text: object) -> None:
    return None


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    # An opened file, as its name may be no UTF-8.
    with path.open("rb") as file:
        return pq.read_table(file, columns=columns)


def _rewrite(store: Path, into: Path, table: str, columns: dict[str, Callable[[Any], Any]]) -> None:
    if not (store / table).exists():
        return
    rows = _read(store / table)
    for name, change in columns.items():
        place = rows.schema.get_field_index(name)
        if place >= 0:
            field = rows.schema.field(place)
            empty = None if field.nullable else [] if pa.types.is_list(field.type) else ""
            changed = (None if value is None else change(value) for value in rows[name].to_pylist())
            values = [empty if value is None else value for value in changed]
            rows = rows.set_column(place, field, pa.array(values, field.type))
    (into / table).parent.mkdir(exist_ok=True)
    pq.write_table(rows, into / table, compression="zstd")


def _manifest(raw: dict[str, Any], names: Anonymiser) -> dict[str, Any]:
    """Only keys that are known to hold nobody's names stay as they are."""
    times = ("created_ns", "clock", "first_ts", "last_ts", "io")
    kept = ("schema", "state", "writer", "ranks", "source", "tables", *times)
    made = {key: raw[key] for key in kept if key in raw}
    captured, host = raw.get("captured") or {}, raw.get("host") or {}
    command = [names.component(Path(one).name) for one in (captured.get("command") or [])[:1]]
    plain = ("how", "why", "exit_status", "exit_signal", "wall_ns", "page_faults", "page_cache")
    made["captured"] = {key: captured.get(key) for key in plain} | {"command": command, "logs": []}
    made["host"] = {"kernel": host.get("kernel"), "cpus": host.get("cpus")}
    made["hosts"] = [
        {"name": names.word(str(one.get("name")), "host"), "clock_offset_ns": one.get("clock_offset_ns", 0)}
        for one in raw.get("hosts") or []
    ]
    made["losses"] = [
        {key: loss.get(key) for key in ("name", "count", "cure")} for loss in raw.get("losses") or []
    ]
    made["anonymous"] = True
    return made
