//! Reads stacks, which perf prints after the line of their call with `--call-graph` (callchains in
//! tools/perf/util/evsel_fprintf.c of Linux). Each line is a frame, from the innermost to the outermost. This
//! example is from perf 6.1.
//!
//! ```text
//!                                        __GI___libc_write (/usr/lib/x86_64-linux-gnu/libc.so.6)
//!                                        write_step (/home/u/solver)
//!                                        __lseek64 (inlined)
//!                                        [0x1179] (/home/u/stripped)
//! ```

use super::line::INDENT;
use iodock_event::stacks::{push_frame, Frame};
use iodock_event::{Batch, Phase, Record, Text};
use rustc_hash::FxHashMap;

/// The frames of the current stack, and the known stacks of the chunk.
#[derive(Default)]
pub struct Stack {
    /// Index of the record to which the frames belong.
    of: Option<usize>,
    bytes: Vec<u8>,
    known: FxHashMap<Box<[u8]>, Text>,
}

impl Stack {
    /// Reads a line of a stack. Returns `false` if the line is not one.
    pub fn takes(&mut self, line: &[u8]) -> bool {
        let Some(frame) = read(line) else { return false };
        let is_shown = !frame.module.starts_with(b"[kernel.") && frame.module != b"[unknown]";
        if self.of.is_some() && is_shown {
            push_frame(&mut self.bytes, &frame);
        }
        true
    }

    /// Ends the previous call's stack. Remembers the first call that has ended among the records from `first`
    /// on, because the next lines may be its stack.
    pub fn follow(&mut self, first: usize, batch: &mut Batch) {
        self.end(batch);
        let has_ended = |record: &Record| matches!(record, Record::Call(raw) if matches!(raw.phase, Phase::Whole | Phase::Orphan));
        self.of = batch.records[first..].iter().position(has_ended).map(|at| first + at);
    }

    pub fn end(&mut self, batch: &mut Batch) {
        let at = self.of.take();
        if self.bytes.is_empty() {
            return;
        }
        let stack = match self.known.get(&self.bytes[..]) {
            Some(&known) => known,
            None => {
                let pushed = batch.push_text(&self.bytes);
                self.known.insert(self.bytes[..].into(), pushed);
                pushed
            }
        };
        self.bytes.clear();
        if let Some(Record::Call(raw)) = at.and_then(|at| batch.records.get_mut(at)) {
            raw.stack = stack;
        }
    }
}

/// Parses one line of a stack. An inlined function has `(inlined)` in place of its module, and the frame of
/// the function around it may be missing.
fn read(line: &[u8]) -> Option<Frame<'_>> {
    let text = line.strip_prefix(INDENT)?.trim_ascii();
    // The last opening bracket counts, because C++ names contain brackets, too.
    let open = memchr::memmem::rfind(text, b" (")?;
    let (name, module) = (&text[..open], text[open + 2..].strip_suffix(b")")?);
    if module.is_empty() || name.is_empty() {
        return None;
    }
    let module = if module == b"inlined" { b"[inlined]" } else { module };
    Some(match name.strip_prefix(b"[0x").and_then(|rest| rest.strip_suffix(b"]")) {
        Some(digits) => {
            let offset = u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
            Frame { module, offset, ..Frame::default() }
        }
        None => Frame { module, function: name, ..Frame::default() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_stacks_are_read() {
        let frame =
            |module: &'static [u8], function: &'static [u8]| Frame { module, function, ..Frame::default() };
        for (line, expected) in [
            ("__GI___libc_write (/usr/lib/libc.so.6)", frame(b"/usr/lib/libc.so.6", b"__GI___libc_write")),
            ("Out::step(int, char*) (/home/u/b)", frame(b"/home/u/b", b"Out::step(int, char*)")),
            ("__lseek64 (inlined)", frame(b"[inlined]", b"__lseek64")),
            ("[0x1179] (/b)", Frame { offset: Some(0x1179), ..frame(b"/b", b"") }),
        ] {
            let text = format!("{}{line}", " ".repeat(39));
            assert_eq!(read(text.as_bytes()), Some(expected), "{line}");
        }
        for line in ["write (/b)", "                                       no module", &" ".repeat(60)] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
    }
}
