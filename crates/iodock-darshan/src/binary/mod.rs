//! Binary logs: a header, and compressed regions for the job, the names and each module.

mod header;
mod inflate;
mod modules;

use crate::loss::add;
use crate::{Fault, Job, Log, LossKind, Module, Region, Written};
pub use header::Compression;
use header::{Header, Span};
use inflate::Inflated;
use std::io::{self, Read, Seek, SeekFrom};

/// Limits for reading a log.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Memory limit for all decompressed regions together, bytes.
    pub inflated_bytes: u64,
    /// Whether to read single accesses (DXT), heatmaps and layouts. If false, damage to them is not a loss.
    pub details: bool,
}

impl Limits {
    /// Returns limits for callers that need only the job and its counters.
    pub fn without_details() -> Limits {
        Limits { details: false, ..Limits::default() }
    }
}

impl Default for Limits {
    /// Returns a memory limit of 1 GiB, which suffices for a million records of POSIX or 25 million accesses.
    fn default() -> Limits {
        Limits { inflated_bytes: 1 << 30, details: true }
    }
}

/// The highest compression ratio of Deflate. A region that claims more is invalid.
const HIGHEST_RATIO: u64 = 1032;
/// Decompressed size that is valid for a short region whatever its ratio, because bzip2 has no highest ratio.
const ALWAYS: u64 = 1 << 20;

/// Checks the header of a log, and returns the fault that it finds.
pub fn check(head: &[u8]) -> Result<(), Fault> {
    Header::read(head).map(drop)
}

/// Reads a binary log.
pub fn read(mut source: impl Read + Seek, limits: Limits) -> Result<Log, Fault> {
    let mut head = Vec::new();
    source.by_ref().take(header::LONGEST as u64).read_to_end(&mut head).map_err(Fault::Unreadable)?;
    let header = Header::read(&head)?;
    let file_bytes = source.seek(SeekFrom::End(0)).map_err(Fault::Unreadable)?;
    let written = Written::Binary { order: header.order, compression: header.compression };
    let mut regions = Regions {
        source,
        file_bytes,
        header,
        room: limits.inflated_bytes,
        details: limits.details,
        log: Log::new(String::new(), written),
    };
    regions.read().map_err(Fault::Unreadable)?;
    Ok(regions.log)
}

struct Regions<S> {
    source: S,
    file_bytes: u64,
    header: Header,
    /// Number of bytes that remain of [`Limits::inflated_bytes`].
    room: u64,
    /// The value of [`Limits::details`].
    details: bool,
    log: Log,
}

impl<S: Read + Seek> Regions<S> {
    fn read(&mut self) -> io::Result<()> {
        self.log.format = self.header.version.clone();
        if !self.header.is_known() {
            self.lose(LossKind::UnknownFormat, Region::Header, 1);
        }
        self.job()?;
        self.names()?;
        for number in 0..Module::ROOM as u8 {
            self.module(Module(number))?;
        }
        self.unclaimed()?;
        self.log.count_what_is_known();
        Ok(())
    }

    fn lose(&mut self, kind: LossKind, region: Region, count: u64) {
        add(&mut self.log.losses, kind, region, count);
    }

    /// Returns the job's region, which is between the header and the first other region.
    fn job_span(&self) -> Span {
        let others = std::iter::once(self.header.names).chain(self.header.modules.iter().map(|one| one.span));
        let first = others.filter(|span| span.at > 0).map(|span| span.at).min().unwrap_or(self.file_bytes);
        Span { at: self.header.bytes, bytes: first.saturating_sub(self.header.bytes) }
    }

    fn job(&mut self) -> io::Result<()> {
        let span = self.job_span();
        let mut compressed = self.bytes(span, Region::Job)?;
        if self.header.compression != Compression::None {
            // The headers of some sites are longer than specified and filled with zeros.
            let zeros = compressed.iter().take_while(|&&byte| byte == 0).count();
            compressed.drain(..zeros);
        }
        let region = self.inflate(&compressed, span, Region::Job);
        let first = streams(&region).next().unwrap_or_default();
        self.log.job = Job::read(first, self.header.order, self.header.has_nanoseconds());
        let is_told = self.log.losses.iter().any(|loss| loss.region == Region::Job);
        if self.log.job.is_none() && !is_told {
            self.lose(LossKind::CutRegion, Region::Job, 1);
        }
        Ok(())
    }

    fn names(&mut self) -> io::Result<()> {
        let span = self.header.names;
        let region = self.region(span, Region::Names)?;
        let mut left = 0;
        for stream in streams(&region) {
            left += self.log.names.read(stream, self.header.order, self.header.has_lengths_of_names());
        }
        if left > 0 && !region.is_cut {
            self.lose(LossKind::IncompleteRecords, Region::Names, 1);
        }
        Ok(())
    }

    fn module(&mut self, module: Module) -> io::Result<()> {
        let section = self.header.modules[usize::from(module.0)];
        let place = Region::Module(module);
        if section.is_partial {
            self.lose(LossKind::PartialModule, place, 1);
        }
        if section.span.bytes == 0 || !self.details && module.is_detail() {
            return Ok(());
        }
        match module.newest_version() {
            None => self.lose(LossKind::UnreadModule, place, section.span.bytes),
            Some(newest) if section.version > newest => {
                self.lose(LossKind::NewerModule, place, section.span.bytes);
            }
            Some(_) if section.version == 0 => self.lose(LossKind::DamagedRegion, Region::Header, 4),
            Some(_) => {
                let region = self.region(section.span, place)?;
                modules::read(&mut self.log, module, section.version, self.header.order, region);
            }
        }
        Ok(())
    }

    /// Counts bytes outside of all regions as a loss. Otherwise a header with damaged lengths would look like
    /// a job without I/O. Zeros between regions are no loss, because logs that a process mapped into memory
    /// have gaps there.
    fn unclaimed(&mut self) -> io::Result<()> {
        let modules = self.header.modules.iter().map(|section| section.span);
        let mut spans: Vec<Span> = [self.job_span(), self.header.names].into_iter().chain(modules).collect();
        spans.retain(|span| span.bytes > 0);
        spans.sort_by_key(|span| span.at);
        spans.push(Span { at: self.file_bytes, bytes: 0 });
        let (mut reached, mut unclaimed, mut doubled) = (self.header.bytes, 0, 0);
        for span in spans {
            let again = reached.min(span.end()).saturating_sub(span.at);
            doubled = u64::saturating_add(doubled, again);
            let gap = Span { at: reached, bytes: span.at.min(self.file_bytes).saturating_sub(reached) };
            if gap.bytes > 0 && !self.is_zero(gap)? {
                unclaimed += gap.bytes;
            }
            reached = reached.max(span.end());
        }
        self.lose(LossKind::UnclaimedBytes, Region::Header, unclaimed);
        self.lose(LossKind::OverlappingRegions, Region::Header, doubled);
        Ok(())
    }

    fn is_zero(&mut self, span: Span) -> io::Result<bool> {
        self.source.seek(SeekFrom::Start(span.at))?;
        let mut left = self.source.by_ref().take(span.bytes);
        let mut piece = [0; 8192];
        loop {
            match left.read(&mut piece)? {
                0 => return Ok(true),
                got if piece[..got].iter().any(|&byte| byte != 0) => return Ok(false),
                _ => {}
            }
        }
    }

    /// Returns the compressed bytes of a region, as far as the file contains them.
    fn bytes(&mut self, span: Span, region: Region) -> io::Result<Vec<u8>> {
        let there = self.file_bytes.saturating_sub(span.at).min(span.bytes);
        self.lose(LossKind::CutRegion, region, span.bytes - there);
        // This limits the memory of the compressed bytes to that of the decompressed ones.
        let taken = there.min(self.room);
        self.lose(LossKind::OversizedRegion, region, there - taken);
        let mut bytes = Vec::new();
        if taken > 0 {
            self.source.seek(SeekFrom::Start(span.at))?;
            self.source.by_ref().take(taken).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    fn region(&mut self, span: Span, region: Region) -> io::Result<Inflated> {
        let compressed = self.bytes(span, region)?;
        Ok(self.inflate(&compressed, span, region))
    }

    fn inflate(&mut self, compressed: &[u8], span: Span, region: Region) -> Inflated {
        let most = (compressed.len() as u64).saturating_mul(HIGHEST_RATIO).max(ALWAYS);
        let room = self.room.min(most) as usize;
        let is_cut = span.end() > self.file_bytes;
        let inflated = inflate::inflate(self.header.compression, compressed, room, is_cut);
        self.room = self.room.saturating_sub(inflated.bytes.len() as u64);
        self.lose(LossKind::DamagedRegion, region, inflated.damaged);
        self.lose(LossKind::OversizedRegion, region, inflated.oversized);
        inflated
    }
}

/// Returns the bytes of each stream of a region.
fn streams(region: &Inflated) -> impl Iterator<Item = &[u8]> {
    let starts = std::iter::once(0).chain(region.ends.iter().copied());
    starts.zip(&region.ends).map(|(start, &end)| &region.bytes[start..end])
}
