"""Kernel files of a simulated server that describe the machine itself."""

from __future__ import annotations

from iodock.simulation.server import CORES, Server

_TICK_NS = 10_000_000
_MANY = 0.9
"""If the CPU is used more than this, tasks wait for it."""


def machine_files(server: Server, now_ns: int, version: str) -> dict[str, str]:
    """Returns the text of each file, by its path below the server's root."""
    condition, uptime_s = server.condition, server.uptime_s(now_ns)
    idle_s = (uptime_s * CORES) - server.busy_ns * CORES / 1e9
    load = load_of(server)
    cpu_us = server.busy_ns // 2000 if condition.cpu_share >= _MANY else server.busy_ns // 200_000
    return {
        "proc/sys/kernel/hostname": f"{server.name}\n",
        "proc/fs/lustre/version": f"{version}\n",
        "proc/uptime": f"{uptime_s:.2f} {idle_s:.2f}\n",
        "proc/loadavg": f"{load:.2f} {load:.2f} {load:.2f} 1/900 4242\n",
        "proc/stat": _stat(server, now_ns),
        "proc/pressure/cpu": _pressure(
            condition.cpu_share if condition.cpu_share >= _MANY else 0, cpu_us, False
        ),
        "proc/pressure/io": _pressure(condition.io_pressure, server.io_pressure_ns // 1000, True),
        "proc/pressure/memory": _pressure(0, 0, True),
    }


def load_of(server: Server) -> float:
    """Returns the load of the server. Service threads that wait for disks count as load, too."""
    condition = server.condition
    return condition.active_threads if condition.io_pressure > 0.5 else condition.cpu_share * CORES


def _stat(server: Server, now_ns: int) -> str:
    """Returns /proc/stat. All time is system time, because Lustre's threads are kernel threads."""
    total = (now_ns - server.booted_ns) * CORES // _TICK_NS
    busy = server.busy_ns * CORES // _TICK_NS
    waited = server.io_pressure_ns // _TICK_NS
    idle = max(0, total - busy - waited)
    return f"cpu  0 0 {busy} {idle} {waited} 0 0 0 0 0\nbtime {server.booted_ns // 10**9}\n"


def _pressure(share: float, total_us: int, has_full: bool) -> str:
    percent = f"{share * 100:.2f}"
    line = f"avg10={percent} avg60={percent} avg300={percent} total="
    full = f"full {line}{total_us // 2}\n" if has_full else ""
    return f"some {line}{total_us}\n{full}"
