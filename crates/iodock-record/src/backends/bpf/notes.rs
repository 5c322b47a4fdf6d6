//! Writes the recorder's notes about facts that no record of the kernel contains: followed processes, their
//! working directories, and their open files.

use super::names;
use crate::process;
use iodock_bpf::calls::NO_RANK;
use iodock_bpf::format::{start, Kind};
use iodock_bpf::record::put_note;
use iodock_event::constants::O_CLOEXEC;
use iodock_event::FileIdentity;

/// Notes the process that will execute the program, before it does.
pub fn root(notes: &mut Vec<u64>, pid: u32, command: &[u8], now: u64) {
    begun(notes, (pid, pid), start::LAUNCHED, command, now);
    // Descriptors of the recorder with O_CLOEXEC are left out, because the exec closes them.
    descriptors(notes, pid, O_CLOEXEC, now);
}

/// Notes a thread that was running before the recording.
pub fn attached(notes: &mut Vec<u64>, tid: u32, tgid: u32, now: u64) {
    let command = if tid == tgid { process::command(tgid) } else { Vec::new() };
    begun(notes, (tid, tgid), start::ATTACHED, &command, now);
    if tid == tgid {
        descriptors(notes, tgid, 0, now);
        for (file, name) in names::mapped_by(tgid) {
            named(notes, tid, now, file, &name);
        }
    }
}

/// Notes the name of a file in the page cache.
pub fn named(notes: &mut Vec<u64>, tid: u32, now: u64, file: FileIdentity, name: &[u8]) {
    put_note(notes, Kind::Name, tid, now, &[u64::from(file.device), file.inode], &[name]);
}

fn begun(notes: &mut Vec<u64>, (tid, tgid): (u32, u32), flags: u32, command: &[u8], now: u64) {
    let is_leader = tid == tgid;
    let rank = if is_leader { process::rank(tgid) } else { None };
    let rank = rank.map_or(NO_RANK, |rank| u64::from(rank as u32));
    let directory = if is_leader { process::working_directory(tgid) } else { Vec::new() };
    let fields = [u64::from(tgid) | u64::from(flags) << 32, rank];
    let pieces: [&[u8]; 2] = [&directory, command];
    put_note(notes, Kind::Start, tid, now, &fields, if is_leader { &pieces } else { &[] });
}

/// Notes the open descriptors of a process, except those with a flag in `without`.
fn descriptors(notes: &mut Vec<u64>, pid: u32, without: u64, now: u64) {
    for open in process::descriptors(pid).into_iter().filter(|open| open.snapshot.flags & without == 0) {
        let of = &open.snapshot;
        let fd = u64::from(of.fd as u32) | u64::from(of.stat_type) << 32;
        let fields = [fd, of.position as u64, of.flags, of.stat_size as u64];
        put_note(notes, Kind::Descriptor, pid, now, &fields, &[&open.target]);
    }
}

/// Notes that a task has ended although no record contains its end.
pub fn gone(notes: &mut Vec<u64>, tid: u32, now: u64) {
    put_note(notes, Kind::Gone, tid, now, &[], &[]);
}
