//! Profiles: counters for each process and file instead of single calls. `docs/explanation/store.md`
//! describes their tables.

use crate::contents::Contents;
use crate::error::StoreError;
use crate::schema;
use crate::table::{Cell, TableWriter};
use std::borrow::Cow;
use std::path::Path;

type Result<T> = std::result::Result<T, StoreError>;

/// The operations of one process, or of all ranks together, on one file through one interface. Unknown values
/// are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileRow<'a> {
    pub job: Option<&'a str>,
    pub host: Option<&'a str>,
    /// The rank; `None` for a sum over all ranks.
    pub rank: Option<i32>,
    /// Number of ranks in the sum.
    pub ranks: Option<i32>,
    pub upid: Option<u32>,
    pub file: u32,
    /// Pattern of the files that are counted together, and the number of these files.
    pub pattern: Option<&'a str>,
    pub files: Option<i64>,
    /// The file that contains this data set or variable.
    pub parent_file: Option<u32>,
    pub interface: &'static str,
    pub counts: Counts,
    pub first_ts: Option<i64>,
    pub last_ts: Option<i64>,
    pub fastest: RankShare,
    pub slowest: RankShare,
    /// Variance of bytes and of seconds over the ranks.
    pub variance_bytes: Option<f64>,
    pub variance_time_s2: Option<f64>,
    /// Names of the columns whose values are estimates.
    pub estimated: &'a [&'static str],
}

/// Number of calls, bytes, and times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub opens: Option<i64>,
    pub reads: Option<i64>,
    pub writes: Option<i64>,
    pub seeks: Option<i64>,
    pub stats: Option<i64>,
    pub syncs: Option<i64>,
    pub read_bytes: Option<i64>,
    pub written_bytes: Option<i64>,
    pub read_time_ns: Option<i64>,
    pub write_time_ns: Option<i64>,
    pub meta_time_ns: Option<i64>,
}

/// The share of the fastest or of the slowest rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankShare {
    pub rank: Option<i32>,
    pub bytes: Option<i64>,
    pub time_ns: Option<i64>,
}

/// A bin of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinRow {
    pub quantity: &'static str,
    /// Inclusive bounds of the bin. If `high` is `None`, the bin has no upper bound.
    pub low: i64,
    pub high: Option<i64>,
    pub count: Option<i64>,
    pub bytes: Option<i64>,
}

/// A part of a file's layout on storage servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LayoutRow<'a> {
    pub file: u32,
    pub rank: Option<i32>,
    pub component: i32,
    pub stripe_bytes: Option<i64>,
    pub stripe_count: Option<i64>,
    pub start: Option<i64>,
    pub end: Option<i64>,
    pub pool: Option<&'a str>,
    pub targets: &'a [i64],
    pub file_system_targets: Option<i64>,
}

/// A single access that was traced in addition to the counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessRow<'a> {
    pub file: u32,
    pub interface: &'static str,
    pub rank: Option<i32>,
    pub host: Option<&'a str>,
    pub thread: Option<i64>,
    pub is_write: bool,
    pub offset: Option<i64>,
    pub bytes: Option<i64>,
    pub ts: Option<i64>,
    pub dur: Option<i64>,
}

/// Bytes that a process moved in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeatRow<'a> {
    pub interface: Option<&'a str>,
    pub rank: Option<i32>,
    pub ts: Option<i64>,
    pub end: Option<i64>,
    pub read_bytes: Option<i64>,
    pub written_bytes: Option<i64>,
}

/// The tables of a store of profiles. All of them exist, even without rows.
pub struct ProfileTables {
    profiles: TableWriter,
    counters: TableWriter,
    fields: TableWriter,
    histograms: TableWriter,
    layouts: TableWriter,
    accesses: TableWriter,
    heatmaps: TableWriter,
    next: u32,
}

impl ProfileTables {
    pub fn create(folder: &Path) -> Result<ProfileTables> {
        let table = |name: &str, message| TableWriter::create(&folder.join(name), message);
        Ok(ProfileTables {
            profiles: table("profiles.parquet", schema::PROFILES)?,
            counters: table("profile_counters.parquet", schema::PROFILE_COUNTERS)?,
            fields: table("profile_fields.parquet", schema::PROFILE_FIELDS)?,
            histograms: table("histograms.parquet", schema::HISTOGRAMS)?,
            layouts: table("layouts.parquet", schema::LAYOUTS)?,
            accesses: table("profile_accesses.parquet", schema::PROFILE_ACCESSES)?,
            heatmaps: table("heatmaps.parquet", schema::HEATMAPS)?,
            next: 0,
        })
    }

    /// Appends a profile, and returns its number.
    pub fn profile(&mut self, row: &ProfileRow) -> Result<u32> {
        let id = self.next;
        let estimated: Vec<Cow<str>> = row.estimated.iter().map(|&name| name.into()).collect();
        let key = [
            Cell::id(id),
            Cell::optional(row.job),
            Cell::optional(row.host),
            Cell::optional_number(row.rank),
            Cell::optional_number(row.ranks),
            row.upid.map_or(Cell::Null, Cell::id),
            Cell::id(row.file),
            Cell::optional(row.pattern),
            Cell::wide(row.files),
            row.parent_file.map_or(Cell::Null, Cell::id),
            Cell::text(row.interface),
        ];
        let rest = [Cell::real(row.variance_bytes), Cell::real(row.variance_time_s2), Cell::List(&estimated)];
        let times = [Cell::wide(row.first_ts), Cell::wide(row.last_ts)];
        let cells = key.into_iter().chain(row.counts.cells()).chain(times);
        let cells = cells.chain(row.fastest.cells()).chain(row.slowest.cells()).chain(rest);
        self.profiles.row(cells.collect::<Vec<_>>())?;
        self.next += 1;
        Ok(id)
    }

    /// Adds a counter of a profile that has no column of its own. The counter is an integer or a fraction.
    pub fn counter(
        &mut self,
        profile: u32,
        name: &str,
        value: Option<i64>,
        fraction: Option<f64>,
    ) -> Result<()> {
        self.counters.row([Cell::id(profile), Cell::text(name), Cell::wide(value), Cell::real(fraction)])
    }

    /// Adds a counter that all profiles of an interface have. A profile without a row for it has the value 0.
    pub fn field(&mut self, interface: &str, name: &str) -> Result<()> {
        self.fields.row([Cell::text(interface), Cell::text(name)])
    }

    pub fn bin(&mut self, profile: u32, bin: &BinRow) -> Result<()> {
        self.histograms.row([
            Cell::id(profile),
            Cell::text(bin.quantity),
            Cell::Wide(bin.low),
            Cell::wide(bin.high),
            Cell::wide(bin.count),
            Cell::wide(bin.bytes),
        ])
    }

    pub fn layout(&mut self, row: &LayoutRow) -> Result<()> {
        let targets: Vec<Cow<str>> = row.targets.iter().map(|target| target.to_string().into()).collect();
        self.layouts.row([
            Cell::id(row.file),
            Cell::optional_number(row.rank),
            Cell::Narrow(row.component),
            Cell::wide(row.stripe_bytes),
            Cell::wide(row.stripe_count),
            Cell::wide(row.start),
            Cell::wide(row.end),
            Cell::optional(row.pool),
            Cell::List(&targets),
            Cell::wide(row.file_system_targets),
        ])
    }

    pub fn access(&mut self, row: &AccessRow) -> Result<()> {
        self.accesses.row([
            Cell::id(row.file),
            Cell::text(row.interface),
            Cell::optional_number(row.rank),
            Cell::optional(row.host),
            Cell::wide(row.thread),
            Cell::Bool(row.is_write),
            Cell::wide(row.offset),
            Cell::wide(row.bytes),
            Cell::wide(row.ts),
            Cell::wide(row.dur),
        ])
    }

    pub fn heat(&mut self, row: &HeatRow) -> Result<()> {
        self.heatmaps.row([
            Cell::optional(row.interface),
            Cell::optional_number(row.rank),
            Cell::wide(row.ts),
            Cell::wide(row.end),
            Cell::wide(row.read_bytes),
            Cell::wide(row.written_bytes),
        ])
    }

    /// Writes the remaining rows, and closes the tables.
    pub(crate) fn finish(self, store: &Path, contents: &mut Contents) -> Result<()> {
        let tables = [
            ("profiles", self.profiles),
            ("profile_counters", self.counters),
            ("profile_fields", self.fields),
            ("histograms", self.histograms),
            ("layouts", self.layouts),
            ("profile_accesses", self.accesses),
            ("heatmaps", self.heatmaps),
        ];
        tables.into_iter().try_for_each(|(name, table)| {
            contents.add_table(name, store, table.finish()?);
            Ok(())
        })
    }
}

impl Counts {
    fn cells<'a>(self) -> [Cell<'a>; 11] {
        [
            self.opens,
            self.reads,
            self.writes,
            self.seeks,
            self.stats,
            self.syncs,
            self.read_bytes,
            self.written_bytes,
            self.read_time_ns,
            self.write_time_ns,
            self.meta_time_ns,
        ]
        .map(Cell::wide)
    }
}

impl RankShare {
    fn cells<'a>(self) -> [Cell<'a>; 3] {
        [Cell::optional_number(self.rank), Cell::wide(self.bytes), Cell::wide(self.time_ns)]
    }
}
