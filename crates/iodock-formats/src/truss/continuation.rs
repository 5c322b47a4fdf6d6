//! Lines that belong to the call above them: arguments and environment of exec, structures.

use super::line::Body;
use super::prefix::Prefix;
use super::reader::Parser;
use super::values::integer;
use iodock_event::{Action, Record, Text};

impl Parser<'_> {
    /// Handles a line after `argv:` or `envp:` that must be part of them. A value may contain any text,
    /// including newlines. Returns `None` if the line is something else.
    pub fn wrapped(&mut self, meaning: &Body<'_>, text: &[u8], start: &Prefix) -> Option<bool> {
        match meaning {
            Body::Continuation if self.above.environment => Some(true),
            Body::Continuation => {
                self.add_arguments(text);
                Some(true)
            }
            Body::Unreadable if self.above.environment && start.columns == 0 => Some(true),
            Body::Call(_) if start.indented && start.columns == 0 => Some(true),
            Body::Envp => None,
            _ => {
                self.above.arguments = false;
                self.above.environment = false;
                None
            }
        }
    }

    /// Adds words to the arguments of the exec call above.
    pub fn add_arguments(&mut self, text: &[u8]) {
        let batch = &mut self.chunk.batch;
        let Some(Record::Call(raw)) = self.above.call.and_then(|index| batch.records.get_mut(index)) else {
            return;
        };
        if raw.call.spec().action != Action::Exec {
            return;
        }
        let words = text.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
        if !raw.argv.is_some() {
            raw.argv = Text { start: batch.bytes.len() as u32, length: 0 };
        }
        // Only lines of this exec have followed, so its arguments are the last bytes in the batch.
        for word in words {
            if raw.argv.length > 0 {
                batch.bytes.push(0);
            }
            batch.bytes.extend_from_slice(word);
            raw.argv.length = batch.bytes.len() as u32 - raw.argv.start;
        }
    }

    /// Parses the first line of a `stat` structure: `d=0x0154 i=77 m=0100755 l=1 u=0 g=2 sz=27144`.
    pub fn structure(&mut self, text: &[u8]) {
        if !text.starts_with(b"d=0x") {
            return;
        }
        let batch = &mut self.chunk.batch;
        let Some(Record::Call(raw)) = self.above.call.and_then(|index| batch.records.get_mut(index)) else {
            return;
        };
        if raw.call.spec().action != Action::Stat {
            return;
        }
        for word in text.split(|&byte| byte == b' ') {
            if let Some((mode, _)) = word.strip_prefix(b"m=").and_then(integer) {
                raw.stat_type = (mode >> 12 & 0o17) as u8;
            }
            if let Some((size, _)) = word.strip_prefix(b"sz=").and_then(integer) {
                raw.stat_size = size;
            }
        }
    }
}
