//! The modules of Darshan, with their numbers in logs of format 3.41. Earlier logs lack two of them; their
//! modules are renumbered when they are read.

use std::borrow::Cow;

/// The number of a module, which is its index in a log's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Module(pub u8);

/// Names of the modules, from `DARSHAN_MODULE_IDS` in darshan-log-format.h.
const NAMES: [&str; 18] = [
    "NULL",
    "POSIX",
    "MPI-IO",
    "H5F",
    "H5D",
    "PNETCDF_FILE",
    "PNETCDF_VAR",
    "BG/Q",
    "LUSTRE",
    "STDIO",
    "DXT_POSIX",
    "DXT_MPIIO",
    "MDHIM",
    "APXC",
    "APMPI",
    "HEATMAP",
    "DFS",
    "DAOS",
];

impl Module {
    pub const POSIX: Module = Module(1);
    pub const MPI_IO: Module = Module(2);
    pub const H5F: Module = Module(3);
    pub const H5D: Module = Module(4);
    pub const PNETCDF_FILE: Module = Module(5);
    pub const PNETCDF_VAR: Module = Module(6);
    pub const LUSTRE: Module = Module(8);
    pub const STDIO: Module = Module(9);
    pub const DXT_POSIX: Module = Module(10);
    pub const DXT_MPIIO: Module = Module(11);
    pub const HEATMAP: Module = Module(15);

    /// Number of modules in a log of format 3.41.
    pub const ROOM: usize = 64;

    /// Returns Darshan's name of the module, or its number if a later Darshan added the module.
    pub fn name(self) -> Cow<'static, str> {
        match NAMES.get(usize::from(self.0)) {
            Some(&name) => name.into(),
            None => format!("module {}", self.0).into(),
        }
    }

    /// Returns whether the module's records are details in addition to counters: single accesses, heatmaps,
    /// layouts.
    pub(crate) fn is_detail(self) -> bool {
        matches!(self, Module::LUSTRE | Module::DXT_POSIX | Module::DXT_MPIIO | Module::HEATMAP)
    }

    /// Returns the module that Darshan calls `name`. In logs of Darshan 3.1 and before, HDF5 and PnetCDF had
    /// one module each.
    pub(crate) fn named(name: &str) -> Option<Module> {
        let name = match name {
            "HDF5" => "H5F",
            "PNETCDF" => "PNETCDF_FILE",
            "MPIIO" => "MPI-IO",
            "BGQ" => "BG/Q",
            other => other,
        };
        NAMES.iter().position(|&known| known == name).map(|id| Module(id as u8))
    }

    /// Returns the newest version of the module's records that this crate can read; `None` if it does not
    /// read the module.
    pub fn newest_version(self) -> Option<u32> {
        Some(match self {
            Module::POSIX => 4,
            Module::MPI_IO | Module::H5F | Module::PNETCDF_FILE | Module::DXT_MPIIO => 3,
            Module::H5D | Module::LUSTRE | Module::STDIO | Module::DXT_POSIX => 2,
            Module::PNETCDF_VAR | Module::HEATMAP => 1,
            _ => return None,
        })
    }
}
