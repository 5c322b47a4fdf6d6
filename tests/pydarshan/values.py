"""Prints every value of Darshan logs as PyDarshan reads them; the example `darshan_values` prints iodock's
values.

    .venv-darshan/bin/python tests/pydarshan/values.py LOG...
    .venv-darshan/bin/python tests/pydarshan/values.py --sums fixtures/darshan/*.darshan

PyDarshan gives records of old versions the counters of the newest version. The output leaves these out,
because the log does not contain them. Two more differences are faults of PyDarshan: see `SWAPPED` and
`ZEROED`.
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from darshan.backend import cffi_backend as backend

READ = ("POSIX", "MPI-IO", "H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR", "STDIO")
DXT = ("DXT_POSIX", "DXT_MPIIO")

_CLOSES = ("_F_CLOSE_START_TIMESTAMP", "_F_OPEN_END_TIMESTAMP")
_H5F = ("H5F_FLUSHES", "H5F_USE_MPIIO", "H5F_F_META_TIME")
_POSIX = ("FILENOS", "DUPS", "RENAME_SOURCES", "RENAME_TARGETS", "RENAMED_FROM")
_PNETCDF = (
    *(
        "CREATES",
        "REDEFS",
        "INDEP_WAITS",
        "COLL_WAITS",
        "SYNCS",
        "BYTES_READ",
        "BYTES_WRITTEN",
        "WAIT_FAILURES",
    ),
    *("F_WAIT_START_TIMESTAMP", "F_WAIT_END_TIMESTAMP", "F_META_TIME", "F_WAIT_TIME"),
)
MADE_UP = {
    "POSIX": {3: {f"POSIX{end}" for end in _CLOSES}, 4: {f"POSIX_{name}" for name in _POSIX}},
    "MPI-IO": {3: {f"MPIIO{end}" for end in _CLOSES}},
    "STDIO": {2: {"STDIO_FDOPENS"}},
    "PNETCDF_FILE": {
        2: {f"PNETCDF_FILE{end}" for end in _CLOSES},
        3: {f"PNETCDF_FILE_{name}" for name in _PNETCDF},
    },
    "H5F": {2: {f"H5F{end}" for end in _CLOSES}, 3: set(_H5F)},
}
"""By module and version: counters that records before this version lack (darshan-*-logutils.c)."""

SWAPPED = ("POSIX_F_META_TIME", "POSIX_F_MAX_READ_TIME", "POSIX_F_MAX_WRITE_TIME")
"""For big-endian logs with POSIX records before version 4, libdarshan-util 3.5.0 leaves these three
unswapped. It compares the numbers of RENAME_SOURCES, _TARGETS and RENAMED_FROM (10 to 12) with those of
floating-point counters."""

ZEROED = ("POSIX_F_VARIANCE_RANK_TIME", "POSIX_F_VARIANCE_RANK_BYTES")
"""For POSIX records of versions 2 and 3, libdarshan-util 3.5.0 gives zero for these, because it moves too few
bytes when it makes room for the counters of version 4. Both programs print `?` for them."""


def bits(value: float) -> str:
    return struct.pack(">d", value).hex()


def job(log: Any, out: list[str]) -> None:
    found = backend.log_get_job(log)
    out.append(f"format\t{found['log_ver']}")
    keys = ("uid", "start_time_sec", "end_time_sec", "nprocs", "jobid")
    out.append("\t".join(["job", *(str(found[key]) for key in keys)]))
    out.append(f"ns\t{found['start_time_nsec']}\t{found['end_time_nsec']}")
    out.append(f"command\t{backend.log_get_exe(log)}")
    out += [f"metadata\t{key}\t{value}" for key, value in found["metadata"].items()]
    out += sorted(f"mount\t{path}\t{kind}" for path, kind in backend.log_get_mounts(log))


def fraction(name: str, value: float, version: int, is_big: bool) -> str:
    if name in ZEROED and version in (2, 3):
        return "?"
    if name in SWAPPED and version < 4 and is_big:
        return struct.pack("<d", value).hex()
    return bits(value)


def counted(log: Any, module: str, version: int, is_big: bool, out: list[str]) -> None:
    lacking = {name for since, names in MADE_UP.get(module, {}).items() if version < since for name in names}
    while (record := backend.log_get_record(log, module)) is not None:
        out.append(f"{module}\t{record['id']}\t{record['rank']}")
        if "file_rec_id" in record and (module != "H5D" or version > 1):
            out.append(f"file\t{record['file_rec_id']}")
        values = zip(backend.counter_names(module), record["counters"].tolist(), strict=True)
        out += [f"{name}\t{value}" for name, value in values if name not in lacking]
        fractions = zip(backend.fcounter_names(module), record["fcounters"].tolist(), strict=True)
        known = [(name, value) for name, value in fractions if name not in lacking]
        out += [f"{name}\t{fraction(name, value, version, is_big)}" for name, value in known]


def lustre(log: Any, out: list[str]) -> None:
    while (record := backend.log_get_record(log, "LUSTRE")) is not None:
        out.append(f"LUSTRE\t{record['id']}\t{record['rank']}")
        for one in record["components"]:
            size, count, *known = one["counters"].tolist()
            # Logs of version 1 do not record where a component's extent starts, but libdarshan-util fills in
            # a number. Here it counts as unknown.
            if known[0] == known[1] == -1:
                known[2] = -1
            out.append(f"component\t{size}\t{count}\t{known}\t{one['pool_name']}")
            out.append(f"targets\t{one['ost_ids'].tolist()}")


def traced(log: Any, module: str, out: list[str]) -> None:
    while (record := backend.log_get_record(log, module)) is not None:
        out.append(f"{module}\t{record['id']}\t{record['rank']}\t{record['hostname']}")
        for name in ("write", "read"):
            for one in record[f"{name}_segments"]:
                times = f"{bits(one['start_time'])}\t{bits(one['end_time'])}"
                out.append(f"{name}\t{one['offset']}\t{one['length']}\t{times}")


def heatmaps(log: Any, out: list[str]) -> None:
    while (record := backend.log_get_record(log, "HEATMAP")) is not None:
        out.append(f"HEATMAP\t{record['id']}\t{record['rank']}\t{bits(record['bin_width_seconds'])}")
        out.append(f"write\t{record['write_bins'].tolist()}")
        out.append(f"read\t{record['read_bins'].tolist()}")


def values(path: str) -> list[str]:
    with Path(path).open("rb") as file:
        is_big = file.read(16)[8:] == struct.pack(">q", 6567223)
    log = backend.log_open(path)
    out: list[str] = []
    job(log, out)
    names = backend.log_get_name_records(log)
    out += [f"name\t{id}\t{name}" for id, name in sorted(names.items())]
    modules = backend.log_get_modules(log)
    for module in (module for module in modules if module in READ):
        counted(log, module, modules[module]["ver"], is_big, out)
    if "LUSTRE" in modules:
        lustre(log, out)
    for module in (module for module in DXT if module in modules):
        traced(log, module, out)
    if "HEATMAP" in modules:
        heatmaps(log, out)
    backend.log_close(log)
    return out


def sums(path: str) -> str:
    """Returns the log's name, the number of lines, and the CRC-32 of all lines."""
    lines = values(path)
    text = "".join(f"{line}\n" for line in lines)
    return f"{path.rsplit('/', 1)[-1]}\t{len(lines)}\t{zlib.crc32(text.encode()):08x}"


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--sums"]:
        lines: Iterator[str] = map(sums, arguments[1:])
    else:
        lines = (line for path in arguments for line in (f"log\t{path}", *values(path)))
    for line in lines:
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
