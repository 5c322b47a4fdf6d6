//! Handles new threads, ends of processes, and signals.

use super::line::Call;
use super::prefix::Prefix;
use super::reader::{Parser, ONLY_PROCESS};
use super::settle::ENDED;
use super::values::integer;
use iodock_event::{RawCall, Record, TaskEnd, Text};

impl Parser<'_> {
    /// Notes the first line of a thread in the chunk.
    #[inline]
    pub fn appear(&mut self, tid: u32, pid: u32) {
        if tid != self.last_thread && self.chunk.notes.known.insert(tid) {
            self.chunk.notes.appeared.push((self.chunk.batch.records.len(), tid, pid));
        }
        self.last_thread = tid;
    }

    /// Handles a call of exit. `_exit` ends the process. `lwp_exit` ends a thread, unless it is the first one
    /// of its process.
    pub fn exit(&mut self, call: &Call<'_>, raw: &RawCall, pid: u32) {
        let code = match call.name {
            b"lwp_exit" => None,
            _ => integer(call.arguments).map(|(code, _)| code as i32 & 0xff),
        };
        let whole = call.name != b"lwp_exit";
        if raw.tid != pid {
            self.end(raw.tid, raw.end, code, Text::NONE);
        }
        if whole {
            self.end(pid, raw.end, code, Text::NONE);
            self.forget(pid);
        }
    }

    /// Handles the end of a process. If its number appears again, it belongs to another process.
    fn forget(&mut self, pid: u32) {
        self.last_thread = ENDED;
        self.chunk.notes.known.clear();
        self.chunk.notes.appeared.push((self.chunk.batch.records.len(), ENDED, pid));
    }

    fn end(&mut self, tid: u32, time: i64, exit_code: Option<i32>, signal: Text) {
        let end = TaskEnd { tid, time, exit_code, signal, core_dumped: false, superseded_by: None };
        self.chunk.batch.records.push(Record::End(end));
    }

    pub fn signal(&mut self, name: &[u8], default: bool, start: &Prefix) {
        self.times(start);
        let signal = String::from_utf8_lossy(name).into_owned();
        *self.chunk.batch.counts.signals.entry(signal).or_default() += 1;
        if default {
            let text = self.chunk.batch.push_text(name);
            self.above.signal = Some((start.pid.unwrap_or(ONLY_PROCESS), text));
        }
    }

    pub fn killed(&mut self, start: &Prefix) {
        let pid = start.pid.unwrap_or(ONLY_PROCESS);
        let times = self.times(start);
        let signal =
            self.above.signal.filter(|&(owner, _)| owner == pid).map_or(Text::NONE, |(_, text)| text);
        self.end(pid, times.end, None, signal);
        self.forget(pid);
    }
}
