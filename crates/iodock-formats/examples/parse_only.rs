//! Measures how fast logs are parsed. The records are discarded.
//!
//! `cargo run --release -p iodock-formats --example parse_only LOG...` prints for each log, read with one
//! thread and with two: lines, lines per second, ns of CPU per line, MB per second.

use iodock_event::{Losses, RecordSource, SourceError};
use iodock_formats::{open_log, ReadOptions};
use std::time::{Duration, Instant};

fn main() {
    for path in std::env::args().skip(1) {
        for workers in [1, 2] {
            if let Err(error) = measure(&path, workers) {
                eprintln!("error: {error}\nhint: {}", error.hint);
                std::process::exit(1);
            }
        }
    }
}

fn measure(path: &str, workers: usize) -> Result<(), SourceError> {
    let mut options = ReadOptions { workers, ..ReadOptions::default() };
    if let Some(size) = std::env::var("CHUNK_SIZE").ok().and_then(|size| size.parse().ok()) {
        options.chunk_size = size;
    }
    let cpu_before = cpu_time();
    let begun = Instant::now();
    let mut source = open_log(path, None, &options)?;
    let (lines, records, losses) = drain(source.as_mut())?;
    let wall = begun.elapsed().as_secs_f64();
    let cpu = (cpu_time() - cpu_before).as_nanos() as f64;
    let megabytes = source.progress().0 as f64 / 1e6;
    println!(
        "{path}: {} threads {workers} lines {lines} records {records} wall {wall:.2} s, {:.2} M lines/s, {:.0} ns CPU a line, {:.0} MB/s",
        source.format(),
        lines as f64 / wall / 1e6,
        cpu / lines as f64,
        megabytes / wall,
    );
    for (kind, count) in &losses.counts {
        println!("  {count} {}, first: {:?}", kind.name(), losses.first.get(kind));
    }
    Ok(())
}

fn drain(source: &mut (impl RecordSource + ?Sized)) -> Result<(u64, u64, Losses), SourceError> {
    let (mut lines, mut records, mut losses) = (0, 0, Losses::default());
    while let Some(batch) = source.next_batch()? {
        lines += batch.counts.lines;
        records += batch.records.len() as u64;
        losses.merge(&batch.losses);
        source.recycle(batch);
    }
    Ok((lines, records, losses))
}

/// Returns the CPU time of this process so far, from /proc/self/stat (in ticks of 10 ms).
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
