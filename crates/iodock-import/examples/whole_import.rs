//! Imports a log into a store, and prints the elapsed time and the peak memory: `whole_import LOG STORE
//! [THREADS]`. It replaces an existing store.

use iodock_import::{import, ImportOptions, LogOptions};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [log, store, rest @ ..] = arguments.as_slice() else {
        return Err("whole_import LOG STORE [THREADS]".into());
    };
    let threads = rest.first().and_then(|text| text.parse().ok()).unwrap_or(0);
    let logs = LogOptions { logs: vec![log.clone()], threads, ..LogOptions::default() };
    let mut options = ImportOptions::new(logs, store.into());
    options.force = true;
    let start = Instant::now();
    let summary = import(&options, &mut |_| {}, &AtomicBool::new(false))?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{} lines, {} calls, {} files", summary.lines, summary.calls, summary.files);
    println!("{seconds:.2} s, {:.2} M lines/s, peak {} MB", summary.lines as f64 / seconds / 1e6, peak_mb());
    for (kind, count) in &summary.losses.counts {
        println!("{}: {count}", kind.name());
    }
    Ok(())
}

fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_whitespace().next().and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}
