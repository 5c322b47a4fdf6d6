//! Combines the lines of a text into records.

use super::head::Head;
use super::line::Line;
use crate::counted::{fields, Counted, Field, Layout};
use crate::loss::add;
use crate::{ByteOrder, Component, Heatmap, Log, LossKind, LustreFile, Module, Region};
use std::collections::BTreeMap;

/// All records of the modules with counters, and the record that is being assembled.
pub struct Records {
    modules: BTreeMap<Module, Rows>,
    current: Option<Current>,
    /// Number of bytes that records may still use.
    room: u64,
    any: bool,
}

/// The records of a module. Values that the text lacks are `None`.
struct Rows {
    counters: &'static [Field],
    fractions: &'static [Field],
    rows: Vec<Row>,
}

struct Row {
    id: u64,
    rank: i64,
    file: Option<u64>,
    /// Counters, then fractions, indexed as in all fields of the module.
    values: Vec<Option<u64>>,
}

/// The current record, to which further lines may belong.
struct Current {
    module: Module,
    id: u64,
    rank: i64,
    what: What,
}

enum What {
    /// A record of counters, and the position after its last value, where the next value is expected.
    Counted(Row, usize),
    Lustre(LustreFile),
    Heatmap(Heatmap),
    /// Lines of a module that this crate does not read.
    Unread,
}

impl Records {
    pub fn new(room: u64) -> Records {
        Records { modules: BTreeMap::new(), current: None, room, any: false }
    }

    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// Processes a line. Returns false if the line cannot be read.
    pub fn add(&mut self, line: &Line<'_>, log: &mut Log) -> bool {
        let Some(module) = Module::named(line.module) else { return false };
        let is_same =
            |current: &Current| (current.module, current.id, current.rank) == (module, line.id, line.rank);
        if !self.current.as_ref().is_some_and(|current| is_same(current) && !current.has(line)) {
            self.store(log);
            self.current = Some(Current::begin(module, line));
            self.any = true;
            log.names.add(line.id, line.name.as_bytes());
        }
        self.current.as_mut().is_none_or(|current| current.add(line))
    }

    /// Stores the current record, which is complete.
    fn store(&mut self, log: &mut Log) {
        let Some(current) = self.current.take() else { return };
        let place = Region::Module(current.module);
        match current.what {
            What::Counted(row, _) => {
                let bytes = 16 * row.values.len() as u64;
                if bytes > self.room {
                    return add(&mut log.losses, LossKind::OversizedRegion, place, 1);
                }
                self.room -= bytes;
                let Some((counters, fractions)) = fields(current.module) else { return };
                let rows = || Rows { counters, fractions, rows: Vec::new() };
                self.modules.entry(current.module).or_insert_with(rows).rows.push(row);
            }
            What::Lustre(mut file) => {
                file.components.retain(|one| one.stripe_bytes != -1);
                log.lustre.push(file);
            }
            What::Heatmap(map) if map.read.len() == map.written.len() => log.heatmaps.push(map),
            What::Heatmap(_) => add(&mut log.losses, LossKind::IncompleteRecords, place, 1),
            What::Unread => {}
        }
    }

    pub fn finish(mut self, head: &Head, log: &mut Log) {
        self.store(log);
        for (module, rows) in self.modules {
            let version = head.modules.get(&module).map(|said| said.version);
            let (counted, incomplete) = rows.counted(module, version);
            add(&mut log.losses, LossKind::IncompleteRecords, Region::Module(module), incomplete);
            log.counted.push(counted);
        }
    }
}

impl Current {
    fn begin(module: Module, line: &Line<'_>) -> Current {
        let (id, rank) = (line.id, line.rank);
        let what = match (fields(module), module) {
            (Some((counters, fractions)), _) => {
                let values = vec![None; counters.len() + fractions.len()];
                What::Counted(Row { id, rank, file: None, values }, 0)
            }
            (None, Module::LUSTRE) => {
                let rank = Some(rank).filter(|&rank| rank >= 0);
                What::Lustre(LustreFile { id, rank, ..LustreFile::default() })
            }
            (None, Module::HEATMAP) => {
                What::Heatmap(Heatmap { id, rank, bin_s: f64::NAN, written: Vec::new(), read: Vec::new() })
            }
            (None, _) => What::Unread,
        };
        Current { module, id, rank, what }
    }

    /// Returns whether the current record already has this value, so that the line begins another record.
    fn has(&self, line: &Line<'_>) -> bool {
        match &self.what {
            What::Counted(row, _) => {
                let (counters, fractions) = fields(self.module).unwrap_or_default();
                let first = counters.iter().chain(fractions).position(|field| field.name == line.counter);
                // Only the first four values are checked, because the next record begins with one of them.
                first.is_some_and(|at| at < 4 && row.values[at].is_some())
            }
            What::Lustre(file) => {
                matches!(line.counter, "LUSTRE_OSTS" | "LUSTRE_NUM_COMPONENTS")
                    && (file.file_system_targets.is_some() || !file.components.is_empty())
            }
            What::Heatmap(map) => line.counter == "HEATMAP_F_BIN_WIDTH_SECONDS" && !map.bin_s.is_nan(),
            What::Unread => false,
        }
    }

    fn add(&mut self, line: &Line<'_>) -> bool {
        match &mut self.what {
            What::Counted(row, next) => add_counter(self.module, row, next, line),
            What::Lustre(file) => add_layout(file, line).is_some(),
            What::Heatmap(map) => add_bin(map, line).is_some(),
            What::Unread => true,
        }
    }
}

fn add_counter(module: Module, row: &mut Row, next: &mut usize, line: &Line<'_>) -> bool {
    let Some((counters, fractions)) = fields(module) else { return false };
    if line.counter.ends_with("_FILE_REC_ID") {
        row.file = line.number().map(i64::cast_unsigned);
        return row.file.is_some();
    }
    let name =
        |at: usize| counters.get(at).or_else(|| fractions.get(at - counters.len())).map(|field| field.name);
    // Lines are in the order of the fields, except for the fields of other versions.
    let at = (*next..row.values.len()).chain(0..*next).find(|&at| name(at) == Some(line.counter));
    let Some(at) = at else { return false };
    *next = at + 1;
    let value = match at < counters.len() {
        true => line.number().map(i64::cast_unsigned),
        false => line.fraction().map(f64::to_bits),
    };
    row.values[at] = value;
    value.is_some()
}

impl Rows {
    /// Returns the records that have all values which other records of the module have, and the number of
    /// incomplete records.
    fn counted(self, module: Module, version: Option<u32>) -> (Counted, u64) {
        let known = version.unwrap_or(u32::MAX);
        let is_there = |at: usize, field: &Field| {
            // Before version 3 of the module, darshan-parser prints a sum of two counters under the name of
            // the later counter.
            let is_of_version = field.first <= known || field.name == "PNETCDF_FILE_OPENS";
            is_of_version && self.rows.iter().any(|row| row.values[at].is_some())
        };
        let all = || self.counters.iter().chain(self.fractions).enumerate();
        let places: Vec<usize> = all().filter(|(at, field)| is_there(*at, field)).map(|(at, _)| at).collect();
        let names = |fields: &'static [Field], first: usize| {
            let there = fields.iter().enumerate().filter(|(at, _)| places.contains(&(first + at)));
            there.map(|(_, field)| field.name).collect()
        };
        let has_file = self.rows.iter().any(|row| row.file.is_some()) && (module != Module::H5D || known > 1);
        let fractions = names(self.fractions, self.counters.len());
        let layout = Layout { has_file, counters: names(self.counters, 0), fractions };
        let (mut bytes, mut incomplete) = (Vec::new(), 0);
        for row in &self.rows {
            let values: Option<Vec<u64>> = places.iter().map(|&at| row.values[at]).collect();
            let file = has_file.then_some(row.file).map(|file| file.into_iter().collect::<Vec<u64>>());
            match (values, file) {
                (Some(_), Some(file)) if file.is_empty() => incomplete += 1,
                (None, _) => incomplete += 1,
                (Some(values), file) => {
                    let words =
                        [row.id, row.rank.cast_unsigned()].into_iter().chain(file.unwrap_or_default());
                    bytes.extend(words.chain(values).flat_map(u64::to_le_bytes));
                }
            }
        }
        let stride = layout.size();
        (Counted { module, version, layout, order: ByteOrder::Little, stride, bytes }, incomplete)
    }
}

/// Adds a value of version 1, or of `LUSTRE_COMP1_...` and further components.
fn add_layout(file: &mut LustreFile, line: &Line<'_>) -> Option<()> {
    let name = line.counter.strip_prefix("LUSTRE_")?;
    match name {
        "OSTS" => file.file_system_targets = Some(line.number()?),
        "MDTS" => file.file_system_metadata_targets = Some(line.number()?),
        "STRIPE_OFFSET" => file.stripe_offset = Some(line.number()?),
        "NUM_COMPONENTS" | "NUM_STRIPES" => _ = line.number()?,
        _ => match name.strip_prefix("COMP") {
            Some(numbered) => {
                let (number, name) = numbered.split_once('_')?;
                add_component(component(file, number.parse().ok()?)?, name, line)?;
            }
            None => add_component(component(file, 1)?, name, line)?,
        },
    }
    Some(())
}

/// Returns component `number`, counted from 1, and adds it if it is the next one. The components come in
/// order.
fn component(file: &mut LustreFile, number: usize) -> Option<&mut Component> {
    let at = number.checked_sub(1)?;
    if at == file.components.len() {
        file.components.push(Component::default());
    }
    file.components.get_mut(at)
}

fn add_component(one: &mut Component, name: &str, line: &Line<'_>) -> Option<()> {
    match name {
        "STRIPE_SIZE" => one.stripe_bytes = line.number()?,
        "STRIPE_COUNT" | "STRIPE_WIDTH" => one.stripe_count = line.number()?,
        "STRIPE_PATTERN" => one.pattern = pattern(line.value),
        "FLAGS" => one.flags = flags(line.value),
        "EXT_START" => one.start = Some(line.number()?),
        "EXT_END" => one.end = Some(line.number()?).filter(|&end| end != -1),
        "MIRROR_ID" => one.mirror = Some(line.number()?),
        "POOL_NAME" => one.pool = Some(line.value.to_owned()).filter(|pool| pool != "N/A"),
        _ => {
            name.strip_prefix("OST_ID_")?;
            one.targets.push(line.number()?);
        }
    }
    Some(())
}

/// Returns Lustre's number of a pattern; `None` for `N/A`.
fn pattern(text: &str) -> Option<i64> {
    Some(match text {
        "raid0" => 0,
        "mdt" => 2,
        "raid0,overstriped" => 4,
        "foreign" => 8,
        _ => return None,
    })
}

/// Returns Lustre's flags from the text of darshan-parser; `None` for `N/A`.
fn flags(text: &str) -> Option<i64> {
    const NAMES: [&str; 12] = [
        "stale",
        "prefrd",
        "prefwr",
        "offline",
        "init",
        "nosync",
        "extension",
        "parity",
        "compress",
        "partial",
        "nocompr",
        "neg",
    ];
    if text == "0" {
        return Some(0);
    }
    let bit = |name: &str| NAMES.iter().position(|&known| known == name).map(|at| 1 << at);
    text.split(',').map(bit).sum()
}

fn add_bin(map: &mut Heatmap, line: &Line<'_>) -> Option<()> {
    let name = line.counter.strip_prefix("HEATMAP_")?;
    if name == "F_BIN_WIDTH_SECONDS" {
        map.bin_s = line.fraction()?;
        return Some(());
    }
    let (bins, number) = match name.strip_prefix("READ_BIN_") {
        Some(number) => (&mut map.read, number),
        None => (&mut map.written, name.strip_prefix("WRITE_BIN_")?),
    };
    (number.parse() == Ok(bins.len())).then_some(())?;
    bins.push(line.number()?);
    Some(())
}
