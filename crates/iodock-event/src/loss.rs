//! Losses: data that could not be read, kept or determined. They are counted by kind, with advice on how to
//! avoid them.

use std::collections::BTreeMap;

macro_rules! losses {
    ($($variant:ident $name:literal $cure:literal,)+) => {
        /// The kinds of loss, each with advice. A new kind needs to be added only here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum LossKind { $($variant,)+ }
        impl LossKind {
            pub const ALL: &'static [LossKind] = &[$(LossKind::$variant,)+];
            /// Returns the stable name of the kind, in kebab case.
            pub fn name(self) -> &'static str { match self { $(LossKind::$variant => $name,)+ } }
            /// Returns advice on how to avoid the loss.
            pub fn cure(self) -> &'static str { match self { $(LossKind::$variant => $cure,)+ } }
        }
    };
}

losses! {
    UnreadableLines "unreadable-lines" "the log is damaged there: record again, or repair these lines",
    UnreadableArguments "unreadable-arguments" "a descriptor, a size or an open flag of these calls can't be read, so it is unknown: the log is damaged there; record again, or repair these lines",
    CutLines "cut-lines" "the log ends in the middle of a line: the tracer was killed or the disk was full; record again",
    NulBytes "nul-bytes" "the log contains NUL bytes, as after a power cut or a full disk: the bytes that they replaced are lost; record again",
    LongLines "long-lines" "a line was longer than iodock's limit: re-run strace with a smaller -s",
    MissingDurations "missing-durations" "re-run strace or ltrace with -T, or truss of FreeBSD with -D: without it no call has a duration",
    MissingTimestamps "missing-timestamps" "re-run strace or ltrace with -ttt (or truss with -d): without it calls have no times",
    CoarseTimestamps "coarse-timestamps" "re-run strace with -ttt: whole seconds can't order the calls of several logs",
    ClockSetBack "clock-set-back" "the clock was set back there, or the log was merged from several: the following lines were moved after the earlier ones; if several logs must fit together, record again",
    OrphanResumed "orphan-resumed" "the beginning of these calls is not in the log: start the tracer earlier, or give iodock the whole log",
    UnfinishedAtEnd "unfinished-at-end" "these calls had not returned when the log ended",
    UnknownWorkingDirectory "unknown-working-directory" "the directory of these relative names is not known: for a log, name the program's working directory (iodock import --cwd DIR); for a recording, record the program from its start",
    UnknownDescriptors "unknown-descriptors" "these descriptors were opened before the log or recording, or in a way that it does not show (a request of an io_uring, a pidfd_open): record the program from its start; for a log use strace -y",
    UnknownParent "unknown-parent" "no fork or clone of these processes was seen, or (in a PID namespace) the ids of their parents are unknown: for a log, trace the parent too, with -f",
    TruncatedPaths "truncated-paths" "these names were truncated because they exceed the limit (4,096 bytes in a recording): for a log, use a larger -s of strace or ltrace",
    UnshownNames "unshown-names" "the tracer printed addresses instead of these file names: use a perf that was built with BPF, as root (perf version --build-options), describe these calls to ltrace in ~/.ltrace.conf, or record with iodock record or strace",
    UnshownArguments "unshown-arguments" "ltrace shows four arguments of calls that its configuration does not describe: the mapped files, or the bytes to copy, are unknown; describe these calls to ltrace in ~/.ltrace.conf, or record with iodock record or strace",
    LateRefusals "late-refusals" "a seccomp filter answered these calls with SIGSYS, which the log shows only much later, so meaningless results were taken for real ones: record with iodock record",
    DifferingTotals "differing-totals" "the rows of the table do not add up to its last line: some are missing or were changed; write it again with strace -c",
    CutDescriptors "cut-descriptors" "strace -s 0 and -s 1 leave out the descriptors of pipes and socket pairs: re-run strace with -s 2 or more, or without -s",
    UnknownOffsets "unknown-offsets" "the order of these threads' calls is not known: re-run strace with -ttt -T",
    PassedDescriptors "passed-descriptors" "these descriptors were passed to other processes over a socket (SCM_RIGHTS), and both processes then share the file position: the offsets of accesses through them are unknown",
    CoverageMemory "coverage-memory" "the memory for tracking which bytes were read or written before was used up at these accesses: raise --coverage-memory",
    MappedContents "mapped-contents" "access through these memory maps is only partly known, because it makes no calls: record the page faults of all maps with iodock record --page-faults always",
    IoUringContents "io-uring-contents" "requests inside an io_uring are not calls, so no tracer of calls sees them",
    AsyncUnmatched "async-unmatched" "completions of asynchronous I/O whose submission is not in the log, or can't be identified",
    UntaggedLines "untagged-lines" "strace on a terminal does not show the process number if only one process is left, and the log does not show which one: it is shown as a separate process; re-run strace with -f -o FILE, which writes the process number before each line",
    UnprefixedLines "unprefixed-lines" "these lines lack the prefix of all other lines (a host, a container, a time, a quotation mark): they are not strace's, or were wrapped; give iodock the log as strace wrote it",
    OtherSources "other-sources" "the prefix of these lines names another container, host or process than that of the first lines, so they were left out: select the lines of each prefix with grep -F, and import them separately",
    GarbledNames "garbled-names" "the quotation marks of these names were replaced by other characters, as by word processors and web pages: copy the log as plain text",
    AmbiguousParent "ambiguous-parent" "several processes forked at once and the log does not say whose child this is",
    ForeignCalls "foreign-calls" "calls of a 32-bit or other foreign program, which this recorder does not decode",
    DroppedRecords "dropped-records" "the recorder could not keep up, or could not write: choose a faster or larger place with -o",
    JournalCut "journal-cut" "the recording ended without closing (kill -9, full disk, power cut): what was flushed is here",
    UnreadableMemory "unreadable-memory" "the program's memory could not be read at that moment: the name is not known",
    TooManyRequests "too-many-requests" "one call had more requests, completions or messages than the recorder reads: --backend ptrace records them all",
    TooManyNames "too-many-names" "more different call or error names than iodock keeps: is this really a trace?",
    IncredibleNumbers "incredible-numbers" "impossible numbers count as unknown (sizes above 32 TiB or above the request, durations above 115 days in one call, counts that no run reaches): the log is damaged there",
    BeforeLoad "before-load" "the dynamic linker's calls before the recorder was loaded were not recorded in these programs: --complete records them, too",
    UnreachedPrograms "unreached-programs" "these programs dropped LD_PRELOAD, gained privileges, or are static and could not be traced: --backend ptrace, or bpf as root, records them",
    StoppedProcesses "stopped-processes" "recording stopped in these processes, and in the processes that they forked and the programs that they executed, because they were about to set a seccomp filter or to forbid themselves the clock, created threads without their own thread-local storage, shared memory was full, or a container's filter forbids calls that recording needs: --backend ptrace records them",
    OwnSystemCalls "own-system-calls" "these programs or libraries make system calls without the C library, and those calls were not recorded: --backend ptrace, or bpf as root, records them",
    UnseenCalls "unseen-calls" "the kernel counted this many more reads and writes than were recorded: these programs or libraries make them without the C library; --backend ptrace, or bpf as root, records them",
    LostPageFaults "lost-page-faults" "page faults came faster than they could be read, so accessed pages are missing: give the recorder a free CPU",
    PageFaultsRefused "page-faults-refused" "files were mapped, but this system does not allow sampling page faults: ask for kernel.perf_event_paranoid = 2, and a container that allows perf_event_open",
    UnnamedPages "unnamed-pages" "the names of the files of these pages are unknown: no recorded process opened or mapped them, or the process ended before its files were read; start the recording with the program",
    FoldedFiles "folded-files" "more files than the memory of a light recording has room for: these are counted together, by pattern, by folder or in one row, and their sums are exact; raise --light-memory",
    UncountedRequests "uncounted-requests" "requests of an io_uring or of libaio, and messages of several packets, are not counted: record without --light",
    UnknownPlaces "unknown-places" "the places from which these threads made calls are unknown: their programs are static, or make calls without the C library, and were traced from outside; or they have their own stacks (coroutines, signal handlers). Import a log of strace -k of such a program",
    PythonFrames "python-frames" "the source lines of these Python programs are not known: iodock reads the stacks of CPython 3.11 to 3.14, except of builds for debugging and without the GIL; run the programs with one of these",
    OtherModules "other-modules" "these programs or libraries are missing here, or are not those that made the calls of the log, so their lines are unknown: import the log on the machine on which it was made, before they are built again",
    MissingRanks "missing-ranks" "some ranks' parts of this store are missing or were not closed",
    MissingNodes "missing-nodes" "the job had more nodes than hosts have a part in this store: merge the parts of all nodes, unless the program ran on these only",
    DarshanPartialModule "darshan-partial-module" "Darshan ran out of memory for this module's records, and further files were not counted: run again with a larger DARSHAN_MODMEM (MiB a process) and DARSHAN_NAMEMEM (names), or leave out files that don't matter (NAME_EXCLUDE in Darshan's configuration)",
    DarshanUnreadModule "darshan-unread-module" "iodock does not read this module of Darshan: darshan-parser shows its counters",
    DarshanNewerModule "darshan-newer-module" "a newer Darshan wrote these records: use a newer iodock",
    DarshanUnknownFormat "darshan-unknown-format" "no Darshan up to 3.5 writes this version of the format, so values may be wrong: use a newer iodock; if the log is damaged, copy it again",
    DarshanDamagedRegion "darshan-damaged-region" "these bytes of the log do not match their checksum, so their content is unknown: copy the log again, as a binary file; the rest of the log was read",
    DarshanCutRegion "darshan-cut-region" "the log ends too early: copy it again, or run again with space for the log; the remaining records were read",
    DarshanUnclaimedBytes "darshan-unclaimed-bytes" "no part of the log claims these bytes, so their content is unknown: the header is damaged; copy the log again, as a binary file",
    DarshanOverlappingRegions "darshan-overlapping-regions" "two parts of the log claim the same bytes, so records may be wrong: the header is damaged; copy the log again, as a binary file",
    DarshanOversizedRegion "darshan-oversized-region" "the log grows beyond the memory that iodock uses, so the rest was not read: check that it is a log of Darshan",
    DarshanDifferingRecords "darshan-differing-records" "these records have another length than their version defines, because some sites modify Darshan: added values are not read",
    DarshanIncompleteRecords "darshan-incomplete-records" "these records end too early, and were left out: copy the log again",
    DarshanUnnamedRecords "darshan-unnamed-records" "the names of these files are not in the log: raise DARSHAN_NAMEMEM; where the log is damaged, copy it anew",
    DarshanSuspectCounters "darshan-suspect-counters" "Darshan 3.2.0 wrote wrong numbers for the most common sizes, and perhaps for others: run again with a later Darshan",
    DarshanImpreciseTimes "darshan-imprecise-times" "Darshan before 3.1.1 could set the time of the first write of MPI-IO wrongly: run again with a later Darshan",
    DarshanMixedCounters "darshan-mixed-counters" "Darshan before 3.1.0 counted bytes and times of C streams (fopen) with those of POSIX: run again with a later Darshan",
    DarshanMissingModule "darshan-missing-module" "the text states that the log has this module, but lacks its records: give iodock the log itself, or write the text again with darshan-parser --show-incomplete LOG",
    DarshanUnreadableLines "darshan-unreadable-lines" "these lines are not from darshan-parser: write the text again with darshan-parser LOG",
    DarshanRoundedTimes "darshan-rounded-times" "darshan-parser rounds times to microseconds: give iodock the log itself",
}

/// The place where a loss first occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstLoss {
    pub file: String,
    pub line: u64,
    /// The beginning of the line, with unprintable bytes replaced.
    pub sample: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    pub counts: BTreeMap<LossKind, u64>,
    pub first: BTreeMap<LossKind, FirstLoss>,
}

impl Losses {
    pub fn add(&mut self, kind: LossKind, count: u64) {
        if count > 0 {
            *self.counts.entry(kind).or_default() += count;
        }
    }

    /// Counts one loss, and stores the place if it is the first loss of its kind.
    pub fn add_at(&mut self, kind: LossKind, place: impl FnOnce() -> FirstLoss) {
        self.add(kind, 1);
        self.first.entry(kind).or_insert_with(place);
    }

    pub fn count(&self, kind: LossKind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }

    pub fn merge(&mut self, other: &Losses) {
        for (&kind, &count) in &other.counts {
            self.add(kind, count);
        }
        for (&kind, place) in &other.first {
            self.first.entry(kind).or_insert_with(|| place.clone());
        }
    }
}
