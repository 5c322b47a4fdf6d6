//! Runs an import in memory and compares it with a truth file.
#![allow(dead_code)]

use iodock_event::{CallId, ErrnoId, EventColumns, FileKind, Side, Tables, NONE, UNKNOWN};
use iodock_import::{open_logs, run, EventSink, ImportError, Imported, LogOptions};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Reads a JSON file, or its copy with the ending `.xz`.
pub fn read_json(path: &Path) -> Value {
    let mut text = Vec::new();
    match std::fs::read(path) {
        Ok(bytes) => text = bytes,
        Err(_) => {
            let packed = std::fs::File::open(path.with_extension("json.xz")).expect("truth is there");
            liblzma::read::XzDecoder::new(packed).read_to_end(&mut text).expect("truth unpacks");
        }
    }
    serde_json::from_slice(&text).expect("truth is JSON")
}

#[derive(Default)]
struct Kept(EventColumns);

impl EventSink for Kept {
    fn write(&mut self, mut columns: EventColumns) -> Result<EventColumns, ImportError> {
        self.0.append(&mut columns);
        Ok(columns)
    }
}

pub struct Run {
    pub events: EventColumns,
    pub tables: Tables,
    pub imported: Imported,
}

/// Counts of a group, with the names that the truth file uses.
#[derive(Default)]
struct Group {
    numbers: BTreeMap<&'static str, i64>,
    errnos: BTreeMap<String, i64>,
}

type Key = (String, String);

impl Run {
    pub fn of(log: &Path, cwd: Option<&str>) -> Run {
        let options = LogOptions {
            logs: vec![log.to_string_lossy().into_owned()],
            working_directories: cwd.map(|cwd| cwd.as_bytes().to_vec()).into_iter().collect(),
            ..LogOptions::default()
        };
        let opened = open_logs(&options).expect("the log opens");
        let mut kept = Kept::default();
        let never = AtomicBool::new(false);
        let mut imported = run(opened.streams, opened.tracker, 1 << 20, &mut kept, &mut |_| {}, &never)
            .expect("the log is read");
        let tables = std::mem::take(&mut imported.tracked.tables);
        Run { events: kept.0, tables, imported }
    }

    /// Returns lines that describe the differences.
    pub fn compare(&self, truth: &Value, time: &str) -> Vec<String> {
        let mut out = Vec::new();
        self.groups(truth, "syscalls", time, &mut out, |_, row| {
            first_side(self.events.side[row]).then(String::new)
        });
        self.groups(truth, "files", time, &mut out, |kind, row| {
            kind.filter(|kind| kind.has_path()).map(|_| self.name(row))
        });
        let by_name =
            truth["nonpath"].as_object().is_some_and(|kinds| kinds.keys().any(|key| key.starts_with("fd:")));
        self.groups(truth, "nonpath", time, &mut out, |kind, row| {
            let kind = kind.filter(|kind| !kind.has_path())?;
            let named = matches!(kind, FileKind::Standard | FileKind::Memfd)
                || (by_name && kind == FileKind::Unknown);
            Some(if named { self.name(row) } else { kind.name().to_string() })
        });
        self.sizes(truth, "hist", &self.events.bytes, &mut out);
        self.sizes(truth, "hist_requested", &self.events.requested, &mut out);
        self.seconds(truth, &mut out);
        self.series(truth, &mut out);
        self.processes(truth, &mut out);
        self.totals(truth, &mut out);
        out
    }

    fn name(&self, row: usize) -> String {
        self.tables.files.row(self.events.file[row]).name.to_string()
    }

    fn call(&self, row: usize) -> String {
        CallId(self.events.call[row]).name()
    }

    fn groups(
        &self,
        truth: &Value,
        part: &str,
        time: &str,
        out: &mut Vec<String>,
        group: impl Fn(Option<FileKind>, usize) -> Option<String>,
    ) {
        let Some(wanted) = truth[part].as_object() else { return };
        let mut found: BTreeMap<Key, Group> = BTreeMap::new();
        let mut counted: BTreeSet<(usize, Key)> = BTreeSet::new();
        for row in 0..self.events.len() {
            let file = self.events.file[row];
            let kind = (file != NONE).then(|| self.tables.files.entries[file as usize].kind);
            let Some(name) = group(kind, row) else {
                continue;
            };
            let key = (name, self.call(row));
            // If the other end of a call is in the same group, both rows count as one call.
            let first = row - usize::from(!first_side(self.events.side[row]));
            let new = counted.insert((first, key.clone()));
            self.add(found.entry(key).or_default(), row, new, time);
            if part == "syscalls" && row + 1 < self.events.len() && !first_side(self.events.side[row + 1]) {
                let key = (String::new(), self.call(row));
                self.add(found.entry(key).or_default(), row + 1, false, time);
            }
        }
        let wanted = flatten(wanted, part == "syscalls");
        for key in wanted.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
            match (wanted.get(key), found.get(key)) {
                (Some(want), Some(have)) => have.compare(want, &format!("{part} {key:?}"), out),
                (Some(_), None) => out.push(format!("{part} {key:?}: missing")),
                (None, have) => {
                    out.push(format!("{part} {key:?}: not in the truth: {:?}", have.map(|g| &g.numbers)))
                }
            }
        }
    }

    fn add(&self, group: &mut Group, row: usize, new: bool, time: &str) {
        let events = &self.events;
        let mut add = |name, value| *group.numbers.entry(name).or_default() += value;
        let bytes = events.bytes[row];
        if bytes >= 0 {
            let reads = events.direction[row] == 1;
            add(if reads { "bytes_read" } else { "bytes_written" }, bytes);
        }
        if !new {
            return;
        }
        add("count", 1);
        let failed = events.errno[row] != u16::MAX;
        add("errors", i64::from(failed));
        add("noresult", i64::from(!failed && events.result[row] == UNKNOWN));
        add("success", i64::from(!failed && events.result[row] != UNKNOWN));
        let took = if time == "total_ns" { events.dur[row] } else { events.sys_cpu[row] };
        if took != UNKNOWN {
            add("timed", 1);
            add("total_ns", took);
        }
        add("io_calls", i64::from(bytes >= 0));
        if failed {
            *group.errnos.entry(ErrnoId(events.errno[row]).name()).or_default() += 1;
        }
    }

    fn sizes(&self, truth: &Value, part: &str, sizes: &[i64], out: &mut Vec<String>) {
        let Some(wanted) = truth[part].as_object() else { return };
        let mut found: BTreeMap<Key, i64> = BTreeMap::new();
        for (row, &size) in sizes.iter().enumerate() {
            let way = self.events.direction[row];
            if self.events.bytes[row] == UNKNOWN || size == UNKNOWN || way == 0 {
                continue;
            }
            let bin = if size <= 1 { size } else { (size as u64).next_power_of_two() as i64 };
            let way = if way == 1 { "read" } else { "write" };
            *found.entry((way.into(), bin.to_string())).or_default() += 1;
        }
        let mut want: BTreeMap<Key, i64> = BTreeMap::new();
        for (way, bins) in wanted {
            for (bin, count) in bins.as_object().into_iter().flatten() {
                want.insert((way.clone(), bin.clone()), count.as_i64().unwrap_or(-1));
            }
        }
        let lower = |bin: &str| bin.to_string();
        let found: BTreeMap<Key, i64> =
            found.into_iter().map(|((way, bin), count)| ((way, lower(&bin)), count)).collect();
        if want != found && want != by_lower_bound(&found) {
            out.push(format!("{part}: truth {want:?}\n   found {found:?}"));
        }
    }

    fn seconds(&self, truth: &Value, out: &mut Vec<String>) {
        let Some(wanted) = truth["per_second"].as_object().filter(|seconds| !seconds.is_empty()) else {
            return;
        };
        let mut found: BTreeMap<String, [i64; 2]> = BTreeMap::new();
        for row in 0..self.events.len() {
            let (bytes, way) = (self.events.bytes[row], self.events.direction[row]);
            let end = match self.events.end_ts[row] {
                UNKNOWN => self.events.ts[row].saturating_add(self.events.dur[row].max(0)),
                end => end,
            };
            if bytes > 0 && way > 0 {
                found.entry((end / 1_000_000_000).to_string()).or_default()[way as usize - 1] += bytes;
            }
        }
        for (second, want) in wanted {
            let have = found.remove(second).unwrap_or_default();
            if want[0].as_i64().unwrap_or(0) != have[0] || want[1].as_i64().unwrap_or(0) != have[1] {
                out.push(format!("second {second}: truth {want}, found {have:?}"));
            }
        }
        out.extend(
            found.into_iter().map(|(second, have)| format!("second {second}: not in the truth: {have:?}")),
        );
    }

    fn series(&self, truth: &Value, out: &mut Vec<String>) {
        for (name, wanted) in truth["series"].as_object().into_iter().flatten() {
            let wanted = wanted.as_array().expect("a series is a list");
            let mut have: Vec<Vec<Value>> = (0..self.events.len())
                .filter(|&row| self.events.file[row] != NONE && self.name(row) == *name)
                .map(|row| self.access(row))
                .filter(|access| wanted.iter().any(|want| want[2] == access[2]))
                .filter(|access| access[2] != "lseek" || access[6].is_null())
                .collect();
            let mut wanted: Vec<&Vec<Value>> = wanted.iter().filter_map(Value::as_array).collect();
            have.sort_by_key(|access| (access[0].as_i64(), access[2].to_string()));
            wanted.sort_by_key(|access| (access[0].as_i64(), access[2].to_string()));
            if wanted.len() != have.len() {
                out.push(format!("series {name}: truth has {} rows, found {}", wanted.len(), have.len()));
                continue;
            }
            for (want, have) in wanted.iter().zip(&have) {
                if want.iter().zip(have).any(|(want, have)| !want.is_null() && !is_lwp(want) && want != have)
                {
                    out.push(format!("series {name}: truth {want:?}\n   found {have:?}"));
                }
            }
        }
    }

    /// Returns the values of an access in the order of the truth file: ts, pid, call, offset, requested,
    /// returned, errno.
    fn access(&self, row: usize) -> Vec<Value> {
        let row = self.events.row(row);
        let number = |value: i64| if value == UNKNOWN { Value::Null } else { value.into() };
        let end = match row.side {
            side if side == Side::In as u8 => ":in",
            side if side == Side::Out as u8 => ":out",
            _ => "",
        };
        let errno = if row.errno == u16::MAX { Value::Null } else { ErrnoId(row.errno).name().into() };
        let tid = self.tables.tasks[row.utid as usize].tid;
        vec![
            number(row.ts),
            tid.into(),
            format!("{}{end}", CallId(row.call).name()).into(),
            number(row.offset),
            number(row.requested),
            number(row.result),
            errno,
        ]
    }

    fn processes(&self, truth: &Value, out: &mut Vec<String>) {
        for (pid, want) in truth["processes"].as_object().into_iter().flatten() {
            let found = self.tables.tasks.iter().enumerate().find(|(_, task)| task.tid.to_string() == *pid);
            let Some((utid, task)) = found else {
                out.push(format!("process {pid}: missing"));
                continue;
            };
            let commands = &self.tables.commands;
            let execs: Vec<String> = (0..commands.len())
                .map(|index| commands.row(index))
                .filter(|command| command.utid as usize == utid)
                .map(|command| command.path.to_string())
                .collect();
            let have = serde_json::json!({
                "parent": task.parent_pid, "kind": task.how.name(), "exec": execs, "exit": task.exit_code,
            });
            for key in ["parent", "kind", "exec", "exit"] {
                if want.get(key).is_some_and(|want| *want != have[key]) {
                    out.push(format!("process {pid} {key}: truth {}, found {}", want[key], have[key]));
                }
            }
        }
    }

    fn totals(&self, truth: &Value, out: &mut Vec<String>) {
        let counts = &self.imported.counts;
        let pairs = [
            ("lines", counts.lines),
            ("calls_total", self.imported.calls),
            ("unfinished_lines", counts.unfinished),
            ("orphan_resumed", counts.orphans),
        ];
        for (key, have) in pairs {
            if truth[key].as_u64().is_some_and(|want| want != have) {
                out.push(format!("{key}: truth {}, found {have}", truth[key]));
            }
        }
        if truth["signals"].is_object() && truth["signals"] != serde_json::json!(counts.signals) {
            out.push(format!("signals: truth {}, found {:?}", truth["signals"], counts.signals));
        }
    }
}

impl Group {
    fn compare(&self, want: &Value, what: &str, out: &mut Vec<String>) {
        let keys = [
            "count",
            "success",
            "errors",
            "noresult",
            "timed",
            "total_ns",
            "bytes_read",
            "bytes_written",
            "io_calls",
        ];
        for key in keys {
            let have = self.numbers.get(key).copied().unwrap_or(0);
            if want[key].as_i64().is_some_and(|want| want != have) {
                out.push(format!("{what} {key}: truth {}, found {have}", want[key]));
            }
        }
        if want["errno"].is_object() && want["errno"] != serde_json::json!(self.errnos) {
            out.push(format!("{what} errno: truth {}, found {:?}", want["errno"], self.errnos));
        }
    }
}

fn first_side(side: u8) -> bool {
    side != Side::Out as u8 && side != Side::New as u8
}

/// Converts group -> call -> counts to (group, call) -> counts.
fn flatten(wanted: &serde_json::Map<String, Value>, calls_only: bool) -> BTreeMap<Key, &Value> {
    if calls_only {
        return wanted.iter().map(|(call, counts)| ((String::new(), call.clone()), counts)).collect();
    }
    let mut flat = BTreeMap::new();
    for (group, calls) in wanted {
        for (call, counts) in calls.as_object().into_iter().flatten() {
            flat.insert((group.clone(), call.clone()), counts);
        }
    }
    flat
}

/// Returns the bins, named by their lower bound, a power of two.
fn by_lower_bound(found: &BTreeMap<Key, i64>) -> BTreeMap<Key, i64> {
    let lower = |bin: &str| match bin.parse::<u64>() {
        Ok(bin) if bin > 1 => (bin / 2).to_string(),
        _ => bin.to_string(),
    };
    found.iter().map(|((way, bin), &count)| ((way.clone(), lower(bin)), count)).collect()
}

/// Returns whether the value is a thread of truss as process and lwp (`1/1`). Such threads are not compared.
fn is_lwp(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.split('/').all(|part| part.parse::<u32>().is_ok()))
}
