"""Measures the cost of BPF to a program before a recorder does anything. The program makes 4 KiB reads from
the page cache: without BPF, with two empty programs on the system calls' typed tracepoints, with two programs
that read the clock, as a recorder of durations must, and with one that reads the clock at a call's end, as a
recorder without durations does. `fentry` shows whether this kernel can attach programs to a call's function
instead.

    sudo .venv/bin/python benches/bpf_floor.py [--rounds 9]

Results are CPU seconds as a multiple of those without BPF in the same round. Needs root, x86-64, and the
kernel's BTF.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import struct
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from measure import Run, median, quickest, ratio, run, table
from record_cost import compiled

BTF = Path("/sys/kernel/btf/vmlinux")
ENTRY, EXIT, CALL = "btf_trace_sys_enter", "btf_trace_sys_exit", "__x64_sys_pread64"
# Constants of linux/bpf.h and linux/btf.h.
SYS_BPF, PROG_LOAD, RAW_TRACEPOINT_OPEN = 321, 5, 17
TRACING, TRACEPOINT, FENTRY = 26, 23, 24
KTIME_GET_NS = 5
KIND_TYPEDEF, KIND_FUNC = 8, 12
BYTES_BEHIND = {1: 4, 14: 4, 17: 4, 3: 12}
BYTES_A_MEMBER = {4: 12, 5: 12, 6: 8, 13: 8, 15: 12, 19: 12}

LIBC = ctypes.CDLL(None, use_errno=True)


def bpf(command: int, attributes: bytes) -> int:
    """Makes a bpf system call and returns the new descriptor. Raises OSError if the kernel refuses."""
    room = ctypes.create_string_buffer(attributes, len(attributes))
    result = LIBC.syscall(SYS_BPF, command, room, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def types(wanted: set[str]) -> dict[str, int]:
    """Returns the BTF number of each wanted typedef or function."""
    data = BTF.read_bytes()
    header, start, length, names = struct.unpack_from("<IIII", data, 4)
    at, end, names = header + start, header + start + length, header + names
    found, number = {}, 0
    while at < end:
        name, info, _ = struct.unpack_from("<III", data, at)
        kind, members = info >> 24 & 31, info & 0xFFFF
        at += 12 + BYTES_BEHIND.get(kind, 0) + BYTES_A_MEMBER.get(kind, 0) * members
        number += 1
        if kind in (KIND_TYPEDEF, KIND_FUNC):
            text = data[names + name : data.index(b"\0", names + name)].decode()
            if text in wanted:
                found[text] = number
    return found


def program(how: int, target: int, reads_clock: bool) -> int:
    """Loads a BPF program that only reads the clock, if requested, and returns its descriptor."""

    def instruction(code: int, number: int = 0) -> bytes:
        return struct.pack("<BBhi", code, 0, 0, number)

    clock = instruction(0x85, KTIME_GET_NS) if reads_clock else b""
    code = clock + instruction(0xB7) + instruction(0x95)
    text, license_ = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    start = struct.pack("<IIQQ", TRACING, len(code) // 8, ctypes.addressof(text), ctypes.addressof(license_))
    # In union bpf_attr, expected_attach_type is at offset 68 and attach_btf_id at 108.
    return bpf(
        PROG_LOAD,
        start.ljust(68, b"\0") + struct.pack("<I", how).ljust(40, b"\0") + struct.pack("<I", target),
    )


def attached(stack: ExitStack, targets: list[int], how: int, reads_clock: bool) -> None:
    for target in targets:
        loaded = program(how, target, reads_clock)
        stack.callback(os.close, loaded)
        stack.callback(os.close, bpf(RAW_TRACEPOINT_OPEN, struct.pack("<QIIQ", 0, loaded, 0, 0)))


def says_of_fentry(target: int | None) -> str:
    if target is None:
        return "the function is not known"
    try:
        with ExitStack() as stack:
            attached(stack, [target], FENTRY, reads_clock=False)
    except OSError as error:
        return f"refused: {error.strerror}"
    return "possible"


def measured(rounds: int, tracepoints: list[int]) -> dict[str, list[Run]]:
    ways: dict[str, tuple[list[int], bool]] = {
        "alone": ([], False),
        "two empty programs": (tracepoints, False),
        "two clock readings": (tracepoints, True),
        "one, at the end": (tracepoints[1:], True),
    }
    runs: dict[str, list[Run]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        command = [compiled("preads"), str(Path(folder) / "block.bin"), "1000000"]
        run(command)
        for _ in range(rounds):
            for way, (targets, reads_clock) in ways.items():
                with ExitStack() as stack:
                    attached(stack, targets, TRACEPOINT, reads_clock)
                    runs[way].append(run(command))
    return runs


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    if os.geteuid() != 0 or not BTF.exists():
        print(f"needs root and {BTF}", file=sys.stderr)
        return 1
    numbers = types({ENTRY, EXIT, CALL})
    print(f"fentry: {says_of_fentry(numbers.get(CALL))}")
    runs = measured(rounds, [numbers[ENTRY], numbers[EXIT]])
    least = quickest(runs["alone"])
    rows = [
        [way, f"{median(some, 'cpu'):.3f}", ratio(runs, way, "cpu"), f"{quickest(some) / least:.2f}"]
        for way, some in runs.items()
    ]
    table("4 KiB preads", ["", "CPU s", "CPU ratio", "quickest"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
