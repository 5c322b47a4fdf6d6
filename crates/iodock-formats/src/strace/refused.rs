//! Calls that a seccomp filter of the program answers with a signal (`SECCOMP_RET_TRAP`). In the log the line
//! of the call comes before that of the signal. The result of the call means nothing: on x86-64 it is the
//! call's number, which the kernel left in the register.

use super::reader::Pass;
use iodock_event::{Batch, LossKind, Outcome, RawCall, Record, UNKNOWN};
use memchr::memmem;

/// Number of previous records that are searched for the call. Lines of other threads may come in between.
const LOOKED_AT: usize = 4096;

impl Pass<'_> {
    /// Handles `--- SIGSYS {si_signo=SIGSYS, si_code=SYS_SECCOMP, ..., si_syscall=__NR_pread64, ...} ---`.
    #[cold]
    pub fn refused(&mut self, tid: u32, line: &[u8]) {
        let Some(name) = refused_call(line) else { return };
        let records = &self.chunk.batch.records;
        let mut calls = records.iter().enumerate().rev().take(LOOKED_AT).filter_map(call_of(tid));
        match calls.next() {
            Some((index, raw)) if raw.call.name().as_bytes() == name => self.chunk.notes.refused.push(index),
            // The thread's last call is a different one, so the log does not show the refused call (`-e
            // trace`).
            Some(_) => {}
            None => self.lose(LossKind::LateRefusals, self.line, line),
        }
    }
}

fn call_of(tid: u32) -> impl Fn((usize, &Record)) -> Option<(usize, &RawCall)> {
    move |(index, record)| match record {
        Record::Call(raw) if raw.tid == tid => Some((index, raw)),
        _ => None,
    }
}

/// Returns the name of the call, if a filter sent the signal.
fn refused_call(line: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"si_syscall=__NR_";
    memmem::find(line, b"si_code=SYS_SECCOMP")?;
    let name = &line[memmem::find(line, NAME)? + NAME.len()..];
    let end = name.iter().position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'_'))?;
    Some(&name[..end])
}

/// Removes the results of refused calls, in a chunk whose calls are joined.
pub fn take_back(refused: &[usize], batch: &mut Batch) {
    for &index in refused {
        let Some(Record::Call(raw)) = batch.records.get_mut(index) else { continue };
        if raw.outcome == Outcome::NoResult {
            continue;
        }
        let timed = raw.duration != UNKNOWN;
        batch.counts.timed -= u64::from(timed);
        batch.counts.untimed -= u64::from(!timed);
        let (parent, child) = (raw.tid, raw.result);
        (raw.outcome, raw.result, raw.duration) = (Outcome::NoResult, UNKNOWN, UNKNOWN);
        batch.forks.retain(|fork| fork.parent_tid != parent || i64::from(fork.child_tid) != child);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_signal_of_a_seccomp_filter_marks_a_refused_call() {
        let line = b"7 --- SIGSYS {si_signo=SIGSYS, si_code=SYS_SECCOMP, si_call_addr=0x7e, si_syscall=__NR_pread64, si_arch=AUDIT_ARCH_X86_64} ---";
        assert_eq!(refused_call(line), Some(&b"pread64"[..]));
        assert_eq!(
            refused_call(b"7 --- SIGSYS {si_signo=SIGSYS, si_code=SI_USER, si_pid=7, si_uid=0} ---"),
            None
        );
    }
}
