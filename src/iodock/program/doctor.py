"""Reports what this machine allows iodock to do. Each check reads something and draws a conclusion. No check
changes anything."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

State = Literal["good", "limited", "blocked", "unknown"]
_CAP_SYS_PTRACE, _CAP_PERFMON, _CAP_BPF, _CAP_SYS_ADMIN = 19, 38, 39, 21


@dataclass(frozen=True, slots=True)
class Finding:
    """Holds the result of one check."""

    topic: str
    state: State
    """`good`; `limited`, which works in part; `blocked`, where recording is not possible; or `unknown`."""
    found: str
    follows: str = ""

    @property
    def mark(self) -> str:
        """Returns a short word for the state, of at most four letters, for a terminal."""
        return {"good": "ok", "limited": "note", "blocked": "no", "unknown": "?"}[self.state]

    def as_dict(self) -> dict[str, str]:
        """Returns the finding as a dictionary for JSON."""
        return asdict(self)


def examine(root: Path = Path("/")) -> list[Finding]:
    """Runs all checks. ROOT is `/`, or a folder with prepared files in tests."""
    checks: tuple[Callable[[Path], Finding], ...] = (
        _kernel,
        _ptrace,
        _perf,
        _bpf,
        _file_systems,
        _space,
        _tools,
    )
    return [check(root) for check in checks]


def _text(root: Path, path: str) -> str | None:
    try:
        return (root / path).read_text(errors="replace").strip()
    except OSError:
        return None


def _capability(root: Path, number: int) -> bool:
    for line in (_text(root, "proc/self/status") or "").splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> number & 1)
    return False


def _kernel(root: Path) -> Finding:
    version = _text(root, "proc/sys/kernel/osrelease") or platform.release()
    machine = platform.machine()
    found = f"{version}, {machine}, Python {sys.version_info[0]}.{sys.version_info[1]}"
    parts = version.split(".")
    numbers = tuple(int(part) for part in parts[:2] if part.isdigit())
    if sys.platform != "linux":
        return Finding("kernel", "blocked", found, "recording needs Linux; importing logs works anywhere")
    if len(numbers) == 2 and numbers < (4, 8):
        return Finding(
            "kernel", "blocked", found, "recording needs Linux 4.8: use strace, then iodock import"
        )
    if machine != "x86_64":
        return Finding(
            "kernel", "limited", found, "recording knows x86_64 only: use strace, then iodock import"
        )
    return Finding("kernel", "good", found)


def _ptrace(root: Path) -> Finding:
    scope = _text(root, "proc/sys/kernel/yama/ptrace_scope")
    capable = _capability(root, _CAP_SYS_PTRACE)
    parts = [f"ptrace_scope {scope}" if scope is not None else "no ptrace_scope (no Yama)"]
    found = ", ".join([*parts, *(["with CAP_SYS_PTRACE"] if capable else [])])
    if scope == "3":
        follows = "no program can be traced until the next boot with another kernel.yama.ptrace_scope"
        return Finding("ptrace", "blocked", found, follows)
    if scope == "2" and not capable:
        return Finding(
            "ptrace", "blocked", found, "only root may record: ask for kernel.yama.ptrace_scope = 1"
        )
    if scope == "1" and not capable:
        return Finding(
            "ptrace", "limited", found, "iodock record CMD works; record -p PID only on its own children"
        )
    return Finding("ptrace", "good", found, "iodock record CMD and record -p PID work")


def _perf(root: Path) -> Finding:
    level = _text(root, "proc/sys/kernel/perf_event_paranoid")
    if level is None:
        return Finding("perf events", "unknown", "no perf_event_paranoid")
    capable = _capability(root, _CAP_PERFMON) or _capability(root, _CAP_SYS_ADMIN)
    found = ", ".join([f"perf_event_paranoid {level}", *(["with CAP_PERFMON"] if capable else [])])
    if capable or (level.lstrip("-").isdigit() and int(level) <= 1):
        return Finding("perf events", "good", found, "tracepoints may be read")
    return Finding("perf events", "limited", found, "no tracepoints; the ptrace recorder does not need them")


def _bpf(root: Path) -> Finding:
    off = _text(root, "proc/sys/kernel/unprivileged_bpf_disabled")
    both = _capability(root, _CAP_BPF) and _capability(root, _CAP_PERFMON)
    capable = both or _capability(root, _CAP_SYS_ADMIN)
    types = (root / "sys/kernel/btf/vmlinux").exists()
    parts = [
        "with CAP_BPF and CAP_PERFMON" if capable else "no CAP_BPF and CAP_PERFMON",
        "with kernel type information" if types else "no kernel type information",
    ]
    found = ", ".join([*parts, *([f"unprivileged_bpf_disabled {off}"] if off is not None else [])])
    if capable and types:
        return Finding("BPF", "good", found, "record --backend bpf works: every call of every program")
    missing = "a kernel with CONFIG_DEBUG_INFO_BTF" if capable else "root"
    return Finding("BPF", "limited", found, f"record --backend bpf needs {missing}; the others don't")


def _file_systems(root: Path) -> Finding:
    kinds: dict[str, list[str]] = {}
    for line in (_text(root, "proc/self/mounts") or "").splitlines():
        fields = line.split()
        if len(fields) > 2:
            kinds.setdefault(fields[2], []).append(fields[1])
    shared = [
        kind
        for kind in ("lustre", "gpfs", "beegfs", "nfs", "nfs4", "ceph", "cifs", "fuse.sshfs")
        if kind in kinds
    ]
    if not kinds:
        return Finding("file systems", "unknown", "no mount table")
    found = (
        ", ".join(f"{kind} on {' '.join(kinds[kind][:3])}" for kind in shared)
        or "no shared file system mounted"
    )
    follows = "write stores to another file system than the one that you measure" if shared else ""
    return Finding("file systems", "good", found, follows)


def _space(root: Path) -> Finding:
    places = {"here": Path.cwd(), "temporary": Path(tempfile.gettempdir())}
    found = ", ".join(
        f"{name} {shutil.disk_usage(path).free / 2**30:.1f} GiB free" for name, path in places.items()
    )
    little = any(shutil.disk_usage(path).free < 2**30 for path in places.values())
    if little:
        return Finding(
            "space",
            "limited",
            found,
            "a store needs about 15 bytes for each call: choose another folder with -o",
        )
    writable = all(os.access(path, os.W_OK) for path in places.values())
    return Finding(
        "space",
        "good" if writable else "limited",
        found,
        "" if writable else ("not writable: give a path with -o"),
    )


def _tools(root: Path) -> Finding:
    there = [tool for tool in ("strace", "truss", "mpirun", "srun") if shutil.which(tool)]
    return Finding("tools", "good", ", ".join(there) if there else "neither strace nor an MPI launcher", "")
