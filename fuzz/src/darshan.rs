//! The reader of Darshan's logs and of darshan-parser's texts.

use iodock_darshan::{Limits, Log};
use std::io::Cursor;

/// Reads `file`, and every value of what it holds, in bounded memory.
pub fn read_all(file: &[u8]) {
    let limits = Limits { inflated_bytes: 16 << 20, ..Limits::default() };
    let Ok(log) = Log::read(Cursor::new(file), limits) else { return };
    for module in &log.counted {
        for record in module.records() {
            std::hint::black_box((record.counters().count(), record.fractions().count(), record.file()));
        }
    }
    for module in &log.traced {
        for file in &module.files {
            assert_eq!(module.accesses(file).count(), file.writes + file.reads);
        }
    }
    std::hint::black_box(log.losses.iter().map(ToString::to_string).collect::<Vec<_>>());
}
