//! Data of a Darshan log apart from counters: layouts of files, single accesses, bytes over time.

use super::columns::{interface_of, nanoseconds};
use super::{check, Told};
use crate::ImportError;
use iodock_darshan::{Direction, Heatmap, LustreFile, Traced, TracedFile};
use iodock_store::{AccessRow, HeatRow, LayoutRow, ProfileTables};
use std::sync::atomic::AtomicBool;

pub fn write(told: &Told, tables: &mut ProfileTables, cancel: &AtomicBool) -> Result<(), ImportError> {
    for file in &told.log.lustre {
        layout(told, file, tables)?;
    }
    for traced in &told.log.traced {
        for file in &traced.files {
            check(cancel)?;
            accesses(told, traced, file, tables)?;
        }
    }
    told.log.heatmaps.iter().try_for_each(|heatmap| heat(told, heatmap, tables))
}

fn layout(told: &Told, file: &LustreFile, tables: &mut ProfileTables) -> Result<(), ImportError> {
    let known = |value: i64| Some(value).filter(|&value| value >= 0);
    for (number, component) in file.components.iter().enumerate() {
        tables.layout(&LayoutRow {
            file: told.files.number(file.id),
            rank: file.rank.and_then(|rank| i32::try_from(rank).ok()),
            component: i32::try_from(number).unwrap_or(i32::MAX),
            stripe_bytes: known(component.stripe_bytes),
            stripe_count: known(component.stripe_count),
            start: component.start.and_then(known),
            end: component.end.and_then(known),
            pool: component.pool.as_deref(),
            targets: &component.targets,
            file_system_targets: file.file_system_targets.and_then(known),
        })?;
    }
    Ok(())
}

fn accesses(
    told: &Told,
    traced: &Traced,
    file: &TracedFile,
    tables: &mut ProfileTables,
) -> Result<(), ImportError> {
    let interface = interface_of(traced.module).unwrap_or("posix");
    for access in traced.accesses(file) {
        tables.access(&AccessRow {
            file: told.files.number(file.id),
            interface,
            rank: i32::try_from(file.rank).ok().filter(|&rank| rank >= 0),
            host: Some(file.host.as_str()).filter(|host| !host.is_empty()),
            thread: access.thread.map(u64::cast_signed),
            is_write: access.direction == Direction::Write,
            offset: access.offset.filter(|&offset| offset >= 0),
            bytes: Some(access.bytes).filter(|&bytes| bytes >= 0),
            ts: told.at(access.start_s),
            dur: nanoseconds(access.end_s - access.start_s),
        })?;
    }
    Ok(())
}

/// Writes a row for each interval in which bytes were moved.
fn heat(told: &Told, heatmap: &Heatmap, tables: &mut ProfileTables) -> Result<(), ImportError> {
    let name = told.log.names.name(heatmap.id);
    let interface = name.as_deref().and_then(|name| name.strip_prefix("heatmap:")).map(|name| match name {
        "MPIIO" => "mpi-io".into(),
        other => other.to_lowercase(),
    });
    for (bin, (&read, &written)) in heatmap.read.iter().zip(&heatmap.written).enumerate() {
        if (read, written) == (0, 0) {
            continue;
        }
        tables.heat(&HeatRow {
            interface: interface.as_deref(),
            rank: i32::try_from(heatmap.rank).ok().filter(|&rank| rank >= 0),
            ts: told.at(bin as f64 * heatmap.bin_s),
            end: told.at((bin + 1) as f64 * heatmap.bin_s),
            read_bytes: Some(read).filter(|&bytes| bytes >= 0),
            written_bytes: Some(written).filter(|&bytes| bytes >= 0),
        })?;
    }
    Ok(())
}
