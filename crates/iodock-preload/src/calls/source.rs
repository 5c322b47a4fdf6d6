//! Reads a file of raw calls as a source of records, and recovers data that a killed recorder left in its
//! session.

use super::file::{CallsFile, CallsWriter};
use super::keep::Keeper;
use super::offers::Offers;
use super::records::{Ending, Records};
use super::streams::{Chunks, Streams};
use super::times::Times;
use super::usages::Usages;
use crate::format::header;
use crate::light::Table;
use crate::own;
use crate::reader::{ChunkReader, Entry, ProcessRecord};
use crate::session::{place_of, Session, TIME_SHIFT};
use crate::shapes::Shapes;
use iodock_event::{Batch, Clock, LossKind, RecordSource, SourceError};
use std::path::Path;
use std::{fs, io};

const BATCH_RECORDS: usize = 1024;

/// Tables of counters, and the conversion of their ticks to time.
pub struct Counts {
    pub tables: Vec<Table>,
    /// Conversion from the session's clock, in its units, to ns since the epoch.
    pub times: Times,
    pub time_shift: u32,
}

impl Counts {
    /// Returns the tables in the file, and those that are only in the session if it still exists.
    fn of(file: &CallsFile, session: Option<&Session>) -> Counts {
        let growing = if file.lost.is_none() && session.is_none() {
            Session::open(&file.session, file.number).ok()
        } else {
            None
        };
        let mut tables: Vec<Table> = file.tables().filter_map(|(_, bytes)| Table::parse(bytes)).collect();
        if let Some(session) = session.or(growing.as_ref()) {
            let numbers = (0..session.tables().unwrap_or(0)).filter(|&number| !file.holds_table(number));
            tables.extend(numbers.filter_map(|number| Table::parse(&session.table(number).ok()??)));
        }
        Counts { tables, times: Times::new(file.clocks.clone()), time_shift: TIME_SHIFT }
    }

    /// Converts a duration in ticks to ns.
    pub fn nanoseconds(&mut self, ticks: u64) -> f64 {
        const SPAN: u64 = 1 << 32;
        let begin = self.times.begin();
        let span = self.times.ns(begin + SPAN) - self.times.ns(begin);
        ticks as f64 * span as f64 / SPAN as f64 / f64::from(1 << self.time_shift)
    }

    /// Converts a reading of the clock in ticks to ns since the epoch.
    pub fn moment(&mut self, ticks: u64) -> i64 {
        self.times.ns(ticks >> self.time_shift)
    }
}

/// Returns a file's calls in the order of their ends, with the births and ends of tasks.
pub struct CallsSource {
    name: String,
    streams: Streams,
    records: Records,
    root: u32,
    length: u64,
    ending: Option<Ending>,
    /// Whether all entries were read.
    over: bool,
    /// Whether the last batch was returned.
    given: bool,
    /// An entry of a file that is followed, which can be interpreted only after more data have arrived.
    stalled: Option<(usize, Entry)>,
    /// Number of calls of all processes that are missing in this file; `None` if it is not known.
    missing: Option<u64>,
    light: Option<Box<Counts>>,
    spare: Vec<Batch>,
}

impl CallsSource {
    /// Opens a file as a source. `session` is a part of the result of [`recover`].
    ///
    /// # Errors
    /// The file can't be read.
    pub fn open(file: CallsFile, session: Option<Session>) -> Result<CallsSource, SourceError> {
        let name = file.path.display().to_string();
        let light = Some(Box::new(Counts::of(&file, session.as_ref())));
        let (root, length) = (file.root, file.length());
        let mut records = Records::new(root, Times::new(file.clocks.clone()));
        records.batch.losses.add(LossKind::DroppedRecords, file.damaged);
        records.counted.leave_out(light.iter().flat_map(|counts| &counts.tables).map(|table| table.pid));
        let is_whole = file.damaged == 0 && session.is_none();
        let streams = Streams::new(Chunks { file, session }).map_err(|error| refusal(&name, &error))?;
        let mut source = CallsSource {
            name,
            streams,
            records,
            root,
            length,
            ending: None,
            over: false,
            given: false,
            stalled: None,
            missing: None,
            light,
            spare: Vec::new(),
        };
        if !source.streams.is_followed() {
            source.tell_lost(is_whole);
        }
        Ok(source)
    }

    /// Reports what the library has not recorded. `is_whole`: the file is complete.
    fn tell_lost(&mut self, is_whole: bool) {
        let told = self.streams.lost();
        let lost = told.unwrap_or_default();
        let losses = &mut self.records.batch.losses;
        losses.add(LossKind::DroppedRecords, lost.calls + lost.streams);
        losses.add(LossKind::StoppedProcesses, lost.stopped);
        losses.add(LossKind::UnreadableMemory, lost.unread_paths);
        losses.add(LossKind::PythonFrames, lost.python);
        losses.add(LossKind::UnknownPlaces, lost.unplaced);
        self.missing = told.filter(|lost| is_whole && lost.streams == 0).map(|lost| lost.calls);
    }

    /// Returns the tables of counters of the recording. A second call returns `None`.
    pub fn take_counts(&mut self) -> Option<Counts> {
        self.light.take().map(|counts| *counts)
    }

    /// Returns the resource usage of tasks, which grows while calls are read.
    pub fn usages(&self) -> Usages {
        self.records.usages.clone()
    }

    /// Returns the time up to which a file that is still being written is complete, in ns since the epoch.
    pub fn until(&self) -> Option<i64> {
        self.streams.is_growing().then(|| self.streams.last_clock()).flatten()
    }

    /// Sets how the first process ended. A file that is followed is read to its end only after this call.
    pub fn set_ending(&mut self, ending: Ending) {
        self.ending = Some(ending);
    }

    /// Whether the part of the file that was read is complete.
    pub fn is_complete(&self) -> bool {
        !self.streams.is_growing()
    }

    /// Reports calls made without libc. If an unknown number of records is missing, the kernel's count can't
    /// show them.
    fn tell_unseen(&mut self) {
        let unseen = self.records.counted.unseen();
        if let Some(missing) = self.missing.filter(|_| self.streams.damaged == 0) {
            self.records.batch.losses.add(LossKind::UnseenCalls, unseen.saturating_sub(missing));
        }
    }
}

fn refusal(name: &str, error: &io::Error) -> SourceError {
    SourceError {
        file: name.into(),
        line: None,
        message: format!("cannot read the recorded calls: {error}"),
        hint: "check the file system that holds the store".into(),
    }
}

impl CallsSource {
    /// Reads entries until the batch is full or no entry is left.
    fn fill(&mut self) -> Result<(), SourceError> {
        let name = self.name.clone();
        let refused = |error: io::Error| refusal(&name, &error);
        while !self.over && self.records.batch.records.len() < BATCH_RECORDS {
            let next = match self.stalled.take() {
                None => self.streams.next().map_err(refused)?,
                stalled => stalled,
            };
            let Some((stream, entry)) = next else {
                if self.streams.is_growing() || self.streams.is_followed() && self.ending.is_none() {
                    break;
                }
                self.end();
                break;
            };
            if let Entry::Task { tid, time, .. }
            | Entry::Process(ProcessRecord { tid, time, was_traced: false, .. }) = entry
            {
                if !self.records.is_living(tid) && self.streams.fork_in_flight(tid, time).is_none() {
                    let is_sure = self.streams.look_for_parent(tid, time).map_err(refused)?;
                    if !is_sure {
                        self.stalled = Some((stream, entry));
                        break;
                    }
                }
            }
            self.records.entry(stream, entry, &self.streams);
            if let Some((pid, time)) = self.records.changed.take() {
                self.streams.note_change(pid, time);
            }
        }
        Ok(())
    }

    fn end(&mut self) {
        self.over = true;
        if self.streams.is_followed() {
            self.tell_lost(true);
        }
        let ending = self.ending.take().unwrap_or_default();
        self.records.finish(self.root, &ending);
        self.records.batch.losses.add(LossKind::DroppedRecords, self.streams.damaged);
        self.tell_unseen();
    }
}

impl RecordSource for CallsSource {
    fn next_batch(&mut self) -> Result<Option<Batch>, SourceError> {
        if self.given || self.is_waiting()? {
            return Ok(None);
        }
        self.fill()?;
        if self.records.batch.records.is_empty() && !self.over {
            return Ok(None);
        }
        self.given = self.over;
        let spare = self.spare.pop().unwrap_or_default();
        Ok(Some(self.records.take_batch(spare)))
    }

    fn is_waiting(&mut self) -> Result<bool, SourceError> {
        if !self.streams.is_followed() {
            return Ok(false);
        }
        self.fill()?;
        if !self.streams.is_certain() {
            return Err(refusal(&self.name, &io::Error::other("it was not read in the order of its calls")));
        }
        Ok(!self.over && self.records.batch.records.len() < BATCH_RECORDS)
    }

    fn recycle(&mut self, mut batch: Batch) {
        batch.clear();
        self.spare.push(batch);
    }

    fn go_on(&mut self) -> Result<(), SourceError> {
        let clocks = self.streams.go_on().map_err(|error| refusal(&self.name, &error))?;
        let times = Times::new(clocks.to_vec());
        self.records.set_times(times);
        self.length = self.streams.length();
        Ok(())
    }

    fn clock(&self) -> Clock {
        Clock::Epoch
    }

    fn progress(&self) -> (u64, Option<u64>) {
        (self.streams.done, Some(self.length))
    }
}

/// Opens the file at `path`. If its recorder was killed, the data that are only in the session are written to
/// the file, and the session is removed. If the file can't be written, the session is returned as well, to be
/// read.
///
/// # Errors
/// The file can't be read.
pub fn recover(path: &Path) -> Result<(CallsFile, Option<Session>), SourceError> {
    let file = CallsFile::open(path)?;
    if file.lost.is_some() {
        return Ok((file, None));
    }
    // If the session is on another machine, or was lost when the machine restarted, only the file can be
    // read.
    let Ok(session) = Session::open(&file.session, file.number) else { return Ok((file, None)) };
    // The program may still run. It must stop recording, because no recorder reads the session any more.
    let _ = session.close();
    if let Ok(offers) = Offers::new(&session) {
        offers.withdraw();
    }
    match take_rest(&file, &session) {
        Ok(()) => {
            // All calls are in the file now. If the folder can't be removed, it only occupies memory.
            let _ = remove_session(path, &session);
            CallsFile::open(path).map(|file| (file, None))
        }
        Err(_) => Ok((file, Some(session))),
    }
}

/// Removes a session's folder. If the folder is next to the file of calls, the session was created for
/// programs that start later, without a recorder. Then the library is kept: without it the dynamic linker of
/// such a program prints an error.
fn remove_session(calls: &Path, session: &Session) -> io::Result<()> {
    let beside = |path: &Path| path.parent().and_then(|folder| fs::canonicalize(folder).ok());
    if beside(&fs::canonicalize(calls)?) != beside(&session.folder) {
        return fs::remove_dir_all(&session.folder);
    }
    for entry in fs::read_dir(&session.folder)? {
        let path = entry?.path();
        if path != session.library() {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Whether programs still count calls in the session of the file at `path`, whose recorder has ended.
pub fn is_counted_in(path: &Path) -> bool {
    let Ok(file) = CallsFile::open(path) else { return false };
    let session = file.lost.is_none().then(|| Session::open(&file.session, file.number).ok()).flatten();
    let Some(session) = session
        .filter(|session| session.counter(header::ID_SPACE).is_ok_and(|space| space == own::id_space()))
    else {
        return false;
    };
    let lives = |number: u64| {
        let head = session.table(number).ok().flatten().and_then(|bytes| Table::parse(&bytes));
        let is_over = session.is_table_over(number).unwrap_or(true);
        head.is_some_and(|table| !is_over && maps(table.pid, &session.path()))
    };
    (0..session.tables().unwrap_or(0)).any(lives)
}

/// Whether process `pid` maps the session's file. If not, another process has got this id since.
fn maps(pid: u32, session: &Path) -> bool {
    let text = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    let name = session.as_os_str().as_encoded_bytes();
    memchr::memmem::find(&text, name).is_some()
}

fn take_rest(file: &CallsFile, session: &Session) -> io::Result<()> {
    let mut keeper = Keeper::new(session, CallsWriter::go_on(file)?);
    keeper.collect(|_| {})?;
    keeper.skip(|number| file.held(number));
    keeper.skip_tables(|number| file.holds_table(number))?;
    keeper.end()
}

/// Returns the number of calls that are lost if the file at `path` can't be written: those that are in the
/// session and not in the file, and those that the library could not record.
pub fn count_lost(path: &Path, session: &Session) -> u64 {
    let counter = |at| session.counter(at).unwrap_or(0);
    let mut lost = counter(header::LOST_CALLS) + counter(header::LOST_STREAMS);
    let file = CallsFile::open(path).ok();
    let shapes = Shapes::of_this_machine();
    // Unreadable chunks are skipped.
    for number in session.numbers().unwrap_or_default() {
        let held = file.as_ref().map_or(0, |file| file.held(number)) as usize;
        let mut bytes = Vec::new();
        let _ = session.chunk(place_of(number), &mut bytes);
        let Some(mut reader) = ChunkReader::new(bytes) else { continue };
        loop {
            let at = reader.at();
            match reader.next_entry(shapes) {
                Ok(Some(Entry::Call(_))) if at >= held => lost += 1,
                Ok(Some(_)) => {}
                _ => break,
            }
        }
    }
    lost
}
