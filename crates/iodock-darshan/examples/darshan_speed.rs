//! Measures how long it takes to read every value of every record of Darshan logs. Prints the shortest of 200
//! runs.

use iodock_darshan::{Limits, Log};
use std::path::Path;
use std::time::Instant;

fn main() {
    for path in std::env::args_os().skip(1) {
        let path = Path::new(&path);
        let times = (0..200).map(|_| {
            let start = Instant::now();
            let log = Log::open(path, Limits::default()).expect("a log");
            std::hint::black_box(touch(&log));
            start.elapsed()
        });
        let least = times.min().unwrap_or_default();
        println!("{}: {:.2} ms", path.display(), least.as_secs_f64() * 1e3);
    }
}

/// Reads every value of the log, and returns a sum so that the compiler keeps the reads.
fn touch(log: &Log) -> u64 {
    let counted = log.counted.iter().flat_map(|module| module.records()).map(|record| {
        let counters = record.counters().fold(0, |sum: u64, (_, value)| sum.wrapping_add(value as u64));
        record.fractions().fold(counters, |sum, (_, value)| sum.wrapping_add(value.to_bits()))
    });
    let accesses = log.traced.iter().flat_map(|module| {
        module.files.iter().flat_map(|file| module.accesses(file)).map(|access| access.bytes as u64)
    });
    counted.chain(accesses).fold(0, u64::wrapping_add)
}
