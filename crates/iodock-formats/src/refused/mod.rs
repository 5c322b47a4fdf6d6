//! Recognises logs of tools that iodock does not read, so that a message can name the tool and give advice.
//!
//! Each tool has an entry in [`SIGNATURES`]. Two matching lines of a log suffice. This check precedes the
//! formats that iodock reads, so that none of them reads such a log partially.

mod signatures;
#[cfg(test)]
mod tests;

use crate::{strace, Head, FORMATS};
use iodock_event::SourceError;
use regex::bytes::{RegexSet, RegexSetBuilder};
pub use signatures::SIGNATURES;
use std::sync::OnceLock;

/// Patterns that recognise the logs of a tool. They are regular expressions for one line, without Unicode
/// classes.
#[derive(Debug)]
pub struct Signature {
    /// Name of the format for `--format`.
    pub name: &'static str,
    /// Text that completes the sentence "is ..., which iodock does not read".
    pub what: &'static str,
    pub hint: &'static str,
    /// Lines that no other log has, such as column titles and banners. One such line suffices.
    pub title: &'static [&'static str],
    /// Typical lines of the log. Two such lines suffice.
    pub lines: &'static [&'static str],
    /// First bytes of the file, for binary recordings.
    pub magic: &'static [&'static [u8]],
}

/// Number of lines at the beginning of the log that are examined.
const LOOKED_AT: usize = 200;
/// Number of bytes of a line that are examined. It suffices for any prefix and most results.
const LONGEST: usize = 4096;

/// Returns the signature called `name`.
pub fn named(name: &str) -> Option<&'static Signature> {
    SIGNATURES.iter().find(|signature| signature.name == name)
}

/// Returns the signature that matches this log, if iodock does not read such logs.
pub fn recognised(head: &Head<'_>) -> Option<&'static Signature> {
    let binary =
        SIGNATURES.iter().find(|known| known.magic.iter().any(|magic| head.bytes.starts_with(magic)));
    binary.or_else(|| of_lines(head.bytes))
}

impl Signature {
    /// Returns the error for a log of this kind.
    pub fn error(&self, file: &str) -> SourceError {
        SourceError {
            file: file.into(),
            line: Some(1),
            message: format!("is {}, which iodock does not read", self.what),
            hint: self.hint.into(),
        }
    }
}

/// All patterns combined in one automaton. For each pattern, `meanings` has its signature and whether it is a
/// title.
struct Patterns {
    set: RegexSet,
    meanings: Vec<(usize, bool)>,
}

fn patterns() -> Option<&'static Patterns> {
    static PATTERNS: OnceLock<Option<Patterns>> = OnceLock::new();
    PATTERNS.get_or_init(Patterns::new).as_ref()
}

impl Patterns {
    /// Compiles the patterns. Returns `None` if a pattern is invalid, which a test excludes.
    fn new() -> Option<Patterns> {
        let (mut texts, mut meanings) = (Vec::<&str>::new(), Vec::new());
        for (index, signature) in SIGNATURES.iter().enumerate() {
            for (patterns, is_title) in [(signature.title, true), (signature.lines, false)] {
                texts.extend(patterns);
                meanings.extend(patterns.iter().map(|_| (index, is_title)));
            }
        }
        let set = RegexSetBuilder::new(texts).unicode(false).build().ok()?;
        Some(Patterns { set, meanings })
    }
}

fn of_lines(head: &[u8]) -> Option<&'static Signature> {
    let patterns = patterns()?;
    let (mut hits, mut titles) = (vec![0usize; SIGNATURES.len()], vec![0usize; SIGNATURES.len()]);
    let mut others = Vec::new();
    for line in head.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).take(LOOKED_AT) {
        let line = line.trim_ascii_end();
        let matches = patterns.set.matches(&line[..line.len().min(LONGEST)]);
        if !matches.matched_any() {
            others.push(line);
        }
        // A line counts only once for each tool.
        let mut last = None;
        for pattern in matches.iter() {
            let (signature, is_title) = patterns.meanings[pattern];
            titles[signature] += usize::from(is_title);
            hits[signature] += usize::from(last != Some(signature));
            last = Some(signature);
        }
    }
    if hits.iter().all(|&count| count == 0) {
        return None;
    }
    // A program that runs under strace may print such lines on the same terminal.
    let ours = others.iter().filter(|line| strace::is_own_line(line)).count();
    let is_read = |line: &&&[u8]| FORMATS.iter().any(|format| format.owns(line));
    let read = others.iter().filter(is_read).count();
    (0..SIGNATURES.len())
        .find(|&index| {
            let count = hits[index];
            count > ours && (count >= 2 || titles[index] > 0 || (count == 1 && read == 0))
        })
        .map(|index| &SIGNATURES[index])
}
