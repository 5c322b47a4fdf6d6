"""Formats a volume for the terminal and as JSON."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from iodock.program.volume.measure import Volume
from iodock.program.volume.reading import Reading
from iodock.shared.language import N_, Language
from iodock.shared.lines import wrapped
from iodock.shared.sentences import say
from iodock.shared.text import cells, visible
from iodock.shared.units import BYTES, NANOSECONDS, number_text, share_text

_NAMES = {"processes": N_("process I/O"), "device": N_("devices"), "blocks": N_("blocks (rusage)")}


FILE_WIDTH = 100
"""Width of output that goes to a file or a pipe."""


def volume_text(volume: Volume, reading: Reading, text: Language, width: int = FILE_WIDTH) -> str:
    """Formats a table of the sources, the meaning of each, the actual volume divided by the expected one,
    and the next step. Lines of sentences have at most WIDTH cells."""
    rows = [(text.gettext(N_("source")), text.gettext(N_("read")), text.gettext(N_("written")))]
    for line in reading.lines:
        rows.append((_name(line.source, text), _bytes(line.read_bytes), _bytes(line.written_bytes)))
    widths = [max(cells(row[column]) for row in rows) for column in range(3)]
    lines = [*wrapped(_head(volume, reading, text), width), ""]
    lines += ["  ".join((_pad(row[0], widths[0]), *map(_pad_left, row[1:], widths[1:]))) for row in rows]
    lines.append("")
    for line in reading.lines:
        lines += wrapped(f"{_name(line.source, text)}: {say(line.meaning, text)}", width)
    lines.append("")
    for remark in reading.remarks:
        lines += wrapped(say(remark, text), width)
    lines += wrapped(text.gettext(N_("Next: {step}"), step=text.gettext(reading.step.value)), width)
    return "\n".join(lines) + "\n"


def _pad(word: str, width: int) -> str:
    return word + " " * (width - cells(word))


def _pad_left(word: str, width: int) -> str:
    return " " * (width - cells(word)) + word


def _name(source: str, text: Language) -> str:
    return text.gettext(_NAMES[source]) if source in _NAMES else visible(source)


def _head(volume: Volume, reading: Reading, text: Language) -> str:
    wall = NANOSECONDS.text(volume.wall_seconds * 1e9)
    actual, expected = BYTES.text(reading.actual_bytes), BYTES.text(reading.expected_bytes)
    if reading.factor is None:
        said = text.gettext(N_("{actual} transferred in {wall}."), actual=actual, wall=wall)
    else:
        said = text.gettext(
            N_("{actual} transferred in {wall}: {factor} times the {expected} that the files contain."),
            actual=actual, wall=wall, factor=number_text(reading.factor), expected=expected)  # fmt: skip
    if reading.utilisation is None:
        return said
    used = text.gettext(N_("CPU utilisation (user / real): {share}."), share=share_text(reading.utilisation))
    return f"{said} {used}"


def _bytes(value: int | None) -> str:
    return "-" if value is None else BYTES.text(value)


def interval_text(volume: Volume, text: Language) -> str:
    """Formats the rates of one interval as one line."""
    seconds = volume.wall_seconds or 1.0
    io = volume.io
    return text.gettext(
        N_(
            "read {read}/s, written {written}/s; from devices {fetched}/s, to devices {given}/s; "
            "{calls} calls/s"
        ),
        read=BYTES.text(io.rchar / seconds),
        written=BYTES.text(io.wchar / seconds),
        fetched=BYTES.text(io.read_bytes / seconds),
        given=BYTES.text(io.write_bytes / seconds),
        calls=f"{(io.syscr + io.syscw) / seconds:,.0f}",
    )


def volume_json(volume: Volume, reading: Reading, text: Language) -> str:
    """Formats the volume and the conclusions about it as a JSON document."""
    document: dict[str, Any] = {
        "wall_seconds": volume.wall_seconds,
        "user_seconds": volume.user_seconds,
        "system_seconds": volume.system_seconds,
        "utilisation": reading.utilisation,
        "expected_bytes": reading.expected_bytes,
        "actual_bytes": reading.actual_bytes,
        "factor": reading.factor,
        "of_files": {"read_bytes": volume.file_read, "written_bytes": volume.file_written},
        "files": volume.files,
        "process_io": dataclasses.asdict(volume.io),
        "sources": [
            {"source": line.source, "read_bytes": line.read_bytes, "written_bytes": line.written_bytes,
             "meaning": say(line.meaning, text)}
            for line in reading.lines
        ],
        "remarks": [say(remark, text) for remark in reading.remarks],
        "next": {
            "step": reading.step.name.lower().replace("_", "-"),
            "text": text.gettext(reading.step.value),
        },
    }  # fmt: skip
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
