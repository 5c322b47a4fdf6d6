//! Starts an agent, and reads its output and its spool.

// Each test program uses only a part of this module.
#![allow(dead_code)]

pub mod collector;
pub mod site;

use crate::tree::Tree;
use iodock_samples::batch::Batch;
use iodock_samples::frame;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Time limit for an event that a test waits for.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn wait_for<T>(what: &str, mut is_there: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = is_there() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "{what} does not come about");
        sleep(Duration::from_millis(20));
    }
}

/// Checks that a time that the agent reports, in ns since the epoch, is about now.
pub fn assert_is_now(said: &str) {
    let said: i64 = said.trim().parse().expect("a number");
    assert!((iodock_agent::clock::now() - said).abs() < 600_000_000_000, "{said} is not now");
}

pub struct Agent {
    pub process: Child,
    said: Arc<Mutex<String>>,
}

impl Agent {
    pub fn start(tree: &Tree, arguments: &[&str]) -> Self {
        Agent::run(Command::new(env!("CARGO_BIN_EXE_iodock-agent")), tree, arguments)
    }

    /// Starts the agent. `command` is the agent itself, or a program that runs it.
    pub fn run(mut command: Command, tree: &Tree, arguments: &[&str]) -> Self {
        let mut process = command
            .args(["run", "--listen", "127.0.0.1:0", "--root"])
            .arg(&tree.0)
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the agent runs");
        let (said, pipe) = (Arc::new(Mutex::new(String::new())), process.stderr.take().expect("a pipe"));
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                heard.lock().expect("no panic").push_str(&(line + "\n"));
            }
        });
        Agent { process, said }
    }

    pub fn said(&self) -> String {
        self.said.lock().expect("no panic").clone()
    }

    pub fn says(&self, text: &str) {
        wait_for(text, || self.said().contains(text).then_some(()));
    }

    /// Returns the address on which the agent listens.
    pub fn address(&self) -> String {
        wait_for("an address", || {
            let said = self.said();
            let line = said.lines().find(|line| line.starts_with("note: http"))?;
            Some(line.split_once("://")?.1.strip_suffix("/metrics")?.to_owned())
        })
    }

    pub fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(self.address()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer.split_once("\r\n\r\n").expect("a head").1.into()
    }

    /// Returns the value of a metric. `None` if there is no such line.
    pub fn metric(&self, name: &str) -> Option<u64> {
        let text = self.metrics();
        let line = text.lines().find(|line| line.starts_with(&format!("{name}{{")))?.to_owned();
        line.rsplit_once(' ')?.1.parse().ok()
    }

    /// Kills the agent like kill -9.
    pub fn kill(mut self) {
        self.process.kill().expect("it runs");
        self.process.wait().expect("it ends");
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn segments(spool: &Path) -> Vec<PathBuf> {
    let listing = fs::read_dir(spool).into_iter().flatten();
    let mut found: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "frames"));
    found.sort();
    found
}

pub fn spool_bytes(spool: &Path) -> u64 {
    segments(spool).iter().filter_map(|path| fs::metadata(path).ok()).map(|file| file.len()).sum()
}

/// Returns all complete frames of undamaged files.
pub fn batches(spool: &Path) -> Vec<Batch> {
    segments(spool).iter().filter_map(|path| fs::read(path).ok()).flat_map(|bytes| frames(&bytes)).collect()
}

pub fn frames(mut bytes: &[u8]) -> Vec<Batch> {
    let mut found = Vec::new();
    while let Ok((batch, rest)) = frame::decode(bytes) {
        found.push(batch);
        bytes = rest;
    }
    found
}

pub fn write_opens(tree: &Tree, opens: u64) {
    let text = format!("job_stats:\n- job_id: 7\n  open: {{ samples: {opens}, unit: reqs }}\n");
    // The file is replaced in one step, so that the agent never reads a part of it.
    let new = tree.write("new", text);
    let path = tree.0.join("proc/fs/lustre/mdt/lfs-MDT0000/job_stats");
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::rename(new, path).expect("renamed");
}

/// Returns the values of the job in a batch.
pub fn opens(batch: &Batch) -> Vec<u64> {
    let parts = batch.parts.iter().filter(|part| part.source == "mdt_job_stats");
    parts.flat_map(|part| &part.entries).flat_map(|entry| &entry.values).map(|(_, value)| *value).collect()
}
