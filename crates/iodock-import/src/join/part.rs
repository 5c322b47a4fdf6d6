//! One of the stores that are merged.

use super::error;
use crate::ImportError;
use iodock_store::{EventReader, Manifest, Records, StoreError, StoreInfo};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A part, and the mapping of its ids to ids of the merged store.
pub struct Part {
    pub info: StoreInfo,
    /// Offsets that are added to ids which only this part's rows use.
    pub first_utid: u32,
    pub first_upid: u32,
    pub first_handle: u32,
    pub first_interface_call: u32,
    pub first_profile: u32,
    /// Ids in the merged store, indexed by the part's own id.
    pub files: Vec<u32>,
    pub calls: Vec<u16>,
    pub errnos: Vec<u16>,
    pub sites: Vec<u32>,
    pub stacks: Vec<u32>,
    /// Rank and host of each task.
    pub tasks: Vec<(Option<i32>, Option<String>)>,
    /// Processes without a parent in the part, by process id and start time.
    pub roots: Vec<(i32, i64)>,
    /// Offset that is added to the part's time stamps to order events, ns.
    pub clock_offset: i64,
}

impl Part {
    /// Opens a part.
    ///
    /// # Errors
    /// The folder is not a store, or the store is damaged, unfinished, or has no calls.
    pub fn open(path: &Path) -> Result<Part, ImportError> {
        let info = StoreInfo::open(path).map_err(|error| match error {
            StoreError::Damaged { .. } => error::damaged(&error),
            error => error.into(),
        })?;
        if info.is_unfinished() {
            return Err(error::unfinished(&path.display().to_string()));
        }
        if info.manifest.tables.get("call_totals").is_some_and(|&rows| rows > 0) {
            return Err(error::counts_only(&path.display().to_string()));
        }
        Ok(Part {
            info,
            first_utid: 0,
            first_upid: 0,
            first_handle: 0,
            first_interface_call: 0,
            first_profile: 0,
            files: Vec::new(),
            calls: Vec::new(),
            errnos: Vec::new(),
            sites: Vec::new(),
            stacks: Vec::new(),
            tasks: Vec::new(),
            roots: Vec::new(),
            clock_offset: 0,
        })
    }

    pub fn manifest(&self) -> &Manifest {
        &self.info.manifest
    }

    pub fn name(&self) -> String {
        self.info.path.display().to_string()
    }

    /// Returns the host on which the part was recorded, if it was a single one.
    pub fn host(&self) -> Option<&str> {
        self.manifest().host.name.as_deref().filter(|name| !name.is_empty())
    }

    pub fn rows(&self, table: &str) -> u64 {
        self.manifest().tables.get(table).copied().unwrap_or(0)
    }

    pub fn records(&self, file: &str) -> Records {
        let files = match file.split_once('/') {
            Some(("samples", _)) => self.info.samples.clone(),
            Some(("faults", _)) => self.info.faults.clone(),
            Some(("pages", _)) => self.info.pages.clone(),
            _ => {
                let path = self.info.path.join(file);
                self.info.tables.iter().filter(|table| **table == path).cloned().collect::<Vec<PathBuf>>()
            }
        };
        Records::open(files)
    }

    pub fn events(&self) -> EventReader {
        EventReader::open(self.info.events.clone())
    }

    pub fn ranks(&self) -> BTreeSet<i32> {
        self.tasks.iter().filter_map(|(rank, _)| *rank).collect()
    }

    /// Describes the part in a message by its ranks or, if it has none, by its host.
    pub fn whose(&self) -> String {
        let ranks: Vec<i32> = self.ranks().into_iter().collect();
        match (ranks.as_slice(), self.host()) {
            ([], Some(host)) => format!("host {host}"),
            ([], None) => self.name(),
            (ranks, _) => format!("rank {}", crate::ranks::listed(ranks)),
        }
    }
}

/// Returns the hosts of all parts, each once.
pub fn hosts(parts: &[Part]) -> Vec<String> {
    let mut hosts: Vec<String> = Vec::new();
    for part in parts {
        let several = part.manifest().hosts.iter().map(|host| host.name.as_str());
        for host in several.chain(part.host()).filter(|host| !host.is_empty()) {
            if !hosts.iter().any(|known| known == host) {
                hosts.push(host.into());
            }
        }
    }
    hosts
}
