//! The short way of frequent shapes writes what the general way writes, byte for byte.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, Folder};
use iodock_preload::shapes::Shapes;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn frequent_shapes_are_written_as_by_the_general_way() {
    let folder = Folder::new();
    let mut program = Command::new(compiled("both_ways", &folder))
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
