//! What the fuzz targets share.

pub mod bpf_records;
pub mod counters;
pub mod darshan;

use iodock_event::{Batch, Record, Text};
use iodock_formats::{open_input, Input, LogFormat, ReadOptions};
use std::io::Cursor;

/// Reads `log` to its end: whatever it is, without a panic, every line counted, every text in its place.
pub fn read_all(format: &dyn LogFormat, log: &[u8]) {
    // The first byte says how small the chunks are.
    let Some((&size, log)) = log.split_first() else { return };
    let options =
        ReadOptions { workers: 0, chunk_size: 1 + 16 * usize::from(size), ..ReadOptions::default() };
    let Ok(input) = Input::from_reader(Box::new(Cursor::new(log.to_vec())), "fuzz.log", None) else { return };
    // Each second size also takes out what was put before the lines.
    let opened = match size % 2 {
        0 => format.open(input, &options),
        _ => open_input(input, Some(format.name()), &options),
    };
    let Ok(mut source) = opened else { return };
    let packed =
        [&b"\x1f\x8b"[..], b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"].iter().any(|magic| log.starts_with(magic));
    let mut lines = 0;
    loop {
        match source.next_batch() {
            Ok(Some(batch)) => {
                lines += batch.counts.lines;
                batch.records.iter().for_each(|record| touch_texts(record, &batch));
                source.recycle(batch);
            }
            Ok(None) => break,
            Err(error) => {
                assert!(!error.message.contains("mistake in iodock"), "{error}");
                return;
            }
        }
    }
    let newlines = log.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let unended = u64::from(log.last().is_some_and(|&last| last != b'\n'));
    // A last line of nothing but colours is none.
    let coloured = log.contains(&0x1b);
    assert!(packed || coloured || lines == newlines + unended, "{lines} lines of {}", newlines + unended);
}

/// Panics if a text lies outside its batch.
fn touch_texts(record: &Record, batch: &Batch) {
    let texts: &[Text] = match record {
        Record::Call(raw) => &[raw.path, raw.path2, raw.argv, raw.fd_text, raw.fd2_text, raw.result_text],
        Record::End(end) => &[end.signal],
        _ => &[],
    };
    for &text in texts {
        std::hint::black_box(batch.text(text));
    }
}
