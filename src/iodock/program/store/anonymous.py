"""Makes an anonymised copy of a store. The copy shows what a run did, but contains no names of users or data.

Each component of a path gets a made-up name, which is the same wherever the component occurs. Names of system
files, well-known file name endings, programs and libraries are kept; this module lists them. Mount points are
kept, too, because an administrator needs them. Arguments of commands are left out.
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

from iodock.program.store.schema import FOLDS
from iodock.shared.bounded import files
from iodock.shared.bounded.documents import from_json
from iodock.shared.bounded.limits import MANIFEST
from iodock.shared.engine.checksums import with_checksums
from iodock.shared.errors import StoreError

_SYSTEM = re.compile(
    r"(/usr)?/(lib|lib32|lib64|libexec|bin|sbin)(/.*)?|/usr/(share|include)(/.*)?|/proc(/.*)?"
    r"|/sys(/(block|bus|class|devices|kernel|module)(/.*)?)?"
    r"|/dev(/(null|zero|full|u?random|tty[0-9]*|ptmx|pts/[0-9]+|fd/[0-9]+|std(in|out|err)|console))?"
    r"|/etc(/(ld\.so\.(cache|conf|preload)|passwd|group|nsswitch\.conf|resolv\.conf|hosts|host\.conf|services"
    r"|protocols|localtime|locale\.alias|mtab|fstab|gai\.conf))?",
    re.DOTALL,
)
"""Files that every machine has. Their names reveal nothing."""
_ELSEWHERE = re.compile(r"/\.\.?(/|$)|^/proc/.*/(root|cwd|fd)/.*[^0-9]", re.DOTALL)
"""A path with such a component may lead out of the system's folders."""
_TOP = re.compile(r"/(usr/local|usr|lib|lib32|lib64|bin|sbin|etc|proc|sys|dev|boot)(?=/|$)")
"""Folders whose own names are kept. The names inside them are replaced."""
_ENDINGS = frozenset(
    (
        *(
            "7z",
            "a",
            "adios",
            "arrow",
            "avi",
            "avro",
            "back",
            "bai",
            "bak",
            "bam",
            "bash",
            "bat",
            "bcf",
            "bed",
        ),
        *("bib", "bin", "bmp", "bp", "bz2", "c", "cc", "cdf", "cfg", "cgns", "chk", "cif", "ckpt", "class"),
        *("conf", "cpp", "cpt", "cram", "csh", "css", "csv", "cu", "cube", "cxx", "d", "dat", "data", "db"),
        *(
            "dcd",
            "dcm",
            "dll",
            "doc",
            "edr",
            "err",
            "exe",
            "exo",
            "f",
            "f03",
            "f08",
            "f77",
            "f90",
            "f95",
            "fa",
        ),
        *("fai", "fasta", "fastq", "feather", "fit", "fits", "fq", "gff", "gguf", "gif", "gml", "go", "grb"),
        *("grb2", "grib", "grib2", "gro", "gtf", "gz", "h", "h5", "hdf", "hdf5", "hh", "hpp", "htm", "html"),
        *("idx", "img", "in", "index", "ini", "inp", "ipynb", "iso", "jar", "java", "jl", "journal", "jpeg"),
        *("jpg", "js", "json", "jsonl", "la", "ldb", "list", "lmdb", "lock", "log", "lst", "lua", "lz4", "m"),
        *("map", "mat", "md", "mdb", "mdp", "meta", "mm", "mod", "mol", "mol2", "mov", "mp3", "mp4", "msh"),
        *("nc", "nc4", "nii", "nml", "npy", "npz", "o", "obj", "old", "onnx", "orc", "out", "par", "parquet"),
        *("part", "pb", "pdb", "pdf", "pgm", "pickle", "pid", "pkl", "pl", "ply", "png", "ppm", "pro", "ps"),
        *(
            "psf",
            "pt",
            "pth",
            "pvd",
            "pvtu",
            "py",
            "pyc",
            "pyd",
            "pyo",
            "r",
            "raw",
            "rb",
            "rds",
            "root",
            "rs",
        ),
        *(
            "rst",
            "sam",
            "sdf",
            "sh",
            "shm",
            "silo",
            "sock",
            "so",
            "sql",
            "sqlite",
            "sst",
            "stl",
            "sub",
            "svg",
        ),
        *("swp", "tar", "tbl", "temp", "tex", "tgz", "tif", "tiff", "tmp", "toml", "top", "tpr", "trr", "ts"),
        *("tsv", "txt", "vcf", "vti", "vtk", "vtp", "vtr", "vts", "vtu", "wal", "wav", "webp", "x", "xhtml"),
        *("xlsx", "xml", "xtc", "xyz", "xz", "yaml", "yml", "zarr", "zip", "zst"),
    )
)
"""Endings of well-known kinds of files. Other endings may be names, so they are replaced."""
_ENDING = re.compile(r"\.([A-Za-z0-9]+)$")
_LIBRARIES = (
    *(
        "c",
        "m",
        "dl",
        "rt",
        "pthread",
        r"stdc\+\+",
        r"c\+\+",
        "gcc_s",
        "gomp",
        "gfortran",
        "ifcore(mt)?",
        "iomp5",
    ),
    *(
        "flang",
        "fj90i",
        "quadmath",
        "z",
        "zstd",
        "lz4",
        "bz2",
        "lzma",
        "ssl",
        "crypto",
        "numa",
        "hwloc",
        "aio",
    ),
    *(
        "uring",
        "pmix",
        "pmi2?",
        "uc[pstm]",
        "fabric",
        "ibverbs",
        "lustreapi",
        "p?netcdff?",
        "(open)?blas",
        "lapack",
    ),
    *(
        "cuda(rt)?",
        "cublas",
        "nccl",
        r"python[0-9.]+m?",
        "fmpi(ch)?",
        "adios2(_(core|c|cxx11|fortran)(_mpi)?)?",
    ),
    "mpi(_cxx|cxx|fort|_mpifh|_usempif08|_usempi_ignore_tkr|_dbg|_mt|_cray|_gnu_[0-9]+|ch|chf90|chcxx)?",
    "hdf5(_hl|_fortran|_cpp|_f90cstub|_parallel|_serial|_openmpi|_mpich|_gnu|_cray|hl_fortran|_hl_cpp)*",
    "mkl_(core|rt|def|intel_lp64|intel_thread|gnu_thread|sequential|avx2|avx512|scalapack_lp64)",
    "fftw3[fl]?(_mpi|_omp|_threads)?",
)
_KNOWN = re.compile(
    rf"(ba|da|z|k|tc|c)?sh|python[0-9.]*|perl|awk|gawk|site-packages|mpi(run|exec)"
    rf"|lib({'|'.join(_LIBRARIES)})(-[0-9.]+)?\.so[0-9.]*"
)
"""Path components that show the language or library of a program."""
_NAMELESS = re.compile(
    r"stdin|stdout|stderr|fd:[0-9]+|(pipe|socket|net|mnt|pid)(:\[[0-9]+\])?|eventfd|epoll|timerfd|signalfd|inotify"
    r"|pidfd|io_uring|other|anon_inode:\[?(eventpoll|eventfd|timerfd|signalfd|pidfd|io_uring|inotify|bpf-[a-z]+"
    r"|perf_event|userfaultfd|fanotify|fscontext|sync_file)\]?"
)
"""Words with which iodock or the kernel names objects that have no name."""


class Anonymiser:
    """Makes up names with a keyed hash. Without the key, which is not stored, the original names can't be
    computed."""

    def __init__(self, mount_points: Iterable[str] = (), key: bytes | None = None) -> None:
        self._key = key or os.urandom(32)
        self._mounts = sorted((one for one in mount_points if one != "/"), key=len, reverse=True)
        self.component = lru_cache(1 << 16)(self._component)

    def path(self, name: str) -> str:
        """Replaces the name of a file, or a pattern that stands for several names."""
        if _NAMELESS.fullmatch(name) or (_SYSTEM.fullmatch(name) and not _ELSEWHERE.search(name)):
            return name
        mount = next((one for one in self._mounts if name == one or name.startswith(f"{one}/")), "")
        top = _TOP.match(name)
        kept = max(mount, top.group() if top else "", key=len)
        rest = name[len(kept) :]
        return kept + "/".join(self.component(part) if part else part for part in rest.split("/"))

    def word(self, text: str, prefix: str) -> str:
        """Returns a made-up word such as `host-1a2b3c` for a name that is not a path."""
        return f"{prefix}-{self._digest(text)}"

    def _component(self, part: str) -> str:
        if part in (".", "..", "*") or _KNOWN.fullmatch(part):
            return part
        ending = _ENDING.search(part)
        is_kept = ending is not None and ending.start() > 0 and ending.group(1).lower() in _ENDINGS
        stem, tail = (part[: ending.start()], ending.group()) if ending and is_kept else (part, "")
        return f"{self._digest(stem)}{'*' if '*' in stem else ''}{tail}"

    def _digest(self, text: str) -> str:
        return hmac.new(self._key, text.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()[:8]


def anonymiser_of(store: Path) -> Anonymiser:
    """Returns an anonymiser that keeps the store's mount points. Raises OSError and ArrowInvalid."""
    return Anonymiser(_mount_points(store))


def anonymous_copy(store: Path, into: Path, anonymiser: Anonymiser | None = None) -> Path:
    """Copies a complete store to the folder INTO, replaces all names in the copy, and returns INTO. Raises
    OSError and ArrowInvalid."""
    raw = from_json(files.content(store / "manifest.json", MANIFEST, StoreError))
    names = anonymiser or anonymiser_of(store)
    into.mkdir(parents=True)
    (into / "events").mkdir()
    parts = (f"events/{part.name}" for part in sorted((store / "events").glob("*.parquet")))
    for table in ("calls.parquet", "errnos.parquet", *parts):
        shutil.copy(store / table, into / table)
    # These tables contain only numbers, so they are copied unchanged.
    for fold in FOLDS:
        # A store works without these tables, so the copy leaves out those that are missing.
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
    _rewrite(store, into, "executables.parquet", {
        "path": names.path, "real_path": names.path, "interpreter": _each(names.path, str.split, " ".join),
        "libraries": _each(names.component, list, list),
    })  # fmt: skip
    _rewrite(store, into, "sites.parquet", {"module": names.path, "build_id": _nothing})
    _rewrite(store, into, "symbols.parquet", {
        "function": lambda text: names.word(text, "function"), "file": names.path, "line": _nothing,
    })  # fmt: skip
    for table in ("stacks.parquet", "interface_calls.parquet"):
        if (store / table).is_file():
            shutil.copy(store / table, into / table)
    # The values of MPI-IO hints may contain names of hosts or folders.
    _rewrite(store, into, "hints.parquet", {"asked": _nothing, "taken": _nothing})
    _rewrite(store, into, "datasets.parquet", {"name": names.path})
    _rewrite(store, into, "mounts.parquet", {"source": _nothing, "options": _nothing, "host": _host(names)})
    for part in sorted((store / "samples").glob("*.parquet")):
        _rewrite(store, into, f"samples/{part.name}", {"host": _host(names)})
    manifest = _manifest(raw, names)
    # A store without checksums may have damaged files. New checksums would declare them sound, so the copy
    # gets none either.
    said = with_checksums(manifest, into) if raw.get("checksums") else json.dumps(manifest, indent=1)
    (into / "manifest.json").write_text(said, encoding="utf-8")
    return into


def _mount_points(store: Path) -> set[str]:
    """Returns the mount points that occur in the table of mounts and in the table of files."""
    tables = [one for one in (store / "mounts.parquet", store / "files.parquet") if one.exists()]
    read = (_read(one, ["mount_point"])["mount_point"].unique().to_pylist() for one in tables)
    return {one for mounts in read for one in mounts if one}


def _host(names: Anonymiser) -> Callable[[str], str]:
    return lambda text: names.word(text, "host")


def _each(
    change: Callable[[str], str], parts: Callable[[Any], list[str]], whole: Callable[[list[str]], Any]
) -> Callable[[Any], Any]:
    """Returns a function that splits a value into its parts, applies CHANGE to each part and joins the
    results."""
    return lambda value: whole([change(part) for part in parts(value)])


def _nothing(text: object) -> None:
    return None


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    # The file is opened here, because Arrow opens only files whose names are valid UTF-8.
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
    """Returns the manifest with only those keys that are known to contain no names."""
    times = ("created_ns", "clock", "first_ts", "last_ts", "io", "in_progress")
    kept = ("schema", "state", "writer", "ranks", "source", "tables", *times)
    made = {key: raw[key] for key in kept if key in raw}
    captured, host = raw.get("captured") or {}, raw.get("host") or {}
    command = [names.component(Path(one).name) for one in (captured.get("command") or [])[:1]]
    plain = ("how", "why", "exit_status", "exit_signal", "wall_ns", "page_faults", "page_cache", "interfaces")
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
