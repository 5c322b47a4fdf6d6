"""Packs the digest of a job and data about the job into an archive for a help desk."""

from __future__ import annotations

import io
import re
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from iodock.cli.digest_places import StorePlace
from iodock.cli.digest_portal import PortalPlace
from iodock.shared.bounded.whole import whole_file
from iodock.shared.language import N_, Language
from iodock.shared.text import visible

_FILES = {"digest.txt": "text", "digest.json": "json", "digest.html": "html"}
_TABLES = {
    "totals": N_("counts by place"),
    "operations": N_("operations by kind"),
    "nodes": N_("by node"),
    "targets": N_("by target"),
    "runs": N_("runs of the same name"),
    "verdict": N_("this run compared with them"),
}
RECORDING = "recording-bundle.tar.gz"


def name_of(digest_id: str) -> str:
    """Returns the name of the archive. Characters of the job id that are unsuitable for file names are
    replaced."""
    return f"job-{re.sub(r'[^A-Za-z0-9_-]+', '_', digest_id)[:80]}-bundle.tar.gz"


def write_digest_bundle(
    place: PortalPlace | StorePlace, digest_id: str, recording: str | None, target: Path, text: Language
) -> None:
    """Writes the archive. RECORDING is a store of the job's program, which is added if it is given. Raises
    IodockError if the job does not exist, or if the portal or store does not answer."""
    found = {name: place.digest(digest_id, form, text.code) for name, form in _FILES.items()}
    tables = place.tables(digest_id, text.code)
    found |= {f"{name}.csv": content for name, content in tables.items()}
    if recording:
        found[RECORDING] = _packed(recording, text)
    read_me = _read_me(digest_id, tables, bool(recording), text)
    with (
        whole_file(target, "name a file in another folder with -o") as out,
        tarfile.open(fileobj=out, mode="w:gz") as archive,
    ):
        for name, content in _members(read_me, found):
            entry = tarfile.TarInfo(f"{target.name.removesuffix('.tar.gz') or 'bundle'}/{name}")
            entry.size, entry.mtime = len(content), int(time.time())
            archive.addfile(entry, io.BytesIO(content))


def _members(read_me: str, found: dict[str, bytes]) -> Iterator[tuple[str, bytes]]:
    yield "READ-ME.txt", read_me.encode("utf-8", "backslashreplace")
    yield from found.items()


def _packed(recording: str, text: Language) -> bytes:
    from iodock.cli.servers import servers_in_time
    from iodock.program.bundle import write_bundle
    from iodock.shared.settings import load

    with tempfile.TemporaryDirectory(prefix="iodock-") as folder:
        target = Path(folder) / RECORDING
        write_bundle(
            Path(recording), target, text, load(), False, lambda done, of, parts: None, servers_in_time
        )
        return target.read_bytes()


def _read_me(digest_id: str, tables: dict[str, bytes], is_recorded: bool, text: Language) -> str:
    lines = [
        text.gettext("The I/O of a job on the file systems, for the help desk"),
        text.gettext("Job: {id}", id=visible(digest_id)),
        "",
        text.gettext(
            "The archive contains names of users, jobs, machines and file systems. Check it before you "
            "pass it on."
        ),
        "",
        text.gettext(
            "digest.txt, digest.json, digest.html: the I/O of the job, and whether it was slower than usual"
        ),
        *(f"{name}.csv: {text.gettext(_TABLES[name])}" for name in tables),
    ]
    if is_recorded:
        lines.append(text.gettext("{file}: the recording of its program", file=RECORDING))
    return "\n".join(lines) + "\n"
