//! Restores logs that were copied from a journal, a container's log, a mail or a web page.
//!
//! The text that another tool put before each line is recognised by its shape, which nearly all lines with a
//! call share. It does not matter which tool it was. Typographic quotation marks and similar characters are
//! replaced by the original ones. [`Cleaned`] does both while the log is read.

mod cleaned;
mod find;
mod shape;
mod sources;
mod text;

use crate::{strace, Head, LogFormat};
pub use cleaned::Cleaned;
use find::Found;
use iodock_event::SourceError;
use shape::{Shape, Token};
use text::Rewritten;

/// Number of lines at the beginning of the log that are examined.
const LOOKED_AT: usize = 400;
/// Length in bytes of the longest line that is examined. Longer lines show nothing that shorter lines do not.
const LONGEST: usize = 64 << 10;

/// The changes that other tools made to a log.
#[derive(Clone, Debug, Default)]
pub struct Pasted {
    rewritten: Rewritten,
    shape: Option<Shape>,
}

impl Pasted {
    /// Returns the text before the lines of a log in one of `formats`, or `None` if there is none. `head` is
    /// the log's beginning.
    ///
    /// # Errors
    /// The lines belong to several logs.
    pub fn before(formats: &[&dyn LogFormat], head: &Head<'_>) -> Result<Option<Pasted>, SourceError> {
        let lines = first_lines(head.bytes);
        let found = formats.iter().find_map(|format| Some((format, find::lead_of(*format, &lines)?)));
        let Some((format, shape)) = found else { return Ok(None) };
        let shape = Some(named(shape, |line| format.owns(line), &lines, head.file)?);
        Ok(Some(Pasted { shape, ..Pasted::default() }))
    }

    /// Returns how other tools changed the strace log that begins with `head`; `None` if it is unchanged.
    ///
    /// # Errors
    /// The lines belong to several logs, or different lines have different prefixes.
    pub fn of(head: &Head<'_>) -> Result<Option<Pasted>, SourceError> {
        let lines = first_lines(head.bytes);
        let rewritten = rewritten(&lines);
        let restored: Vec<Vec<u8>> = lines.iter().map(|line| put_back(rewritten, line)).collect();
        let lines: Vec<&[u8]> = restored.iter().map(Vec::as_slice).collect();
        let shape = match find::lead(&lines) {
            Found::Nothing => None,
            Found::Shape(shape) => Some(named(shape, strace::is_own_line, &lines, head.file)?),
            Found::Uncommon(examples) => return Err(uncommon(head.file, &examples)),
        };
        let pasted = Pasted { rewritten, shape };
        Ok((pasted.shape.is_some() || !rewritten.nothing()).then_some(pasted))
    }
}

fn first_lines(head: &[u8]) -> Vec<&[u8]> {
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    let lines = whole.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    lines.filter(|line| !line.is_empty() && line.len() <= LONGEST).take(LOOKED_AT).collect()
}

fn put_back(rewritten: Rewritten, line: &[u8]) -> Vec<u8> {
    if rewritten.nothing() {
        return line.to_vec();
    }
    let mut out = Vec::with_capacity(line.len());
    rewritten.put_back(line, &mut out);
    out
}

/// Finds the characters that replace strace's own. Only lines that become readable with the original
/// characters count, because other text may contain any character.
fn rewritten(lines: &[&[u8]]) -> Rewritten {
    let all = Rewritten { entities: true, typography: true };
    let mut found = Rewritten::default();
    for line in lines {
        // Text between typographic quotation marks is a string, too.
        let quoted = put_back(Rewritten { entities: false, typography: true }, line);
        let mut here = text::rewritten_outside(line);
        here.entities = text::rewritten_outside(&quoted).entities;
        if !here.nothing() && find::holds_call(&put_back(all, line)) {
            found.entities |= here.entities;
            found.typography |= here.typography;
        }
    }
    found
}

/// Returns the shape, completed with facts that the lines show about it. `is_own` returns whether a line
/// belongs to the log.
fn named(
    mut shape: Shape,
    is_own: impl Fn(&[u8]) -> bool,
    lines: &[&[u8]],
    file: &str,
) -> Result<Shape, SourceError> {
    shape.tid = file_of_thread(&shape, lines);
    let own = |line: &&&[u8]| rest(&shape, line).is_some_and(&is_own);
    let lines: Vec<&[u8]> = lines.iter().filter(own).copied().collect();
    sources::fix(&mut shape, &lines).map_err(|values| several(file, &values))?;
    Ok(shape)
}

/// Returns the text after the prefix.
fn rest<'a>(shape: &Shape, line: &'a [u8]) -> Option<&'a [u8]> {
    let ranges = shape.ranges(line)?;
    Some(ranges.last().map_or(line.trim_ascii_start(), |last| &line[last.end..]))
}

/// Returns the token with the number in `trace.4123:`. grep prints the file names of `strace -ff` in this
/// form, and the lines of these files show no thread.
fn file_of_thread(shape: &Shape, lines: &[&[u8]]) -> Option<usize> {
    const COLON: Token = Token::Byte(b':');
    let tokens = shape.tokens.strip_suffix(&[Token::Spaces]).unwrap_or(&shape.tokens);
    let tokens = tokens
        .strip_suffix(&[Token::Digits, COLON])
        .filter(|rest| rest.ends_with(&[COLON]))
        .unwrap_or(tokens);
    let name = tokens.strip_suffix(&[Token::Byte(b'.'), Token::Digits, COLON])?;
    let is_name = name.contains(&Token::Letters) && !name.contains(&Token::Spaces);
    let rests = lines.iter().filter_map(|line| rest(shape, line));
    let bare = rests.into_iter().all(|rest| !strace::shows_thread(rest));
    (is_name && bare).then_some(name.len() + 1)
}

fn shown(bytes: &[u8]) -> String {
    crate::places::sample(bytes).trim().to_string()
}

fn several(file: &str, values: &[(Vec<u8>, usize)]) -> SourceError {
    let all: Vec<String> =
        values.iter().take(4).map(|(value, count)| format!("{} ({count} lines)", shown(value))).collect();
    let first = values.first().map_or(String::new(), |(value, _)| shown(value));
    SourceError {
        file: file.into(),
        line: Some(1),
        message: format!("holds the lines of several logs, by what stands before them: {}", all.join(", ")),
        hint: format!(
            "import each alone, for example: grep -F '{first}' LOG | iodock import - -o NAME.iodock"
        ),
    }
}

fn uncommon(file: &str, examples: &[Vec<u8>]) -> SourceError {
    let all: Vec<String> = examples.iter().map(|example| format!("{:?}", shown(example))).collect();
    SourceError {
        file: file.into(),
        line: Some(1),
        message: format!("has calls of strace behind other text that differs from line to line: {}", all.join(", ")),
        hint: "cut off what stands before the calls, for example: sed 's/^.*]: //' LOG | iodock import - -o run.iodock".into(),
    }
}
