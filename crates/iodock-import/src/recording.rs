//! Converts a recording's journal to the tables of its store. This happens at the recording's end, or when a
//! user opens a store that a crash left.

use crate::import::{fill_manifest, summary_of, ImportSummary};
use crate::meanwhile::Meanwhile;
use crate::mounts::place_files;
use crate::parts::{is_running, journals, streams_of, tracker_of, Counted, Part, Parts, Standing};
use crate::pipeline::{EventSink, Imported, Progress, Running};
use crate::ranks::name_ranks;
use crate::stacks::{look_up, Modules};
use crate::{executables, pages, profiles, ImportError};
use iodock_event::interfaces::{DatasetRow, HintRow, InterfaceRow};
use iodock_event::{shown, Action, CallId, EventColumns, FirstLoss, LossKind, Losses, Mount, SourceError};
use iodock_event::{TaskRow, TaskUsage};
use iodock_store::{HostClock, InProgress, Job, Manifest, Recorder, State, StoreOptions, StoreWriter};
use iodock_tracker::{Identities, Tracker, DEFAULT_COVERAGE_BYTES};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

/// Converts the journal of the recording at `store` to tables. Does nothing if the tables exist already. If
/// two processes do this at the same time, a lock makes the second one wait, and it then finds the tables
/// complete.
///
/// # Errors
/// The folder is not a recording, is still being recorded, no part of its journal can be read, or the tables
/// cannot be written. The journal is kept in these cases.
pub fn finish_recording(
    store: &Path,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<ImportSummary, ImportError> {
    let journal = store.join("journal");
    let lock = lock(&journal);
    let is_locked = lock.is_some();
    let manifest = Manifest::read(store)?;
    if !journal.is_dir() {
        return Ok(done_before(store, &manifest));
    }
    if let Some(made) = Meanwhile::take(store) {
        match made.finish(manifest.clone(), (progress, cancel)) {
            Ok(summary) => return Ok(summary),
            Err(ImportError::Cancelled) => return Err(ImportError::Cancelled),
            // The code below makes all tables again from the recorded data, and reports any error.
            Err(_) => {}
        }
    }
    let parts = Parts::open(&journal, Standing::Over)?;
    let writer = StoreWriter::create(store, StoreOptions { force: false, complete: true })?;
    if is_locked {
        writer.remove_left();
    }
    make_tables(parts, manifest, writer, (progress, cancel))
}

/// Makes a new store at `into` from the data that the recording in progress at `store` has flushed so far, as
/// if it had ended then. Changes nothing at `store`. Returns `None` if no recording is in progress.
///
/// # Errors
/// Nothing can be read yet, or the tables cannot be written.
pub fn read_in_progress(
    store: &Path,
    into: &Path,
    progress: &mut dyn FnMut(Progress),
    cancel: &AtomicBool,
) -> Result<Option<ImportSummary>, ImportError> {
    let manifest = Manifest::read(store)?;
    let journal = store.join("journal");
    if !is_in_progress(&journal) {
        return Ok(None);
    }
    let mut parts = Parts::open(&journal, Standing::InProgress)?;
    parts.unreadable.clear();
    let (since_ns, until_ns) = (parts.start(), parts.until());
    let manifest =
        Manifest { in_progress: Some(InProgress { since_ns, until_ns, read_ns: now_ns() }), ..manifest };
    let writer = StoreWriter::create(into, StoreOptions::default())?;
    make_tables(parts, manifest, writer, (progress, cancel)).map(Some)
}

/// Returns whether a recorder is writing to any of the journals in this folder.
pub fn is_in_progress(journal: &Path) -> bool {
    journal.is_dir() && journals(journal).is_ok_and(|paths| paths.iter().any(|path| is_running(path)))
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(0)
}

fn make_tables(
    mut parts: Parts,
    manifest: Manifest,
    writer: StoreWriter,
    (progress, cancel): (&mut dyn FnMut(Progress), &AtomicBool),
) -> Result<ImportSummary, ImportError> {
    let (mut tracker, streams) = (tracker_of(&parts.open), streams_of(&mut parts.open)?);
    if parts.open.iter().any(|part| part.faults.is_some()) {
        tracker.remember_maps();
    }
    let running = Running::new(streams, tracker, DEFAULT_COVERAGE_BYTES)?;
    finish_tables(running, RecordingSink::new(writer, parts), manifest, (progress, cancel))
}

/// Makes the remaining tables, and completes the store.
pub(crate) fn finish_tables(
    running: Running,
    mut sink: RecordingSink,
    mut manifest: Manifest,
    (progress, cancel): (&mut dyn FnMut(Progress), &AtomicBool),
) -> Result<ImportSummary, ImportError> {
    let is_in_progress = manifest.in_progress.is_some();
    let directory = sink.parts.open.first().map(|part| part.reader().meta().working_directory.clone());
    let mut imported = running.run_on(&mut sink, progress, cancel)?;
    imported.losses.merge(&parts_lost(&sink.parts.unreadable));
    // Calls that ptrace traced have no stacks.
    if sink.parts.open.iter().any(|part| part.reader().meta().extra.contains_key("stacks")) {
        imported.losses.add(LossKind::UnknownPlaces, sink.traced_tasks);
    }
    let hosts = sink.hosts();
    let RecordingSink { mut writer, mut parts, identities, mounts, counted, .. } = sink;
    let is_light = parts.open.iter().any(|part| part.light.is_some());
    let profiles = match is_light {
        true => Some(profiles::light::write(&mut parts.open, &counted, &mut imported, &mut writer)?),
        false => None,
    };
    place_files(&mut imported.tracked.tables.files, &mounts);
    for (space, part) in parts.open.iter_mut().enumerate() {
        if let Some(faults) = part.faults.take() {
            faults.write(space as u16, &imported.tracked, &mut writer, &mut imported.losses)?;
        }
        if let Some(calls) = part.pages.take() {
            let known = (&imported.tracked, &identities);
            pages::write(calls, space as u16, known, &mut writer, &mut imported.losses)?;
        }
    }
    writer.write_executables(&executables::rows(&imported.tracked.tables))?;
    let stacks = &imported.tracked.tables.stacks;
    look_up(stacks, Modules::AsRun, directory.as_deref(), &mut writer, &mut imported.losses);
    complete(&mut manifest, &parts, hosts, &mut imported);
    if is_light {
        profiles::light::tell(&mut manifest, &parts.open, &counted, &imported);
    }
    if is_in_progress {
        manifest.state = State::Recording;
    }
    let mut summary = summary_of(&imported);
    summary.cut = manifest.state == State::Cut;
    summary.formats = vec![manifest.captured.how.clone()];
    summary.profiles = profiles;
    summary.store = writer.finish(&imported.tracked.tables, manifest)?;
    Ok(summary)
}

/// Locks the journal while it is converted to tables. Returns `None` on file systems without locks.
fn lock(journal: &Path) -> Option<File> {
    let folder = File::open(journal).ok()?;
    folder.lock().ok().map(|()| folder)
}

fn done_before(store: &Path, manifest: &Manifest) -> ImportSummary {
    let rows = |table: &str| manifest.tables.get(table).copied().unwrap_or(0);
    ImportSummary {
        store: store.into(),
        formats: vec![manifest.captured.how.clone()],
        lines: manifest.source.lines,
        calls: manifest.source.calls,
        files: rows("files"),
        processes: rows("processes"),
        profiles: None,
        cut: manifest.state == State::Cut,
        meanwhile: 0,
        losses: Losses::default(),
    }
}

/// Passes events to the store, and also the samples and mounts from the journals.
pub(crate) struct RecordingSink {
    writer: StoreWriter,
    /// The parts of the recording; empty while the recording goes on.
    parts: Parts,
    mounts: Vec<(String, Mount)>,
    /// Files of the page cache by identity, set when everything is tracked.
    identities: Identities,
    several_hosts: bool,
    /// Processes whose calls were counted. Their recorded calls serve only to track processes and do not
    /// become rows.
    counted: Counted,
    flags: Vec<bool>,
    /// Number of tasks that ended while ptrace traced them.
    traced_tasks: u64,
}

/// Returns which processes were counted. All parts of a recording were started with the same option.
fn counted_in(parts: &[Part]) -> Counted {
    let mut told = parts.iter().map(|part| &part.counted).filter(|&counted| *counted != Counted::Nobody);
    let first = told.next().cloned().unwrap_or(Counted::Nobody);
    if told.any(|counted| *counted == Counted::All) {
        return Counted::All;
    }
    first
}

impl RecordingSink {
    pub fn new(writer: StoreWriter, parts: Parts) -> RecordingSink {
        let mut sink = RecordingSink {
            writer,
            parts: Parts::default(),
            mounts: Vec::new(),
            identities: Identities::default(),
            several_hosts: false,
            counted: Counted::Nobody,
            flags: Vec::new(),
            traced_tasks: 0,
        };
        sink.set_parts(parts);
        sink
    }

    pub fn set_parts(&mut self, parts: Parts) {
        self.parts = parts;
        self.counted = counted_in(&self.parts.open);
        self.several_hosts = self.hosts().len() > 1;
    }

    pub fn writer(&mut self) -> &mut StoreWriter {
        &mut self.writer
    }

    fn hosts(&self) -> Vec<HostClock> {
        let mut hosts: Vec<HostClock> = Vec::new();
        for part in self.parts.open.iter().filter(|part| !part.host.is_empty()) {
            if hosts.iter().all(|host| host.name != part.host) {
                let clock = HostClock { name: part.host.clone(), ..HostClock::default() };
                hosts.push(HostClock { clock_offset_ns: part.clock_offset, ..clock });
            }
        }
        if let [only] = hosts.as_mut_slice() {
            only.clock_offset_ns = only.clock_offset_ns.or(Some(0));
        }
        hosts
    }

    fn take_side(&mut self) -> Result<(), ImportError> {
        for part in self.parts.open.iter_mut() {
            let (mut samples, mounts, usages) = {
                let mut reader = part.reader();
                (reader.take_samples(), reader.take_mounts(), reader.take_usages())
            };
            let (more_usages, mut more_samples) = part.beside.take();
            samples.append(&mut more_samples);
            if let Some(traced) = &part.traced {
                let mut traced = traced.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                samples.extend(traced.take_samples());
                let usages = traced.take_usages();
                self.traced_tasks += usages.len() as u64;
                part.usages.extend(usages);
            }
            part.usages.extend(more_usages);
            let host = self.several_hosts.then_some(part.host.as_str());
            if !samples.is_empty() {
                self.writer.write_samples(&samples, host)?;
            }
            if !mounts.is_empty() {
                self.writer.write_mounts(&mounts, host)?;
            }
            self.mounts.extend(mounts.into_iter().map(|mount| (part.host.clone(), mount)));
            part.usages.extend(usages);
        }
        Ok(())
    }
}

impl EventSink for RecordingSink {
    fn choose(&mut self, columns: &mut EventColumns, tasks: &[TaskRow]) {
        match &self.counted {
            Counted::Nobody | Counted::All => {}
            Counted::But(_) => {
                self.flags.clear();
                // A counted process records only the calls that start and end programs.
                self.flags.extend(columns.call.iter().zip(&columns.utid).map(|(&call, &utid)| {
                    let is_counted =
                        || tasks.get(utid as usize).is_some_and(|task| self.counted.holds(task.rank));
                    !(is_of_tasks(call) && is_counted())
                }));
                columns.retain(&self.flags);
            }
        }
    }

    fn write(&mut self, columns: EventColumns) -> Result<EventColumns, ImportError> {
        self.take_side()?;
        if self.counted == Counted::All {
            return Ok(columns);
        }
        Ok(self.writer.write_events(columns)?.unwrap_or_default())
    }

    fn interface_calls(
        &mut self,
        rows: &[InterfaceRow],
        hints: &[HintRow],
        datasets: &[DatasetRow],
    ) -> Result<(), ImportError> {
        if self.counted == Counted::All {
            return Ok(());
        }
        self.writer.write_hints(hints)?;
        self.writer.write_datasets(datasets)?;
        Ok(self.writer.write_interface_calls(rows)?)
    }

    fn tracked(&mut self, tracker: &mut Tracker) -> Result<(), ImportError> {
        for (space, part) in self.parts.open.iter_mut().enumerate() {
            if let Some(faults) = &mut part.faults {
                faults.find_files(space as u16, tracker)?;
            }
        }
        self.identities = tracker.take_identities();
        Ok(())
    }

    fn usages(&mut self) -> Result<Vec<(u16, Vec<TaskUsage>)>, ImportError> {
        self.take_side()?;
        let parts = self.parts.open.iter_mut().enumerate();
        Ok(parts.map(|(space, part)| (space as u16, std::mem::take(&mut part.usages))).collect())
    }
}

fn is_of_tasks(call: u16) -> bool {
    use Action as A;
    matches!(CallId(call).spec().action, A::Fork | A::Vfork | A::Clone | A::Exec | A::Exit)
}

fn parts_lost(unreadable: &[SourceError]) -> Losses {
    let mut losses = Losses::default();
    for error in unreadable {
        let (file, sample) = (error.file.clone(), error.message.clone());
        losses.add_at(LossKind::MissingRanks, || FirstLoss { file, line: 0, sample });
    }
    losses
}

/// Adds the recorders' notes and the counts of the pipeline to the manifest.
fn complete(manifest: &mut Manifest, parts: &Parts, hosts: Vec<HostClock>, imported: &mut Imported) {
    let mut cut = !parts.unreadable.is_empty();
    let (mut start, mut end, mut written) = (None, None, 0);
    let mut on_measured = false;
    for part in &parts.open {
        let reader = part.reader();
        let meta = reader.meta();
        cut |= reader.is_cut();
        let page_cache = &mut manifest.captured.page_cache;
        *page_cache = page_cache.take().or_else(|| part.page_cache.clone());
        start = [start, meta.start].into_iter().flatten().min();
        if let Some(closing) = reader.closing() {
            end = end.max(closing.end);
            written += closing.written_bytes;
            on_measured |= closing.extra.get("on_measured_file_system").is_some_and(|told| told == "true");
            manifest.captured.page_faults = closing.extra.get("page_faults").cloned();
            let captured = &mut manifest.captured;
            // If several ranks failed, the first of them determines how the run ended.
            if captured.exit_signal.is_none() && captured.exit_status.unwrap_or(0) == 0 {
                captured.exit_status = closing.exit_code;
                captured.exit_signal = closing.exit_signal.clone();
            }
        }
    }
    if let Some(now) = &manifest.in_progress {
        end = now.until_ns;
    }
    manifest.captured.wall_ns = match (start, end) {
        (Some(start), Some(end)) => Some(end - start),
        _ => manifest.captured.wall_ns,
    };
    describe(manifest, &parts.open);
    let expected = parts.open.iter().filter_map(|part| part.reader().meta().ranks).max();
    let ranks = parts.open.iter().filter(|part| part.rank.is_some()).count() as u32;
    if let Some(expected) = expected.and_then(|ranks| u32::try_from(ranks).ok()) {
        let missing = expected.saturating_sub(ranks + parts.unreadable.len() as u32);
        // While the recording is in progress, a part that does not exist yet is not missing.
        let missing = if manifest.in_progress.is_some() { 0 } else { missing };
        imported.losses.add(LossKind::MissingRanks, u64::from(missing));
        manifest.ranks = Some(expected);
    } else if ranks > 0 {
        manifest.ranks = Some(ranks);
    }
    manifest.state = if cut { State::Cut } else { State::Complete };
    manifest.hosts = hosts;
    if written > 0 {
        let recorder = manifest.recorder.get_or_insert_with(Recorder::default);
        recorder.written_bytes = written;
        recorder.on_measured_file_system = on_measured;
    }
    fill_manifest(manifest, imported);
    let there: Vec<i32> = parts.open.iter().filter_map(|part| part.rank).collect();
    let was_cut = parts.open.iter().filter(|part| part.reader().is_cut());
    name_ranks(manifest, &there, was_cut.filter_map(|part| part.rank).collect());
}

/// Adds the description of the program and the machine, if the recorder did not write it at its start.
fn describe(manifest: &mut Manifest, parts: &[Part]) {
    let Some(first) = parts.first() else { return };
    if parts.iter().all(|part| part.reader().meta().extra.contains_key("interfaces")) {
        manifest.captured.others.insert("interfaces".into(), "recorded".into());
    }
    let reader = first.reader();
    let meta = reader.meta();
    let (captured, host) = (&mut manifest.captured, &mut manifest.host);
    if captured.how.is_empty() {
        captured.how = meta.how.clone();
        captured.why = meta.extra.get("why").cloned();
    }
    if captured.command.is_empty() {
        captured.command = meta.command.iter().map(|argument| shown(argument).into_owned()).collect();
    }
    if captured.working_directory.is_none() && !meta.working_directory.is_empty() {
        captured.working_directory = Some(shown(&meta.working_directory).into_owned());
    }
    let known = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    host.name = host.name.take().or(known(&meta.host));
    host.kernel = host.kernel.take().or(known(&meta.kernel));
    host.cpus = host.cpus.or(meta.cpus);
    manifest.clock = meta.clock.name().into();
    let told = |key: &str| meta.extra.get(key).cloned();
    if let Some(launch) = told("launch") {
        manifest.captured.others.insert("launch".into(), launch.into());
    }
    manifest.job = told("job.id").map(|id| Job {
        scheduler: told("job.scheduler").unwrap_or_default(),
        id,
        name: told("job.name"),
        nodes: told("job.nodes").and_then(|nodes| nodes.parse().ok()),
        ..Job::default()
    });
}
