//! Tests that the fast path for frequent shapes of calls writes the same bytes as the general path.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::Folder;
use iodock_preload::shapes::Shapes;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Compiles the program together with the recorder's own sources.
fn compiled(folder: &Folder) -> PathBuf {
    let (here, program) = (Path::new(env!("CARGO_MANIFEST_DIR")), folder.0.join("both_ways"));
    let files = std::fs::read_dir(here.join("native")).expect("there");
    let sources = files.map(|file| file.expect("there").path());
    let status = Command::new("cc")
        .args(["-O2", "-w", "-fno-builtin", "-o"])
        .args([&program, &here.join("tests/programs/both_ways.c")])
        .args(sources.filter(|path| path.extension().is_some_and(|kind| kind == "c")))
        .status();
    assert!(status.expect("a C compiler").success(), "both_ways.c compiles");
    program
}

#[test]
fn the_fast_path_writes_the_same_records_as_the_general_one() {
    let folder = Folder::new();
    let mut program = Command::new(compiled(&folder))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let shapes: Vec<u8> =
        Shapes::of_this_machine().by_number.iter().flat_map(|shape| shape.bytes()).collect();
    program.stdin.take().expect("a pipe").write_all(&shapes).expect("it reads");
    let output = program.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{:?}: {}", output.status, String::from_utf8_lossy(&output.stdout));
}
