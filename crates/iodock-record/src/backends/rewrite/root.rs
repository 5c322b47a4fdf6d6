//! Records facts about the first process before it executes the program, which the library can't record.

use crate::process;
use crate::program::Program;
use iodock_event::constants::O_CLOEXEC;
use iodock_event::{Batch, CallId, Outcome, RawCall, Record, Start};
use iodock_journal::JournalWriter;
use iodock_preload::session::Session;
use std::os::unix::ffi::OsStrExt;

/// Option for AddressSanitizer, which aborts if another library is loaded before it, because that might
/// replace its functions. The recorder's library replaces none of them.
const SANITIZER_OPTION: &[u8] = b":verify_asan_link_order=0";

/// Sets the environment variables that make the program load the library.
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

/// Writes the process and its open files to the journal. Also writes that it executes the program, unless a
/// tracer reports this.
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
        // Descriptors of the recorder with O_CLOEXEC are left out, because the exec closes them.
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
    // An error is ignored, because closing the journal reports it again.
    let _ = journal.push(&batch).and_then(|()| journal.flush());
}
