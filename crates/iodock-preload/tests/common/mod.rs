//! Helpers of the tests: run a program with the preloaded library, and read its recorded calls.
#![allow(dead_code)]

use iodock_preload::format::header;
use iodock_preload::reader::{ChunkReader, Entry, Part};
use iodock_preload::session::{self, Session, Stacks, Wanted};
use iodock_preload::shapes::Shapes;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

static NEXT: AtomicU32 = AtomicU32::new(0);

pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Folder {
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let path = std::env::temp_dir().join(format!("iodock-preload-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("temporary folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles tests/programs/NAME.c and returns the path of the executable.
pub fn compiled(name: &str, folder: &Folder) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(format!("{name}.c"));
    let program = folder.0.join(name);
    let status = Command::new("cc")
        .args(["-O2", "-w", "-fexceptions", "-o"])
        .arg(&program)
        .arg(source)
        .arg("-pthread")
        .status();
    assert!(status.expect("a C compiler").success(), "{name}.c compiles");
    program
}

pub fn session(folder: &Folder) -> Session {
    session_with(folder, stacks())
}

/// Returns which stacks the tests record. `IODOCK_TEST_STACKS=all cargo test` runs the tests with complete
/// stacks.
pub fn stacks() -> Stacks {
    let name = std::env::var("IODOCK_TEST_STACKS").unwrap_or("off".into());
    Stacks::from_name(&name).expect("IODOCK_TEST_STACKS is off, sites or all")
}

pub fn session_with(folder: &Folder, stacks: Stacks) -> Session {
    let wanted = Wanted { stacks, ..Wanted::default() };
    Session::create_for(&folder.0.join("session"), &session::libraries(), wanted).expect("session")
}

pub fn run(session: &Session, program: &Path, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .env("LD_PRELOAD", session.library())
        .env("IODOCK_SESSION", session.path())
        .output()
        .expect("the program starts")
}

/// Runs tests/programs/NAME.c with and without the recorder, in separate folders, and compares the results.
/// Returns the session and the program's output.
pub fn same(name: &str, arguments: &[&str]) -> (Session, Folder, Output) {
    same_with(name, arguments, stacks())
}

pub fn same_with(name: &str, arguments: &[&str], stacks: Stacks) -> (Session, Folder, Output) {
    let folder = Folder::new();
    let program = compiled(name, &folder);
    let session = session_with(&folder, stacks);
    let places = ["alone", "recorded"].map(|place| folder.0.join(place));
    let [alone, recorded] = places.map(|place| {
        let mut command = Command::new(&program);
        std::fs::create_dir(&place).expect("a folder");
        if place.ends_with("recorded") {
            command.env("LD_PRELOAD", session.library()).env("IODOCK_SESSION", session.path());
        }
        command.args(arguments).current_dir(&place).output().expect("the program starts")
    });
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!((text(&recorded), recorded.status), (text(&alone), alone.status), "{name} {arguments:?}");
    assert!(session.counter(header::SITES_PATCHED).expect("counter") > 0, "{name} was recorded at all");
    (session, folder, recorded)
}

pub fn entries(session: &Session) -> Vec<Entry> {
    let shapes = Shapes::of_this_machine();
    let (mut entries, mut bytes) = (Vec::new(), Vec::new());
    let chunks = session.counter(header::NEXT_CHUNK).expect("counter");
    for index in 0..chunks {
        session.chunk(index, &mut bytes).expect("chunk");
        // A thread may have ended between claiming a chunk and writing its header.
        let Some(mut reader) = ChunkReader::new(bytes.clone()) else { continue };
        while let Some(entry) = reader.next_entry(shapes).expect("no damage") {
            entries.push(entry);
        }
    }
    entries
}

pub type Counts = BTreeMap<String, u64>;

/// Returns the number of recorded calls by name.
pub fn counts(session: &Session) -> Counts {
    let mut counts = Counts::new();
    for entry in entries(session) {
        if let Entry::Call(call) = entry {
            if call.part != Part::End {
                *counts.entry(call.call.name()).or_default() += 1;
            }
        }
    }
    counts
}

/// Returns the number of programs that loaded the library.
pub fn programs(session: &Session) -> usize {
    entries(session).into_iter().filter(|entry| matches!(entry, Entry::Process(_))).count()
}
