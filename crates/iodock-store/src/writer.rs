//! Writes a store. Events go through a bounded queue to a thread that encodes them; the other tables are
//! written at the end.

use crate::copied::{CopiedTable, TableCopy};
use crate::error::StoreError;
use crate::events::{EventWriter, Limits};
use crate::manifest::Manifest;
use crate::new_store::NewStore;
use crate::profiles::ProfileTables;
use crate::stacks::{write_stacks, SymbolRow};
use crate::table::TableWriter;
use crate::tables::{
    create_datasets, create_executables, create_faults, create_hints, create_interface_calls, create_mounts,
    create_pages, create_samples, create_totals,
};
use crate::tables::{
    write_dataset, write_executable, write_fault, write_hint, write_interface_call, write_mount, write_pages,
    write_sample, write_tables, write_total,
};
use crate::tables::{ExecutableRow, FaultRow, PagesRow};
use iodock_event::interfaces::{DatasetRow, HintRow, InterfaceRow};
use iodock_event::{CallTotal, EventColumns, Mount, Sample, Tables};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, sync_channel, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Number of chunks that may wait for the encoder. It suffices to keep filling chunks while a row group is
/// written.
const QUEUE: usize = 6;

type Result<T> = std::result::Result<T, StoreError>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreOptions {
    /// Replaces an existing store once the new one is complete. Nothing but a store is ever replaced.
    pub force: bool,
    /// States that the path is the folder of a recording, with a manifest and a journal. The writer puts the
    /// tables there, and removes the journal when the tables and the manifest are on the disk.
    pub complete: bool,
}

/// Writes a store. A writer that is dropped before it finished leaves no files.
pub struct StoreWriter {
    encoder: Option<Encoder>,
    samples: Option<TableWriter>,
    mounts: Option<TableWriter>,
    faults: Option<TableWriter>,
    pages: Option<TableWriter>,
    totals: Option<TableWriter>,
    executables: Option<TableWriter>,
    interface_calls: Option<TableWriter>,
    hints: Option<TableWriter>,
    datasets: Option<TableWriter>,
    profiles: Option<ProfileTables>,
    copied: Vec<TableCopy>,
    build_ids: Vec<Option<String>>,
    symbols: Vec<SymbolRow>,
    // This must be the last field: Rust drops fields in order, and the folder can be removed only after all
    // its files were closed.
    place: NewStore,
}

struct Encoder {
    queue: SyncSender<EventColumns>,
    spare: Receiver<EventColumns>,
    thread: JoinHandle<Result<EventWriter>>,
}

impl StoreWriter {
    /// Prepares a store at `path`.
    ///
    /// Fails if something exists there (unless it is a store to be replaced), or if the folder that contains
    /// it is not writable.
    pub fn create(path: impl AsRef<Path>, options: StoreOptions) -> Result<StoreWriter> {
        let path = path.as_ref();
        let place =
            if options.complete { NewStore::complete(path)? } else { NewStore::new(path, options.force)? };
        let encoder = Some(Encoder::start(EventWriter::create(place.folder(), Limits::default())?));
        Ok(StoreWriter {
            encoder,
            samples: None,
            mounts: None,
            faults: None,
            pages: None,
            totals: None,
            executables: None,
            interface_calls: None,
            hints: None,
            datasets: None,
            profiles: None,
            copied: Vec::new(),
            build_ids: Vec::new(),
            symbols: Vec::new(),
            place,
        })
    }

    /// Passes rows to the encoder, ideally some ten thousand at a time. Returns emptied columns for reuse if
    /// there are any. Waits if the encoder is behind. After an error the store cannot be completed.
    pub fn write_events(&mut self, events: EventColumns) -> Result<Option<EventColumns>> {
        let Some(encoder) = &self.encoder else { return Ok(None) };
        if events.is_empty() {
            return Ok(Some(events));
        }
        if encoder.queue.send(events).is_err() {
            // The thread ends early only after an error. Joining the thread returns that error.
            return self.join().map(|_| None);
        }
        Ok(encoder.spare.try_recv().ok())
    }

    /// Appends to the samples table. `host` is `None` if all data is from one host.
    pub fn write_samples(&mut self, samples: &[Sample], host: Option<&str>) -> Result<()> {
        let table = match &mut self.samples {
            Some(table) => table,
            None => self.samples.insert(create_samples(self.place.folder())?),
        };
        samples.iter().try_for_each(|sample| write_sample(table, sample, host))
    }

    /// Appends to the mounts table. `host` is `None` if all data is from one host.
    pub fn write_mounts(&mut self, mounts: &[Mount], host: Option<&str>) -> Result<()> {
        let table = match &mut self.mounts {
            Some(table) => table,
            None => self.mounts.insert(create_mounts(self.place.folder())?),
        };
        mounts.iter().try_for_each(|mount| write_mount(table, mount, host))
    }

    /// Appends to the table of page faults.
    pub fn write_faults(&mut self, faults: &[FaultRow]) -> Result<()> {
        let table = match &mut self.faults {
            Some(table) => table,
            None => self.faults.insert(create_faults(self.place.folder())?),
        };
        faults.iter().try_for_each(|fault| write_fault(table, fault))
    }

    /// Appends to the table of loads into the page cache.
    pub fn write_pages(&mut self, pages: &[PagesRow]) -> Result<()> {
        let table = match &mut self.pages {
            Some(table) => table,
            None => self.pages.insert(create_pages(self.place.folder())?),
        };
        pages.iter().try_for_each(|pages| write_pages(table, pages))
    }

    /// Appends to the table of programs' files.
    pub fn write_executables(&mut self, rows: &[ExecutableRow]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let table = match &mut self.executables {
            Some(table) => table,
            None => self.executables.insert(create_executables(self.place.folder())?),
        };
        rows.iter().try_for_each(|row| write_executable(table, row))
    }

    /// Appends to the table of calls of interfaces.
    pub fn write_interface_calls(&mut self, rows: &[InterfaceRow]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let table = match &mut self.interface_calls {
            Some(table) => table,
            None => self.interface_calls.insert(create_interface_calls(self.place.folder())?),
        };
        rows.iter().try_for_each(|row| write_interface_call(table, row))
    }

    /// Appends to the table of hints.
    pub fn write_hints(&mut self, rows: &[HintRow]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let table = match &mut self.hints {
            Some(table) => table,
            None => self.hints.insert(create_hints(self.place.folder())?),
        };
        rows.iter().try_for_each(|row| write_hint(table, row))
    }

    /// Appends to the table of data sets.
    pub fn write_datasets(&mut self, rows: &[DatasetRow]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let table = match &mut self.datasets {
            Some(table) => table,
            None => self.datasets.insert(create_datasets(self.place.folder())?),
        };
        rows.iter().try_for_each(|row| write_dataset(table, row))
    }

    /// Appends to the table of calls that are known only in sum.
    pub fn write_totals(&mut self, totals: &[CallTotal]) -> Result<()> {
        if totals.is_empty() {
            return Ok(());
        }
        let table = match &mut self.totals {
            Some(table) => table,
            None => self.totals.insert(create_totals(self.place.folder())?),
        };
        totals.iter().try_for_each(|total| write_total(table, total))
    }

    /// Sets the symbols of the sites. `build_ids` contains the build id of each site's module, by site id;
    /// `symbols` contains the functions.
    pub fn set_symbols(&mut self, build_ids: Vec<Option<String>>, symbols: Vec<SymbolRow>) {
        (self.build_ids, self.symbols) = (build_ids, symbols);
    }

    /// Returns the tables of profiles. The store contains these tables after the first call.
    pub fn profiles(&mut self) -> Result<&mut ProfileTables> {
        let tables = match self.profiles.take() {
            Some(tables) => tables,
            None => ProfileTables::create(self.place.folder())?,
        };
        Ok(self.profiles.insert(tables))
    }

    /// Returns a table to which the caller copies rows of other stores. The caller must not write the table
    /// in another way.
    pub fn copy_of(&mut self, table: CopiedTable) -> Result<&mut TableCopy> {
        self.copied.push(TableCopy::create(self.place.folder(), table)?);
        let last = self.copied.len() - 1;
        Ok(&mut self.copied[last])
    }

    /// Writes the tables and the manifest, renames the store to its final name, and returns its path. Fills
    /// in `tables` and `checksums` of the manifest, and `first_ts` and `last_ts` if they are `None`.
    pub fn finish(mut self, tables: &Tables, mut manifest: Manifest) -> Result<PathBuf> {
        let totals = self.join()?.finish()?;
        let store = self.place.folder();
        let mut contents = write_tables(store, tables)?;
        contents.rows.insert("events".into(), totals.rows);
        contents.extend(totals.contents);
        write_stacks(store, &tables.stacks, &self.build_ids, &self.symbols, &mut contents)?;
        let own = [
            ("samples", &mut self.samples),
            ("mounts", &mut self.mounts),
            ("faults", &mut self.faults),
            ("pages", &mut self.pages),
            ("call_totals", &mut self.totals),
            ("executables", &mut self.executables),
            ("interface_calls", &mut self.interface_calls),
            ("hints", &mut self.hints),
            ("datasets", &mut self.datasets),
        ];
        for (name, table) in own.map(|(name, table)| (name, table.take())) {
            if let Some(table) = table {
                contents.add_table(name, store, table.finish()?);
            }
        }
        if let Some(profiles) = self.profiles.take() {
            profiles.finish(store, &mut contents)?;
        }
        for copied in std::mem::take(&mut self.copied) {
            copied.finish(store, &mut contents)?;
        }
        (manifest.tables, manifest.checksums) = (contents.rows, contents.checksums);
        manifest.first_ts = manifest.first_ts.or(totals.first);
        manifest.last_ts = manifest.last_ts.or(totals.last);
        self.place.finish(&manifest)
    }

    /// Continues in a new encoder thread, which gets the priority of the calling thread. Returns false if the
    /// old thread has not finished its work within `patience`. The caller must then drop the store.
    pub fn renew_encoder(&mut self, patience: Duration) -> Result<bool> {
        let Some(Encoder { queue, spare, thread }) = self.encoder.take() else {
            return Err(self.broken());
        };
        drop((queue, spare));
        let end = Instant::now() + patience;
        while !thread.is_finished() {
            if Instant::now() > end {
                self.encoder = Some(Encoder { queue: sync_channel(0).0, spare: channel().1, thread });
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let writer = thread.join().unwrap_or_else(|_| Err(self.broken()))?;
        self.encoder = Some(Encoder::start(writer));
        Ok(true)
    }

    /// Removes the folders that other processes left in a recording's folder when they were making its
    /// tables.
    pub fn remove_left(&self) {
        self.place.remove_left();
    }

    fn join(&mut self) -> Result<EventWriter> {
        let Some(Encoder { queue, spare, thread }) = self.encoder.take() else {
            return Err(self.broken());
        };
        drop((queue, spare));
        thread.join().unwrap_or_else(|_| Err(self.broken()))
    }

    fn broken(&self) -> StoreError {
        let what = "the store was given up after an error".into();
        StoreError::Damaged { path: self.place.folder().into(), what }
    }
}

impl Drop for StoreWriter {
    fn drop(&mut self) {
        // The encoder must end first, because it must not write into a folder that is being removed.
        if let Some(Encoder { queue, spare, thread }) = self.encoder.take() {
            drop((queue, spare));
            let _ = thread.join();
        }
    }
}

impl Encoder {
    fn start(writer: EventWriter) -> Encoder {
        let (queue, waiting) = sync_channel(QUEUE);
        let (emptied, spare) = channel();
        let thread = std::thread::spawn(move || encode_all(writer, waiting, emptied));
        Encoder { queue, spare, thread }
    }
}

fn encode_all(
    mut writer: EventWriter,
    waiting: Receiver<EventColumns>,
    emptied: std::sync::mpsc::Sender<EventColumns>,
) -> Result<EventWriter> {
    for mut events in waiting {
        writer.write(&mut events)?;
        // Sending fails when the store is being completed. Emptied columns are then no longer needed.
        let _ = emptied.send(events);
    }
    Ok(writer)
}
