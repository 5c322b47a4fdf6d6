//! One of the stores that become one.

use super::error;
use crate::ImportError;
use iodock_store::{EventReader, Manifest, Records, StoreError, StoreInfo};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A part, and how its ids are numbered in the whole.
pub struct Part {
    pub info: StoreInfo,
    /// Offset added to ids that only this part's rows have.
    pub first_utid: u32,
    pub first_upid: u32,
    pub first_handle: u32,
    pub first_interface_call: u32,
    pub first_profile: u32,
    /// Index: the part's own id.
    pub files: Vec<u32>,
    pub calls: Vec<u16>,
    pub errnos: Vec<u16>,
    pub sites: Vec<u32>,
    pub stacks: Vec<u32>,
    /// Rank and host of each task.
    pub tasks: Vec<(Option<i32>, Option<String>)>,
    /// Processes without a parent in it, by id and beginning.
    pub roots: Vec<(i32, i64)>,
    /// To be added to its stamps for the order of events, ns.
    pub clock_offset: i64,
}

impl Part {
    /// # Errors
    /// It is no store, a damaged one, not finished, or has no calls.
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

    /// The host that it was recorded on, where it was one.
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

    /// Its owner, for a message: its ranks, else its host.
    pub fn whose(&self) -> String {
        let ranks: Vec<i32> = self.ranks().into_iter().collect();
        match (ranks.as_slice(), self.host()) {
            ([], Some(host)) => format!("host {host}"),
            ([], None) => self.name(),
            (ranks, _) => format!("rank {}", crate::ranks::listed(ranks)),
        }
    }
}

/// The hosts of all parts, each once.
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
