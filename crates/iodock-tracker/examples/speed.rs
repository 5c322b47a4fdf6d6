//! Measures the nanoseconds per call that the tracker and the coverage need, on generated records. The
//! records are those that `genlog` writes, but without parsing a log.
//!
//! `cargo run --release -p iodock-tracker --example speed -- [CALLS] [PROCESSES] [FILES]`

use iodock_event::constants::{O_CLOEXEC, O_CREAT, O_RDWR};
use iodock_event::{Batch, CallId, EventColumns, Outcome, RawCall, Record, AT_FDCWD};
use iodock_tracker::{Coverage, SpaceOptions, Tracker, TrackerOptions, DEFAULT_COVERAGE_BYTES};
use std::time::{Duration, Instant};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn call(name: &str) -> CallId {
    CallId::intern(name.as_bytes()).expect("the call table holds it")
}

struct Workload {
    random: Random,
    files: u64,
    /// For each process: whether descriptor 3 is open.
    open: Vec<bool>,
    calls: [CallId; 7],
    clock: i64,
}

impl Workload {
    fn new(processes: u64, files: u64) -> Self {
        let calls = ["openat", "close", "read", "write", "pread64", "pwrite64", "lseek"].map(call);
        Workload {
            random: Random(88_172_645_463_325_252),
            files,
            open: vec![false; processes as usize],
            calls,
            clock: 0,
        }
    }

    fn fill(&mut self, batch: &mut Batch, calls: usize) {
        for _ in 0..calls {
            let process = self.random.below(self.open.len() as u64) as usize;
            self.clock += 40_000;
            let mut raw = RawCall::new(self.calls[0], 20_000 + process as u32);
            raw.start = self.clock;
            raw.duration = 10_000;
            raw.outcome = Outcome::Succeeded;
            match self.open[process] {
                true => self.use_descriptor(&mut raw, process),
                false => self.open(&mut raw, process, batch),
            }
            batch.records.push(Record::Call(raw));
        }
    }

    fn open(&mut self, raw: &mut RawCall, process: usize, batch: &mut Batch) {
        let file = self.random.below(self.files);
        raw.fd = AT_FDCWD;
        raw.path = batch.push_text(format!("/data/set{}/part-{file:05}.dat", file % 37).as_bytes());
        raw.flags = O_RDWR | O_CREAT | O_CLOEXEC;
        raw.result = 3;
        self.open[process] = true;
    }

    fn use_descriptor(&mut self, raw: &mut RawCall, process: usize) {
        raw.fd = 3;
        let size = [1, 512, 4096, 65_536, 131_072, 1 << 20][self.random.below(6) as usize];
        let place = self.random.below(1 << 32) as i64;
        let kind = match self.random.below(100) {
            0..4 => 1,
            4..40 => 2,
            40..70 => 3,
            70..82 => 4,
            82..90 => 5,
            _ => 6,
        };
        raw.call = self.calls[kind];
        raw.requested = size;
        raw.result = size;
        match kind {
            1 => {
                raw.result = 0;
                self.open[process] = false;
            }
            4 | 5 => raw.offset = place,
            6 => raw.result = place,
            _ => {}
        }
    }
}

fn main() {
    let arguments: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let argument = |index: usize, otherwise| arguments.get(index).copied().unwrap_or(otherwise);
    let (calls, processes, files) = (argument(0, 10_000_000), argument(1, 8), argument(2, 100));
    let mut workload = Workload::new(processes, files);
    let mut tracker = Tracker::new(TrackerOptions { spaces: vec![SpaceOptions::default()] });
    let mut coverage = Coverage::new(DEFAULT_COVERAGE_BYTES);
    let (mut tracking, mut covering) = (Duration::ZERO, Duration::ZERO);
    let (mut batch, mut events) = (Batch::default(), EventColumns::default());
    const BATCH: usize = 16_384;
    for _ in 0..calls / BATCH as u64 {
        batch.clear();
        events.clear();
        workload.fill(&mut batch, BATCH);
        let begin = Instant::now();
        tracker.track(0, &batch, &mut events);
        let tracked = Instant::now();
        coverage.annotate(&mut events, 0, tracker.tasks());
        tracking += tracked - begin;
        covering += tracked.elapsed();
    }
    let done = (calls / BATCH as u64 * BATCH as u64).max(1) as f64;
    let per_call = |time: Duration| time.as_nanos() as f64 / done;
    println!("{calls} calls, {processes} processes, {files} files");
    println!("tracker  {:6.1} ns a call", per_call(tracking));
    println!("coverage {:6.1} ns a call", per_call(covering));
    println!("accesses given up: {:?}", coverage.losses().counts.values().next().unwrap_or(&0));
}
