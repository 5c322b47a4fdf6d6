//! Reads a file with one table, or with one table for each kind of program (64 bit, 32 bit) in a run.

use super::columns::{header, rule};
use super::rows::{is_sums, Layout, Row};
use crate::input::Progress;
use crate::strace::known_call;
use crate::{Input, LogSource};
use iodock_event::{Batch, CallId, CallTotal, Clock, FirstLoss, LossKind, RecordSource, SourceError};
use rustc_hash::FxHashSet;
use std::io::Read;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Largest size of a file, bytes. A table has at most one row for each existing call, so no file with a table
/// is larger.
const LONGEST: usize = 16 << 20;
/// Rounding error of a time in ns. strace prints seconds with six decimals.
const ROUNDED: i64 = 500;
/// Limit for the number of calls in all rows. No run makes that many, and sums up to this limit are exact as
/// floating-point numbers.
const MOST_CALLS: i64 = 1 << 53;
/// Limit for the time in all rows, ns: 36 years for all threads together.
const MOST_TIME: i64 = 1 << 60;

/// The totals of a table, as one batch without records.
pub struct TableSource {
    format: &'static str,
    batch: Option<Batch>,
    progress: Arc<Progress>,
}

impl TableSource {
    pub fn read(format: &'static str, wall_clock: bool, input: Input) -> Result<TableSource, SourceError> {
        let (file, progress) = (Arc::clone(input.file()), input.progress());
        let mut text = Vec::new();
        let error = |line, message: String, hint: &str| SourceError {
            file: file.to_string(),
            line,
            message,
            hint: hint.into(),
        };
        let read = input.into_reader().take(LONGEST as u64 + 1).read_to_end(&mut text);
        read.map_err(|failed| error(None, format!("can't be read: {failed}"), "check the file"))?;
        if text.len() > LONGEST {
            let hint = "give the table alone, without what a program wrote before it";
            return Err(error(None, "is longer than any table of strace -c".into(), hint));
        }
        let mut tables = Tables::new(&file, wall_clock);
        tables.all(&text);
        if tables.runs > 1 {
            let message = format!("holds the tables of {} runs of strace -c", tables.runs);
            let second = tables.second_run;
            let hint = format!("import one at a time: --lines 1-{}, or --lines {second}-", second - 1);
            return Err(error(Some(second), message, &hint));
        }
        if tables.batch.totals.is_empty() {
            let hint = "write it again: strace -f -c -o run.table COMMAND";
            return Err(error(Some(1), "holds no row of a table of strace -c".into(), hint));
        }
        Ok(TableSource { format, batch: Some(tables.batch), progress })
    }
}

impl RecordSource for TableSource {
    fn next_batch(&mut self) -> Result<Option<Batch>, SourceError> {
        Ok(self.batch.take())
    }

    fn clock(&self) -> Clock {
        Clock::None
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.progress.read.load(Ordering::Relaxed), self.progress.total)
    }
}

impl LogSource for TableSource {
    fn format(&self) -> &'static str {
        self.format
    }

    fn resolution(&self) -> Option<i64> {
        None
    }
}

/// The tables in the lines read so far.
struct Tables<'a> {
    file: &'a Arc<str>,
    wall_clock: bool,
    batch: Batch,
    /// Number of tables that do not have the title of one of several tables of a run.
    runs: usize,
    second_run: u64,
    /// Whether the previous line was the title of one of several tables of a run.
    titled: bool,
    /// Titles of the tables of this run, which has one table for each kind of program.
    titles: FxHashSet<Vec<u8>>,
    /// Calls and time that may still be added before the limits are reached.
    calls_left: i64,
    time_left: i64,
    table: Option<Table>,
}

/// The current table.
struct Table {
    layout: Layout,
    rows: Vec<Row>,
    first_line: u64,
    last_line: u64,
    /// Names of the calls in the rows read so far.
    names: FxHashSet<Vec<u8>>,
    /// Whether the rule above the sums has been read.
    summed: bool,
}

impl<'a> Tables<'a> {
    fn new(file: &'a Arc<str>, wall_clock: bool) -> Tables<'a> {
        Tables {
            file,
            wall_clock,
            batch: Batch::default(),
            runs: 0,
            second_run: 0,
            titled: false,
            titles: FxHashSet::default(),
            calls_left: MOST_CALLS,
            time_left: MOST_TIME,
            table: None,
        }
    }

    fn all(&mut self, text: &[u8]) {
        let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end).zip(1u64..).peekable();
        while let Some((line, number)) = lines.next() {
            if line.is_empty() && lines.peek().is_none() {
                break;
            }
            self.batch.counts.lines += 1;
            let below = lines.peek().and_then(|(below, _)| rule(below));
            match (header(line), below) {
                (Some(columns), Some(places)) if columns.len() == places.len() => {
                    self.end_table();
                    self.begin_table(Table {
                        layout: Layout { columns, places },
                        rows: Vec::new(),
                        first_line: number,
                        last_line: number + 1,
                        names: FxHashSet::default(),
                        summed: false,
                    });
                    lines.next();
                    self.batch.counts.lines += 1;
                }
                _ if lines.peek().is_none() && !is_sums(line) => self.cut_line(line, number),
                _ => self.line(line, number),
            }
        }
        self.end_table();
    }

    fn begin_table(&mut self, table: Table) {
        if !std::mem::take(&mut self.titled) {
            self.runs += 1;
            if self.runs == 2 {
                self.second_run = table.first_line;
            }
        }
        self.table = Some(table);
    }

    /// Handles a last line without a newline. A row may be cut inside its name, but a row of sums is
    /// recognised anyway.
    fn cut_line(&mut self, line: &[u8], number: u64) {
        match &mut self.table {
            Some(table) => table.last_line = number,
            None => self.line(line, number),
        }
    }

    fn line(&mut self, line: &[u8], number: u64) {
        let known = line.trim_ascii().is_empty() || line.starts_with(b"strace: ");
        if line.starts_with(b"System call usage summary for ") {
            let is_new = self.titles.insert(line.to_vec());
            self.titled = self.runs > 0 && is_new;
            return;
        }
        let Some(table) = &mut self.table else {
            if !known {
                self.lose(LossKind::UnreadableLines, number, line);
            }
            return;
        };
        table.last_line = number;
        if rule(line).is_some_and(|places| places == table.layout.places) {
            table.summed = true;
            return;
        }
        match table.layout.row(line) {
            Some(sums) if sums.name == b"total" => self.check(&sums, number, line),
            Some(row) if !table.summed && is_call(&row.name) && table.names.insert(row.name.clone()) => {
                table.rows.push(row);
            }
            _ if known => {}
            _ => self.lose(LossKind::UnreadableLines, number, line),
        }
    }

    /// Compares the sums of the rows with the table's last line.
    fn check(&mut self, sums: &Row, number: u64, line: &[u8]) {
        let Some(table) = self.table.take() else { return };
        let sum =
            |value: fn(&Row) -> Option<i64>| table.rows.iter().filter_map(value).fold(0, i64::saturating_add);
        let differs = |value: fn(&Row) -> Option<i64>| value(sums).is_some_and(|total| total != sum(value));
        let tolerance = ROUNDED.saturating_mul(table.rows.len() as i64 + 1);
        let drifts = |value: fn(&Row) -> Option<i64>| {
            value(sums).is_some_and(|total| total.saturating_sub(sum(value)).saturating_abs() > tolerance)
        };
        let wrong = [
            differs(|row| row.calls),
            differs(|row| row.errors),
            drifts(|row| row.seconds),
            drifts(|row| row.wall_total),
        ];
        for _ in wrong.iter().filter(|&&is_wrong| is_wrong) {
            self.lose(LossKind::DifferingTotals, number, line);
        }
        self.take(&table);
    }

    /// Ends a table that has no last line, because it was cut.
    fn end_table(&mut self) {
        if let Some(table) = self.table.take() {
            self.lose(LossKind::CutLines, table.last_line, b"");
            self.take(&table);
        }
    }

    fn take(&mut self, table: &Table) {
        for row in &table.rows {
            let Some(call) = CallId::intern(&row.name) else {
                self.batch.lose(LossKind::TooManyNames);
                continue;
            };
            let mut total = total(call, row, self.wall_clock);
            self.make_credible(&mut total);
            self.batch.totals.push(total);
        }
    }

    /// Makes implausible numbers unknown, because sums of all numbers must not overflow.
    fn make_credible(&mut self, total: &mut CallTotal) {
        let counts = [&mut total.calls, &mut total.errors];
        let times = [
            &mut total.time,
            &mut total.shortest,
            &mut total.longest,
            &mut total.sys_cpu,
            &mut total.least_sys_cpu,
            &mut total.most_sys_cpu,
        ];
        let mut lost = 0;
        for count in counts {
            lost += spend(count, &mut self.calls_left);
        }
        for time in times {
            lost += spend(time, &mut self.time_left);
        }
        self.batch.losses.add(LossKind::IncredibleNumbers, lost);
    }

    fn lose(&mut self, kind: LossKind, line: u64, text: &[u8]) {
        let place = || FirstLoss { file: self.file.to_string(), line, sample: crate::places::sample(text) };
        self.batch.losses.add_at(kind, place);
    }
}

/// Returns whether this is the name of a call. strace names all calls that it knows, and prints numbers for
/// others.
fn is_call(name: &[u8]) -> bool {
    name.starts_with(b"syscall_") || known_call(name).is_some()
}

/// Subtracts a number from `left`. A number that is larger than `left` becomes unknown. Returns how many
/// numbers became unknown.
fn spend(number: &mut Option<i64>, left: &mut i64) -> u64 {
    match number {
        Some(value) if *value > *left => {
            *number = None;
            1
        }
        value => {
            *left -= value.unwrap_or(0);
            0
        }
    }
}

fn total(call: CallId, row: &Row, wall_clock: bool) -> CallTotal {
    let counted = CallTotal { calls: row.calls, errors: row.errors, ..CallTotal::new(call) };
    if wall_clock {
        let (time, shortest, longest) = (row.seconds, row.shortest, row.longest);
        return CallTotal { time, shortest, longest, ..counted };
    }
    CallTotal {
        time: row.wall_total,
        shortest: row.wall_shortest,
        longest: row.wall_longest,
        sys_cpu: row.seconds,
        least_sys_cpu: row.shortest,
        most_sys_cpu: row.longest,
        ..counted
    }
}
