//! Logs as people have them: out of a journal, a container's log, a mail, a web page.
//!
//! What was put before each line is found by its shape, not by the tool that put it there: nearly all lines that hold a call
//! have it. What was put for quotation marks and the like is put back. [`Cleaned`] does both while reading.

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

/// Lines of the head that are looked at.
const LOOKED_AT: usize = 400;
/// Bytes of a line that is looked at: a longer one shows nothing that shorter ones do not.
const LONGEST: usize = 64 << 10;

/// What was done to a log.
#[derive(Clone, Debug, Default)]
pub struct Pasted {
    rewritten: Rewritten,
    shape: Option<Shape>,
}

impl Pasted {
    /// What was put before the lines of one of `formats` in the log that begins with `head`; `None` if nothing.
    ///
    /// # Errors
    /// Its lines are of several logs.
    pub fn before(formats: &[&dyn LogFormat], head: &Head<'_>) -> Result<Option<Pasted>, SourceError> {
        let lines = first_lines(head.bytes);
        let found = formats.iter().find_map(|format| Some((format, find::lead_of(*format, &lines)?)));
        let Some((format, shape)) = found else { return Ok(None) };
        let shape = Some(named(shape, |line| format.owns(line), &lines, head.file)?);
        Ok(Some(Pasted { shape, ..Pasted::default() }))
    }

    /// What was done to the log of strace that begins with `head`; `None` if nothing.
    ///
    /// # Errors
    /// Its lines are of several logs, or have different things before them.
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

/// What was put for strace's own characters. Only lines that are read as strace's with them count: other text may have
/// any.
fn rewritten(lines: &[&[u8]]) -> Rewritten {
    let all = Rewritten { entities: true, typography: true };
    let mut found = Rewritten::default();
    for line in lines {
        // Strings between typographic marks are strings too.
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

/// The shape with what it says of its lines. `is_own`: is a line one of the log?
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

/// What stands behind the shape.
fn rest<'a>(shape: &Shape, line: &'a [u8]) -> Option<&'a [u8]> {
    let ranges = shape.ranges(line)?;
    Some(ranges.last().map_or(line.trim_ascii_start(), |last| &line[last.end..]))
}

/// The number of `trace.4123:`, as grep names the files of `strace -ff`, whose lines show no thread themselves.
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
