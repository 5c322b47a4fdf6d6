//! Finds functions and lines of a finished store again, from program files and debug files that are available
//! now.

use crate::error::ImportError;
use iodock_store::{replace_symbols, Manifest, Record, Records, State, SymbolRow};
use iodock_symbols::{DebugFolders, Module, SourcePlace};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The reason why no lines were found in a program or library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WithoutLines {
    /// No file is the one that the program ran with.
    NotFound,
    /// The file has no debug information, at most names of functions.
    NoDebugInformation,
}

impl WithoutLines {
    pub fn name(self) -> &'static str {
        match self {
            WithoutLines::NotFound => "not-found",
            WithoutLines::NoDebugInformation => "no-debug-information",
        }
    }
}

/// A program or library without lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    pub module: String,
    pub build_id: Option<String>,
    pub why: WithoutLines,
    /// Number of sites in it.
    pub sites: u64,
    pub is_installed: bool,
}

/// Number of sites: in total, and those with a function or a line, before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbolized {
    pub sites: u64,
    pub functions: (u64, u64),
    pub lines: (u64, u64),
    pub unknown: Vec<Unknown>,
}

/// A row of the table `sites`.
struct Place {
    site: u32,
    offset: u64,
    is_installed: bool,
}

type Symbols = BTreeMap<u32, Vec<SymbolRow>>;

/// Looks up all sites of a store in their program files, or in `folders`, and replaces the table of symbols.
/// Keeps the symbols of sites that are not found.
///
/// # Errors
/// The store cannot be read or written, or is still being recorded.
pub fn symbolize(store: &Path, folders: &[PathBuf]) -> Result<Symbolized, ImportError> {
    let manifest = Manifest::read(store)?;
    if manifest.state == State::Recording {
        return Err(ImportError::Usage {
            message: format!("{}: is still being recorded", store.display()),
            hint: "wait until the recording has ended".into(),
        });
    }
    let mut symbols = symbols_of(store, &manifest)?;
    let mut found = Symbolized::default();
    let (mut sites, modules) = modules_of(store, &manifest)?;
    found.sites = sites.len() as u64;
    found.count(&symbols, |pair| &mut pair.0);
    let folders = DebugFolders::with_system(folders);
    for ((path, build_id), places) in modules {
        let module = open(&path, build_id.as_deref(), &places, &symbols, &folders);
        if let Some(module) = &module {
            name(module, &places, &mut symbols);
        }
        let has_line = |place: &Place| symbols.get(&place.site).is_some_and(|rows| is_lined(rows));
        if !places.iter().any(has_line) {
            let why =
                if module.is_some() { WithoutLines::NoDebugInformation } else { WithoutLines::NotFound };
            found.unknown.push(Unknown {
                module: path,
                build_id,
                why,
                sites: places.len() as u64,
                is_installed: places[0].is_installed,
            });
        }
    }
    found.count(&symbols, |pair| &mut pair.1);
    sites.sort_unstable();
    let rows: Vec<SymbolRow> = sites.iter().filter_map(|site| symbols.remove(site)).flatten().collect();
    if found.sites > 0 {
        replace_symbols(store, &rows)?;
    }
    Ok(found)
}

impl Symbolized {
    fn count(&mut self, symbols: &Symbols, side: fn(&mut (u64, u64)) -> &mut u64) {
        let with = |has: fn(&[SymbolRow]) -> bool| symbols.values().filter(|rows| has(rows)).count() as u64;
        *side(&mut self.functions) = with(|rows| rows.iter().any(|row| row.function.is_some()));
        *side(&mut self.lines) = with(is_lined);
    }
}

fn is_lined(rows: &[SymbolRow]) -> bool {
    rows.iter().any(|row| row.line.is_some())
}

/// Opens the file that the program ran with. It is the file with the same build id. Without a build id, it is
/// a file that has call instructions where calls were seen.
fn open(
    path: &str,
    build_id: Option<&str>,
    places: &[Place],
    symbols: &Symbols,
    folders: &DebugFolders,
) -> Option<Module> {
    let candidates = folders.modules(Path::new(path), build_id).into_iter();
    let fits = |module: &Module| match build_id {
        Some(_) => module.build_id.as_deref() == build_id,
        None => places.iter().all(|place| {
            module.is_behind_call(place.offset) && is_named(module, place, symbols.get(&place.site))
        }),
    };
    let mut fitting = candidates.filter_map(|path| Module::open(&path, folders)).filter(fits).peekable();
    let is_single = fitting.peek().is_some_and(Module::has_lines);
    if is_single {
        return fitting.next();
    }
    // A stripped copy may come before the copy with lines.
    let first = fitting.next();
    fitting.find(Module::has_lines).or(first)
}

/// Returns whether the file has at this place the function that the store names. Returns true if the store
/// names none.
fn is_named(module: &Module, place: &Place, rows: Option<&Vec<SymbolRow>>) -> bool {
    let Some(function) = rows.and_then(|rows| rows.last()?.function.as_ref()) else { return true };
    module.places(place.offset).iter().any(|found| found.function.as_ref() == Some(function))
}

fn name(module: &Module, places: &[Place], symbols: &mut Symbols) {
    for place in places {
        let found = module.places(place.offset);
        let known = symbols.entry(place.site).or_default();
        let is_more = found.iter().any(|one| one.line.is_some()) || !is_lined(known);
        if is_more && !found.is_empty() {
            *known = rows(place.site, found);
        }
    }
}

fn rows(site: u32, places: Vec<SourcePlace>) -> Vec<SymbolRow> {
    let row = |(level, place): (usize, SourcePlace)| SymbolRow {
        site,
        level: level as u32,
        function: place.function,
        file: place.file,
        line: place.line,
    };
    places.into_iter().enumerate().map(row).collect()
}

type Modules = BTreeMap<(String, Option<String>), Vec<Place>>;

/// Returns all sites, and the sites of each program file.
fn modules_of(store: &Path, manifest: &Manifest) -> Result<(Vec<u32>, Modules), ImportError> {
    let (mut sites, mut modules) = (Vec::new(), Modules::new());
    each_row(store, manifest, "sites", |row| {
        let Some(site) = row.id("site_id") else { return };
        sites.push(site);
        let offset = row.number("offset_bytes").and_then(|offset| u64::try_from(offset).ok());
        // Names in square brackets, such as `[vdso]`, belong to the kernel.
        let module = row.text("module").filter(|module| !module.starts_with('['));
        if let (Some(module), Some(offset)) = (module, offset) {
            let key = (module.to_string(), row.text("build_id").map(str::to_string));
            modules.entry(key).or_default().push(Place {
                site,
                offset,
                is_installed: row.flag("is_installed") == Some(true),
            });
        }
    })?;
    Ok((sites, modules))
}

fn symbols_of(store: &Path, manifest: &Manifest) -> Result<Symbols, ImportError> {
    let mut symbols = Symbols::new();
    each_row(store, manifest, "symbols", |row| {
        let Some(site) = row.id("site_id") else { return };
        let text = |column| row.text(column).map(str::to_string);
        symbols.entry(site).or_default().push(SymbolRow {
            site,
            level: row.id("level").unwrap_or(0),
            function: text("function"),
            file: text("file"),
            line: row.id("line"),
        });
    })?;
    for rows in symbols.values_mut() {
        rows.sort_by_key(|row| row.level);
    }
    Ok(symbols)
}

fn each_row(
    store: &Path,
    manifest: &Manifest,
    table: &str,
    mut take: impl FnMut(&Record),
) -> Result<(), ImportError> {
    let is_there = manifest.tables.contains_key(table);
    let file = store.join(format!("{table}.parquet"));
    let mut records = Records::open(if is_there { vec![file] } else { Vec::new() });
    while let Some(row) = records.next_row()? {
        take(&row);
    }
    Ok(())
}
