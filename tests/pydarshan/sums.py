"""Prints the sums of all counters of Darshan logs as PyDarshan reads them, for the test of profiles:

    .venv-darshan/bin/python tests/pydarshan/sums.py fixtures/darshan/*.darshan > fixtures/darshan/sums.tsv

The output has a line for each module of each log (log, module, records, bytes read, bytes written), then a
line for each counter of each module over all logs (*, module, counter, sum). Counters that a version lacks
are left out, as `values.py` says.
"""

from __future__ import annotations

import math
import struct
import sys
from collections import defaultdict
from pathlib import Path

from values import READ, values

Sums = dict[tuple[str, str], list[float]]


def counters_of(lines: list[str]) -> tuple[Sums, dict[str, int]]:
    """Returns values by module and counter, and the number of records by module."""
    found: Sums = defaultdict(list)
    records: dict[str, int] = defaultdict(int)
    module = ""
    for line in lines:
        name, *rest = line.split("\t")
        if len(rest) != 1:
            module = name if name in READ and len(rest) == 2 else ""
            records[module] += 1
        elif module and name != "file" and rest[0] != "?":
            is_fraction = "_F_" in name
            found[module, name].append(
                struct.unpack(">d", bytes.fromhex(rest[0]))[0] if is_fraction else int(rest[0])
            )
    del records[""]
    return found, records


def total(values: list[float]) -> str:
    """Returns the sum as text; it is exact for whole numbers."""
    return repr(math.fsum(values)) if any(isinstance(one, float) for one in values) else str(sum(values))


def main() -> None:
    """Prints the sums of the logs that the arguments name."""
    of_all: Sums = defaultdict(list)
    for path in sys.argv[1:]:
        found, records = counters_of(values(path))
        for module, count in records.items():
            prefix = module.replace("MPI-IO", "MPIIO")
            moved = [found.get((module, f"{prefix}_BYTES_{way}"), []) for way in ("READ", "WRITTEN")]
            print(Path(path).name, module, count, *(total(one) for one in moved), sep="\t")
        for key, several in found.items():
            of_all[key] += several
    for (module, counter), several in sorted(of_all.items()):
        print("*", module, counter, total(several), sep="\t")


if __name__ == "__main__":
    main()
