"""Writes typical values into a site's settings file, without changing anything else in it.

Values from iodock have a comment that says so and names their source; lines of an administrator are kept.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from iodock.file_system.health.measurements import Protocol
from iodock.file_system.health.typical import Value
from iodock.shared.bounded import files
from iodock.shared.bounded.limits import SETTINGS
from iodock.shared.errors import IodockError
from iodock.shared.settings import load

MARK = "# iodock: "
_HEADER = re.compile(r"\s*\[")
_KEY = re.compile(r"\s*([\w-]+)\s*=")


def section(mount: str, values: Sequence[Value], protocol: Protocol) -> str:
    """Formats the section for a mount point, as in a new file."""
    return "".join(f"{line}\n" for line in (_header(mount), _origin(protocol), *map(_line, values)))


def _header(mount: str) -> str:
    # The name becomes a TOML basic string. It is written as JSON, whose escapes are valid in TOML, too.
    return f"[file_systems.{json.dumps(mount, ensure_ascii=False)}]"


def _origin(protocol: Protocol) -> str:
    of = (protocol.tool, protocol.version, protocol.started, protocol.host, protocol.target)
    said = ", ".join(one for one in of if one) or "measurements without a protocol"
    return _comment(f"measured by {said}")


def _comment(text: str) -> str:
    """Formats a comment on one line, whatever names contain."""
    return MARK + re.sub(r"[\x00-\x1f\x7f]", "?", text)


def _line(one: Value) -> str:
    value = json.dumps(one.value) if isinstance(one.value, str) else f"{one.value:_}"
    return f"{one.name} = {value}  {_comment(one.source)}"


def merged(content: str, mount: str, values: Sequence[Value], protocol: Protocol) -> str:
    """Returns CONTENT with the values in the mount's section. Lines that iodock wrote are replaced; an
    administrator's own line of the same name stays."""
    lines = content.splitlines()
    start = _find(lines, mount)
    if start is None:
        gap = "\n" if content and not content.endswith("\n\n") else ""
        ended = content if not content or content.endswith("\n") else content + "\n"
        return f"{ended}{gap}{section(mount, values, protocol)}"
    end = next((at for at in range(start + 1, len(lines)) if _HEADER.match(lines[at])), len(lines))
    kept = [line for line in lines[start + 1 : end] if MARK.rstrip() not in line]
    own = {found[1] for line in kept if (found := _KEY.match(line))}
    while kept and not kept[-1].strip():
        kept.pop()
    written = [_origin(protocol), *(_line(one) for one in values if one.name not in own)]
    rest = ["", *lines[end:]] if end < len(lines) else []
    return "\n".join([*lines[: start + 1], *kept, *written, *rest]) + "\n"


def _find(lines: Sequence[str], mount: str) -> int | None:
    """Finds the line of the mount's header, however its name is quoted."""
    names = {json.dumps(mount, ensure_ascii=False), f"'{mount}'", json.dumps(mount.rstrip("/") + "/")}
    for at, line in enumerate(lines):
        found = re.fullmatch(r"\s*\[\s*file_systems\s*\.\s*(.+?)\s*\]\s*(#.*)?", line)
        if found and found[1] in names:
            return at
    return None


def write(path: Path, mount: str, values: Sequence[Value], protocol: Protocol) -> None:
    """Writes the values into the settings file, and creates it if it is missing. It is written as a whole or
    not at all. Raises IodockError, and RequestError for a file that was invalid before or would be
    afterwards."""
    if path.exists():
        load(path)
    try:
        before = files.text(path, SETTINGS) if path.exists() else ""
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            part.write_text(merged(before, mount, values, protocol), encoding="utf-8")
            load(part)
            if path.exists():
                part.chmod(path.stat().st_mode & 0o777)
            part.replace(path)
        finally:
            with suppress(OSError):
                part.unlink()
    except OSError as error:
        raise IodockError(
            f"{path}: can't be written: {error.strerror}", "name another file with -o"
        ) from error
