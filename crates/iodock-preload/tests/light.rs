//! Tests that counted calls (--light) equal the calls that a program makes.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, counts, same, Folder};
use iodock_preload::light::{words, Light, Row, RowKind, Table};
use iodock_preload::session::{self, Session, Wanted};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

struct Ran {
    tables: Vec<Table>,
    signal: Option<i32>,
    bytes: u64,
}

/// Runs tests/programs/light.c with its calls counted.
fn counted(arguments: &[&str], memory: u64) -> Ran {
    let folder = Folder::new();
    let (program, place) = (compiled("light", &folder), folder.0.join("session"));
    let light = Light { memory, ..Light::default() };
    let session = Session::create_for(
        &place,
        &session::libraries(),
        Wanted { light: Some(light), ..Wanted::default() },
    )
    .expect("a session");
    let made = folder.0.join("made");
    std::fs::create_dir(&made).expect("a folder");
    let output = Command::new(program)
        .args(arguments)
        .current_dir(made)
        .env("LD_PRELOAD", session.library())
        .env("IODOCK_SESSION", session.path())
        .output()
        .expect("the program starts");
    let numbers = 0..session.tables().expect("tables");
    let tables = numbers.map(|number| session.table(number).expect("a table").expect("it was begun"));
    let tables: Vec<Vec<u8>> = tables.collect();
    Ran {
        bytes: tables.iter().map(|bytes| bytes.len() as u64).max().unwrap_or(0),
        tables: tables.iter().map(|bytes| Table::parse(bytes).expect("whole")).collect(),
        signal: output.status.signal(),
    }
}

impl Ran {
    fn rows(&self, ending: &str) -> Vec<&Row> {
        let all = self.tables.iter().flat_map(|table| &table.rows);
        all.filter(|row| String::from_utf8_lossy(&row.name).ends_with(ending)).collect()
    }

    /// Returns the sum of counter `word` over all processes, for files whose names contain `part`.
    fn sum(&self, part: &str, word: usize) -> u64 {
        let all = self.tables.iter().flat_map(|table| &table.rows);
        let wanted = all.filter(|row| String::from_utf8_lossy(&row.name).contains(part));
        wanted.map(|row| row.words[word]).sum()
    }
}

#[test]
fn sums_are_exact_for_files_that_share_a_row() {
    let ran = counted(&["many", "3000"], Light::LEAST);
    let of_files = |word| ran.sum("/made/", word);
    assert_eq!([words::OPENS, words::CALLS, words::CALLS + 1].map(of_files), [3000; 3]);
    assert_eq!([words::BYTES, words::BYTES + 1].map(of_files), [150_000, 300_000]);
    let rows = &ran.tables[0].rows;
    let pattern = rows.iter().find(|row| row.kind == RowKind::Pattern).expect("one for all further files");
    assert!(pattern.name.ends_with(b"/f*"), "{:?}", String::from_utf8_lossy(&pattern.name));
    let alone =
        rows.iter().filter(|row| row.kind == RowKind::File && row.words[words::OPENS] > 0).count() as u64;
    // Files without their own row are distinguished by one bit each, so some count as one file.
    let folded = ran.tables[0].folded;
    assert!(folded <= 3000 && alone + folded > 2950, "{alone} and {folded}");
    assert!(ran.bytes <= Light::LEAST);
}

#[test]
fn many_threads_lose_no_counts_and_use_no_more_memory() {
    let ran = counted(&["threads", "200"], 1 << 20);
    assert_eq!(ran.sum("/own", words::CALLS + 1), 20_000);
    assert_eq!(ran.sum("/own", words::BYTES + 1), 1_280_000);
    assert_eq!(ran.sum("/shared", words::CALLS + 1), 20_000);
    assert_eq!(ran.sum("/shared", words::BYTES + 1), 640_000);
    assert_eq!(ran.sum("/shared", words::MOST_END + 1).max(3200) % 3200, 0);
    assert!(ran.bytes <= 1 << 20);
}

#[test]
fn counts_of_a_killed_process_are_kept() {
    let ran = counted(&["kill", "500"], 1 << 20);
    assert_eq!(ran.signal, Some(9));
    assert_eq!(ran.sum("/made/f", words::BYTES + 1), 50_000);
    assert_eq!(ran.tables[0].accesses.len(), 64);
}

#[test]
fn children_have_their_own_tables() {
    let ran = counted(&["fork"], 1 << 20);
    let written: Vec<u64> = ran.rows("/both").iter().map(|row| row.words[words::BYTES + 1]).collect();
    assert_eq!(written.iter().sum::<u64>(), 150);
    assert_eq!(ran.tables.len(), 2);
    let pids: Vec<u32> = ran.tables.iter().map(|table| table.pid).collect();
    assert_ne!(pids[0], pids[1]);
}

#[test]
fn file_positions_and_steps_are_counted() {
    let ran = counted(&["positions"], 1 << 20);
    let file = |word| ran.sum("/data", word);
    // The reads are one of 3,000 bytes and one of 1,096 bytes, two rounds of one at each of 250 offsets, and
    // one of 5 bytes through another descriptor.
    assert_eq!((file(words::CALLS), file(words::BYTES)), (503, 4096 + 500 * 4096 + 5));
    assert_eq!((file(words::CALLS + 1), file(words::BYTES + 1)), (1000, 1000 * 4096));
    assert_eq!([words::CONSECUTIVE + 1, words::SEQUENTIAL + 1].map(file), [999; 2]);
    // The read of 1,096 bytes is consecutive. It is also sequential, as are all reads of both rounds except
    // the first of each.
    assert_eq!((file(words::CONSECUTIVE), file(words::SEQUENTIAL)), (1, 1 + 2 * 249));
    assert_eq!((file(words::SEEKS), file(words::SYNCS), file(words::SWITCHES)), (1, 1, 1));
    assert_eq!(file(words::MOST_END), 8192 * 249 + 4096);
    assert_eq!(file(words::UNALIGNED), 1);
    assert_eq!((0..10).map(|bin| file(words::SIZES + 10 + bin)).collect::<Vec<_>>()[2], 1000);
}

#[test]
fn an_appending_descriptor_has_no_known_position_after_exec() {
    let ran = counted(&["appends"], 1 << 20);
    let log = |word| ran.sum("/log", word);
    assert_eq!((log(words::CALLS + 1), log(words::BYTES + 1)), (6, 1050));
    assert_eq!(log(words::UNPLACED), 5);
    assert_eq!(log(words::MOST_END + 1), 1000);
}

/// Counting gives the same numbers as a full recording of the same program.
#[test]
fn counts_equal_those_of_a_full_recording() {
    let (session, _folder, _) = same("light", &["many", "300"]);
    let full = counts(&session);
    let ran = counted(&["many", "300"], 1 << 20);
    assert_eq!(ran.sum("/made/f", words::CALLS), full["pread64"]);
    assert_eq!(ran.sum("", words::CALLS + 1), full["write"]);
    assert_eq!(ran.sum("/made/f", words::OPENS), 300);
}
