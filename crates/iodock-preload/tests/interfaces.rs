//! Tests that calls of MPI, HDF5 and similar libraries fail with an error if the library is missing or lacks
//! the function.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::Folder;
use std::path::{Path, PathBuf};
use std::process::Command;

fn compiled(name: &str, to: PathBuf, options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name);
    let status = Command::new("cc").args(["-O2", "-w", "-o"]).arg(&to).arg(source).args(options).status();
    assert!(status.expect("a C compiler").success(), "{name} compiles");
    to
}

/// Returns the output of interfaces.c with an MPI library of that file name.
fn printed(library: &str) -> String {
    let folder = Folder::new();
    let interfaces = folder.0.join("libiodock_interfaces.so");
    std::fs::write(&interfaces, iodock_preload::INTERFACES_LIBRARY).expect("the library of interfaces");
    let program = compiled("interfaces.c", folder.0.join("interfaces"), &["-rdynamic", "-ldl"]);
    let mpi = compiled("other_mpi.c", folder.0.join(library), &["-shared", "-fPIC"]);
    let done =
        Command::new(program).arg(mpi).env("LD_PRELOAD", interfaces).output().expect("the program starts");
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).expect("text")
}

const PRINTED: &str = "\
no library: HDF5 -1 -1, NetCDF -128, PnetCDF -128, MPI 1, Fortran 1
written: 0
told: 101, size unknown: 1, opened later: 0
lacking: 52, plain: 0, too many: 13
view: 512, current one unknown: 1
told after a jump: 1
Fortran: 12884901888 bytes, error 0
Fortran: 32 bytes, error 0
";

#[test]
fn calls_that_no_library_has_fail_and_what_it_lacks_is_looked_for_once() {
    assert_eq!(printed("libmpi_other.so"), PRINTED);
}

#[test]
fn an_implementation_of_another_name_is_found_where_it_is_loaded_for_one_module_alone() {
    assert_eq!(printed("libmpt.so"), PRINTED);
}
