//! Reads counters of GPFS (Storage Scale) clients: `fs_io_s` for each file system and `io_s` in total, as
//! `mmpmon -p` prints them.

use super::{News, Reading};
use crate::lines::{each_line, Faults};
use crate::sample::{printable, Entry, Names, Quantity};
use iodock_counters::numbers::{whole, words};
use std::io::{self, Read, Write};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::thread;

const PROGRAM: &str = "usr/lpp/mmfs/bin/mmpmon";
const REQUESTS: &[u8] = b"fs_io_s\nio_s\n";

const COUNTERS: [(&[u8], &str, Quantity); 8] = [
    (b"_br_", "read", Quantity::Bytes),
    (b"_bw_", "write", Quantity::Bytes),
    (b"_oc_", "open", Quantity::Count),
    (b"_cc_", "close", Quantity::Count),
    (b"_rdc_", "read", Quantity::Count),
    (b"_wc_", "write", Quantity::Count),
    (b"_dir_", "readdir", Quantity::Count),
    (b"_iu_", "inode_update", Quantity::Count),
];

pub fn read(reading: &Reading) {
    let program = reading.root().join(PROGRAM);
    if !reading.is_there(&program) {
        return;
    }
    let mut command = Command::new(&program);
    command.arg("-p").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let pipes = |child: &mut Child| (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (input, output, errors) = match reading.tool().start(&mut command, pipes) {
        Ok(pipes) => pipes,
        Err(error) => return reading.refuse(&program, &error),
    };
    let complaint = complaint(errors);
    // The tool may end without reading its input. The reason is then in its output, so this error is ignored.
    let _ = input.map(|mut input| input.write_all(REQUESTS));
    let lines = output.map_or(0, |mut output| report(reading, &mut output));
    let complaint = complaint.recv().unwrap_or_default();
    let status = reading.tool().wait();
    if !status.is_some_and(|status| status.success()) || lines == 0 {
        let how = status.map_or("killed".into(), |status| status.to_string());
        reading.say(News::Refused(program, format!("{how}, lines: {lines}; {complaint}")));
    }
}

/// Returns the first line of the tool's stderr. A thread reads all of stderr, so that the tool never blocks
/// on it.
fn complaint(errors: Option<ChildStderr>) -> Receiver<String> {
    const LONGEST_BYTES: u64 = 300;
    let (sender, complaint) = channel();
    let read = move || {
        let Some(mut errors) = errors else { return };
        let mut begin = Vec::new();
        let _ = errors.by_ref().take(LONGEST_BYTES).read_to_end(&mut begin);
        let line = begin.split(|&byte| byte == b'\n').find(|line| !line.trim_ascii().is_empty());
        let _ = sender.send(printable(line.unwrap_or(b"it says nothing")));
        let _ = io::copy(&mut errors, &mut io::sink());
    };
    // If no thread can be started, the message stays empty.
    let _ = thread::Builder::new().name("mmpmon-errors".into()).spawn(read);
    complaint
}

/// Reports the counters in the output, and returns the number of lines.
fn report(reading: &Reading, output: &mut dyn Read) -> u64 {
    let (mut names, mut faults, mut found) = (Names::default(), Faults::default(), Vec::new());
    let read = each_line(output, &mut faults, |text, faults| match line(text, &mut names) {
        Line::Counters(one) => found.push(*one),
        Line::Other => {}
        Line::Unreadable => faults.unreadable(),
    });
    if let Err(error) = read {
        reading.refuse(&reading.root().join(PROGRAM), &error);
    }
    let lines = faults.lines;
    reading.faults("mmpmon", faults);
    for one in &found {
        reading.entries(one.source, (&one.file_system, &one.cluster), &names, [&one.entry]);
    }
    lines
}

/// Counters of one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters {
    pub source: &'static str,
    /// Name of the file system. Empty for `io_s`, which covers all of them.
    pub file_system: String,
    pub cluster: String,
    pub entry: Entry,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Counters(Box<Counters>),
    /// A line without counters: its `_rc_` is not zero, because nothing is mounted, or it is another answer.
    Other,
    Unreadable,
}

/// Parses a line `_fs_io_s_ _n_ ADDRESS _nn_ NODE _rc_ 0 _t_ SECONDS _tu_ MICROSECONDS _cl_ CLUSTER _fs_
/// FILESYSTEM _br_ ...`.
pub fn line(text: &[u8], names: &mut Names) -> Line {
    let source = match words(text).next() {
        Some(b"_fs_io_s_") => "mmpmon_fs_io",
        Some(b"_io_s_") => "mmpmon_io",
        Some(other) if !other.starts_with(b"_") => return Line::Unreadable,
        _ => return Line::Other,
    };
    let mut fields = Fields::default();
    let mut entry = Entry::default();
    match fields.read(text, &mut entry, names) {
        None => Line::Unreadable,
        Some(()) if fields.failed => Line::Other,
        Some(()) => fields.complete(source, entry).map_or(Line::Unreadable, Line::Counters),
    }
}

/// Fields of a line that are not counters.
#[derive(Default)]
struct Fields {
    seconds: Option<u64>,
    microseconds: u64,
    failed: bool,
    cluster: String,
    file_system: String,
}

impl Fields {
    fn read(&mut self, text: &[u8], entry: &mut Entry, names: &mut Names) -> Option<()> {
        let mut fields = words(text).skip(1);
        while let Some(key) = fields.next() {
            let value = fields.next()?;
            match key {
                b"_rc_" => self.failed = whole(value)? != 0,
                b"_t_" => self.seconds = Some(whole(value)?),
                b"_tu_" => self.microseconds = whole(value)?,
                b"_cl_" => self.cluster = printable(value),
                b"_fs_" => self.file_system = printable(value),
                _ => {
                    if let Some((_, name, quantity)) = COUNTERS.iter().find(|(known, ..)| *known == key) {
                        entry.push(names.intern(name.as_bytes())?, *quantity, whole(value)?)?;
                    }
                }
            }
        }
        Some(())
    }

    /// Combines fields and counters. Returns `None` if a counter or the time is missing.
    fn complete(self, source: &'static str, mut entry: Entry) -> Option<Box<Counters>> {
        let seconds = i64::try_from(self.seconds?).ok()?.checked_mul(1_000_000_000)?;
        let fraction = i64::try_from(self.microseconds).ok()?.checked_mul(1000)?;
        entry.updated = Some(seconds.checked_add(fraction)?);
        let (file_system, cluster) = (self.file_system, self.cluster);
        let is_complete = entry.values.len() == COUNTERS.len();
        is_complete.then(|| Box::new(Counters { source, file_system, cluster, entry }))
    }
}
