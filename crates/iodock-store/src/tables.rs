//! Converts the rows of all tables except events to cells.

use crate::contents::Contents;
use crate::error::StoreError;
use crate::schema;
use crate::table::{Cell, TableWriter, Written};
use iodock_event::interfaces::{DatasetRow, HintRow, InterfaceRow};
use iodock_event::{CallId, CallTotal, ErrnoId, FaultKind, Mount, PageCause, Sample, Tables, NONE, UNKNOWN};
use std::borrow::Cow;
use std::path::Path;

type Result<T> = std::result::Result<T, StoreError>;

/// Writes all tables that are known only at the end.
pub fn write_tables(folder: &Path, tables: &Tables) -> Result<Contents> {
    let mut contents = Contents::default();
    contents.add_table("files", folder, write_files(folder, tables)?);
    contents.add_table("processes", folder, write_processes(folder, tables)?);
    contents.add_table("commands", folder, write_commands(folder, tables)?);
    contents.add_table("calls", folder, write_calls(folder)?);
    contents.add_table("errnos", folder, write_errnos(folder)?);
    Ok(contents)
}

fn write_files(folder: &Path, tables: &Tables) -> Result<Written> {
    let mut table = TableWriter::create(&folder.join("files.parquet"), schema::FILES)?;
    for file in 0..tables.files.len() as u32 {
        let row = tables.files.row(file);
        table.row([
            Cell::id(file),
            Cell::text(&row.name),
            row.name_raw.map_or(Cell::Null, Cell::Bytes),
            Cell::text(row.kind.name()),
            Cell::Bool(row.relative),
            Cell::text(row.folder()),
            Cell::text(row.ending()),
            Cell::text(row.pattern()),
            Cell::optional(row.mount_point),
            Cell::optional(row.fs_type),
            Cell::quantity(row.size),
            Cell::optional(tables.host(row.host)),
        ])?;
    }
    table.finish()
}

fn write_processes(folder: &Path, tables: &Tables) -> Result<Written> {
    let mut table = TableWriter::create(&folder.join("processes.parquet"), schema::PROCESSES)?;
    for (utid, task) in tables.tasks.iter().enumerate() {
        let io = tables.task_io.get(utid);
        table.row([
            Cell::id(utid as u32),
            Cell::id(task.upid),
            Cell::optional(tables.host(task.host)),
            Cell::optional_number(task.rank),
            Cell::Narrow(task.pid),
            Cell::Narrow(task.tid),
            Cell::Narrow(task.generation),
            if task.parent_utid == NONE { Cell::Null } else { Cell::id(task.parent_utid) },
            Cell::optional_number(task.parent_pid),
            Cell::text(task.how.name()),
            Cell::quantity(task.start),
            Cell::quantity(task.end),
            Cell::optional_number(task.exit_code),
            Cell::optional(tables.signal(task.exit_signal)),
            Cell::Bool(task.core_dumped),
            Cell::quantity(task.cpu_user),
            Cell::quantity(task.cpu_system),
            io.map_or(Cell::Null, |io| Cell::quantity(io.io)),
            io.map_or(Cell::Null, |io| Cell::quantity(io.waiting)),
        ])?;
    }
    table.finish()
}

fn write_commands(folder: &Path, tables: &Tables) -> Result<Written> {
    let mut table = TableWriter::create(&folder.join("commands.parquet"), schema::COMMANDS)?;
    for index in 0..tables.commands.len() {
        let row = tables.commands.row(index);
        table.row([
            Cell::id(row.utid),
            Cell::quantity(row.ts),
            Cell::text(&row.path),
            Cell::List(&row.argv),
        ])?;
    }
    table.finish()
}

fn write_calls(folder: &Path) -> Result<Written> {
    let mut table = TableWriter::create(&folder.join("calls.parquet"), schema::CALLS)?;
    for call in CallId::all() {
        let class = call.spec().class.name();
        let (name, family) = (call.name(), call.family());
        table.row([
            Cell::Narrow(call.0.into()),
            Cell::text(&name),
            Cell::text(&family),
            Cell::text(class),
        ])?;
    }
    table.finish()
}

fn write_errnos(folder: &Path) -> Result<Written> {
    let mut table = TableWriter::create(&folder.join("errnos.parquet"), schema::ERRNOS)?;
    for (id, name) in ErrnoId::all().iter().enumerate() {
        table.row([Cell::Narrow(id as i32), Cell::text(name)])?;
    }
    table.finish()
}

pub fn create_totals(folder: &Path) -> Result<TableWriter> {
    TableWriter::create(&folder.join("call_totals.parquet"), schema::CALL_TOTALS)
}

pub fn write_total(table: &mut TableWriter, total: &CallTotal) -> Result<()> {
    let quantity = |value: Option<i64>| value.map_or(Cell::Null, Cell::Wide);
    table.row([
        Cell::Narrow(total.call.0.into()),
        quantity(total.calls),
        quantity(total.errors),
        quantity(total.time),
        quantity(total.shortest),
        quantity(total.longest),
        quantity(total.sys_cpu),
        quantity(total.least_sys_cpu),
        quantity(total.most_sys_cpu),
    ])
}

/// Properties of the file of an executed program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutableRow {
    /// Path as it is written in the commands.
    pub path: String,
    /// Path with symbolic links resolved.
    pub real_path: Option<String>,
    /// Type of the file: `elf`, `script` or `other`.
    pub kind: &'static str,
    /// For a script: the text after `#!` in its first line.
    pub interpreter: Option<String>,
    /// For an ELF file: the programming languages; empty if they are not known.
    pub languages: Vec<String>,
    /// Libraries that the file itself needs, without their dependencies.
    pub libraries: Vec<String>,
}

pub fn create_executables(folder: &Path) -> Result<TableWriter> {
    TableWriter::create(&folder.join("executables.parquet"), schema::EXECUTABLES)
}

pub fn write_executable(table: &mut TableWriter, row: &ExecutableRow) -> Result<()> {
    let texts = |list: &[String]| list.iter().map(|text| Cow::Owned(text.clone())).collect::<Vec<_>>();
    table.row([
        Cell::text(&row.path),
        Cell::optional(row.real_path.as_deref()),
        Cell::text(row.kind),
        Cell::optional(row.interpreter.as_deref()),
        Cell::List(&texts(&row.languages)),
        Cell::List(&texts(&row.libraries)),
    ])
}

pub fn create_samples(folder: &Path) -> Result<TableWriter> {
    let folder = folder.join("samples");
    std::fs::create_dir_all(&folder).map_err(|error| StoreError::io(&folder, error, 0))?;
    TableWriter::create(&folder.join("part-00000.parquet"), schema::SAMPLES)
}

pub fn write_sample(table: &mut TableWriter, sample: &Sample, host: Option<&str>) -> Result<()> {
    table.row([
        Cell::Wide(sample.ts),
        Cell::optional(host),
        Cell::text(&sample.source),
        Cell::text(&sample.target),
        Cell::text(&sample.metric),
        Cell::Real(sample.value),
        Cell::text(sample.kind.name()),
    ])
}

/// A page fault in a mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultRow {
    /// Time of the fault, ns since the epoch.
    pub ts: i64,
    pub utid: u32,
    pub file: u32,
    /// Offset of the page in the file, bytes.
    pub offset: i64,
    pub kind: FaultKind,
}

pub fn create_faults(folder: &Path) -> Result<TableWriter> {
    let folder = folder.join("faults");
    std::fs::create_dir_all(&folder).map_err(|error| StoreError::io(&folder, error, 0))?;
    TableWriter::create(&folder.join("part-00000.parquet"), schema::FAULTS)
}

pub fn write_fault(table: &mut TableWriter, fault: &FaultRow) -> Result<()> {
    let is_major = match fault.kind {
        FaultKind::Minor => Cell::Bool(false),
        FaultKind::Major => Cell::Bool(true),
        FaultKind::Present => Cell::Null,
    };
    table.row([
        Cell::Wide(fault.ts),
        Cell::id(fault.utid),
        Cell::id(fault.file),
        Cell::Wide(fault.offset),
        is_major,
    ])
}

/// Consecutive pages of a file that a task loaded into the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagesRow {
    /// Times when the first and the last page were loaded, ns since the epoch.
    pub ts: i64,
    pub end: i64,
    pub utid: u32,
    pub file: u32,
    /// Offset of the first page in the file, and total length, bytes.
    pub offset: i64,
    pub bytes: i64,
    pub cause: PageCause,
}

pub fn create_pages(folder: &Path) -> Result<TableWriter> {
    let folder = folder.join("pages");
    std::fs::create_dir_all(&folder).map_err(|error| StoreError::io(&folder, error, 0))?;
    TableWriter::create(&folder.join("part-00000.parquet"), schema::PAGES)
}

pub fn write_pages(table: &mut TableWriter, pages: &PagesRow) -> Result<()> {
    let is_written = match pages.cause {
        PageCause::Read => Cell::Bool(false),
        PageCause::Written => Cell::Bool(true),
        PageCause::Unclear => Cell::Null,
    };
    table.row([
        Cell::Wide(pages.ts),
        Cell::Wide(pages.end),
        Cell::id(pages.utid),
        Cell::id(pages.file),
        Cell::Wide(pages.offset),
        Cell::Wide(pages.bytes),
        is_written,
    ])
}

pub fn create_interface_calls(folder: &Path) -> Result<TableWriter> {
    TableWriter::create(&folder.join("interface_calls.parquet"), schema::INTERFACE_CALLS)
}

pub fn write_interface_call(table: &mut TableWriter, row: &InterfaceRow) -> Result<()> {
    let spec = row.spec();
    let id = |id: u32| if id == NONE { Cell::Null } else { Cell::id(id) };
    let dur = if row.end == UNKNOWN || row.is_sum { UNKNOWN } else { row.end - row.start };
    table.row([
        Cell::id(row.id),
        id(row.parent),
        Cell::id(row.utid),
        Cell::text(spec.interface),
        Cell::text(spec.name),
        Cell::Bool(spec.is_collective),
        Cell::Narrow(spec.direction as i32),
        id(row.file),
        id(row.handle),
        Cell::Wide(row.start),
        Cell::quantity(row.end),
        Cell::quantity(dur),
        Cell::quantity(row.result),
        Cell::quantity(row.bytes),
        Cell::quantity(row.offset),
        Cell::Wide(row.calls),
    ])
}

pub fn create_hints(folder: &Path) -> Result<TableWriter> {
    TableWriter::create(&folder.join("hints.parquet"), schema::HINTS)
}

pub fn write_hint(table: &mut TableWriter, row: &HintRow) -> Result<()> {
    let (asked, taken) = (Cell::optional(row.asked.as_deref()), Cell::optional(row.taken.as_deref()));
    table.row([Cell::id(row.call), Cell::text(&row.key), asked, taken])
}

pub fn create_datasets(folder: &Path) -> Result<TableWriter> {
    TableWriter::create(&folder.join("datasets.parquet"), schema::DATASETS)
}

pub fn write_dataset(table: &mut TableWriter, row: &DatasetRow) -> Result<()> {
    let bytes = |bytes: Option<i64>| bytes.map_or(Cell::Null, Cell::Wide);
    table.row([
        Cell::id(row.call),
        Cell::id(row.handle),
        if row.file == NONE { Cell::Null } else { Cell::id(row.file) },
        Cell::text(&row.name),
        Cell::optional(row.layout.as_deref()),
        bytes(row.element_bytes),
        Cell::optional(row.extent.as_deref()),
        Cell::optional(row.chunk.as_deref()),
        bytes(row.chunk_bytes),
        Cell::optional(row.filters.as_deref()),
    ])
}

pub fn create_mounts(folder: &Path) -> Result<TableWriter> {
    TableWriter::create(&folder.join("mounts.parquet"), schema::MOUNTS)
}

pub fn write_mount(table: &mut TableWriter, mount: &Mount, host: Option<&str>) -> Result<()> {
    table.row([
        Cell::text(&mount.mount_point),
        Cell::text(&mount.fs_type),
        Cell::text(&mount.source),
        Cell::text(&mount.options),
        Cell::optional(host),
    ])
}
