"""Collects the damage that a backup finds in the store or in the previous backup."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from iodock.shared.bounded.documents import from_json
from iodock.shared.engine.checksums import is_as_written


@dataclass
class Damage:
    """Names of the files that a backup found damaged."""

    mended: list[str] = field(default_factory=list)
    """Files whose copy in the backup was damaged, and which were copied again."""
    spared: list[str] = field(default_factory=list)
    """Files that are damaged in the store but intact in the previous backup."""
    damaged: list[str] = field(default_factory=list)
    """Files that are damaged in the store and have no intact copy."""

    def is_spared(self, name: str, copy: Path | None, checksum: str | None) -> bool:
        """Records that the file NAME is damaged in the store. Returns whether COPY, its copy in the previous
        backup, is intact."""
        is_there = copy is not None and checksum is not None and is_as_written(copy, checksum)
        (self.spared if is_there else self.damaged).append(name)
        return is_there

    def notes(self) -> tuple[str, ...]:
        """Returns one sentence for each kind of damage that was found."""
        kinds = (
            (self.mended, "of the backup", "copied again", "check the backup's disk"),
            (self.spared, "of the store", "kept as it was in the backup", "restore this backup"),
            (self.damaged, "of the store", "copied unchanged", "queries of its time will fail"),
        )
        return tuple(
            f"damaged: {_files(names)} {where}, {done}, such as {names[0]}: {advice}"
            for names, where, done, advice in kinds
            if names
        )


def _files(names: list[str]) -> str:
    return "1 file" if len(names) == 1 else f"{len(names):,} files"


def checksums_in(catalogue: bytes) -> dict[str, str | None]:
    """Returns the checksums in a catalogue by the names of files. The checksum is None if the catalogue has
    none for a file."""
    found = from_json(catalogue)
    entries = [one for levels in found["tables"].values() for every in levels.values() for one in every]
    return {one["file"]: one.get("file_checksum") for one in entries} | {
        found["state"]: found.get("state_checksum")
    }
