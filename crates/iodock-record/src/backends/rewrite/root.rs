//! The first process, as it is before it executes the program: what the library can't see.

use crate::launch::Program;
use crate::process;
use iodock_event::constants::O_CLOEXEC;
use iodock_event::{Batch, CallId, Outcome, RawCall, Record, Start};
use iodock_journal::JournalWriter;
use std::os::unix::ffi::OsStrExt;

/// Writes into the journal who the process is, what it has open, and that it executes the program.
pub fn tell(journal: &mut JournalWriter, program: &Program, pid: u32, now: i64) {
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
        // Ours are closed by its exec; it never sees them.
        if open.snapshot.flags & O_CLOEXEC == 0 {
            let mut snapshot = open.snapshot;
            snapshot.target = batch.push_text(&open.target);
            batch.records.push(Record::Descriptor(snapshot));
        }
    }
    if let Some(exec) = CallId::intern(b"execve") {
        let mut raw = RawCall::new(exec, pid);
        raw.start = now;
        raw.path = batch.push_text(program.path.as_os_str().as_bytes());
        raw.argv = argv;
        (raw.result, raw.outcome) = (0, Outcome::Succeeded);
        batch.records.push(Record::Call(raw));
    }
    // An error is told again when the journal is closed.
    let _ = journal.push(&batch).and_then(|()| journal.flush());
}
