//! Measures the cost of writing a row. The CPU time is that of the whole process without the time for
//! generating the rows.
//!
//! `cargo run --release -p iodock-store --example store_speed [ROWS]`

use iodock_event::event::EventRow;
use iodock_event::{CallId, EventColumns, Tables, NONE, NO_FD, UNKNOWN};
use iodock_store::{Manifest, StoreOptions, StoreWriter};
use std::path::Path;

const CHUNK: usize = 1 << 16;

/// A generator of reproducible numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// Generates events as a program makes them that runs 64 processes. Each opens files, reads most of each
/// sequentially and closes it again.
struct Program {
    random: Random,
    ids: [u16; 6],
    time: i64,
    offsets: Vec<i64>,
    files: Vec<u32>,
    handles: Vec<u32>,
    next_handle: u32,
}

impl Program {
    fn new() -> Program {
        let names = ["openat", "read", "pwrite64", "lseek", "newfstatat", "close"];
        let ids = names.map(|name| CallId::intern(name.as_bytes()).map_or(0, |id| id.0));
        let (offsets, files, handles) = (vec![0; 64], vec![0; 64], vec![0; 64]);
        Program {
            random: Random(88_172_645_463_325_252),
            ids,
            time: 1_700_000_000_000_000_000,
            offsets,
            files,
            handles,
            next_handle: 0,
        }
    }

    fn row(&mut self) -> EventRow {
        let process = self.random.below(64) as usize;
        let kind = [0, 1, 1, 1, 1, 1, 2, 2, 3, 4, 4, 5][self.random.below(12) as usize];
        self.time += 1000 * (1 + self.random.below(40) as i64);
        let mut row = EventRow {
            ts: self.time,
            end_ts: UNKNOWN,
            dur: 1000 * (3 + self.random.below(60) as i64),
            sys_cpu: UNKNOWN,
            call: self.ids[kind],
            errno: u16::MAX,
            result: 0,
            utid: process as u32,
            file: self.files[process],
            other_file: NONE,
            side: 0,
            requested: UNKNOWN,
            offset: UNKNOWN,
            bytes: UNKNOWN,
            direction: 0,
            fd: 3 + (process % 5) as i32,
            handle: self.handles[process],
            ..EventRow::BLANK
        };
        self.fill(kind, process, &mut row);
        row
    }

    fn fill(&mut self, kind: usize, process: usize, row: &mut EventRow) {
        match kind {
            0 => self.open(process, row),
            1 | 2 => self.access(kind, process, row),
            4 => {
                row.file = self.random.below(20_000) as u32;
                (row.fd, row.handle) = (NO_FD, NONE);
                if self.random.below(3) == 0 {
                    (row.errno, row.result) = (1, -1);
                }
            }
            _ => {}
        }
    }

    fn open(&mut self, process: usize, row: &mut EventRow) {
        self.next_handle += 1;
        self.files[process] = self.random.below(20_000) as u32;
        (self.handles[process], self.offsets[process]) = (self.next_handle, 0);
        (row.file, row.handle) = (self.files[process], self.next_handle);
        (row.fd, row.flags, row.result) = (NO_FD, 0o2000000, row.fd.into());
    }

    fn access(&mut self, kind: usize, process: usize, row: &mut EventRow) {
        let size = [512, 4096, 65536, 1 << 20][self.random.below(4) as usize];
        (row.requested, row.direction) = (size, kind as u8);
        let size = if self.random.below(8) == 0 { self.random.below(size as u64) as i64 } else { size };
        (row.result, row.bytes, row.offset) = (size, size, self.offsets[process]);
        (row.pattern, row.gap) = (2, 0);
        (row.own_read, row.any_read) = (0, if self.random.below(4) == 0 { size } else { 0 });
        (row.own_written, row.any_written) = (0, 0);
        self.offsets[process] += size;
    }
}

/// Returns the user and system time of this process, ns.
fn cpu_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    // This is the time of the main thread. The example prints the encoder's time separately.
    let main: u64 = text.split_whitespace().next()?.parse().ok()?;
    let mut total = 0;
    for task in std::fs::read_dir("/proc/self/task").ok()? {
        let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
        total += text.split_whitespace().next()?.parse::<u64>().ok()?;
    }
    Some(total - main)
}

fn folder_bytes(folder: &Path) -> std::io::Result<u64> {
    std::fs::read_dir(folder)?.map(|entry| entry?.metadata().map(|metadata| metadata.len())).sum()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows: usize = std::env::args().nth(1).map_or(Ok(10_000_000), |text| text.parse())?;
    let path = std::env::temp_dir().join(format!("store-speed-{}.iodock", std::process::id()));
    let mut program = Program::new();
    // The example generates the chunks first, so that their generation is not measured.
    let mut chunks: Vec<EventColumns> = Vec::new();
    for _ in 0..rows.div_ceil(CHUNK).min(32) {
        let mut chunk = EventColumns::with_capacity(CHUNK);
        (0..CHUNK).for_each(|_| chunk.push(&program.row()));
        chunks.push(chunk);
    }
    let began = std::time::Instant::now();
    let mut writer = StoreWriter::create(&path, StoreOptions::default())?;
    let mut spare = None;
    let mut written = 0;
    for chunk in chunks.iter().cycle() {
        let mut columns: EventColumns = spare.take().unwrap_or_default();
        columns.clone_from(chunk);
        written += columns.len();
        spare = writer.write_events(columns)?;
        if written >= rows {
            break;
        }
    }
    let cpu = cpu_ns();
    writer.finish(&Tables::default(), Manifest::default())?;
    let seconds = began.elapsed().as_secs_f64();
    let bytes = folder_bytes(&path.join("events"))?;
    println!("{written} rows in {seconds:.2} s: {:.1} M rows/s", written as f64 / seconds / 1e6);
    println!("{:.0} ns wall a row", seconds * 1e9 / written as f64);
    if let Some(cpu) = cpu {
        println!("{:.0} ns CPU of the encoder a row", cpu as f64 / written as f64);
    }
    println!("{:.1} bytes a row", bytes as f64 / written as f64);
    if std::env::var_os("KEEP_STORE").is_some() {
        println!("{}", path.display());
    } else {
        std::fs::remove_dir_all(&path)?;
    }
    Ok(())
}
