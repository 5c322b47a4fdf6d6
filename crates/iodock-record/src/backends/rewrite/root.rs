//! The first process before it executes the program: facts that the library can't see.

use crate::process;
use crate::program::Program;
use iodock_event::constants::O_CLOEXEC;
use iodock_event::{Batch, CallId, Outcome, RawCall, Record, Start};
use iodock_journal::JournalWriter;
use iodock_preload::session::Session;
use std::os::unix::ffi::OsStrExt;

/// AddressSanitizer aborts if another library is loaded before it, because that might replace its functions:
/// ours replaces none.
const SANITIZER_OPTION: &[u8] = b":verify_asan_link_order=0";

/// Sets the variables that make the program load the library.
pub fn prepare(program: &mut Program, session: &Session) {
    let mut preload = session.preloaded().into_encoded_bytes();
    if let Some(others) = program.variable("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(b':');
        preload.extend_from_slice(others);
    }
    program.set_variable("LD_PRELOAD", &preload);
    let options = program.variable("ASAN_OPTIONS").unwrap_or_default().to_vec();
    program.set_variable("ASAN_OPTIONS", &[&options, SANITIZER_OPTION].concat());
    program.set_variable("IODOCK_SESSION", session.path().as_os_str().as_bytes());
}

/// Writes to the journal the process, its open files, and, unless a tracer reports that, that it executes the
/// program.
pub fn tell(journal: &mut JournalWriter, program: &Program, pid: u32, now: i64, executes: bool) {
    let mut batch = Batch::default();
    let working_directory = batch.push_text(&process::working_directory(pid));
    let argv = batch.push_text(&program.command_text());
    batch.records.push(Record::Start(Start {
        tid: pid,
        tgid: pid,
        parent_tid: None,
        time: now,
        working_directory,
        command: argv,
        attached: false,
        rank: process::rank(pid),
    }));
    for open in process::descriptors(pid) {
        // Our descriptors are closed by its exec; it never has them.
        if open.snapshot.flags & O_CLOEXEC == 0 {
            let mut snapshot = open.snapshot;
            snapshot.target = batch.push_text(&open.target);
            batch.records.push(Record::Descriptor(snapshot));
        }
    }
    if let Some(exec) = CallId::intern(b"execve").filter(|_| executes) {
        let mut raw = RawCall::new(exec, pid);
        raw.start = now;
        raw.path = batch.push_text(program.path.as_os_str().as_bytes());
        raw.argv = argv;
        (raw.result, raw.outcome) = (0, Outcome::Succeeded);
        batch.records.push(Record::Call(raw));
    }
    // An error is reported again when the journal is closed.
    let _ = journal.push(&batch).and_then(|()| journal.flush());
}
