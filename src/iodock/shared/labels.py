"""What columns, parts of a run and values are called, in tables, the check-up and the report.

English names, marked; they are translated where they are shown.
"""

from __future__ import annotations

from iodock.shared.language import N_

HEADINGS = {
    "bytes": N_("bytes"),
    "call": N_("call"),
    "class": N_("class"),
    "family": N_("family"),
    "count": N_("calls"),
    "success": N_("succeeded"),
    "failed": N_("failed"),
    "no_result": N_("no result"),
    "total_time_ns": N_("time"),
    "mean_time_ns": N_("mean"),
    "min_time_ns": N_("shortest"),
    "max_time_ns": N_("longest"),
    "sys_cpu_time_ns": N_("system CPU"),
    "calls_per_s": N_("calls/s inside"),
    "bytes_per_s": N_("bytes/s inside"),
    "read_bytes": N_("read"),
    "written_bytes": N_("written"),
    "io_count": N_("accesses"),
    "mean_size_bytes": N_("mean size"),
    "min_size_bytes": N_("smallest"),
    "max_size_bytes": N_("largest"),
    "interface_call": N_("call of the interface"),
    "hint": N_("hint"),
    "asked": N_("asked for"),
    "taken": N_("taken"),
    "opens": N_("opens"),
    "system_calls": N_("system calls"),
    "system_time_ns": N_("time in system calls"),
    "movers": N_("processes that moved bytes"),
    "most_moved_bytes": N_("most by one process"),
    "file": N_("file"),
    "file_count": N_("files"),
    "kind": N_("kind"),
    "fs_type": N_("file system"),
    "mount_point": N_("mount"),
    "size_bytes": N_("size"),
    "handles": N_("descriptors"),
    "access": N_("access"),
    "errno": N_("error"),
    "process": N_("process"),
    "pid": N_("pid"),
    "rank": N_("rank"),
    "host": N_("host"),
    "how": N_("made"),
    "command": N_("command"),
    "start_ns": N_("start"),
    "end_ns": N_("end"),
    "exit": N_("ended"),
    "upper_bytes": N_("up to"),
    "read_count": N_("reads"),
    "write_count": N_("writes"),
    "read_time_ns": N_("read time"),
    "write_time_ns": N_("write time"),
    "at_ns": N_("at"),
    "dur": N_("time"),
    "offset_bytes": N_("offset"),
    "requested_bytes": N_("requested"),
    "cpu_user_ns": N_("user CPU"),
    "cpu_system_ns": N_("system CPU"),
    "start_ts": N_("start"),
    "end_ts": N_("end"),
}
"""Column -> heading. Other columns are called by their names."""
COLUMN_DOCS = {
    "total_time_ns": N_("Sum over the calls; several threads together may exceed the wall time"),
    "calls_per_s": N_("Calls divided by the time inside them"),
    "bytes_per_s": N_("Bytes divided by the time inside the calls"),
    "no_result": N_("Calls that never returned: exit, or killed while inside"),
    "io_count": N_("Calls that transferred bytes"),
    "sys_cpu_time_ns": N_("System CPU time, not elapsed time"),
}
"""Beside the label of a column, what it says: for those that are easily misread."""

PARTS = {
    "data": N_("reading and writing"),
    "metadata": N_("metadata"),
    "seek": N_("seeking"),
    "sync": N_("sync and flush"),
    "map": N_("mapping"),
    "other": N_("other calls"),
    "waiting": N_("waiting on pipes and sockets"),
    "rest": N_("outside I/O"),
}
"""Sorts of I/O time, and `rest`: what is not I/O."""

VALUES = {
    "class": {
        "data": N_("data"),
        "metadata": N_("metadata"),
        "seek": N_("seek"),
        "sync": N_("sync"),
        "map": N_("map"),
        "other": N_("other"),
    },
    "how": {
        "root": N_("started"),
        "attached": N_("attached"),
        "fork": N_("fork"),
        "vfork": N_("vfork"),
        "thread": N_("thread"),
    },
    "access": {
        "consecutive": N_("consecutive"),
        "sequential": N_("sequential"),
        "strided": N_("strided"),
        "backward": N_("backward"),
        "random": N_("random"),
        "repeated": N_("same place again"),
        "unknown": N_("not known"),
        "first": N_("one access"),
    },
    "kind": {
        "file": N_("file"),
        "regular": N_("regular file"),
        "directory": N_("directory"),
        "symlink": N_("symbolic link"),
        "device": N_("device"),
        "fifo": N_("FIFO"),
        "pipe": N_("pipe"),
        "socket": N_("socket"),
        "standard": N_("standard stream"),
        "unknown": N_("not known"),
    },
}
"""Column -> value -> words."""

SAMPLES = {
    "pressure.some_us": N_("Time in which some tasks waited"),
    "pressure.full_us": N_("Time in which all tasks waited"),
    "diskstats.read_bytes": N_("Disk reads"),
    "diskstats.written_bytes": N_("Disk writes"),
    "diskstats.busy_time_ms": N_("Disk busy"),
    "mountstats.server_read_bytes": N_("NFS reads from the server"),
    "mountstats.server_written_bytes": N_("NFS writes to the server"),
    "llite.read_bytes": N_("Lustre reads"),
    "llite.write_bytes": N_("Lustre writes"),
    "loadavg.load_1min": N_("Load"),
    "server.handled_per_s": N_("Requests handled"),
    "server.waiting": N_("Requests waiting"),
    "server.wait_s": N_("Wait of a request"),
    "server.cpu_share": N_("CPU of the server in use"),
    "server.moved_bytes_per_s": N_("Bytes read and written by the server"),
    "server.load": N_("Load"),
    "server.read_bytes_per_s": N_("Bytes read by the controller"),
    "server.written_bytes_per_s": N_("Bytes written by the controller"),
    "server.reads_per_s": N_("Reads of the controller"),
    "server.writes_per_s": N_("Writes of the controller"),
    "server.operations_per_s": N_("Operations of the controller"),
    "server.busy_share": N_("Controller busy"),
    "server.response_s": N_("Response time of the controller"),
}
"""`SOURCE.METRIC` of the machine's samples."""

SERVER_STATES = {
    "healthy": N_("healthy"),
    "busy": N_("busy"),
    "overload": N_("overloaded"),
    "stall": N_("stalled"),
    "failover": N_("failing over"),
    "degraded": N_("degraded"),
    "no-usual": N_("not enough samples to know"),
    "no-samples": N_("no samples"),
}
"""What states of file servers are called."""
