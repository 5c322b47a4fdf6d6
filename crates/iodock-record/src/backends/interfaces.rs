//! Decides which programs load the library that records interfaces: programs that make calls of MPI-IO, HDF5
//! or NetCDF, or that may start such programs.

use super::reach::loaded_libraries;
use crate::options::Interfaces;
use crate::program::Program;
use iodock_preload::session::Layers;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Programs that start the ranks of an MPI program, and Python modules that load MPI.
const WORDS: [&str; 11] = [
    "mpirun",
    "mpiexec",
    "mpiexec_mpt",
    "orterun",
    "prterun",
    "prun",
    "srun",
    "aprun",
    "jsrun",
    "ibrun",
    "mpi4py",
];
/// Beginnings of the names of libraries that make calls of these interfaces or provide them.
const LIBRARIES: [&[u8]; 5] = [b"libmpi", b"libmpt", b"libhdf5", b"libnetcdf", b"libpnetcdf"];
/// Python packages that load these libraries.
const PACKAGES: [&str; 5] = ["mpi4py", "h5py", "tables", "netCDF4", "pnetcdf"];
/// Variables that only MPI launchers set for their programs. Slurm's variables are left out, because every
/// job has them.
const OF_RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK"];
/// Number of bytes of a script that are read.
const MOST_READ: u64 = 1 << 20;

pub fn wanted(how: Interfaces, program: &Program) -> Layers {
    match how {
        Interfaces::Stdio => Layers::All,
        Interfaces::Always => Layers::Libraries,
        Interfaces::Never => Layers::None,
        Interfaces::Auto if makes_these_calls(program) => Layers::Libraries,
        Interfaces::Auto => Layers::None,
    }
}

fn makes_these_calls(program: &Program) -> bool {
    OF_RANKS.iter().any(|name| program.variable(name).is_some())
        || program.arguments.iter().any(|argument| mentions(argument.as_bytes()))
        || is_script_with_mpi(program)
        || is_python_with_interfaces(program)
        || loaded_libraries(program).iter().any(|library| has_interface(library))
}

fn has_interface(library: &Path) -> bool {
    library
        .file_name()
        .is_some_and(|name| LIBRARIES.iter().any(|beginning| name.as_bytes().starts_with(beginning)))
}

/// Returns whether the text contains one of the words. A word may be part of a path or have a suffix, as in
/// `/usr/bin/mpirun` and `mpiexec.hydra`, but `trunk` does not contain `srun`.
fn mentions(text: &[u8]) -> bool {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    WORDS.iter().any(|word| {
        memchr::memmem::find_iter(text, word).any(|at| {
            let before = at.checked_sub(1).and_then(|before| text.get(before));
            !is_part(before) && !is_part(text.get(at + word.len()))
        })
    })
}

/// Returns whether the program, or its first argument that is a file as in `bash job.sh`, is a script that
/// starts MPI programs.
fn is_script_with_mpi(program: &Program) -> bool {
    let named = program.arguments.iter().skip(1).find(|name| !name.as_bytes().starts_with(b"-"));
    [Some(program.path.as_os_str()), named.map(|name| name.as_os_str())].into_iter().flatten().any(|name| {
        let mut text = Vec::new();
        // A pipe is not read, because its content is for the program.
        let is_file = fs::metadata(name).is_ok_and(|about| about.is_file());
        let read = |file: File| file.take(MOST_READ).read_to_end(&mut text).is_ok();
        is_file && File::open(name).is_ok_and(read) && !text.starts_with(b"\x7fELF") && mentions(&text)
    })
}

/// Returns whether the program is a Python with packages of these interfaces. Python loads them when a script
/// imports a module, which can't be known before. So it is sufficient that the packages are installed.
fn is_python_with_interfaces(program: &Program) -> bool {
    if !program.path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"python")) {
        return false;
    }
    let real = fs::canonicalize(&program.path).ok();
    let prefixes = [Some(program.path.as_path()), real.as_deref()].into_iter().flatten().filter_map(|path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty())?;
        Some(folder.join(".."))
    });
    let home = program.variable("HOME").map(|home| Path::new(OsStr::from_bytes(home)).join(".local"));
    let prefixes = prefixes.chain(home).chain([PathBuf::from("/usr/local")]);
    let installed = prefixes.flat_map(|prefix| folders_of_packages(&prefix.join("lib")));
    let given = program.variable("PYTHONPATH").unwrap_or_default().split(|&byte| byte == b':');
    let given =
        given.filter(|folder| !folder.is_empty()).map(|folder| PathBuf::from(OsStr::from_bytes(folder)));
    let mut folders = installed.chain(given);
    folders.any(|folder| PACKAGES.iter().any(|package| folder.join(package).is_dir()))
}

/// Returns folders such as `lib/python3.11/site-packages`.
fn folders_of_packages(lib: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(lib).into_iter().flatten().flatten();
    let pythons = entries.filter(|entry| entry.file_name().as_bytes().starts_with(b"python3"));
    let folders =
        |entry: fs::DirEntry| ["site-packages", "dist-packages"].map(|name| entry.path().join(name));
    pythons.flat_map(folders).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mpi_launchers_are_recognised_as_whole_words() {
        for text in
            ["/usr/bin/mpirun", "x; mpiexec.hydra -n 4", "mpiexec_mpt -n 4", "srun", "from mpi4py import MPI"]
        {
            assert!(mentions(text.as_bytes()), "{text}");
        }
        for text in ["trunk", "xsrun", "mpirunner", "my_mpirun", "compile"] {
            assert!(!mentions(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn libraries_with_interfaces_are_recognised_by_name() {
        assert!(has_interface(Path::new("/usr/lib/x86_64-linux-gnu/libmpich.so.12")));
        assert!(has_interface(Path::new("/usr/lib/x86_64-linux-gnu/libhdf5_serial.so.103")));
        assert!(has_interface(Path::new("/opt/hpe/hpc/mpt/mpt-2.25/lib/libmpt.so")));
        assert!(has_interface(Path::new("/opt/hpe/hpc/mpt/mpt-2.25/lib/libmpt.so")));
        assert!(!has_interface(Path::new("/usr/lib/x86_64-linux-gnu/libm.so.6")));
    }
}
