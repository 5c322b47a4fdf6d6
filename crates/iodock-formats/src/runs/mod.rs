//! Finds where one run ends and another begins in a file. The evidence is lines between the logs, ends of
//! processes, and clocks that start again.

mod clock;
mod divide;

use crate::Chunk;
pub use clock::Order;
use clock::{Clocked, Step};
pub use divide::{Divider, Mark, Sign};
use iodock_event::{LossKind, Outcome, Record, UNKNOWN};
use std::sync::Arc;

/// Length in bytes of the longest prompt.
const LONGEST_PROMPT: usize = 200;
/// Words that wikis and web pages put around a log.
const WIKI_FENCES: [&[u8]; 6] = [b"{code", b"{noformat", b"<pre", b"</pre", b"<code", b"</code"];

/// Returns whether the text is one that people copy with a log: the terminal's prompt, a line of `script`, or
/// a Markdown mark.
pub fn is_of_terminal(text: &[u8]) -> bool {
    text.starts_with(b"Script started on ")
        || text.starts_with(b"Script done on ")
        || is_fence(text)
        || prompted(text).is_some()
}

/// Returns whether such a line separates two logs.
#[cold]
pub fn separates_logs(line: &[u8]) -> bool {
    let text = line.trim_ascii();
    text.starts_with(b"Script started on ") || is_fence(text) || prompted(text).is_some_and(runs_tracer)
}

/// Returns whether the line is a fence: ```` ``` ```` or `~~~` (the opening one may name a language),
/// `{code:bash}`, `<pre>` or `.. code-block::`.
fn is_fence(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"```").or_else(|| text.strip_prefix(b"~~~"));
    let markdown =
        rest.is_some_and(|rest| rest.len() <= 20 && rest.iter().all(|&byte| byte != b' ' && byte != b'"'));
    let closed = matches!(text.last(), Some(b'}' | b'>')) && text.len() <= 40;
    let behind = WIKI_FENCES.iter().find_map(|fence| text.strip_prefix(*fence)?.first());
    let of_sphinx = text.starts_with(b".. code-block::");
    markdown || of_sphinx || (closed && matches!(behind, Some(b'}' | b':' | b'>' | b' ')))
}

/// Returns the command after a prompt, as in `$ strace ls`, `[user@host ~]$ exit` or `user@host:/a b# truss
/// -p 7`. A prompt without a name is recognised only if a tracer follows.
fn prompted(text: &[u8]) -> Option<&[u8]> {
    let near = &text[..text.len().min(LONGEST_PROMPT)];
    let ends = near.iter().enumerate().filter(|(_, byte)| matches!(byte, b'$' | b'#' | b'%' | b'>'));
    for (end, _) in ends {
        let command = &text[end + 1..];
        let spaced = command.is_empty() || command[0] == b' ';
        let command = command.trim_ascii();
        let named = near[..end].contains(&b'@') && !near[..end].contains(&b'(');
        if spaced && (named || runs_tracer(command)) {
            return Some(command);
        }
    }
    None
}

/// Returns whether the command runs a tracer, such as `strace ls`, `sudo truss -p 7`, `ltrace -S ls` or
/// `FOO=1 /usr/bin/perf trace ls`.
fn runs_tracer(command: &[u8]) -> bool {
    let words: Vec<&[u8]> =
        command.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).take(6).collect();
    let named = |word: &[u8], name: &[u8]| word.rsplit(|&byte| byte == b'/').next() == Some(name);
    let alone = [&b"strace"[..], b"truss", b"ltrace"];
    words.iter().any(|word| alone.iter().any(|name| named(word, name)))
        || words.windows(2).any(|pair| named(pair[0], b"perf") && pair[1] == b"trace")
}

/// The line of each record, for logs in which every line with a record is complete.
#[derive(Debug, Default)]
pub struct RecordLines {
    /// Line number of each record.
    lines: Vec<u64>,
    marks: Vec<Mark>,
}

impl RecordLines {
    /// Notes a line after its records were added to the chunk.
    pub fn note(&mut self, line: u64, records: &[Record]) {
        for (index, record) in records.iter().enumerate().skip(self.lines.len()) {
            let is_last = match record {
                Record::Call(raw) => raw.outcome == Outcome::NoResult,
                record => matches!(record, Record::End(_)),
            };
            if is_last {
                self.marks.push(Mark { record: index, line, sign: Sign::Last });
            }
            self.lines.push(line);
        }
    }

    /// Returns whether a line that the tracer did not print is from the terminal or surrounds a log. If so,
    /// the line is accepted.
    pub fn of_terminal(&mut self, text: &[u8], line: u64) -> bool {
        if separates_logs(text) {
            self.between(line);
        }
        is_of_terminal(text.trim_ascii())
    }

    /// Notes that another log may begin after this line.
    pub fn between(&mut self, line: u64) {
        self.marks.push(Mark { record: self.lines.len(), line, sign: Sign::Between });
    }
}

/// Finds the logs of a file one after the other, chunk by chunk.
#[derive(Debug, Default)]
pub struct Runs {
    divider: Divider,
    clock: Clocked,
}

impl Runs {
    /// Returns the lines at which further logs begin.
    pub fn beginnings(&self) -> &[u64] {
        &self.divider.beginnings
    }

    /// Returns a time, moved by the same amount as the log's last time.
    pub fn moved(&self, time: i64) -> i64 {
        if time == UNKNOWN {
            time
        } else {
            time.saturating_add(self.clock.base)
        }
    }

    /// Processes the records of a chunk. `bare` is the process of lines that show none. If times are in
    /// `order`, records after a clock that was set back are moved.
    pub fn follow<N>(
        &mut self,
        mut places: RecordLines,
        bare: u32,
        order: Option<Order>,
        file: &Arc<str>,
        chunk: &mut Chunk<N>,
    ) {
        let steps = order.map_or_else(Vec::new, |order| self.clock.follow(order, &mut chunk.batch));
        for Step { record, anew } in steps {
            let line = places.lines.get(record).copied().unwrap_or_default();
            chunk.lose_at(LossKind::ClockSetBack, file, line, b"");
            if anew {
                places.marks.push(Mark { record, line, sign: Sign::Anew });
            }
        }
        places.marks.sort_by_key(|mark| (mark.record, mark.sign == Sign::Last));
        self.divider.follow(&chunk.batch, &places.marks, Some(bare));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_and_fences_separate_logs() {
        for line in [
            "```",
            "```console",
            "~~~",
            ".. code-block:: console",
            "{code:java}",
            "{code}",
            "{noformat}",
            "<pre>",
            "</pre>",
            "<pre class=\"x\">",
            "$ strace ls",
            "user@host:~$ sudo truss -p 7",
            "# perf trace -o x ./a",
            "$ ltrace -S ./a",
            "Script started on Mon",
        ] {
            assert!(separates_logs(line.as_bytes()), "{line}");
        }
        for line in [
            "user@host:~$ exit",
            "$ ls",
            "$ perf stat ls",
            "{\"code\": 1}",
            "```a long line of text",
            "<preface>",
        ] {
            assert!(!separates_logs(line.as_bytes()), "{line}");
        }
    }
}
