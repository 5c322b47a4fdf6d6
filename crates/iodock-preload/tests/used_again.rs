//! Tests that threads fill their chunks again after the recorder has read them, and that no record is lost or
//! read twice.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use common::{compiled, session, Folder};
use iodock_preload::calls::{recover, CallsFile, CallsWriter, Keeper};
use iodock_preload::format::header::NEXT_CHUNK;
use iodock_preload::reader::{ChunkReader, Entry};
use iodock_preload::session::Session;
use iodock_preload::shapes::Shapes;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

const ROUNDS: u64 = 300_000;
/// Smallest number of chunks that all rounds fill: each round makes two calls, whose records have 7 bytes.
const CHUNKS_FILLED: u64 = ROUNDS * 2 * 7 / (64 << 10);

fn begun(session: &Session, program: &Path) -> Child {
    Command::new(program)
        .arg(ROUNDS.to_string())
        .env("LD_PRELOAD", session.library())
        .env("IODOCK_SESSION", session.path())
        .spawn()
        .expect("the program starts")
}

/// Returns the number of calls of access.
fn accesses(file: &CallsFile) -> u64 {
    let shapes = Shapes::of_this_machine();
    let (mut count, mut bytes) = (0, Vec::new());
    for number in file.numbers() {
        file.read(number, usize::MAX, &mut bytes).expect("read");
        let mut reader = ChunkReader::new(bytes.clone()).expect("a chunk from its beginning");
        while let Some(entry) = reader.next_entry(shapes).expect("no damage") {
            count += u64::from(matches!(entry, Entry::Call(call) if call.call.name().contains("access")));
        }
    }
    count
}

#[test]
fn chunks_may_be_reused_while_a_recorder_reads_them() {
    let (folder, place) = (Folder::new(), Folder::new());
    let program = compiled("few_paths", &folder);
    let session = session(&place);
    let path = place.0.join("run.calls");
    let mut keeper = Keeper::new(&session, CallsWriter::create(&path, &session, 1).expect("a file"));
    let mut child = begun(&session, &program);
    while child.try_wait().expect("waited for").is_none() {
        keeper.collect(|_| {}).expect("collected");
        keeper.hand_over(|_| true).expect("handed over");
        std::thread::sleep(Duration::from_millis(1));
    }
    keeper.collect(|_| {}).expect("collected");
    keeper.end().expect("the end");
    let file = CallsFile::open(&path).expect("readable");
    // The dynamic linker makes some calls of access before the program starts.
    assert!((2 * ROUNDS..2 * ROUNDS + 4).contains(&accesses(&file)), "{}", accesses(&file));
    let (taken, read) = (session.counter(NEXT_CHUNK).expect("counter"), file.numbers().len() as u64);
    assert!(read > CHUNKS_FILLED && taken < read / 2, "{taken} chunks for what fills {read}");
}

#[test]
#[ignore = "part of `make test-all`: kills a recorder again and again"]
fn a_reused_process_id_is_handled_if_the_process_is_killed() {
    let (folder, place) = (Folder::new(), Folder::new());
    let program = compiled("few_paths", &folder);
    for milliseconds in [2, 10, 25, 60] {
        let place = Folder(place.0.join(milliseconds.to_string()));
        std::fs::create_dir(&place.0).expect("a folder");
        let session = session(&place);
        let path = place.0.join("run.calls");
        let mut keeper = Keeper::new(&session, CallsWriter::create(&path, &session, 1).expect("a file"));
        let mut child = begun(&session, &program);
        for _ in 0..milliseconds {
            keeper.collect(|_| {}).expect("collected");
            keeper.hand_over(|_| true).expect("handed over");
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(keeper);
        assert!(child.wait().expect("waited for").success());
        let (file, rest) = recover(&path).expect("recovered");
        assert!(rest.is_none() && file.lost.is_some());
        let found = accesses(&file);
        assert!((2 * ROUNDS..2 * ROUNDS + 4).contains(&found), "{found} after {milliseconds} ms");
    }
}
