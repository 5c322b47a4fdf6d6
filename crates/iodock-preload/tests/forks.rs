//! Tests signal handlers that fork at any moment. If a record was being written, the child and its parent
//! both continue to write that record.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, entries, run, session, Folder};
use iodock_preload::reader::{Entry, Part};
use std::collections::HashSet;

#[test]
fn children_forked_in_handlers_do_not_damage_their_parents_records() {
    let folder = Folder::new();
    let session = session(&folder);
    let output = run(&session, &compiled("forks", &folder), &[]);
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stdout);
    let told: Vec<u64> = told.split_whitespace().map(|word| word.parse().expect("a number")).collect();
    let [pid, reads, children] = told[..] else { panic!("{told:?}") };
    let (mut recorded, mut processes) = (0, HashSet::new());
    for entry in entries(&session) {
        let Entry::Call(call) = entry else { continue };
        processes.insert(call.pid);
        let is_read = call.call.name() == "pread64" && call.part == Part::Whole;
        recorded += u64::from(u64::from(call.pid) == pid && is_read);
    }
    assert_eq!(recorded, reads);
    assert_eq!(processes.len() as u64, children + 1);
}
