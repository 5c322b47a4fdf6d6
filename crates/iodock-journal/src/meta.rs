//! Encodes the first and the last frame: what the recording is about, and how it ended. Both consist of keys
//! and values, so that a key can be added without a new version of the format.

use crate::wire::{put_bytes, put_varint, Cursor};
use iodock_event::Clock;
use std::collections::BTreeMap;

type Fields = BTreeMap<String, Vec<u8>>;

/// Facts that a recorder knows when it starts. An empty text means that the fact is not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalMeta {
    /// Name and version of the program that wrote the journal, e.g. `iodock 0.1.0`.
    pub writer: String,
    /// How calls are captured: `ptrace`, `preload`, `bpf`.
    pub how: String,
    pub host: String,
    pub kernel: String,
    pub cpus: Option<u32>,
    pub clock: Clock,
    /// The recorded command, with one element per argument.
    pub command: Vec<Vec<u8>>,
    pub working_directory: Vec<u8>,
    /// Process id of the recorder.
    pub pid: Option<u32>,
    /// MPI rank of the recorded process, and number of ranks.
    pub rank: Option<i32>,
    pub ranks: Option<i32>,
    /// Start of the recording, ns since the epoch.
    pub start: Option<i64>,
    /// Environment variables, and further facts from a back end.
    pub extra: BTreeMap<String, String>,
}

impl Default for JournalMeta {
    fn default() -> Self {
        JournalMeta {
            writer: format!("iodock {}", env!("CARGO_PKG_VERSION")),
            how: String::new(),
            host: String::new(),
            kernel: String::new(),
            cpus: None,
            clock: Clock::Epoch,
            command: Vec::new(),
            working_directory: Vec::new(),
            pid: None,
            rank: None,
            ranks: None,
            start: None,
            extra: BTreeMap::new(),
        }
    }
}

/// How a recording ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closing {
    /// Exit code of the recorded program.
    pub exit_code: Option<i32>,
    /// Name of the signal that killed the recorded program.
    pub exit_signal: Option<String>,
    /// End of the recording, ns since the epoch.
    pub end: Option<i64>,
    /// Bytes that the recorder itself wrote, without this frame. The writer sets it.
    pub written_bytes: u64,
    pub extra: BTreeMap<String, String>,
}

const EXTRA: &str = "extra.";

fn put_extra(fields: &mut Fields, extra: &BTreeMap<String, String>) {
    fields.extend(extra.iter().map(|(key, value)| (format!("{EXTRA}{key}"), value.clone().into_bytes())));
}

fn put_number(fields: &mut Fields, key: &str, value: Option<impl ToString>) {
    if let Some(value) = value {
        fields.insert(key.into(), value.to_string().into_bytes());
    }
}

fn text(fields: &Fields, key: &str) -> String {
    fields.get(key).map(|value| String::from_utf8_lossy(value).into_owned()).unwrap_or_default()
}

fn number<T: std::str::FromStr>(fields: &Fields, key: &str) -> Option<T> {
    std::str::from_utf8(fields.get(key)?).ok()?.parse().ok()
}

fn extra(fields: &Fields) -> BTreeMap<String, String> {
    let named = fields.iter().filter_map(|(key, value)| Some((key.strip_prefix(EXTRA)?, value)));
    named.map(|(key, value)| (key.to_string(), String::from_utf8_lossy(value).into_owned())).collect()
}

fn encode(fields: &Fields) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, fields.len() as u64);
    for (key, value) in fields {
        put_bytes(&mut out, key.as_bytes());
        put_bytes(&mut out, value);
    }
    out
}

fn decode(payload: &[u8]) -> Option<Fields> {
    let mut cursor = Cursor::new(payload);
    let mut fields = Fields::new();
    for _ in 0..cursor.varint()? {
        fields.insert(cursor.string()?, cursor.bytes()?.to_vec());
    }
    Some(fields)
}

fn clock(name: &str) -> Clock {
    let clocks = [Clock::Day, Clock::Relative, Clock::None];
    clocks.into_iter().find(|clock| clock.name() == name).unwrap_or(Clock::Epoch)
}

impl JournalMeta {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut fields = Fields::new();
        for (key, value) in
            [("writer", &self.writer), ("how", &self.how), ("host", &self.host), ("kernel", &self.kernel)]
        {
            fields.insert(key.into(), value.clone().into_bytes());
        }
        fields.insert("clock".into(), self.clock.name().into());
        fields.insert("working_directory".into(), self.working_directory.clone());
        for (index, argument) in self.command.iter().enumerate() {
            fields.insert(format!("command.{index}"), argument.clone());
        }
        put_number(&mut fields, "cpus", self.cpus);
        put_number(&mut fields, "pid", self.pid);
        put_number(&mut fields, "rank", self.rank);
        put_number(&mut fields, "ranks", self.ranks);
        put_number(&mut fields, "start", self.start);
        put_extra(&mut fields, &self.extra);
        encode(&fields)
    }

    pub(crate) fn decode(payload: &[u8]) -> Option<JournalMeta> {
        let fields = decode(payload)?;
        let arguments = (0..).map_while(|index| fields.get(&format!("command.{index}")).cloned());
        Some(JournalMeta {
            writer: text(&fields, "writer"),
            how: text(&fields, "how"),
            host: text(&fields, "host"),
            kernel: text(&fields, "kernel"),
            cpus: number(&fields, "cpus"),
            clock: clock(&text(&fields, "clock")),
            command: arguments.collect(),
            working_directory: fields.get("working_directory").cloned().unwrap_or_default(),
            pid: number(&fields, "pid"),
            rank: number(&fields, "rank"),
            ranks: number(&fields, "ranks"),
            start: number(&fields, "start"),
            extra: extra(&fields),
        })
    }
}

impl Closing {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut fields = Fields::new();
        put_number(&mut fields, "exit_code", self.exit_code);
        put_number(&mut fields, "exit_signal", self.exit_signal.as_ref());
        put_number(&mut fields, "end", self.end);
        put_number(&mut fields, "written_bytes", Some(self.written_bytes));
        put_extra(&mut fields, &self.extra);
        encode(&fields)
    }

    pub(crate) fn decode(payload: &[u8]) -> Option<Closing> {
        let fields = decode(payload)?;
        Some(Closing {
            exit_code: number(&fields, "exit_code"),
            exit_signal: fields.contains_key("exit_signal").then(|| text(&fields, "exit_signal")),
            end: number(&fields, "end"),
            written_bytes: number(&fields, "written_bytes").unwrap_or(0),
            extra: extra(&fields),
        })
    }
}
