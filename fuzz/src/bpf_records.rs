//! What the kernel's programs have written, kept in a file that is whole itself.

use crate::touch_texts;
use iodock_bpf::calls::{meta, CallsSource, PagesSource};
use iodock_bpf::plans::Plans;
use iodock_event::RecordSource;
use iodock_journal::{Closing, JournalWriter};

/// Reads `records`, in rounds that a byte 0xfe ends: whatever they say, without a panic, every text in its place.
pub fn read_all(records: &[u8]) {
    let path = std::env::temp_dir().join(format!("iodock-fuzz-{}.calls", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let mut writer = JournalWriter::create(&path, &meta(0, &Plans::of_this_machine(), true)).expect("a new file");
    for round in records.split(|&byte| byte == 0xfe) {
        writer.raw(round).expect("written");
    }
    writer.close(&Closing::default()).expect("closed");
    let mut calls = CallsSource::open(&path).expect("of this version");
    while let Ok(Some(batch)) = calls.next_batch() {
        batch.records.iter().for_each(|record| touch_texts(record, &batch));
        calls.recycle(batch);
    }
    let mut pages = PagesSource::open(&path).expect("a whole file");
    while let Ok(Some(runs)) = pages.next_runs() {
        std::hint::black_box(runs);
    }
    let _ = std::fs::remove_file(&path);
}
