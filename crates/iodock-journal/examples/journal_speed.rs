//! Measures the cost of a call in the journal: `cargo run --release -p iodock-journal --example journal_speed
//! [CALLS]`.

use iodock_event::{Batch, CallId, Outcome, RawCall, Record, RecordSource};
use iodock_journal::{Closing, JournalMeta, JournalReader, JournalWriter};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let calls: u64 = std::env::args().nth(1).map_or(Ok(5_000_000), |text| text.parse())?;
    let path = std::env::temp_dir().join(format!("iodock-journal-speed-{}", std::process::id()));
    let began = Instant::now();
    let mut writer = JournalWriter::create(&path, &JournalMeta::default())?;
    let read = CallId::intern(b"pread64").ok_or("no such call")?;
    let batch = Batch::default();
    for index in 0..calls {
        let mut call = RawCall::new(read, 1000 + (index / 50 % 4) as u32);
        (call.start, call.duration) =
            (1_700_000_000_000_000_000 + index as i64 * 2310, 800 + index as i64 % 700);
        (call.fd, call.result, call.requested) = (3, 4096, 4096);
        (call.offset, call.outcome) = ((index * 7919 % 262_144 * 4096) as i64, Outcome::Succeeded);
        writer.push_record(&Record::Call(call), &batch)?;
    }
    writer.close(&Closing::default())?;
    report("write", calls, began, std::fs::metadata(&path)?.len());

    let began = Instant::now();
    let mut reader = JournalReader::open(&path)?;
    let mut seen = 0;
    while let Some(batch) = reader.next_batch()? {
        seen += batch.records.len() as u64;
        reader.recycle(batch);
    }
    report("read", seen, began, std::fs::metadata(&path)?.len());
    std::fs::remove_file(&path)?;
    Ok(())
}

fn report(what: &str, calls: u64, began: Instant, bytes: u64) {
    let nanoseconds = began.elapsed().as_nanos() as f64 / calls as f64;
    println!(
        "{what}: {calls} calls, {nanoseconds:.0} ns and {:.1} bytes a call",
        bytes as f64 / calls as f64
    );
}
