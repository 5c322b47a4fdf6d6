//! Prints the content and the losses of Darshan logs.

use iodock_darshan::{Limits, Log};
use std::path::Path;

fn main() {
    for path in std::env::args_os().skip(1) {
        match Log::open(Path::new(&path), Limits::default()) {
            Ok(log) => print(&path.to_string_lossy(), &log),
            Err(error) => println!("error: {error}\nhint: {}", error.fault.hint()),
        }
    }
}

fn print(path: &str, log: &Log) {
    let processes = log.job.as_ref().map(|job| job.processes);
    println!("{path}: format {}, {processes:?} processes, {} names", log.format, log.names.len());
    for module in &log.counted {
        println!("  {} version {:?}: {} records", module.module.name(), module.version, module.len());
    }
    for module in &log.traced {
        let accesses: usize = module.files.iter().map(|file| file.writes + file.reads).sum();
        println!("  {}: {} records, {accesses} accesses", module.module.name(), module.files.len());
    }
    println!("  {} records of Lustre, {} heatmaps", log.lustre.len(), log.heatmaps.len());
    for loss in &log.losses {
        println!("  lost: {loss}");
    }
}
