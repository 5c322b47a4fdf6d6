//! Tests that the recorder saves all chunks of a session while threads continue to write, and that damage of
//! the file loses as little as possible.
#![cfg(target_os = "linux")]

use iodock_preload::calls::{CallsFile, CallsWriter, Keeper, Lost};
use iodock_preload::format::{chunk, header, CHUNK_MAGIC, OFFERED};
use iodock_preload::session::Session;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

const CHUNK_BYTES: u64 = 64 << 10;

struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("iodock-keeping-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Place(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Begins a session, and returns it with the path under which its calls will be saved.
fn begun(name: &str) -> (Place, Session, PathBuf) {
    let place = Place::new(name);
    let session = Session::create(&place.0.join("session"), &[]).expect("a session");
    let path = place.0.join("run.calls");
    (place, session, path)
}

fn keeper_of<'a>(session: &'a Session, path: &Path) -> Keeper<'a> {
    Keeper::new(session, CallsWriter::create(path, session, 1).expect("a file"))
}

/// Returns the memory that the session uses, in bytes.
fn memory(session: &Session) -> u64 {
    session.file.metadata().expect("status").blocks() * 512
}

/// Writes chunk `index` as the first chunk of its stream, with the given number of bytes including its
/// header.
fn fill(session: &Session, index: u64, used: u32) {
    fill_of(session, index, used, Header { stream: index as u32, ..Header::default() });
}

#[derive(Clone, Copy, Default)]
struct Header {
    stream: u32,
    sequence: u32,
    generation: u32,
    over: u32,
}

fn fill_of(session: &Session, index: u64, used: u32, header: Header) {
    let mut bytes = vec![index as u8; used as usize];
    bytes[..chunk::BYTES].fill(0);
    let mut put = |at: usize, value: u32| bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    put(chunk::USED, used);
    put(chunk::STREAM, header.stream);
    put(chunk::SEQUENCE, header.sequence);
    put(chunk::GENERATION, header.generation);
    put(chunk::OVER, header.over);
    put(chunk::MAGIC, CHUNK_MAGIC);
    session.file.write_all_at(&bytes, session.chunks_at + index * CHUNK_BYTES).expect("a chunk");
    let count = session.counter(header::NEXT_CHUNK).expect("counter").max(index + 1);
    session.file.write_all_at(&count.to_le_bytes(), header::NEXT_CHUNK as u64).expect("a count");
}

/// Takes a chunk back as a thread does that wants to reuse its own chunk.
fn take(session: &Session, index: u64) {
    let at = (header::OFFERED + 4 * (index as usize % OFFERED)) as u64;
    let mut offered = [0; 4];
    session.file.read_exact_at(&mut offered, at).expect("read");
    assert_eq!(u64::from(u32::from_le_bytes(offered)), index + 1, "it is offered");
    session.file.write_all_at(&[0; 4], at).expect("written");
}

#[test]
fn a_thread_that_continues_writing_damages_no_saved_record() {
    let (_place, session, path) = begun("writing");
    let mut keeper = keeper_of(&session, &path);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // This thread commits records as a program's thread does: the header's `used` grows all the time.
            let mut used = 40_000u32;
            while !over.load(Ordering::Relaxed) {
                used = 40_000 + (used + 16) % 20_000;
                for index in 0..64 {
                    let at = session.chunks_at + index * CHUNK_BYTES + chunk::USED as u64;
                    session.file.write_all_at(&used.to_le_bytes(), at).expect("written");
                }
            }
        });
        for index in 0..64 {
            fill(&session, index, 60_000);
            keeper.collect(|_| {}).expect("collected");
            keeper.hand_over(|_| true).expect("handed over");
        }
        over.store(true, Ordering::Relaxed);
    });
    session.file.write_all_at(&[3], header::STOPPED_PROCESSES as u64).expect("written");
    keeper.end().expect("the end");
    let kept = CallsFile::open(&path).expect("readable");
    assert_eq!((kept.damaged, kept.lost), (0, Some(Lost { stopped: 3, ..Lost::default() })));
    assert_eq!(kept.numbers(), (0..64).collect::<Vec<u64>>());
}

#[test]
fn chunks_reserved_for_threads_are_found_at_their_start_and_end() {
    let (_place, session, path) = begun("aside");
    let mut keeper = keeper_of(&session, &path);
    let count = |chunks: u64| {
        let written = session.file.write_all_at(&chunks.to_le_bytes(), header::NEXT_CHUNK as u64);
        written.expect("a count");
    };
    count(2000);
    for _ in 0..3 {
        keeper.collect(|_| panic!("none is begun")).expect("collected");
    }
    fill(&session, 1234, 5000);
    count(2000);
    let mut found = 0;
    for _ in 0..2000usize.div_ceil(64) {
        keeper.collect(|_| found += 1).expect("collected");
    }
    assert_eq!(found, 1, "however many others are looked at before it");
    // The last chunk is begun after the last call of collect(), as by a process that ends. end() must find
    // it.
    fill(&session, 7, 6000);
    count(2000);
    keeper.end().expect("the end");
    let kept = CallsFile::open(&path).expect("readable");
    assert_eq!((kept.damaged, kept.numbers()), (0, vec![7, 1234]));
}

/// Chunks are offered only to the thread that filled them. If it has ended, offers that no thread takes must
/// not accumulate.
#[test]
fn all_but_64_unused_chunks_are_freed() {
    let (_place, session, path) = begun("offered");
    let mut keeper = keeper_of(&session, &path);
    let before = memory(&session);
    for index in 0..500 {
        fill_of(&session, index, 60_000, Header { sequence: index as u32, ..Header::default() });
        keeper.collect(|_| {}).expect("collected");
        keeper.hand_over(|_| true).expect("handed over");
    }
    let chunks = (memory(&session) - before).div_ceil(CHUNK_BYTES);
    assert!((1..=OFFERED as u64 + 2).contains(&chunks), "{chunks} of 500");
    keeper.end().expect("the end");
    let kept = CallsFile::open(&path).expect("readable");
    assert_eq!((kept.damaged, kept.numbers()), (0, (0..500).collect::<Vec<u64>>()));
}

/// A thread's last chunk may be found in the same round as its earlier ones. All of them must be saved once
/// and freed.
#[test]
fn records_of_an_ended_thread_are_not_kept_twice() {
    let (_place, session, path) = begun("over");
    let mut keeper = keeper_of(&session, &path);
    let before = memory(&session);
    for thread in 0..200 {
        let first = 3 * thread;
        let of = |sequence, generation, over| Header { stream: first as u32, sequence, generation, over };
        fill_of(&session, first, 60_000, of(0, 0, 0));
        fill_of(&session, first + 1, 60_000, of(1, 0, 0));
        keeper.collect(|_| {}).expect("collected");
        keeper.hand_over(|_| true).expect("handed over");
        take(&session, first);
        fill_of(&session, first, 50_000, of(2, 1, 0));
        fill_of(&session, first + 2, 40_000, of(3, 0, 1));
        keeper.collect(|_| {}).expect("collected");
        keeper.hand_over(|_| false).expect("handed over");
    }
    let chunks = (memory(&session) - before).div_ceil(CHUNK_BYTES);
    assert!(chunks <= 2, "{chunks} of 600");
    keeper.end().expect("the end");
    let file = CallsFile::open(&path).expect("readable");
    let again: Vec<u64> = file.numbers().into_iter().filter(|number| number >> 32 == 1).collect();
    assert_eq!((file.numbers().len(), again.len(), file.damaged), (800, 200, 0));
    assert!(again.iter().all(|&number| file.held(number) == 50_000));
}

/// A killed recorder had offered this chunk. During the recovery its thread begins it again, with fewer or
/// with more bytes than before.
#[test]
fn a_chunk_reused_during_recovery_is_kept_separately() {
    for (name, used) in [("less", 30_000), ("more", 64_000)] {
        let (_place, session, path) = begun(name);
        let mut keeper = keeper_of(&session, &path);
        fill_of(&session, 0, 60_000, Header::default());
        fill_of(&session, 1, 60_000, Header { sequence: 1, ..Header::default() });
        keeper.collect(|_| {}).expect("collected");
        keeper.hand_over(|_| true).expect("handed over");
        drop(keeper);
        let file = CallsFile::open(&path).expect("readable");
        let mut keeper = Keeper::new(&session, CallsWriter::go_on(&file).expect("it goes on"));
        keeper.collect(|_| {}).expect("collected");
        keeper.skip(|number| file.held(number));
        fill_of(&session, 0, used, Header { sequence: 2, generation: 1, ..Header::default() });
        keeper.end().expect("the end");
        let file = CallsFile::open(&path).expect("readable");
        assert_eq!(file.numbers(), [0, 1, 1 << 32]);
        assert_eq!((file.held(0), file.held(1 << 32)), (60_000, used));
    }
}

#[test]
fn a_damaged_piece_is_counted_and_loses_only_itself() {
    let (_place, session, path) = begun("damage");
    let mut keeper = keeper_of(&session, &path);
    for index in 0..5 {
        fill(&session, index, 20_000);
        keeper.collect(|_| {}).expect("collected");
        keeper.hand_over(|_| true).expect("handed over");
    }
    keeper.end().expect("the end");
    let whole = fs::read(&path).expect("read");
    let damaged = |at: usize, length: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes.truncate(length);
        fs::write(&path, bytes).expect("written");
        CallsFile::open(&path).expect("readable")
    };
    let middle = damaged(50_000, whole.len());
    assert_eq!((middle.damaged, middle.lost), (1, Some(Lost::default())));
    assert_eq!(middle.numbers(), [0, 1, 3, 4]);
    let cut = damaged(50_000, whole.len() - 30_000);
    assert_eq!((cut.damaged, cut.lost), (1, None));
    assert_eq!(cut.numbers(), [0, 1]);
    let short = damaged(whole.len() - 1, whole.len() - 10);
    assert_eq!((short.damaged, short.lost), (0, None));
    assert_eq!(short.numbers(), [0, 1, 2, 3, 4]);
}
