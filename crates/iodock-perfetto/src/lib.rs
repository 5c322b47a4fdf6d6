//! Converts calls to packets of a Perfetto trace.
//!
//! Each call is a slice on the track of its thread. It is also a slice on a track of its file, if the file
//! has tracks. The caller interns the names and passes their numbers, so this crate writes only the part that
//! grows with the number of calls. Field numbers are those of
//! <https://github.com/google/perfetto/blob/main/protos/perfetto/trace/perfetto_trace.proto>.

mod message;

use message::{number, text};
use std::collections::HashMap;
use std::ops::Range;

/// Marks a value that a call does not have.
pub const NONE: i64 = i64::MIN;

/// One call, or the second end of a call with two ends.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Start time, ns.
    pub ts: i64,
    /// Duration, ns; `NONE` if it is not known or the call never ended.
    pub duration: i64,
    /// Number of the thread that made the call.
    pub thread: i64,
    pub call: i64,
    pub class: i64,
    pub file: i64,
    pub bytes: i64,
    pub offset: i64,
    pub requested: i64,
    pub result: i64,
    pub errno: i64,
    pub stack: i64,
    /// Whether the call gets a slice on its thread's track. The second end of a call does not.
    pub is_counted: bool,
}

// Tracks of threads, tracks of files and interned names have separate ranges of numbers.
// `exports/perfetto.py` uses the same ranges.
const THREADS: u64 = 1 << 40;
const FILES: u64 = 3 << 40;
const LANES: u64 = 1 << 60;
const LANES_OF_A_FILE: u64 = 1 << 20;
const ERRORS: u64 = 1 << 40;
/// Number of the category of slices on tracks of files.
const FILE_CATEGORY: u64 = 1 << 40;

/// Number of the only packet sequence, in which the names were interned.
const SEQUENCE: u64 = 1;
const NEEDS_NAMES: u64 = 2;

const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;

/// Writes calls as packets, in the order in which the calls ended.
pub struct Writer {
    /// Names of the files that have tracks, by file number.
    files: HashMap<i64, String>,
    /// End of the last slice on each track of each file. A file has several tracks, because slices on one
    /// track must not overlap.
    lanes: HashMap<i64, Vec<i64>>,
    event: Vec<u8>,
    packet: Vec<u8>,
}

impl Writer {
    pub fn new(files: impl IntoIterator<Item = (i64, String)>) -> Writer {
        let files = files.into_iter().collect();
        Writer { files, lanes: HashMap::new(), event: Vec::new(), packet: Vec::new() }
    }

    /// Appends the packets of a call to `out`.
    pub fn write(&mut self, call: &Call, out: &mut Vec<u8>) {
        if call.is_counted {
            let track = THREADS.wrapping_add(call.thread as u64);
            self.slice(call, track, (call.class as u64).wrapping_add(1), true, out);
        }
        if let Some(track) = self.lane(call, out) {
            self.slice(call, track, FILE_CATEGORY, false, out);
        }
    }

    /// Returns a track of the call's file that is free during the call, and adds one if necessary.
    fn lane(&mut self, call: &Call, out: &mut Vec<u8>) -> Option<u64> {
        let name = self.files.get(&call.file)?;
        let span = span(call);
        let lanes = self.lanes.entry(call.file).or_default();
        let track = |lane: usize| {
            LANES.wrapping_add((call.file as u64).wrapping_mul(LANES_OF_A_FILE)).wrapping_add(lane as u64)
        };
        if let Some(lane) = lanes.iter().position(|&end| end <= span.start) {
            lanes[lane] = span.end;
            return Some(track(lane));
        }
        if lanes.len() as u64 >= LANES_OF_A_FILE {
            return None;
        }
        let found = track(lanes.len());
        lanes.push(span.end);
        self.event.clear();
        number(&mut self.event, 1, found);
        text(&mut self.event, 2, name.as_bytes());
        number(&mut self.event, 5, FILES);
        self.packet.clear();
        number(&mut self.packet, 10, SEQUENCE);
        text(&mut self.packet, 60, &self.event);
        text(out, 1, &self.packet);
        Some(found)
    }

    fn slice(&mut self, call: &Call, track: u64, category: u64, is_told: bool, out: &mut Vec<u8>) {
        let span = span(call);
        let is_timed = call.duration != NONE;
        self.begin(if is_timed { BEGIN } else { INSTANT }, track);
        number(&mut self.event, 3, category);
        number(&mut self.event, 10, (call.call as u64).wrapping_add(1));
        if is_told {
            self.annotate(call);
            if call.stack != NONE {
                number(&mut self.event, 56, (call.stack as u64).wrapping_add(1));
            }
        }
        self.end_packet(span.start, out);
        if is_timed {
            self.begin(END, track);
            self.end_packet(span.end, out);
        }
    }

    fn begin(&mut self, kind: u64, track: u64) {
        self.event.clear();
        number(&mut self.event, 9, kind);
        number(&mut self.event, 11, track);
    }

    /// Adds the annotations that the viewer shows for the slice.
    fn annotate(&mut self, call: &Call) {
        let error = if call.errno == NONE { NONE } else { call.errno.saturating_add(ERRORS as i64) };
        // In a DebugAnnotation, field 17 holds the number of an interned text, and field 4 holds a number.
        let shown = [
            (1, 17, call.file),
            (2, 4, call.bytes),
            (3, 4, call.offset),
            (4, 4, call.requested),
            (5, 4, call.result),
            (6, 17, error),
        ];
        for (name, field, value) in shown {
            if value != NONE {
                let mut annotation = Vec::with_capacity(16);
                number(&mut annotation, 1, name);
                number(
                    &mut annotation,
                    field,
                    if field == 17 { (value as u64).wrapping_add(1) } else { value as u64 },
                );
                text(&mut self.event, 4, &annotation);
            }
        }
    }

    fn end_packet(&mut self, ts: i64, out: &mut Vec<u8>) {
        self.packet.clear();
        number(&mut self.packet, 8, ts as u64);
        number(&mut self.packet, 10, SEQUENCE);
        number(&mut self.packet, 13, NEEDS_NAMES);
        text(&mut self.packet, 11, &self.event);
        text(out, 1, &self.packet);
    }
}

/// Returns beginning and end of a call. Damaged durations may be negative or too large.
fn span(call: &Call) -> Range<i64> {
    let length = if call.duration == NONE { 0 } else { call.duration.max(0) };
    call.ts..call.ts.saturating_add(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Call = Call {
        ts: 100,
        duration: 10,
        thread: 2,
        call: 0,
        class: 0,
        file: 7,
        bytes: 5,
        offset: NONE,
        requested: NONE,
        result: -1,
        errno: NONE,
        stack: NONE,
        is_counted: true,
    };

    fn packets(out: &[u8]) -> Vec<&[u8]> {
        let (mut rest, mut found) = (out, Vec::new());
        while !rest.is_empty() {
            assert_eq!(rest[0], 1 << 3 | 2);
            assert!(rest[1] < 0x80, "packets of these tests are short");
            let (packet, more) = rest[2..].split_at(rest[1] as usize);
            found.push(packet);
            rest = more;
        }
        found
    }

    #[test]
    fn overlapping_calls_are_on_separate_tracks() {
        let mut writer = Writer::new([(7, "/data".to_owned())]);
        let mut out = Vec::new();
        writer.write(&CALL, &mut out);
        writer.write(&Call { ts: 105, thread: 3, ..CALL }, &mut out);
        writer.write(&Call { ts: 110, ..CALL }, &mut out);
        assert_eq!(writer.lanes[&7], [120, 115]);
        // Each call has a begin and an end packet on two tracks. In addition, each of the two tracks has a
        // packet.
        assert_eq!(packets(&out).len(), 3 * 4 + 2);
    }

    #[test]
    fn a_call_without_a_duration_is_an_instant() {
        let mut out = Vec::new();
        Writer::new([]).write(&Call { duration: NONE, ..CALL }, &mut out);
        let found = packets(&out);
        assert_eq!(found.len(), 1);
        assert!(found[0].windows(2).any(|field| field == [9 << 3, INSTANT as u8]));
    }

    #[test]
    fn damaged_numbers_do_not_stop_the_export() {
        let mut out = Vec::new();
        let extreme = Call { ts: i64::MAX, duration: i64::MAX, thread: -1, file: -1, errno: 1, ..CALL };
        Writer::new([(-1, String::new())])
            .write(&Call { stack: -5, call: -1, class: -9, ..extreme }, &mut out);
        assert!(!out.is_empty());
    }
}
