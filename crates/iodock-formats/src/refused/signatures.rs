//! The tools whose logs iodock recognises but does not read. If the lines of two tools look alike, the first
//! entry is used.

use super::Signature;

const READ: &str =
    "iodock reads logs of strace, of truss and of other tracers: iodock import --help lists them at --format";
const ON_LINUX: &str = "record the program with iodock record, or with strace -f -ttt -T -o run.log COMMAND";
const ON_FREEBSD: &str = "record again with truss -f -H -a -d -D -o run.truss COMMAND";

const fn of(name: &'static str, what: &'static str, hint: &'static str) -> Signature {
    Signature { name, what, hint, title: &[], lines: &[], magic: &[] }
}

/// All tools. The patterns are based on the documentation of the tools' output; only for dtruss a real log
/// was available.
pub static SIGNATURES: &[Signature] = &[
    Signature {
        title: &[r"^\s*((PID/[A-Z]+|RELATIVE|ELAPSD|CPU)\s+)*SYSCALL\(args\)"],
        // The error number follows the result, as in `= 3 0` or `= -1 Err#2`.
        lines: &[r"^[\s0-9a-fx/:]*[A-Za-z_]\w*\(.*\)\s*= -?(0x)?[0-9A-Fa-f]+ (Err#)?\d+$"],
        ..of("dtruss", "output of dtruss (macOS, DTrace)", READ)
    },
    Signature {
        title: &[r"^\s*CPU\s+ID\s+FUNCTION:NAME", r"^\s*CPU FUNCTION\s*$", r"^CALL\(args\)\s+= return"],
        lines: &[
            r"^dtrace: ",
            r"^\s*\d+\s+\d+\s+\S*:(entry|return|BEGIN|END|tick-\S+|profile-\S+)(\s|$)",
            r"^\s*\d+\s+(->|<-|=>|<=) \S+\s*",
            r"^\s*(->|<-) \w+(\(.*\)| = -?\w+)$",
        ],
        ..of("dtrace", "output of DTrace", READ)
    },
    Signature {
        // A thread id or a time stamp may come between the process id and the program; program names may
        // contain spaces.
        lines: &[r#"^\s*\d+\s[^("=]*\s(CALL|RET|NAMI|GIO|STRU|PSIG|CSW)\s+\S"#],
        magic: &[b"\x00\x00\x00\x00kTrAcE"],
        ..of("kdump", "output of kdump (ktrace of a BSD system)", ON_FREEBSD)
    },
    Signature {
        // AIX prints `argc: 1` with a colon, and the kernel's own names of calls.
        lines: &[
            r"\)(\t|  ) ?argc: \d+$",
            r"^(\d+:\s+)?([\d.]+:?\s+)?(k(read|write|ioctl|open|lseek|fcntl|pread|pwrite|readv|writev)|__loadx|getuidx|getgidx|_getpid|_thread_self|_sigaction|vmgetinfo|kthread_ctl|thread_setmystate\w*|loadquery|privcheck|__libpthread_init)\(.*\)\s+(= |Err#\d+)",
            r"^(\d+:\s+)?_exit: ",
        ],
        ..of("aix-truss", "a truss log of AIX", READ)
    },
    Signature {
        // tusc of HP-UX pads columns with dots.
        lines: &[
            r"^(\[?\d[\d.:\s\]\[{}]*)?\( Attached to process",
            r"^[\[\]\d.:{}\s<>]*\w+\(.*\) \.{2,} ?(=|\[|ERR#)",
        ],
        ..of("tusc", "a tusc log of HP-UX", READ)
    },
    Signature {
        lines: &[r"^\s*\d+mS(\[\s*\d+\])?(\s*\S+\(\d+\))?:"],
        ..of("par", "output of par (IRIX)", READ)
    },
    Signature {
        lines: &[r"^\d+ (\d\d:\d\d:\d\d\.\d{9}|\d+\.\d{9}|\d+) \d+ .+ \(\d+(\.\d+)?\) [<>] \w+"],
        ..of("sysdig", "output of sysdig", ON_LINUX)
    },
    Signature {
        title: &[r"^Attach(ing|ed) (to )?\d+ probes?"],
        lines: &[r"^@\w*(\[.*\])?: "],
        ..of("bpftrace", "output of bpftrace", ON_LINUX)
    },
    Signature {
        title: &[
            r"^(TIME\S*\s+)?(UID\s+)?(PID\s+P?COMM|P?COMM\s+PID)\s+(FD|T|D|DISK|PPID|RET|ERR|READS|WRITES|OP)\b",
            r"^Tracing (syscalls|\w+ file (reads/writes|reads and writes|operations)|\w+ operations slower|block device I/O|open\(\))",
        ],
        ..of("bcc", "output of a BCC tool (opensnoop, biosnoop ...)", ON_LINUX)
    },
    Signature {
        title: &[r"^# tracer: \w+"],
        lines: &[r#"^\s*[^("\s][^("]*-\d+\s+(\(\s*[\d-]+\)\s+)?\[\d+\]\s+(\S{4,6}\s+)?\d+\.\d+: \w+[:(]"#],
        magic: &[b"\x17\x08Dtracing"],
        ..of("ftrace", "a trace of ftrace or trace-cmd", ON_LINUX)
    },
    Signature {
        lines: &[
            r#"^\s*[^("\s][^("]*\s\d+(/\d+)?\s+(\[\d+\]\s+)?(\S{4}\s+)?\d+\.\d+:\s+(\d+\s+)?[\w-]+:\w+: "#,
        ],
        ..of(
            "perf-script",
            "output of perf script",
            "write the calls with perf trace -o run.log, or perf trace -i perf.data -o run.log",
        )
    },
    Signature {
        magic: &[b"PERFILE2", b"2ELIFREP"],
        ..of(
            "perf.data",
            "a recording of perf",
            "write its calls with perf trace -i perf.data -o run.log, if perf trace record made it",
        )
    },
    Signature {
        lines: &[r#"^\[?(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d\.\d{9}\]? (\(\+\S+\) )?[^("\s][^("]* \w+: \{ "#],
        ..of("lttng", "a trace of LTTng (babeltrace)", ON_LINUX)
    },
    Signature {
        lines: &[r"^(node=\S+ )?type=[A-Z_0-9]+ msg=audit\(.*\): ?"],
        ..of("auditd", "a log of the Linux audit daemon", ON_LINUX)
    },
    Signature {
        title: &[r"^#\s+(ELAPSED\s+)?(TIMESTAMP\s+)?DURATION\s+TID\s+FUNCTION"],
        ..of("uftrace", "a trace of uftrace, of functions", ON_LINUX)
    },
    Signature {
        lines: &[r"^(==\d+== |--\d+-- )?SYSCALL\[\d+,\s*\d+\]\("],
        ..of("valgrind", "output of valgrind --trace-syscalls=yes", ON_LINUX)
    },
    Signature {
        // These lines have no space after commas, and show errors as numbers.
        lines: &[
            r"^(\d+ )?\w+\(.*\) = -1 errno=\d+ \(",
            r#"^\d+ [a-z_0-9]+\(([^ "<{\[(]|"([^"\\]|\\.)*")+,\S.*\) = (0x[0-9a-f]+|\d+)$"#,
        ],
        ..of(
            "qemu-strace",
            "a log of qemu -strace",
            "run the program under iodock record or strace on a machine of its own kind",
        )
    },
    Signature {
        lines: &[r"strace\.go:\d+\] \[\s*\d+(:\s*\d+)?\] \S+ [EX] \w+\("],
        ..of("gvisor", "a log of gVisor (runsc -strace)", ON_LINUX)
    },
    Signature {
        lines: &[r"^\d\d:\d\d:\d\d(\.\d+)?\s+[A-Za-z_]\w*\s+.*\s\d+\.\d{6}\s+(W )?\S.*$"],
        ..of("fs_usage", "output of fs_usage (macOS)", READ)
    },
    Signature {
        title: &[
            r#"^"?Time of Day"?,\s*"?Process Name"?,"#,
            r#"^"?(Sequence|PID|Process Name|Date & Time|Relative Time)"?,.*"?Operation"?,"?Path"?"#,
            r"^\s*<procmon>",
        ],
        magic: &[b"PML_"],
        ..of("procmon", "a log of Process Monitor (Windows)", READ)
    },
    Signature {
        lines: &[r"^(\[?\w*\]? ?)?Nt[A-Z]\w+(\(| *$)"],
        ..of("drstrace", "a log of drstrace or NtTrace (Windows)", READ)
    },
    Signature {
        title: &[r"^# (darshan log version|DXT, file_id): "],
        ..of(
            "darshan",
            "output of darshan-parser",
            "give iodock import the log of Darshan itself, or this text as a file, not compressed",
        )
    },
    Signature {
        lines: &[r"^\s*\d+,\d+\s+\d+\s+\d+\s+\d+\.\d{9}\s+\d+\s+[A-Z]{1,2}\s+[A-Z]+\s"],
        ..of("blkparse", "output of blkparse, of block devices", ON_LINUX)
    },
    Signature {
        lines: &[r"^\S.*\(\d+\): [RWOCADM<>+?]+ +/"],
        ..of("fatrace", "output of fatrace", ON_LINUX)
    },
    Signature {
        lines: &[
            r"^\s*\d+:\t(file=|calling (init|fini)|find library=|symbol=|binding file |relocation processing)",
        ],
        ..of("ld-debug", "output of the dynamic linker (LD_DEBUG)", ON_LINUX)
    },
];
