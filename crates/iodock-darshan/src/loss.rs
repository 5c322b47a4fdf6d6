//! Data of a log that could not be read, or that Darshan itself did not keep.

use crate::Module;
use std::fmt;

/// A part of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Region {
    Header,
    Job,
    Names,
    Module(Module),
    /// A line of darshan-parser's text, counted from 1.
    Line(u64),
}

impl fmt::Display for Region {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Region::Header => out.write_str("header"),
            Region::Job => out.write_str("job data"),
            Region::Names => out.write_str("names of files"),
            Region::Module(module) => write!(out, "{} module", module.name()),
            Region::Line(line) => write!(out, "line {line}"),
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident $name:literal $cure:literal,)+) => {
        /// The kinds of loss, each with its name and its cure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LossKind { $($(#[$doc])* $variant,)+ }
        impl LossKind {
            pub const ALL: &'static [LossKind] = &[$(LossKind::$variant,)+];
            /// Returns the stable name of the kind, in kebab case.
            pub fn name(self) -> &'static str { match self { $(LossKind::$variant => $name,)+ } }
            /// Returns advice: what the user can do about the loss.
            pub fn cure(self) -> &'static str { match self { $(LossKind::$variant => $cure,)+ } }
        }
    };
}

kinds! {
    /// The log has Darshan's own flag for an incomplete module. Counted once per module.
    PartialModule "darshan-partial-module" "Darshan ran out of memory for this module's records, and further files were not counted: run again with a larger DARSHAN_MODMEM (MiB a process) and DARSHAN_NAMEMEM (names), or leave out files that don't matter (NAME_EXCLUDE in Darshan's configuration)",
    /// Counted in bytes of the log.
    UnreadModule "darshan-unread-module" "iodock does not read this module of Darshan: darshan-parser shows its counters",
    /// Counted in bytes of the log.
    NewerModule "darshan-newer-module" "a newer Darshan wrote these records: use a newer iodock",
    /// Counted once per log.
    UnknownFormat "darshan-unknown-format" "no Darshan up to 3.5 writes this version of the format, so values may be wrong: use a newer iodock; if the log is damaged, copy it again",
    /// Counted in bytes of the log.
    DamagedRegion "darshan-damaged-region" "these bytes of the log do not match their checksum, so their content is unknown: copy the log again, as a binary file; the rest of the log was read",
    /// Counted in missing bytes, or 1 if their number is not known.
    CutRegion "darshan-cut-region" "the log ends too early: copy it again, or run again with space for the log; the remaining records were read",
    /// Counted in surplus bytes of the log.
    UnclaimedBytes "darshan-unclaimed-bytes" "no part of the log claims these bytes, so their content is unknown: the header is damaged; copy the log again, as a binary file",
    /// Counted in bytes of the log.
    OverlappingRegions "darshan-overlapping-regions" "two parts of the log claim the same bytes, so records may be wrong: the header is damaged; copy the log again, as a binary file",
    /// Counted in bytes of the log.
    OversizedRegion "darshan-oversized-region" "the log grows beyond the memory that iodock uses, so the rest was not read: check that it is a log of Darshan",
    /// Counted in records, or 1 if their number is not known.
    DifferingRecords "darshan-differing-records" "these records have another length than their version defines, because some sites modify Darshan: added values are not read",
    /// Counted in records.
    IncompleteRecords "darshan-incomplete-records" "these records end too early, and were left out: copy the log again",
    /// Counted in records.
    UnnamedRecords "darshan-unnamed-records" "the names of these files are not in the log: raise DARSHAN_NAMEMEM; where the log is damaged, copy it anew",
    /// Counted in records.
    SuspectCounters "darshan-suspect-counters" "Darshan 3.2.0 wrote wrong numbers for the most common sizes, and perhaps for others: run again with a later Darshan",
    /// Counted in records.
    ImpreciseTimes "darshan-imprecise-times" "Darshan before 3.1.1 could set the time of the first write of MPI-IO wrongly: run again with a later Darshan",
    /// Counted in records.
    MixedCounters "darshan-mixed-counters" "Darshan before 3.1.0 counted bytes and times of C streams (fopen) with those of POSIX: run again with a later Darshan",
    /// Counted in bytes of the log, according to its text.
    MissingModule "darshan-missing-module" "the text states that the log has this module, but lacks its records: give iodock the log itself, or write the text again with darshan-parser --show-incomplete LOG",
    /// Counted in lines of a text.
    UnreadableLines "darshan-unreadable-lines" "these lines are not from darshan-parser: write the text again with darshan-parser LOG",
    /// Counted once per text.
    RoundedTimes "darshan-rounded-times" "darshan-parser rounds times to microseconds: give iodock the log itself",
}

/// A loss in one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub kind: LossKind,
    pub region: Region,
    /// Number lost; its unit depends on the kind.
    pub count: u64,
}

impl fmt::Display for Loss {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {} ({}): {}", self.region, self.kind.name(), self.count, self.kind.cure())
    }
}

/// Adds a loss to the losses of a log, which have one row for each kind and region.
pub(crate) fn add(losses: &mut Vec<Loss>, kind: LossKind, region: Region, count: u64) {
    if count == 0 {
        return;
    }
    match losses.iter_mut().find(|loss| loss.kind == kind && loss.region == region) {
        Some(loss) => loss.count = loss.count.saturating_add(count),
        None => losses.push(Loss { kind, region, count }),
    }
}
