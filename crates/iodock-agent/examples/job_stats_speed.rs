//! Measures time and peak memory for the `job_stats` of a busy metadata server: 49,167 jobs, about 110 MB.
//! First reads the file once. Then makes rounds whose changes go into a spool: the first round, one without a
//! change, and one in which every job changed.
//!
//! Run it with `cargo run --release -p iodock-agent --example job_stats_speed`. It writes a file in the
//! format of Lustre 2.15.

use iodock_agent::batches::Batches;
use iodock_agent::collection::{collect, Collector, Options};
use iodock_agent::spool::Spool;
use iodock_agent::{exposition, sources};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const JOBS: u64 = 49_167;
const ROUNDS: usize = 5;
const OPERATIONS: [&str; 15] = [
    "open",
    "close",
    "mknod",
    "unlink",
    "mkdir",
    "rmdir",
    "rename",
    "getattr",
    "setattr",
    "statfs",
    "samedir_rename",
    "crossdir_rename",
    "punch",
    "read_bytes",
    "write_bytes",
];

fn main() -> io::Result<()> {
    let root = std::env::temp_dir().join(format!("iodock-agent-speed-{}", std::process::id()));
    let folder = root.join("proc/fs/lustre/mdt/lfs-MDT0000");
    fs::create_dir_all(&folder)?;
    let result = measure(&root, &folder.join("job_stats"));
    fs::remove_dir_all(&root)?;
    result
}

fn measure(root: &Path, path: &Path) -> io::Result<()> {
    write_jobs(path, 0)?;
    println!("{JOBS} jobs, {} bytes; memory before: {}", fs::metadata(path)?.len(), peak_memory()?);
    let options =
        Options { root: root.into(), jobs: 50, deadline: Duration::from_secs(60), logs: Arc::default() };
    for _ in 0..ROUNDS {
        let (begin, cpu) = (Instant::now(), cpu_seconds()?);
        let rounds = collect(&options, &sources::ALL[..1]);
        exposition::write(&rounds, "host", None, &mut io::sink())?;
        let (wall, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
        let table = &rounds[0].reports[0].table;
        assert_eq!(table.listed.len() as u64 + table.others, JOBS, "a job was lost");
        println!("{wall:.3} s, of which CPU {cpu:.2} s; peak memory: {}", peak_memory()?);
    }
    keep(&options, path, &root.join("spool"))
}

fn keep(options: &Options, path: &Path, spool: &Path) -> io::Result<()> {
    let spool = Spool::open(spool, 256 << 20, Box::new(|said| eprintln!("{said}")))?;
    let (batches, mut collector) =
        (Arc::new(Batches::new("host".into(), Arc::clone(&spool))), Collector::default());
    for what in ["the first", "no change", "every job"] {
        if what == "every job" {
            write_jobs(path, 1)?;
        }
        let (begin, cpu, bytes) = (Instant::now(), cpu_seconds()?, spool.state().bytes);
        let round = batches.begin(0);
        collector.round(options, &sources::ALL[..1], Some(round));
        batches.end(Vec::new(), Vec::new());
        let (wall, cpu) = (begin.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
        // This pause gives the spool's thread time to write.
        std::thread::sleep(Duration::from_millis(500));
        let written = spool.state().bytes - bytes;
        println!("{what}: {wall:.3} s, CPU {cpu:.2} s; {written} bytes; peak memory: {}", peak_memory()?);
    }
    Ok(())
}

/// Writes the file with one entry per job. The counters depend on `round`.
fn write_jobs(path: &Path, round: u64) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    writeln!(out, "job_stats:")?;
    for job in 0..JOBS {
        let second = 1_721_000_000 + job;
        writeln!(
            out,
            "- job_id:          \"{}:{}:r{:02}c{:02}\"",
            11_000_000 + job,
            17_000 + job % 800,
            job % 40,
            job % 97
        )?;
        writeln!(out, "  snapshot_time:   {second}.873002069 secs.nsecs")?;
        writeln!(out, "  start_time:      {}.368619499 secs.nsecs", second - 9000)?;
        writeln!(out, "  elapsed_time:    9000.504382570 secs.nsecs")?;
        for (at, operation) in (0..).zip(OPERATIONS) {
            let (samples, unit) =
                (1 + round + (job * 31 + at * 7) % 1_000_000, if at > 12 { "bytes" } else { "usecs" });
            let sum = samples * 37;
            writeln!(
                out,
                "  {:<16} {{ samples: {samples:>11}, unit: {unit:>5}, min: {:>8}, max: {:>8}, sum: {sum:>16}, sumsq: {:>18} }}",
                format!("{operation}:"), 8, 4096, sum * 1000
            )?;
        }
    }
    out.flush()
}

/// Returns the largest resident size so far (VmHWM of proc_pid_status(5)).
fn peak_memory() -> io::Result<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    Ok(line.unwrap_or_default().trim().into())
}

/// Returns user and system time of all threads. The kernel counts them in ticks of 10 ms.
fn cpu_seconds() -> io::Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    Ok(fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0)
}
