//! Measures the time of an import that does not write the store: `without_store LOG`.

use iodock_event::EventColumns;
use iodock_formats::{open_log, ReadOptions};
use iodock_import::{run, EventSink, ImportError, Stream};
use iodock_tracker::{SpaceOptions, Tracker, TrackerOptions, DEFAULT_COVERAGE_BYTES};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

struct Nowhere;

impl EventSink for Nowhere {
    fn write(&mut self, columns: EventColumns) -> Result<EventColumns, ImportError> {
        Ok(columns)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let log = std::env::args().nth(1).ok_or("without_store LOG")?;
    let start = Instant::now();
    let source = open_log(&log, None, &ReadOptions::default())?;
    let tracker = Tracker::new(TrackerOptions { spaces: vec![SpaceOptions::default()] });
    let stream = Stream::new(source, 0)?;
    let done = run(
        vec![stream],
        tracker,
        DEFAULT_COVERAGE_BYTES,
        &mut Nowhere,
        &mut |_| (),
        &AtomicBool::new(false),
    )?;
    let seconds = start.elapsed().as_secs_f64();
    let lines = done.counts.lines as f64;
    println!("{lines} lines, {} calls, {} files", done.calls, done.tracked.tables.files.entries.len());
    println!("{seconds:.2} s, {:.2} M lines/s", lines / seconds / 1e6);
    for (kind, count) in &done.losses.counts {
        println!("{}: {count}", kind.name());
    }
    Ok(())
}
