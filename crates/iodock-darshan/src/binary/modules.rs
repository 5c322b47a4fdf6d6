//! Parses the records of a module from its region's bytes.

use super::inflate::Inflated;
use super::streams;
use crate::counted::{Counted, Layout};
use crate::loss::add;
use crate::{heatmap, lustre, ByteOrder, Log, LossKind, Module, Names, Region, Traced};

/// Adds the records of `module` to the log.
pub fn read(log: &mut Log, module: Module, version: u32, order: ByteOrder, region: Inflated) {
    match module {
        Module::LUSTRE => {
            let first = |bytes: &[u8]| lustre::first(bytes, order, version);
            let records = of_streams(log, module, &region, first);
            log.lustre.extend(records);
        }
        Module::HEATMAP => {
            let records = of_streams(log, module, &region, |bytes| heatmap::first(bytes, order));
            log.heatmaps.extend(records);
        }
        Module::DXT_POSIX | Module::DXT_MPIIO => traced(log, module, version, order, region),
        _ => counted(log, module, version, order, region),
    }
}

/// Reads records of variable length, one stream after another.
fn of_streams<T>(
    log: &mut Log,
    module: Module,
    region: &Inflated,
    first: impl Fn(&[u8]) -> Option<(T, usize)>,
) -> Vec<T> {
    let mut records = Vec::new();
    for mut stream in streams(region) {
        while let Some((record, used)) = first(stream) {
            records.push(record);
            stream = &stream[used..];
        }
        add(
            &mut log.losses,
            LossKind::IncompleteRecords,
            Region::Module(module),
            u64::from(!stream.is_empty()),
        );
    }
    records
}

fn traced(log: &mut Log, module: Module, version: u32, order: ByteOrder, region: Inflated) {
    let mut traced = Traced::new(module, version, order);
    traced.bytes = region.bytes;
    let mut start = 0;
    for end in region.ends {
        while let Some((file, next)) = traced.file(start, end) {
            traced.files.push(file);
            start = next;
        }
        add(&mut log.losses, LossKind::IncompleteRecords, Region::Module(module), u64::from(start < end));
        start = end;
    }
    log.traced.push(traced);
}

fn counted(log: &mut Log, module: Module, version: u32, order: ByteOrder, mut region: Inflated) {
    let Some(layout) = Layout::of(module, version) else { return };
    let place = Region::Module(module);
    let size = layout.size();
    let Some(stride) = stride(module, size, &region, &log.names, order) else {
        add(&mut log.losses, LossKind::DifferingRecords, place, 1);
        return;
    };
    let whole = region.bytes.len() / stride * stride;
    add(&mut log.losses, LossKind::IncompleteRecords, place, u64::from(whole < region.bytes.len()));
    if stride > size {
        add(&mut log.losses, LossKind::DifferingRecords, place, (whole / stride) as u64);
    }
    region.bytes.truncate(whole);
    log.counted.push(Counted { module, version: Some(version), layout, order, stride, bytes: region.bytes });
}

/// Largest number of bytes that a site may have added to the records.
const LONGEST_ADDITION: usize = 512;

/// Returns the number of bytes from one record to the next. This is the length that the version specifies, or
/// a larger one if it fits all streams and the numbers of all records, because some sites modify Darshan
/// without changing the version. Returns `None` if no length fits, or only that of another version, which
/// means that the header is damaged.
fn stride(module: Module, size: usize, region: &Inflated, names: &Names, order: ByteOrder) -> Option<usize> {
    let whole_streams = region.ends.len() - usize::from(region.is_cut);
    let fits =
        |stride: usize| streams(region).take(whole_streams).all(|stream| stream.len().is_multiple_of(stride));
    if fits(size) || region.bytes.len().is_multiple_of(size) {
        return Some(size);
    }
    let is_named = |stride: usize| {
        let mut records = region.bytes.chunks_exact(stride);
        records.all(|record| order.u64(record, 0).is_some_and(|id| names.bytes(id).is_some()))
    };
    let longer = (size + 8..=size + LONGEST_ADDITION).step_by(8);
    let stride = longer.into_iter().find(|&stride| fits(stride) && is_named(stride))?;
    let newest = module.newest_version()?;
    let is_known =
        (1..=newest).any(|version| Layout::of(module, version).is_some_and(|one| one.size() == stride));
    (!is_known).then_some(stride)
}
