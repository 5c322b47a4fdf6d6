//! Finds functions, source files and lines of the places that calls came from, in program and library files.

use iodock_event::{shown, FirstLoss, LossKind, Losses, Site, Stacks};
use iodock_store::{StoreWriter, SymbolRow};
use iodock_symbols::{DebugFolders, Module};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether the program and library files on this machine are those that the program ran with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modules {
    /// The program has just run on this machine, so the files are the same.
    AsRun,
    /// The log may come from another machine, or be older than the files. The files are used only if they
    /// contain the functions that the log names.
    AsNamed,
}

/// Looks up all sites in the files, and passes the results to the store.
///
/// `directory` is the directory in which the run began. Relative names of libraries start from it.
pub fn look_up(
    stacks: &Stacks,
    modules: Modules,
    directory: Option<&[u8]>,
    writer: &mut StoreWriter,
    losses: &mut Losses,
) {
    if stacks.sites.is_empty() {
        return;
    }
    let mut found =
        Found { build_ids: vec![None; stacks.sites.len()], rows: vec![Vec::new(); stacks.sites.len()] };
    for (module, sites) in by_module(stacks) {
        if module.starts_with(b"/") {
            found.look_up(module, &sites, modules, losses);
        } else if let Some(directory) = directory {
            found.look_up_relative(Path::new(OsStr::from_bytes(directory)), module, &sites);
        }
    }
    for (id, site) in stacks.sites.iter().enumerate() {
        found.tell(id as u32, site);
    }
    writer.set_symbols(found.build_ids, found.rows.into_iter().flatten().collect());
}

fn by_module(stacks: &Stacks) -> BTreeMap<&[u8], Vec<(u32, &Site)>> {
    let mut modules: BTreeMap<&[u8], Vec<(u32, &Site)>> = BTreeMap::new();
    for (id, site) in stacks.sites.iter().enumerate() {
        // Names in square brackets, such as `[vdso]`, belong to the kernel.
        if !site.module.is_empty() && !site.module.starts_with(b"[") && site.offset.is_some() {
            modules.entry(&site.module).or_default().push((id as u32, site));
        }
    }
    modules
}

struct Found {
    build_ids: Vec<Option<String>>,
    rows: Vec<Vec<SymbolRow>>,
}

impl Found {
    fn look_up(&mut self, name: &[u8], sites: &[(u32, &Site)], modules: Modules, losses: &mut Losses) {
        let path = Path::new(OsStr::from_bytes(name));
        let found = Module::open(path, &DebugFolders::with_system(&[]));
        let fits = |module: &Module| modules == Modules::AsRun || is_as_named(module, sites);
        let Some(module) = found.filter(fits) else {
            // Sites whose lines the log itself contains are not a loss.
            if sites.iter().all(|(_, site)| site.line.is_some()) {
                return;
            }
            let first = || FirstLoss { file: shown(name).into_owned(), line: 0, sample: String::new() };
            losses.add_at(LossKind::OtherModules, first);
            return;
        };
        self.name(&module, sites);
    }

    /// Looks up sites in a library with a relative name, as the program passed it to `dlopen` or to the
    /// linker. If the program changed its directory, the file may be a different one. It is used only if
    /// there are call instructions at all offsets where the stacks show calls.
    fn look_up_relative(&mut self, directory: &Path, name: &[u8], sites: &[(u32, &Site)]) {
        let path = directory.join(OsStr::from_bytes(name));
        let found = Module::open(&path, &DebugFolders::with_system(&[]));
        let fits = |module: &Module| {
            sites.iter().all(|(_, site)| site.offset.is_none_or(|offset| module.is_behind_call(offset)))
        };
        if let Some(module) = found.filter(fits) {
            self.name(&module, sites);
        }
    }

    fn name(&mut self, module: &Module, sites: &[(u32, &Site)]) {
        for &(id, site) in sites {
            self.build_ids[id as usize] = module.build_id.clone();
            let places = site.offset.map(|offset| module.places(offset)).unwrap_or_default();
            let rows = places.into_iter().enumerate().map(|(level, place)| SymbolRow {
                site: id,
                level: level as u32,
                function: place.function,
                file: place.file,
                line: place.line,
            });
            self.rows[id as usize] = rows.collect();
        }
    }

    /// Adds the source's own information about a site, if the files contain less.
    fn tell(&mut self, id: u32, site: &Site) {
        let text = |bytes: &[u8]| Some(shown(bytes).into_owned()).filter(|text| !text.is_empty());
        let rows = &mut self.rows[id as usize];
        let has_line = rows.iter().any(|row| row.line.is_some());
        let has_function = rows.iter().any(|row| row.function.is_some());
        if has_line || (site.line.is_none() && (has_function || site.function.is_empty())) {
            return;
        }
        let function = text(&site.function).or_else(|| rows.pop().and_then(|row| row.function));
        *rows = vec![SymbolRow { site: id, level: 0, function, file: text(&site.file), line: site.line }];
    }
}

/// Returns whether the file has the functions that the log names, at the same addresses. False if the log
/// names none.
fn is_as_named(module: &Module, sites: &[(u32, &Site)]) -> bool {
    let mut named =
        sites.iter().filter_map(|(_, site)| Some((site, site.function_offset?, site.offset?))).peekable();
    let tells = named.peek().is_some();
    tells && named.all(|(site, before, offset)| module.has_function(&shown(&site.function), before, offset))
}
