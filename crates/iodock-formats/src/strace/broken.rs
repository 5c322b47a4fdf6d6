//! Lines that are incomplete because of a program's output, strace's own messages or options, or damage.

use super::join;
use super::line::{self, UNFINISHED};
use super::reader::{Dangling, Pass};
use iodock_event::{LossKind, RawCall, Record, UNKNOWN};
use memchr::{memchr, memmem, memrchr};

/// Returns the text without a message of strace. On a terminal strace prints `strace: Process 12 attached` in
/// the middle of a clone's line, and the rest of the clone on the next line.
fn without_message(text: &[u8]) -> &[u8] {
    let message = text.ends_with(b" attached").then(|| memmem::rfind(text, b"Process ")).flatten();
    let head = message.map_or(text, |at| &text[..at]);
    head.strip_suffix(b"strace: ").unwrap_or(head)
}

impl<'a> Pass<'a> {
    /// Reads the rest of the call that `tid` has just begun. This line has no prefix.
    pub fn end_of(&mut self, tid: u32, text: &[u8]) -> bool {
        let Some(begun) = self.threads.meet(tid).0.take() else { return false };
        let mut raw = RawCall::new(begun.call, tid);
        raw.start = begun.start;
        let (first, batch) = (&self.text[begun.text.clone()], &mut self.chunk.batch);
        if join::ended_call(first, text, UNKNOWN, &mut self.scratch, &mut raw, batch).is_none() {
            *self.threads.meet(tid).0 = Some(begun);
            return false;
        }
        self.count_duration(&raw);
        self.chunk.batch.records.push(Record::Call(raw));
        true
    }

    /// Keeps the line of a call without its end. The end may follow on a line of its own.
    pub fn dangle(&mut self, mut dangling: Dangling<'a>, cut: bool) {
        self.drop_dangling();
        dangling.text = without_message(dangling.text);
        // A program's output can break a line only where all strings are closed.
        let quotes = memmem::find_iter(dangling.text, b"\"").count();
        if !cut && quotes % 2 == 0 && memchr(0, dangling.text).is_none() {
            self.dangling = Some(dangling);
        }
    }

    /// Reads the rest of an incomplete call, which is alone on its line. Returns `false` if `text` is
    /// something else.
    pub fn tail(&mut self, text: &'a [u8]) -> bool {
        let Some(Dangling { name, text: first, tid, start, .. }) = self.dangling else { return false };
        let Some(id) = self.id(name) else { return false };
        let mut raw = RawCall::new(id, tid);
        raw.start = start;
        if text.trim_ascii() == UNFINISHED {
            self.dangling = None;
            self.begin(raw, first);
            return true;
        }
        let mut whole = std::mem::take(&mut self.scratch);
        whole.clear();
        whole.extend_from_slice(first);
        whole.extend_from_slice(text);
        let read = line::whole_call(&whole, &mut raw, &mut self.chunk.batch);
        self.scratch = whole;
        if read.is_none() {
            return false;
        }
        self.dangling = None;
        self.whole(raw);
        true
    }

    pub fn drop_dangling(&mut self) {
        if let Some(dangling) = self.dangling.take() {
            self.lose(LossKind::UnreadableLines, dangling.line, dangling.text);
        }
    }

    /// Searches a line that cannot be read for a readable line, and counts the damaged line.
    pub fn unreadable(&mut self, line: &'a [u8], cut: bool) {
        if let Some(nul) = memrchr(0, line) {
            self.lose(LossKind::NulBytes, self.line, line);
            // If a file was emptied while strace kept writing, whole lines follow the hole. After any other
            // hole, the text is the end of a line, which could be mistaken for a line of another thread.
            if line[0] == 0 {
                self.one(&line[nul + 1..], cut);
            }
            return;
        }
        // The program printed text without a newline before strace's own line.
        if let Some(at) = memmem::rfind(line, b"[pid ").filter(|&at| at > 0) {
            if self.one(&line[at..], cut) {
                return;
            }
        }
        let kind = if cut { LossKind::CutLines } else { LossKind::UnreadableLines };
        self.lose(kind, self.line, line);
    }
}
