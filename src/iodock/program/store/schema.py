"""Lists the store's tables and columns in this version (docs/explanation/store.md).

A column that an older store lacks reads as null. A column that a newer store adds remains available to
queries.
"""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class StoreColumn:
    """Describes one column of a stored table: its SQL type and meaning."""

    name: str
    type: str
    doc: str


@dataclass(frozen=True, slots=True)
class StoreTable:
    """Describes one stored table: the path of its Parquet files in the store, and its columns."""

    name: str
    files: str
    doc: str
    columns: tuple[StoreColumn, ...]


def _columns(text: str) -> tuple[StoreColumn, ...]:
    rows = (line.split(None, 2) for line in text.strip().splitlines())
    return tuple(StoreColumn(name, kind.replace("_", " "), doc) for name, kind, doc in rows)


EVENTS = StoreTable(
    "events",
    "events/*.parquet",
    "one row per call and end, in the order in which calls ended",
    _columns("""
    ts BIGINT start, ns since the epoch or midnight
    end_ts BIGINT end, ns, only if it differs from ts + dur
    dur BIGINT elapsed ns inside the call
    sys_cpu_ns BIGINT system CPU ns of the call (truss -E)
    call_id USMALLINT the call: calls.id
    errno_id USMALLINT the error: errnos.id, null if the call did not fail
    result BIGINT returned value, null for no result
    utid UINTEGER the task: processes.utid
    file_id UINTEGER the file: files.file_id, null for no file
    other_file_id UINTEGER for a call with two ends: the file at its other end
    side UTINYINT 0 single end, 1 in, 2 out, 3 old, 4 new
    requested_bytes BIGINT bytes requested
    offset_bytes BIGINT offset in the file
    bytes BIGINT bytes transferred at this end, null if the call transfers none
    direction UTINYINT 0 none, 1 read, 2 write
    fd INTEGER descriptor, as numbered by the program
    handle_id UINTEGER open file description
    flags UINTEGER open flags (Linux numbers) of opens and of fcntl's F_SETFL, and equivalents of RWF_ flags
    pattern UTINYINT 0 unknown 1 first 2 consecutive 3 sequential 4 strided 5 backward 6 random 7 repeated
    gap_bytes BIGINT offset minus the end of the previous access through the open file description
    own_read_bytes BIGINT bytes of this access that this process had read before
    any_read_bytes BIGINT bytes of this access that any process had read before
    own_written_bytes BIGINT bytes of this access that this process had written before
    any_written_bytes BIGINT bytes of this access that any process had written before
    interface_call_id UINTEGER innermost interface call that made this call: interface_calls.id, null for none
    site_id UINTEGER place in the program from which the call was made, and to be changed: sites.site_id
    stack_id UINTEGER stack of the call: stacks.stack_id
    """),
)
FILES = StoreTable(
    "files",
    "files.parquet",
    "one row per file",
    _columns("""
    file_id UINTEGER the file's number in this store
    name VARCHAR absolute, normalised; each byte that is not UTF-8 as \\xNN
    name_raw BLOB the bytes of the name, only if they differ from the name
    kind VARCHAR type: regular, directory, pipe, socket, ...; file if only the path is known
    relative BOOLEAN the name is relative because the working directory is not known
    folder VARCHAR the name up to its last slash
    ending VARCHAR text after the last dot, empty if none
    pattern VARCHAR the name with its varying part starred
    mount_point VARCHAR mount point of its file system
    fs_type VARCHAR type of its file system
    size_bytes BIGINT last size seen
    host VARCHAR host of the file, null unless there are several hosts
    """),
)
PROCESSES = StoreTable(
    "processes",
    "processes.parquet",
    "one row per task (process or thread)",
    _columns("""
    utid UINTEGER the task's number in this store, safe against reuse of pids
    upid UINTEGER the process: the same for all its threads
    host VARCHAR host on which the task ran
    rank INTEGER MPI rank
    pid INTEGER process id as numbered by the system
    tid INTEGER thread id as numbered by the system
    generation INTEGER 0, 1, ... counts the uses of a reused id
    parent_utid UINTEGER the parent task, null for roots
    parent_pid INTEGER id of the parent task, as the source shows it
    how VARCHAR root, fork, vfork, thread or attached
    start_ts BIGINT time of the first trace of the task, ns
    end_ts BIGINT end, ns
    exit_code INTEGER exit status
    exit_signal VARCHAR signal that ended the process
    core_dumped BOOLEAN whether the process left a core file
    cpu_user_ns BIGINT user CPU ns, only for live recordings
    cpu_system_ns BIGINT system CPU ns, only for live recordings
    io_ns BIGINT ns this task spent in I/O calls that were not waiting
    waiting_ns BIGINT ns this task spent waiting in I/O calls
    """),
)
COMMANDS = StoreTable(
    "commands",
    "commands.parquet",
    "one row per successful exec",
    _columns("""
    utid UINTEGER which task
    ts BIGINT time, ns
    path VARCHAR the program
    argv VARCHAR[] its arguments
    """),
)
EXECUTABLES = StoreTable(
    "executables",
    "executables.parquet",
    "properties of the programs' files, only for live recordings",
    _columns("""
    path VARCHAR the program: commands.path
    real_path VARCHAR the same path without symbolic links
    kind VARCHAR elf, script or other
    interpreter VARCHAR for a script: the text after #! in its first line
    languages VARCHAR[] languages in which an ELF file is written, empty if the file does not show them
    libraries VARCHAR[] libraries that an ELF file itself needs, not those that its libraries need
    """),
)
CALLS = StoreTable(
    "calls",
    "calls.parquet",
    "names of calls",
    _columns("""
    id USMALLINT number of the call in this store
    name VARCHAR the call
    family VARCHAR calls with the same effect: open = open, openat, ...
    class VARCHAR data, metadata, seek, sync, map or other
    """),
)
ERRNOS = StoreTable(
    "errnos",
    "errnos.parquet",
    "names of errors",
    _columns("""
    id USMALLINT number of the error in this store
    name VARCHAR the error
    """),
)
INTERFACE_CALLS = StoreTable(
    "interface_calls",
    "interface_calls.parquet",
    "calls of MPI-IO, HDF5, PnetCDF, NetCDF and stdio, as they ended; where recorded by rewrite",
    _columns("""
    id UINTEGER number of the call in this store
    parent_id UINTEGER call of a higher layer that made this call: interface_calls.id, null for none
    utid UINTEGER the task: processes.utid
    interface VARCHAR MPI-IO, HDF5, PnetCDF, NetCDF or stdio
    call VARCHAR the call, as named in C
    is_collective BOOLEAN whether all ranks that opened the file call it together
    direction UTINYINT 0 none, 1 read, 2 write
    file_id UINTEGER the file: files.file_id, null if unknown
    handle_id UINTEGER which open, of a file or of something in it, such as a data set
    ts BIGINT start, ns
    end_ts BIGINT end, null if the call never returned
    dur BIGINT elapsed ns inside the call; null where the row stands for several calls
    result BIGINT returned value: 0 is success
    requested_bytes BIGINT bytes that the program requested
    offset_bytes BIGINT offset in the file, null if neither the call nor the view of the file shows it
    calls BIGINT number of calls: more than 1 only of stdio, where the row sums calls that made no system call
    """),
)
HINTS = StoreTable(
    "hints",
    "hints.parquet",
    "hints that calls of MPI-IO gave with files; where recorded by rewrite",
    _columns("""
    interface_call_id UINTEGER call that opened the file, or gave hints later: interface_calls.id
    key VARCHAR name of the hint
    asked VARCHAR value that the program requested, null for nothing
    taken VARCHAR value that the implementation reports as used, null for none
    """),
)
DATASETS = StoreTable(
    "datasets",
    "datasets.parquet",
    "data sets of HDF5 and variables of NetCDF and PnetCDF, one row per open; where recorded by rewrite",
    _columns("""
    interface_call_id UINTEGER call that opened the object, for a variable its first call: interface_calls.id
    handle_id UINTEGER which open: interface_calls.handle_id of the calls on it
    file_id UINTEGER the file: files.file_id, null if unknown
    name VARCHAR path in the file
    layout VARCHAR compact, contiguous, chunked or virtual
    element_bytes BIGINT size of an element in the file
    extent VARCHAR number of elements in each dimension, as 1000x200
    chunk VARCHAR number of chunk elements in each dimension, null without chunks
    chunk_bytes BIGINT size of a chunk before filters
    filters VARCHAR filters of the chunks, such as deflate, separated by commas; null for none
    """),
)
CALL_TOTALS = StoreTable(
    "call_totals",
    "call_totals.parquet",
    "counts by call, from a source that does not show calls (strace -c); then there are no events",
    _columns("""
    call_id USMALLINT the call: calls.id
    calls BIGINT number of times that the call returned
    errors BIGINT number of times that the call failed
    time_ns BIGINT ns inside the calls
    min_time_ns BIGINT ns inside the shortest call
    max_time_ns BIGINT ns inside the longest call
    sys_cpu_ns BIGINT system CPU ns of the calls
    min_sys_cpu_ns BIGINT minimum system CPU ns of a call
    max_sys_cpu_ns BIGINT maximum system CPU ns of a call
    """),
)
SITES = StoreTable(
    "sites",
    "sites.parquet",
    "places in the code that made calls",
    _columns("""
    site_id UINTEGER number of the location in this store
    module VARCHAR file of the program or library; null for code that an interpreter runs
    build_id VARCHAR the file's build id, hexadecimal, where it is known
    offset_bytes BIGINT offset in the file to which the call returns
    is_installed BOOLEAN whether the file is a part of the system or of an installed library
    """),
)
STACKS = StoreTable(
    "stacks",
    "stacks.parquet",
    "one row per stack and frame, innermost first",
    _columns("""
    stack_id UINTEGER number of the stack in this store
    depth USMALLINT 0 for the innermost frame of a stack
    site_id UINTEGER place: sites.site_id
    """),
)
SYMBOLS = StoreTable(
    "symbols",
    "symbols.parquet",
    "information about sites: functions, and lines of source files",
    _columns("""
    site_id UINTEGER which site
    level USMALLINT 0 for the innermost function; others are the functions into which it was inlined
    function VARCHAR name of the function
    file VARCHAR its source file
    line UINTEGER line number
    """),
)
MOUNTS = StoreTable(
    "mounts",
    "mounts.parquet",
    "file systems, where recorded live",
    _columns("""
    mount_point VARCHAR mount point
    fs_type VARCHAR its type
    source VARCHAR its device or server
    options VARCHAR mount options
    host VARCHAR host name
    """),
)
SAMPLES = StoreTable(
    "samples",
    "samples/*.parquet",
    "the machine's own state, once per second, only for live recordings",
    _columns("""
    ts BIGINT time, ns
    host VARCHAR host name
    source VARCHAR diskstats, mountstats, llite, pressure, loadavg or process_io
    target VARCHAR device, mount, pid, ...
    metric VARCHAR quantity that is measured
    value DOUBLE the value
    kind VARCHAR counter or gauge
    """),
)
FAULTS = StoreTable(
    "faults",
    "faults/*.parquet",
    "page faults in mapped files, in order; only for live recordings",
    _columns("""
    ts BIGINT time, ns
    utid UINTEGER the task: processes.utid
    file_id UINTEGER the file: files.file_id
    offset_bytes BIGINT position of the page in the file
    is_major BOOLEAN whether the fault waited for the page; null: the page was there when watching began
    """),
)
PAGES = StoreTable(
    "pages",
    "pages/*.parquet",
    "runs of pages that were loaded into the page cache; only for recordings by bpf",
    _columns("""
    ts BIGINT time at which the first page was loaded, ns
    end_ts BIGINT time at which the last page was loaded
    utid UINTEGER the task that loaded the pages: processes.utid
    file_id UINTEGER file: files.file_id
    offset_bytes BIGINT offset in the file at which they begin
    bytes BIGINT their length: whole pages, also beyond the file's end
    is_written BOOLEAN whether a write created the pages; false: they were loaded to be read; null: unknown
    """),
)
PROFILES = StoreTable(
    "profiles",
    "profiles.parquet",
    "counters of one process, or of all ranks, for one file and interface, instead of calls (Darshan)",
    _columns("""
    profile_id UINTEGER number of the profile in this store
    job VARCHAR id of the job
    host VARCHAR host on which the process ran, if the source shows it
    rank INTEGER MPI rank, null for all ranks together
    ranks INTEGER number of ranks in the sum
    upid UINTEGER the process: processes.upid, null for Darshan's
    file_id UINTEGER which file, data set or variable: files.file_id
    pattern VARCHAR the pattern of several files that were counted together
    files BIGINT number of files in the row
    parent_file_id UINTEGER for a data set or variable: the file that contains it
    interface VARCHAR posix, stdio, mpi-io, hdf5, hdf5-dataset, pnetcdf or pnetcdf-variable
    opens BIGINT calls that open the file
    reads BIGINT calls that read
    writes BIGINT calls that write
    seeks BIGINT calls that only change the file position
    stats BIGINT calls that query the attributes of the file
    syncs BIGINT calls that write the file's data to the disk or server, and flushes
    read_bytes BIGINT bytes that were read
    written_bytes BIGINT bytes that were written
    read_time_ns BIGINT ns in reads, of all ranks together
    write_time_ns BIGINT ns in writes, of all ranks together
    meta_time_ns BIGINT ns in opens, closes, seeks, stats and similar calls, of all ranks together
    first_ts BIGINT start of the first known operation, ns
    last_ts BIGINT end of the last known operation, ns
    fastest_rank INTEGER for all ranks together: the rank that took least time
    fastest_bytes BIGINT bytes of that rank
    fastest_time_ns BIGINT ns of that rank
    slowest_rank INTEGER for all ranks together: the rank that took most time
    slowest_bytes BIGINT bytes of that rank
    slowest_time_ns BIGINT ns of that rank
    variance_bytes DOUBLE for all ranks together: variance of their bytes
    variance_time_s2 DOUBLE for all ranks together: variance of their seconds
    estimated VARCHAR[] columns whose values are not exact
    """),
)
PROFILE_COUNTERS = StoreTable(
    "profile_counters",
    "profile_counters.parquet",
    "further counters of profiles; of a counter in profile_fields no row is 0, of others unknown",
    _columns("""
    profile_id UINTEGER which profile
    counter VARCHAR the source's name of it
    value BIGINT a whole number
    fraction DOUBLE a time in seconds or another fraction
    """),
)
PROFILE_FIELDS = StoreTable(
    "profile_fields",
    "profile_fields.parquet",
    "counters that the source has for an interface, including those that are columns or bins",
    _columns("""
    interface VARCHAR like profiles
    counter VARCHAR the source's name of it
    """),
)
HISTOGRAMS = StoreTable(
    "histograms",
    "histograms.parquet",
    "how often a size or stride occurred; bins without any have no row",
    _columns("""
    profile_id UINTEGER which profile
    quantity VARCHAR read-size, write-size; common-read-or-write-size and common-stride are the most frequent
    low BIGINT lower limit of the bin, bytes
    high BIGINT upper limit of the bin, null if it has none
    count BIGINT number of times
    bytes BIGINT total bytes, null if unknown
    """),
)
LAYOUTS = StoreTable(
    "layouts",
    "layouts.parquet",
    "layout of files on the servers of a parallel file system (Lustre)",
    _columns("""
    file_id UINTEGER which file
    rank INTEGER rank that reported this layout, null for all ranks
    component INTEGER number of the piece
    stripe_bytes BIGINT length of a stripe
    stripe_count BIGINT number of targets
    start_bytes BIGINT offset at which the piece begins
    end_bytes BIGINT end offset, null if unknown or at the file's end
    pool VARCHAR pool of targets
    targets VARCHAR[] numbers of the targets (OST), in order
    file_system_targets BIGINT targets that the file system has
    """),
)
PROFILE_ACCESSES = StoreTable(
    "profile_accesses",
    "profile_accesses.parquet",
    "single reads and writes in addition to profiles (Darshan's DXT); they are not events",
    _columns("""
    file_id UINTEGER which file
    interface VARCHAR posix or mpi-io: the same bytes may be counted in both
    rank INTEGER MPI rank
    host VARCHAR host on which the task ran
    thread BIGINT number of the thread, where known
    is_write BOOLEAN whether the access is a write
    offset_bytes BIGINT offset in the file
    bytes BIGINT transferred
    ts BIGINT start, ns since the epoch
    dur BIGINT elapsed ns
    """),
)
HEATMAPS = StoreTable(
    "heatmaps",
    "heatmaps.parquet",
    "bytes of a process in each interval in which it transferred any, in addition to profiles",
    _columns("""
    interface VARCHAR posix, stdio, mpi-io, dfs or daos
    rank INTEGER MPI rank
    ts BIGINT start of the interval, ns since the epoch
    end_ts BIGINT offset at which it ends
    read_bytes BIGINT bytes that were read
    written_bytes BIGINT bytes that were written
    """),
)
TABLES = (
    *(EVENTS, FILES, PROCESSES, COMMANDS, EXECUTABLES, CALLS, ERRNOS, MOUNTS, SAMPLES, FAULTS, PAGES),
    INTERFACE_CALLS,
    HINTS,
    DATASETS,
    CALL_TOTALS,
    *(SITES, STACKS, SYMBOLS),
    *(PROFILES, PROFILE_COUNTERS, PROFILE_FIELDS, HISTOGRAMS, LAYOUTS, PROFILE_ACCESSES, HEATMAPS),
)

STORED_DURATIONS = StoreTable(
    "stored_durations",
    "folds/stored_durations.parquet",
    "how long calls took",
    _columns("""
    call_id USMALLINT which call
    direction UTINYINT 0 none, 1 read, 2 write
    duration_bin TINYINT n: 2^(n-1) < duration + 1 <= 2^n ns
    count BIGINT calls
    time_ns BIGINT time inside the calls
    """),
)
STORED_OPENINGS = StoreTable(
    "stored_openings",
    "folds/stored_openings.parquet",
    "opens for writing, and fcntl's F_SETFL, whose flags change how bytes are written",
    _columns("""
    file_id UINTEGER which file
    utid UINTEGER which task
    call_id USMALLINT which call
    flags UINTEGER open flags, Linux numbers
    errno_id USMALLINT which error, null if it did not fail
    count BIGINT opens
    """),
)
STORED_SLOW_CALLS = StoreTable(
    "stored_slow_calls",
    "folds/stored_slow_calls.parquet",
    "calls of 20 ms and more, listed individually",
    _columns("""
    ts BIGINT start
    dur BIGINT ns
    utid UINTEGER which task
    call_id USMALLINT which call
    file_id UINTEGER which file
    direction UTINYINT 0 none, 1 read, 2 write
    bytes BIGINT transferred
    """),
)
FOLDS = (STORED_DURATIONS, STORED_OPENINGS, STORED_SLOW_CALLS)
"""Tables that import makes from events. Short runs and older stores do not have them, and a table that would
be large is left out; derived tables are then made from events."""
