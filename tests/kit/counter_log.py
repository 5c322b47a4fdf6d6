"""Creates made-up Darshan logs as text: a few counters of a few files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from diagnosing import diagnosed
from iodock.program.capture import import_logs

MIB = 1 << 20
START = 1_700_000_000
ALL = -1
"""The rank number of records over all ranks."""
BINS = ((100, "0_100"), (1024, "100_1K"), (10240, "1K_10K"), (102400, "10K_100K"), (1 << 20, "100K_1M"),
        (4 << 20, "1M_4M"))  # fmt: skip


@dataclass
class Record:
    """Counters that Darshan has for one file and one interface."""

    module: str
    rank: int
    name: str
    counters: dict[str, float] = field(default_factory=dict)

    def lines(self) -> Iterable[str]:
        """Yields the lines that darshan-parser prints for this record."""
        for counter, value in self.counters.items():
            yield f"{self.module}\t{self.rank}\t{abs(hash(self.name))}\t{counter}\t{value}\t{self.name}\t-\t-"


def posix(name: str, rank: int = ALL, **counted: float) -> Record:
    """Returns a POSIX record. `reads=1000, read_size=4096` sets calls, bytes and histogram bins. The reads
    are consecutive except for `read_jumps`, `read_returns` of which go backward. Other names are counters."""
    return Record("POSIX", rank, name, _counters("POSIX", dict(counted)))


def stdio(name: str, rank: int = ALL, **counted: float) -> Record:
    """Returns a record of stdio streams."""
    return Record("STDIO", rank, name, _counters("STDIO", dict(counted)))


def mpi_io(name: str, rank: int = ALL, **counted: float) -> Record:
    """Returns an MPI-IO record. `reads` and `writes` are independent calls, in addition to `COLL_READS` and
    `COLL_WRITES`."""
    made = _counters("MPIIO", dict(counted))
    for way in ("READS", "WRITES"):
        made[f"MPIIO_INDEP_{way}"] = made.pop(f"MPIIO_{way}")
    return Record("MPI-IO", rank, name, made)


def layout(name: str, targets: Iterable[int], of: int = 8, stripe_bytes: int = 1 << 20) -> Record:
    """Returns the record of a file's layout on Lustre."""
    chosen = list(targets)
    made: dict[str, float] = {
        "LUSTRE_OSTS": of, "LUSTRE_MDTS": 1, "LUSTRE_STRIPE_SIZE": stripe_bytes,
        "LUSTRE_STRIPE_WIDTH": len(chosen),
    }  # fmt: skip
    made |= {f"LUSTRE_OST_ID_{at}": target for at, target in enumerate(chosen)}
    return Record("LUSTRE", 0, name, made)


def _counters(prefix: str, counted: dict[str, float]) -> dict[str, float]:
    made: dict[str, float] = {}
    for way, past in (("read", "READ"), ("write", "WRITTEN")):
        calls, size = counted.pop(f"{way}s", 0), counted.pop(f"{way}_size", 0)
        jumps, back = counted.pop(f"{way}_jumps", 0), counted.pop(f"{way}_returns", 0)
        made[f"{prefix}_{way.upper()}S"] = calls
        made[f"{prefix}_BYTES_{past}"] = calls * size
        made[f"{prefix}_F_{way.upper()}_TIME"] = counted.pop(f"{way}_seconds", 0.0)
        if prefix == "POSIX":
            for most, ending in BINS:
                is_it = bool(calls) and size <= most and not any(size <= one for one, _ in BINS if one < most)
                made[f"POSIX_SIZE_{way.upper()}_{ending}"] = calls if is_it else 0
            made[f"POSIX_CONSEC_{way.upper()}S"] = calls - jumps
            made[f"POSIX_SEQ_{way.upper()}S"] = calls - back
        if prefix != "MPIIO":
            made[f"{prefix}_MAX_BYTE_{past}"] = counted.pop(f"{way}_extent", calls * size) - 1
    made[f"{prefix}_F_META_TIME"] = counted.pop("meta_seconds", 0.0)
    if prefix == "POSIX":
        made |= {"POSIX_OPENS": 1, "POSIX_SEEKS": 0, "POSIX_STATS": 0, "POSIX_FILE_NOT_ALIGNED": 0}
        made |= {"POSIX_FILE_ALIGNMENT": 1 << 20}
    return made | {f"{prefix}_{name}": value for name, value in counted.items()}


def counted(folder: Path, records: Iterable[Record], processes: int = 4, seconds: float = 100.0) -> Path:
    """Imports a log of a job with these records and returns the store. Files below /lustre are on Lustre."""
    log = folder / "job.txt"
    head: Mapping[str, object] = {
        "exe": "/home/user/app", "uid": 1000, "jobid": 7, "start_time": START,
        "end_time": START + round(seconds), "nprocs": processes, "run time": seconds,
    }  # fmt: skip
    lines = ["# darshan log version: 3.41", *(f"# {name}: {value}" for name, value in head.items())]
    lines += ["# mount entry:\t/lustre\tlustre", "#<module>\t<rank>\t<record id>\t<counter>\t<value>"]
    told = (line for record in records for line in record.lines())
    log.write_text("\n".join([*lines, *told, ""]))
    return import_logs([str(log)], folder / "job.iodock", force=True).store


def findings(folder: Path, *records: Record, processes: int = 4, seconds: float = 100.0) -> dict[str, object]:
    """Diagnoses the records and returns the findings by rule, or by rule and call."""
    found = diagnosed(counted(folder, records, processes, seconds)).whole.findings
    return {f"{one.rule} {one.call}" if one.call in ("read", "write") else one.rule: one for one in found}


def as_light(store: Path, **changes: str) -> Path:
    """Changes the store as if its counters came from a light recording, and returns it. CHANGES: table ->
    SELECT that replaces its rows."""
    sizes: dict[str, int] = {}
    for table, sql in changes.items():
        name = str(store / f"{table}.parquet")
        with duckdb.connect() as engine:
            for other in ("files", "profiles", "processes"):
                rows = f"SELECT * FROM read_parquet('{store / other}.parquet')"
                engine.execute(f"CREATE TABLE {other} AS {rows}")
            sizes[table] = engine.execute(f"SELECT count(*) FROM ({sql})").fetchall()[0][0]
            engine.execute(f"COPY ({sql}) TO '{name}' (FORMAT parquet)")
    manifest = json.loads((store / "manifest.json").read_text())
    manifest["tables"] |= sizes
    manifest["source"]["light"] = "1048576"
    for sums in ("checksum", "checksums"):
        manifest.pop(sums, None)
    (store / "manifest.json").write_text(json.dumps(manifest))
    return store


TOGETHER = "SELECT * REPLACE ('/lustre/part-*' AS pattern, 500 AS files) FROM profiles"
"""All files of the store, each as a group of 500 files counted together."""
