//! Chooses the format of a log.

use crate::pasted::Pasted;
use crate::{refused, strace, Head, Input, LogFormat, LogSource, ReadOptions, FORMATS};
use iodock_event::SourceError;
use std::sync::Arc;

/// Confidence that a format needs to be chosen. A lower confidence is only a guess.
const SURE_ENOUGH: u8 = 30;
/// Difference in confidence that a format needs to win against another one.
const LEAD: u8 = 10;

/// Opens `path` (`-` for standard input) with the named format, or with the one that recognises the log.
///
/// # Errors
/// The file cannot be read, is empty, is not a trace log, could have several formats, or has one that iodock
/// does not read.
pub fn open_log(
    path: &str,
    format: Option<&str>,
    options: &ReadOptions,
) -> Result<Box<dyn LogSource>, SourceError> {
    open_input(Input::open(path)?, format, options)
}

/// Opens a log like [`open_log`], but from an input that is already open.
///
/// # Errors
/// The errors are the same as for [`open_log`].
pub fn open_input(
    mut input: Input,
    format: Option<&str>,
    options: &ReadOptions,
) -> Result<Box<dyn LogSource>, SourceError> {
    let file = Arc::clone(input.file());
    if let Some(lines) = options.lines {
        input.take_lines(lines)?;
    }
    let named = format.map(|name| named(name, &file)).transpose()?;
    if input.head().is_empty() {
        return Err(options.lines.map_or_else(|| empty(&file), |lines| no_lines(&file, lines.first)));
    }
    refuse_other_tools(&input)?;
    if let Some(pasted) = pasted(named, &head_of(&input))? {
        input.clean(pasted)?;
        refuse_other_tools(&input)?;
    }
    let format = named.map_or_else(|| recognised(&head_of(&input)), Ok)?;
    format.open(input, options)
}

fn is_strace(format: &dyn LogFormat) -> bool {
    format.name() == strace::Strace.name()
}

/// Returns how other tools changed the log, for the format `named` or for any format. If a format recognises
/// the log unchanged, the log is read unchanged, because some formats have threads before their lines.
fn pasted(named: Option<&dyn LogFormat>, head: &Head<'_>) -> Result<Option<Pasted>, SourceError> {
    let mut others: Vec<&dyn LogFormat> = FORMATS.iter().copied().filter(|&one| !is_strace(one)).collect();
    if let Some(named) = named {
        others.retain(|other| other.name() == named.name());
    }
    let recognised = |format: &&dyn LogFormat| format.confidence(head) >= SURE_ENOUGH;
    if others.iter().any(recognised) {
        return Ok(None);
    }
    let of_strace = if named.is_none_or(is_strace) { Pasted::of(head)? } else { None };
    if of_strace.is_some() || recognised(&(&strace::Strace as &dyn LogFormat)) {
        return Ok(of_strace);
    }
    Pasted::before(&others, head)
}

fn head_of(input: &Input) -> Head<'_> {
    Head { bytes: input.head(), file: input.file() }
}

/// Returns an error for a log of another tool. This check comes before the formats, even if the user names
/// one, so that a log of another tool is never read partially.
fn refuse_other_tools(input: &Input) -> Result<(), SourceError> {
    match refused::recognised(&head_of(input)) {
        Some(signature) => Err(signature.error(input.file())),
        None => Ok(()),
    }
}

/// Returns whether this is the name of a format, including formats that are only recognised and refused.
pub fn is_format(name: &str) -> bool {
    FORMATS.iter().any(|format| format.name() == name) || refused::named(name).is_some()
}

fn named(name: &str, path: &str) -> Result<&'static dyn LogFormat, SourceError> {
    let format = FORMATS.iter().copied().find(|format| format.name() == name);
    format.ok_or_else(|| match refused::named(name) {
        Some(signature) => signature.error(path),
        None => SourceError {
            file: path.into(),
            line: None,
            message: format!("there is no log format {name:?}"),
            hint: format!("formats: {}", names(FORMATS)),
        },
    })
}

fn recognised(head: &Head<'_>) -> Result<&'static dyn LogFormat, SourceError> {
    let mut ranked: Vec<(u8, &'static dyn LogFormat)> =
        FORMATS.iter().map(|&format| (format.confidence(head), format)).collect();
    ranked.sort_by_key(|&(confidence, _)| std::cmp::Reverse(confidence));
    let (best, format) = ranked[0];
    if best < SURE_ENOUGH {
        return Err(unrecognised(head));
    }
    let tied: Vec<&dyn LogFormat> =
        ranked.iter().filter(|&&(other, _)| best - other < LEAD).map(|&(_, format)| format).collect();
    if tied.len() > 1 {
        return Err(SourceError {
            file: head.file.into(),
            line: None,
            message: format!("may be a log of {}", names(&tied)),
            hint: "choose one with --format".into(),
        });
    }
    Ok(format)
}

fn names(formats: &[&dyn LogFormat]) -> String {
    formats.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ")
}

fn empty(path: &str) -> SourceError {
    SourceError {
        file: path.into(),
        line: None,
        message: "the file is empty".into(),
        hint: "record again, for example: strace -f -ttt -T -o run.log COMMAND".into(),
    }
}

fn no_lines(path: &str, first: u64) -> SourceError {
    SourceError {
        file: path.into(),
        line: None,
        message: format!("does not have line {first}"),
        hint: "check where its logs begin: iodock import without --lines prints it".into(),
    }
}

fn unrecognised(head: &Head<'_>) -> SourceError {
    let wide = head.bytes.starts_with(b"\xff\xfe") || head.bytes.starts_with(b"\xfe\xff");
    let (message, hint) = if wide {
        (
            "is text with two bytes for each character (UTF-16), as PowerShell's > writes it",
            "convert it first: iconv -f UTF-16 -t UTF-8 LOG | iodock import - -o run.iodock",
        )
    } else if looks_binary(head.bytes) {
        ("is a binary file, not a trace log", "give the text that strace -o or truss -o wrote")
    } else if holds_json(head.bytes) {
        ("is JSON, not a trace log", from_json(head.bytes))
    } else {
        (
            "is not a trace log: no line at its beginning looks like a system call",
            "give a log of strace, truss or another tracer listed by iodock import --help at --format; if it is such a log, or has a table of strace -c far after other output, give its format with --format",
        )
    };
    SourceError { file: head.file.into(), line: Some(1), message: message.into(), hint: hint.into() }
}

/// Number of lines of the head that are searched for JSON.
const LOOKED_AT: usize = 100;

/// Returns whether a line begins a JSON object or list, at its beginning or after a container's prefix.
fn holds_json(head: &[u8]) -> bool {
    let begins = |line: &[u8]| {
        let line = line.trim_ascii();
        line.starts_with(b"{\"") || line.starts_with(b"[{") || matches!(line, b"{" | b"[")
    };
    let behind = |line: &[u8]| memchr::memmem::find(&line[..line.len().min(200)], b" {\"").is_some();
    head.split(|&byte| byte == b'\n').take(LOOKED_AT).any(|line| begins(line) || behind(line))
}

/// Returns advice on how to extract the lines of a log from JSON of journald, Docker or another tool.
fn from_json(head: &[u8]) -> &'static str {
    let has = |name: &[u8]| memchr::memmem::find(head, name).is_some();
    if has(b"\"MESSAGE\"") {
        "if its messages are lines of strace, take them out first: jq -r .MESSAGE LOG | iodock import - -o run.iodock"
    } else if has(b"\"stream\"") {
        "if it holds lines of strace, take those of one stream out first: jq -rj 'select(.stream==\"stderr\").log' LOG | iodock import - -o run.iodock"
    } else {
        "if it holds lines of strace, take them out first, for example: jq -rj .log LOG | iodock import - -o run.iodock"
    }
}

/// Returns whether the head looks binary. Text contains hardly any control bytes.
fn looks_binary(head: &[u8]) -> bool {
    let head = &head[..head.len().min(8192)];
    let odd =
        head.iter().filter(|&&byte| byte < 0x20 && !matches!(byte, b'\n' | b'\r' | b'\t' | 0x1b)).count();
    odd * 50 > head.len() || head.starts_with(b"\x7fELF")
}
