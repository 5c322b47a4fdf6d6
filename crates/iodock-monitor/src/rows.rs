//! Rows of the store, and the Parquet files that contain them.

use crate::columns::{COLUMNS, COUNTERS};
use crate::error::MonitorError;
use crate::sender::SenderTarget;
use iodock_samples::batch::JobName;
use iodock_samples::event::Event;
use iodock_samples::sample::{unique_text, Owner, Quantity};
use iodock_store::{Cell, TableWriter};
use std::fs::File;
use std::path::Path;

/// Activity of an owner on a target between two readings.
pub struct JobRow {
    pub begin: i64,
    pub end: i64,
    pub place: SenderTarget,
    pub owner: Owner,
    /// Whether the counters are exact. If not, they are lower bounds.
    pub is_exact: bool,
    pub counters: [u64; COLUMNS],
}

/// Growth of a counter without an owner between two readings, or a level at time `end`.
pub struct ValueRow {
    pub begin: i64,
    pub end: i64,
    pub place: SenderTarget,
    pub operation: String,
    pub quantity: Quantity,
    pub bucket: u64,
    pub value: u64,
    pub is_exact: bool,
}

pub struct LossRow {
    pub time: i64,
    pub host: String,
    pub name: String,
    pub source: String,
    pub target: String,
    pub count: u64,
    pub detail: String,
}

pub struct EventRow {
    pub host: String,
    pub event: Event,
}

pub struct NameRow {
    /// Time of the batch that contained the name, ns since the epoch.
    pub time: i64,
    pub host: String,
    pub named: JobName,
}

/// Rows that arrived since the last flush.
#[derive(Default)]
pub struct Rows {
    pub jobs: Vec<JobRow>,
    pub values: Vec<ValueRow>,
    pub losses: Vec<LossRow>,
    pub events: Vec<EventRow>,
    pub names: Vec<NameRow>,
}

/// A file of rows that was completely written to the disk.
pub struct Written {
    pub table: &'static str,
    /// Earliest begin and latest end of the rows, ns since the epoch.
    pub begin: i64,
    pub end: i64,
    pub rows: u64,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.jobs.len() + self.values.len() + self.losses.len() + self.events.len() + self.names.len()
    }

    /// Appends the rows of `later`.
    pub fn append(&mut self, mut later: Rows) {
        self.jobs.append(&mut later.jobs);
        self.values.append(&mut later.values);
        self.losses.append(&mut later.losses);
        self.events.append(&mut later.events);
        self.names.append(&mut later.names);
    }

    /// Writes a file for every table that has rows, at the path that `path` returns.
    ///
    /// # Errors
    /// Fails if the file system fails.
    pub fn write(
        &self,
        path: &mut dyn FnMut(&'static str) -> Result<std::path::PathBuf, MonitorError>,
    ) -> Result<Vec<Written>, MonitorError> {
        let mut written = Vec::new();
        if !self.jobs.is_empty() {
            job_io(&self.jobs, &path("job_io")?)?;
            written.push(extent("job_io", self.jobs.iter().map(|row| (row.begin, row.end))));
        }
        if !self.values.is_empty() {
            targets(&self.values, &path("targets")?)?;
            written.push(extent("targets", self.values.iter().map(|row| (row.begin, row.end))));
        }
        if !self.losses.is_empty() {
            losses(&self.losses, &path("losses")?)?;
            written.push(extent("losses", self.losses.iter().map(|row| (row.time, row.time))));
        }
        if !self.events.is_empty() {
            events(&self.events, &path("events")?)?;
            written.push(extent("events", self.events.iter().map(|row| (row.event.first, row.event.last))));
        }
        if !self.names.is_empty() {
            job_names(&self.names, &path("job_names")?)?;
            written.push(extent("job_names", self.names.iter().map(|row| (row.time, row.time))));
        }
        Ok(written)
    }
}

fn extent(table: &'static str, intervals: impl Iterator<Item = (i64, i64)>) -> Written {
    let none = Written { table, begin: i64::MAX, end: i64::MIN, rows: 0 };
    intervals.fold(none, |all, (begin, end)| Written {
        begin: all.begin.min(begin),
        end: all.end.max(end),
        rows: all.rows + 1,
        ..all
    })
}

const PLACE: &str = "
    required int64 begin_ts; required int64 end_ts;
    required binary host (STRING); required binary source (STRING);
    optional binary file_system (STRING); optional binary target (STRING);";

fn place_cells<'a>(begin: i64, end: i64, place: &'a SenderTarget) -> Vec<Cell<'a>> {
    let named = |text: &'a str| Cell::optional(Some(text).filter(|text| !text.is_empty()));
    let (host, source) = (Cell::text(&place.host), Cell::text(&place.source));
    vec![Cell::Wide(begin), Cell::Wide(end), host, source, named(&place.file_system), named(&place.target)]
}

fn job_io(rows: &[JobRow], path: &Path) -> Result<(), MonitorError> {
    let counters: String = COUNTERS.iter().map(|(name, _)| format!("required int64 {name};\n")).collect();
    let message = format!(
        "message job_io {{ {PLACE}
            optional binary job (STRING); optional binary user (STRING); optional binary session (STRING);
            optional binary command (STRING); required binary known_by (STRING); required boolean exact;
            {counters} required int64 other; required int64 time_us; }}"
    );
    let mut table = TableWriter::create(path, &message)?;
    for row in rows {
        let owner = Texts::of(&row.owner);
        let mut cells = place_cells(row.begin, row.end, &row.place);
        cells.extend(owner.cells(&row.owner));
        cells.push(Cell::Bool(row.is_exact));
        cells.extend(row.counters.iter().map(|&value| wide(value)));
        table.row(cells)?;
    }
    finish(table, path)
}

/// Ids of an owner as texts. An id is `None` if the owner has none.
struct Texts {
    job: Option<String>,
    user: Option<String>,
    session: Option<String>,
    command: Option<String>,
}

impl Texts {
    fn of(owner: &Owner) -> Texts {
        let text = |id: &[u8]| Some(unique_text(id)).filter(|text| !text.is_empty());
        Texts {
            // The text is empty for a job whose id is unknown, and null for an owner that is no job.
            job: owner.has_job().then(|| unique_text(&owner.job)),
            user: text(&owner.user),
            session: text(&owner.session),
            command: text(&owner.command),
        }
    }

    fn cells<'a>(&'a self, owner: &Owner) -> [Cell<'a>; 5] {
        let cell = |text: &'a Option<String>| Cell::optional(text.as_deref());
        let known_by = Cell::text(owner.evidence.name());
        [cell(&self.job), cell(&self.user), cell(&self.session), cell(&self.command), known_by]
    }
}

fn targets(rows: &[ValueRow], path: &Path) -> Result<(), MonitorError> {
    let message = format!(
        "message targets {{ {PLACE}
            required binary metric (STRING); optional binary unit (STRING); optional int64 bucket;
            required boolean is_level; required int64 value; optional int64 greatest;
            required boolean exact; }}"
    );
    let mut table = TableWriter::create(path, &message)?;
    for row in rows {
        let metric = row.quantity.metric_name(&row.operation);
        let mut cells = place_cells(row.begin, row.end, &row.place);
        cells.push(Cell::text(&metric));
        cells.push(Cell::optional(row.quantity.unit()));
        cells.push(if row.quantity.has_buckets() { wide(row.bucket) } else { Cell::Null });
        let is_level = row.quantity == Quantity::Level;
        cells.extend([Cell::Bool(is_level), wide(row.value)]);
        cells.extend([if is_level { wide(row.value) } else { Cell::Null }, Cell::Bool(row.is_exact)]);
        table.row(cells)?;
    }
    finish(table, path)
}

fn losses(rows: &[LossRow], path: &Path) -> Result<(), MonitorError> {
    let message = "message losses { required int64 ts; required binary host (STRING);
        required binary name (STRING); required binary source (STRING); required binary target (STRING);
        required int64 count; required binary detail (STRING); }";
    let mut table = TableWriter::create(path, message)?;
    for row in rows {
        let texts = [&row.host, &row.name, &row.source, &row.target].map(|text| Cell::text(text));
        let mut cells = vec![Cell::Wide(row.time)];
        cells.extend(texts);
        cells.extend([wide(row.count), Cell::text(&row.detail)]);
        table.row(cells)?;
    }
    finish(table, path)
}

fn events(rows: &[EventRow], path: &Path) -> Result<(), MonitorError> {
    let message = "message events { required int64 ts; required int64 last_ts;
        required binary host (STRING); required binary kind (STRING); required binary severity (STRING);
        required binary source (STRING); optional binary file_system (STRING);
        optional binary target (STRING); required int64 count; required binary text (STRING); }";
    let mut table = TableWriter::create(path, message)?;
    for EventRow { host, event } in rows {
        let named = |text| Cell::optional(Some(text).filter(|text: &&str| !text.is_empty()));
        let mut cells = vec![Cell::Wide(event.first), Cell::Wide(event.last), Cell::text(host)];
        cells.extend([Cell::text(&event.kind), Cell::text(event.severity.name()), Cell::text(&event.source)]);
        cells.extend([named(&event.file_system), named(&event.target)]);
        cells.extend([wide(event.count), Cell::text(&event.text)]);
        table.row(cells)?;
    }
    finish(table, path)
}

fn job_names(rows: &[NameRow], path: &Path) -> Result<(), MonitorError> {
    let message = "message job_names { required int64 ts; required binary host (STRING);
        required binary job (STRING); required binary user (STRING); required binary name (STRING); }";
    let mut table = TableWriter::create(path, message)?;
    for NameRow { time, host, named } in rows {
        let texts = [&named.job, &named.user, &named.name].map(|text| unique_text(text));
        let mut cells = vec![Cell::Wide(*time), Cell::text(host)];
        cells.extend(texts.iter().map(|text| Cell::text(text)));
        table.row(cells)?;
    }
    finish(table, path)
}

/// Converts a counter to a signed number, because columns of tables are signed. Values of 2^63 and more,
/// which no real counter reaches, become the maximum.
fn wide<'a>(value: u64) -> Cell<'a> {
    Cell::Wide(i64::try_from(value).unwrap_or(i64::MAX))
}

fn finish(table: TableWriter, path: &Path) -> Result<(), MonitorError> {
    let _ = table.finish()?;
    File::open(path).and_then(|file| file.sync_all()).map_err(MonitorError::io(path))
}
