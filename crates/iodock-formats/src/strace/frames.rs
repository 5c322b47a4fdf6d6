//! Reads stacks, which strace prints after the line of their call with `-k` and `-kk` (unwind.c of strace).
//! Each line is a frame, from the innermost to the outermost.
//!
//! ```text
//!  > /usr/lib/libc.so.6(__write+0x14) [0xf78d4]
//!  > /home/u/a.out(write_step+0x20) [0x1176] solver.c:412
//!  > /home/u/stripped() [0x1234]
//! ```

use super::reader::Pass;
use iodock_event::stacks::{push_frame, Frame};
use iodock_event::{Batch, Phase, Record, Text};
use memchr::memrchr;
use rustc_hash::FxHashMap;
use std::ops::Range;

pub const FRAME: &[u8] = b" > ";

/// The lines of the current stack, and the known stacks of the chunk.
#[derive(Default)]
pub struct Stack<'a> {
    /// Position of the current stack's lines in the chunk's text.
    lines: Range<usize>,
    known: FxHashMap<&'a [u8], Text>,
}

impl<'a> Pass<'a> {
    /// Adds a line to the current stack.
    #[cold]
    pub(super) fn frame(&mut self, line: &[u8]) {
        let start = line.as_ptr() as usize - self.text.as_ptr() as usize;
        if self.stack.lines.is_empty() {
            self.stack.lines.start = start;
        }
        self.stack.lines.end = start + line.len();
    }

    pub(super) fn is_in_stack(&self) -> bool {
        !self.stack.lines.is_empty()
    }

    /// Handles the end of a stack's lines. The stack belongs to the call above it, which has ended.
    #[cold]
    pub(super) fn end_stack(&mut self) {
        let lines = std::mem::take(&mut self.stack.lines);
        let text = &self.text[lines];
        // Stacks of calls that were left out, and of ends of processes, are ignored.
        let at = self.ended.take();
        let Some(Record::Call(raw)) = at.and_then(|at| self.chunk.batch.records.get_mut(at)) else { return };
        if raw.phase == Phase::Enter {
            return;
        }
        let known = self.stack.known.get(text).copied();
        let stack = known.unwrap_or_else(|| put(text, &mut self.chunk.batch));
        if known.is_none() {
            self.stack.known.insert(text, stack);
        }
        if let Some(Record::Call(raw)) = at.and_then(|at| self.chunk.batch.records.get_mut(at)) {
            raw.stack = stack;
        }
    }
}

/// Adds the frames of these lines to a batch. Returns an empty text if no line is a frame.
fn put(lines: &[u8], batch: &mut Batch) -> Text {
    let mut bytes = Vec::with_capacity(lines.len());
    for line in lines.split(|&byte| byte == b'\n') {
        // After an error of the unwinder, no further frame is reliable.
        let Some(frame) = read(line.trim_ascii_end()) else { break };
        push_frame(&mut bytes, &frame);
    }
    if bytes.is_empty() {
        return Text::NONE;
    }
    batch.push_text(&bytes)
}

/// Parses one line. Returns `None` for a message of the unwinder.
fn read(line: &[u8]) -> Option<Frame<'_>> {
    let text = line.strip_prefix(FRAME)?;
    // The line is parsed from its end, because the names of the module and the function may contain any
    // bytes.
    let bracket = memchr::memmem::rfind(text, b") [0x")?;
    let (named, rest) = (&text[..bracket], &text[bracket + b") [0x".len()..]);
    let close = memchr::memchr(b']', rest)?;
    let offset = hexadecimal(&rest[..close])?;
    let (file, line) = source(rest[close + 1..].trim_ascii());
    let (named, function_offset) = match memchr::memmem::rfind(named, b"+0x") {
        Some(plus) => (&named[..plus], Some(hexadecimal(&named[plus + 3..])?)),
        None => (named, None),
    };
    // The first bracket is not always the right one, because C++ functions have brackets of their own.
    let open = opening(named)?;
    Some(Frame {
        module: &named[..open],
        offset: Some(offset),
        function: &named[open + 1..],
        function_offset,
        file,
        line,
    })
}

/// Returns the position of the bracket before the function: the first one after the last `/` of the module's
/// path. A function's name contains a `/` only if it is the division operator of C++.
fn opening(named: &[u8]) -> Option<usize> {
    let path = memchr::memmem::find(named, b"operator/").map_or(named, |at| &named[..at]);
    let name = memrchr(b'/', path).map_or(0, |slash| slash + 1);
    memchr::memchr(b'(', &named[name..]).map(|at| name + at)
}

/// Parses a source file and line such as `solver.c:412`, which strace prints with `-kk`.
fn source(text: &[u8]) -> (&[u8], Option<u32>) {
    let text = text.strip_prefix(b"(").and_then(|text| text.strip_suffix(b")")).unwrap_or(text);
    let Some(colon) = memrchr(b':', text) else { return (b"", None) };
    match std::str::from_utf8(&text[colon + 1..]).ok().and_then(|line| line.parse().ok()) {
        Some(line) => (&text[..colon], Some(line)),
        None => (b"", None),
    }
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame<'a>(
        module: &'a [u8],
        function: &'a [u8],
        function_offset: Option<u64>,
        offset: u64,
    ) -> Frame<'a> {
        Frame { module, function, function_offset, offset: Some(offset), ..Frame::default() }
    }

    #[test]
    fn lines_of_stacks_are_read() {
        for (line, expected) in [
            (
                " > /usr/lib/libc.so.6(__write+0x14) [0xf78d4]",
                frame(b"/usr/lib/libc.so.6", b"__write", Some(0x14), 0xf78d4),
            ),
            (" > /home/u/stripped() [0x1234]", frame(b"/home/u/stripped", b"", None, 0x1234)),
            (
                " > /b(Out::step(int, char*)+0x2a) [0x9]",
                frame(b"/b", b"Out::step(int, char*)", Some(0x2a), 9),
            ),
            (" > /d (1)/b(f(int)+0x2) [0x9]", frame(b"/d (1)/b", b"f(int)", Some(2), 9)),
            (" > /b(operator/(A, B)+0x2) [0x9]", frame(b"/b", b"operator/(A, B)", Some(2), 9)),
            (" > [vdso](clock_gettime+0x2) [0x9]", frame(b"[vdso]", b"clock_gettime", Some(2), 9)),
        ] {
            assert_eq!(read(line.as_bytes()), Some(expected), "{line}");
        }
        let with_source = Frame { file: b"dir/solver.c", line: Some(412), ..frame(b"/a", b"f", Some(2), 9) };
        assert_eq!(read(b" > /a(f+0x2) [0x9] dir/solver.c:412"), Some(with_source));
        for line in
            [" > unexpected_backtracing_error [0x7f]", " > too many stack frames", " > /a(f+0x2) [0xzz]"]
        {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
    }
}
