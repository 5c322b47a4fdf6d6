"""Writes typical values to a site's settings file. The rest of the file remains unchanged.

Lines that iodock writes have a comment that begins with `# iodock:` and names the source of the value. Lines
that an administrator wrote are kept.
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
    """Formats the section for a mount point, with its header and all values."""
    return "".join(f"{line}\n" for line in (_header(mount), _origin(protocol), *map(_line, values)))


def _header(mount: str) -> str:
    # A TOML basic string is needed here. JSON strings are valid TOML basic strings, including their escapes.
    return f"[file_systems.{json.dumps(mount, ensure_ascii=False)}]"


def _origin(protocol: Protocol) -> str:
    of = (protocol.tool, protocol.version, protocol.started, protocol.host, protocol.target)
    said = ", ".join(one for one in of if one) or "measurements without a protocol"
    return _comment(f"measured by {said}")


def _comment(text: str) -> str:
    """Formats a comment. Control characters are replaced, so that TEXT can't add another line to the file."""
    return MARK + re.sub(r"[\x00-\x1f\x7f]", "?", text)


def _line(one: Value) -> str:
    value = json.dumps(one.value) if isinstance(one.value, str) else f"{one.value:_}"
    return f"{one.name} = {value}  {_comment(one.source)}"


def merged(content: str, mount: str, values: Sequence[Value], protocol: Protocol) -> str:
    """Returns CONTENT with the values in the section of MOUNT. Lines that iodock wrote are replaced. If an
    administrator wrote a line for one of the values, it is kept and the new value is left out."""
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
    """Returns the number of the section's header line. It recognises MOUNT in single and in double quotes."""
    names = {json.dumps(mount, ensure_ascii=False), f"'{mount}'", json.dumps(mount.rstrip("/") + "/")}
    for at, line in enumerate(lines):
        found = re.fullmatch(r"\s*\[\s*file_systems\s*\.\s*(.+?)\s*\]\s*(#.*)?", line)
        if found and found[1] in names:
            return at
    return None


def write(path: Path, mount: str, values: Sequence[Value], protocol: Protocol) -> None:
    """Writes the values to the settings file, and creates the file if it is missing. A temporary file
    replaces it, so that it is never incomplete. Raises IodockError if writing fails, and RequestError if the
    file is invalid before or after the change."""
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
