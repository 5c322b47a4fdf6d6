//! A log, with the content of all its regions.

use crate::loss::add;
use crate::{
    binary, text, ByteOrder, Compression, Counted, Error, Fault, Heatmap, Job, Limits, Loss, LossKind,
    LustreFile, Module, Names, Region, Traced,
};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;

/// The form in which a log was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Binary {
        order: ByteOrder,
        compression: Compression,
    },
    /// The log is the text output of darshan-parser.
    Text,
}

#[derive(Clone, Debug)]
pub struct Log {
    /// Version of the format as the log states it, such as `3.41`; empty for a text that does not state it.
    pub format: String,
    pub written: Written,
    /// The job; `None` if its region is damaged, which is counted as a loss.
    pub job: Option<Job>,
    pub names: Names,
    /// Counters in the order of the modules' numbers. A module without records may be missing.
    pub counted: Vec<Counted>,
    pub lustre: Vec<LustreFile>,
    pub traced: Vec<Traced>,
    pub heatmaps: Vec<Heatmap>,
    pub losses: Vec<Loss>,
}

impl Log {
    pub(crate) fn new(format: String, written: Written) -> Log {
        Log {
            format,
            written,
            job: None,
            names: Names::default(),
            counted: Vec::new(),
            lustre: Vec::new(),
            traced: Vec::new(),
            heatmaps: Vec::new(),
            losses: Vec::new(),
        }
    }

    /// Reads the log or text at `path`. It returns an error only if nothing can be read.
    pub fn open(path: &Path, limits: Limits) -> Result<Log, Error> {
        let read = || Log::read(File::open(path).map_err(Fault::Unreadable)?, limits);
        read().map_err(|fault| Error::new(path, fault))
    }

    /// Reads a log or a text from `source`.
    pub fn read(mut source: impl Read + Seek, limits: Limits) -> Result<Log, Fault> {
        let mut head = Vec::new();
        source.by_ref().take(text::HEAD_BYTES).read_to_end(&mut head).map_err(Fault::Unreadable)?;
        source.rewind().map_err(Fault::Unreadable)?;
        if text::is_text(&head) {
            text::read(std::io::BufReader::new(source), limits)
        } else {
            binary::read(source, limits)
        }
    }

    /// Returns the counters of a module, if the log has any.
    pub fn module(&self, module: Module) -> Option<&Counted> {
        self.counted.iter().find(|counted| counted.module == module)
    }

    /// Returns the number of records of all modules that this crate reads.
    pub fn records(&self) -> usize {
        let counted: usize = self.counted.iter().map(Counted::len).sum();
        let traced: usize = self.traced.iter().map(|traced| traced.files.len()).sum();
        counted + traced + self.lustre.len() + self.heatmaps.len()
    }

    /// Counts losses that the data show: records without names, and known problems of a version of Darshan.
    pub(crate) fn count_what_is_known(&mut self) {
        for counted in &self.counted {
            let place = Region::Module(counted.module);
            let unnamed = counted.records().filter(|record| self.names.bytes(record.id()).is_none()).count();
            add(&mut self.losses, LossKind::UnnamedRecords, place, unnamed as u64);
            if let Some(kind) = doubted(counted, &self.format) {
                add(&mut self.losses, kind, place, doubtful_records(counted, kind));
            }
        }
    }
}

/// Returns the known problem of a module's version, according to the warnings that `darshan-*-logutils.c`
/// prints.
fn doubted(counted: &Counted, format: &str) -> Option<LossKind> {
    match (counted.module, counted.version) {
        (Module::POSIX | Module::MPI_IO | Module::H5D, _) if format == "3.20" => {
            Some(LossKind::SuspectCounters)
        }
        (Module::MPI_IO, Some(1)) => Some(LossKind::ImpreciseTimes),
        (Module::POSIX, Some(1)) => Some(LossKind::MixedCounters),
        _ => None,
    }
}

fn doubtful_records(counted: &Counted, kind: LossKind) -> u64 {
    let streams = counted.layout.counter("POSIX_FOPENS").filter(|_| kind == LossKind::MixedCounters);
    match streams {
        Some(at) => counted.records().filter(|record| record.counter(at) > 0).count() as u64,
        None => counted.len() as u64,
    }
}
