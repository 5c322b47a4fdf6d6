//! Reads systemd's journal, if no syslog file is read. `journalctl` prints the messages after a cursor. The
//! agent runs it once a minute, because starting it costs more than a round, and kills it at the deadline if
//! it hangs.

use super::{kernel_log, system_log, Reading};
use crate::clock::now;
use crate::events::LogRead;
use crate::lines::{each_line, Faults};
use crate::logs::{skipped, Sieve};
use serde::de::IgnoredAny;
use serde::Deserialize;
use std::io::{self, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SOURCE: &str = "journal";
const PROGRAM: &str = "usr/bin/journalctl";
const LOG: &str = "journal";
const EVERY: Duration = Duration::from_secs(60);
/// Largest number of bytes that are read in one round.
const MOST_BYTES: usize = 64 << 20;
const MARGIN: Duration = Duration::from_millis(500);
const FIELDS: &str = "--output-fields=MESSAGE,_TRANSPORT,SYSLOG_IDENTIFIER";

pub fn read(reading: &Reading) {
    let Some((logs, positions)) = reading.logs() else { return };
    let program = reading.root().join(PROGRAM);
    let has_file = !system_log::files(reading, logs.files.as_deref()).is_empty();
    if has_file || !reading.is_there(&program) || !logs.is_journal_due(EVERY) {
        return;
    }
    let cursor = positions.get(LOG).filter(|cursor| is_cursor(cursor));
    let mut command = Command::new(&program);
    command
        .args(["--quiet", "--no-pager", "--output=json", FIELDS])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    match cursor {
        Some(cursor) => command.arg(format!("--after-cursor={cursor}")),
        // Messages from before the first agent's start count as old, so only the last one is read for its
        // cursor.
        None => command.arg("--lines=1"),
    };
    let started =
        reading.tool().start(command.stdout(Stdio::piped()), |child: &mut Child| child.stdout.take());
    let output = match started {
        Ok(Some(output)) => output,
        Ok(None) => return,
        Err(error) => return reading.refuse(&program, &error),
    };
    reading.announce(&program);
    take(reading, Patient { output, reading, left: MOST_BYTES }, cursor);
    // The exit status is ignored, because journalctl fails if the message of the cursor no longer exists, but
    // still prints the messages after it.
    let _ = reading.tool().wait();
}

/// Reads the output until shortly before the deadline, so that the source can report its result. The next
/// round reads the rest.
struct Patient<'a, R> {
    output: R,
    reading: &'a Reading,
    left: usize,
}

impl<R: Read> Read for Patient<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 || self.reading.remaining() < MARGIN {
            return Ok(0);
        }
        let most = buffer.len().min(self.left);
        let read = self.output.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

fn take(reading: &Reading, mut output: impl Read, cursor: Option<&String>) {
    let Some((logs, _)) = reading.logs() else { return };
    let has_kernel = kernel_log::open(&kernel_log::path(reading.root())).is_ok();
    let (mut sieve, mut last) = (Sieve::new(&logs.rules, SOURCE), None);
    let (mut faults, mut unreadable) = (Faults::default(), Faults::default());
    let read = each_line(&mut output, &mut faults, |line, _| {
        unreadable.lines += 1;
        let Ok(entry) = serde_json::from_slice::<Entry>(line) else { return unreadable.unreadable() };
        if cursor.is_some() && !(has_kernel && entry.transport.as_deref() == Some("kernel")) {
            sieve.line(&entry.line(), || entry.time());
        }
        last = Some(entry.cursor).filter(|cursor| is_cursor(cursor)).or(last.take());
    });
    if let Err(error) = read {
        reading.refuse(&reading.root().join(PROGRAM), &error);
    }
    let mut events = sieve.events();
    if faults.unreadable > unreadable.unreadable || unreadable.unreadable > 0 {
        reading.faults(SOURCE, unreadable);
        let text = "entries that are too long or cut";
        events.extend((faults.unreadable > 0).then(|| skipped(SOURCE, 1, text.into())));
    }
    // An empty journal returns no cursor. Then all later messages are new.
    if let Some(position) = last.or_else(|| cursor.cloned()) {
        reading.log(LogRead { events, log: LOG.into(), position });
    }
}

/// Returns whether the text is a cursor such as `s=0639...;i=4ece7;b=...`. Other characters could have a
/// meaning for journalctl and are not allowed.
fn is_cursor(text: &str) -> bool {
    (1..300).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"=;".contains(&byte))
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "__CURSOR")]
    cursor: String,
    #[serde(rename = "__REALTIME_TIMESTAMP")]
    time: Option<String>,
    #[serde(rename = "MESSAGE")]
    message: Option<Message>,
    #[serde(rename = "_TRANSPORT")]
    transport: Option<String>,
    #[serde(rename = "SYSLOG_IDENTIFIER")]
    program: Option<Message>,
}

/// A field of a message: text, or bytes if they are not valid text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Message {
    Text(String),
    Bytes(Vec<u8>),
    /// A field that occurs several times in one message.
    Other(IgnoredAny),
}

impl Message {
    fn bytes(&self) -> &[u8] {
        match self {
            Message::Text(text) => text.as_bytes(),
            Message::Bytes(bytes) => bytes,
            Message::Other(_) => b"",
        }
    }
}

impl Entry {
    /// Formats the message like a line of syslog: only the text for the kernel, the program's name and the
    /// text for others.
    fn line(&self) -> Vec<u8> {
        let message = self.message.as_ref().map_or(&b""[..], Message::bytes);
        match self.program.as_ref().filter(|_| self.transport.as_deref() != Some("kernel")) {
            Some(program) => [program.bytes(), b": ", message].concat(),
            None => message.to_vec(),
        }
    }

    fn time(&self) -> i64 {
        let micros = self.time.as_deref().and_then(|time| time.parse::<i64>().ok());
        micros
            .and_then(|micros| micros.checked_mul(1000))
            .filter(|time| (0..=now()).contains(time))
            .unwrap_or_else(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_fields_may_be_text_or_bytes() {
        let entry = |text: &str| serde_json::from_str::<Entry>(text).expect("an entry");
        let one = entry(
            r#"{"__CURSOR":"s=1;i=2","__REALTIME_TIMESTAMP":"1713431141000000","MESSAGE":"[E] x","SYSLOG_IDENTIFIER":"mmfs","_TRANSPORT":"syslog"}"#,
        );
        assert_eq!((one.line(), one.time()), (b"mmfs: [E] x".to_vec(), 1_713_431_141_000_000_000));
        assert_eq!(entry(r#"{"__CURSOR":"","MESSAGE":[73,255],"_TRANSPORT":"kernel"}"#).line(), b"I\xff");
        assert!(entry(r#"{"__CURSOR":"","MESSAGE":null}"#).line().is_empty());
        assert!(entry(r#"{"__CURSOR":"","MESSAGE":["a","b"],"__REALTIME_TIMESTAMP":"-9"}"#)
            .line()
            .is_empty());
        assert!(is_cursor("s=0639;i=4ece7;b=1") && !is_cursor("-x; rm") && !is_cursor(""));
    }
}
