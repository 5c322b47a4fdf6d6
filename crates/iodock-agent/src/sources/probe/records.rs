//! Parses the records of a probe store. Each consists of a record separator (0x1E), the CRC-32 of the JSON,
//! the JSON and a newline (RFC 7464 with a checksum). Damage affects only the record that contains it.

use serde::Deserialize;
use std::collections::BTreeMap;

/// Records that the agent uses.
#[derive(Debug, PartialEq, Eq)]
pub enum Record {
    Run { run: String, target: String },
    Round(Round),
    End { run: String },
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
pub struct Round {
    /// Time of the round, ns since the epoch.
    pub ts: i64,
    pub run: String,
    pub n: u64,
    #[serde(rename = "o")]
    pub operations: BTreeMap<String, Outcome>,
}

/// Result of one operation of a round.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(from = "Written")]
pub struct Outcome {
    /// Kind of result: `answered`, `failed`, `no-answer`, `waiting`, `not-tried`.
    pub kind: String,
    pub ns: Option<u64>,
    pub detail: Option<String>,
}

/// Form of a result in JSON: a number of ns for an answer, otherwise a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Answer(u64),
    Other(String, Option<u64>, Option<String>),
}

impl From<Written> for Outcome {
    fn from(written: Written) -> Self {
        match written {
            Written::Answer(ns) => Outcome { kind: "answered".into(), ns: Some(ns), detail: None },
            Written::Other(kind, ns, detail) => Outcome { kind, ns, detail },
        }
    }
}

impl Outcome {
    pub fn is_answer(&self) -> bool {
        self.kind == "answered"
    }
}

impl Round {
    /// Returns the sum of the times of all operations that were tried. For an operation without an answer,
    /// this is the time that the probe waited.
    pub fn response_ns(&self) -> u64 {
        let times =
            self.operations.iter().filter(|(name, _)| *name != "df").filter_map(|(_, outcome)| outcome.ns);
        times.fold(0, u64::saturating_add)
    }

    pub fn count(&self, kind: &str) -> u64 {
        self.operations.values().filter(|outcome| outcome.kind == kind).count() as u64
    }
}

#[derive(Deserialize)]
struct Kind {
    k: String,
}

#[derive(Deserialize)]
struct RunRecord {
    run: String,
    target: String,
}

#[derive(Deserialize)]
struct EndRecord {
    run: String,
}

/// Returns the records in complete lines, and the number of unreadable pieces. Records of unused kinds are
/// left out.
pub fn records(content: &[u8]) -> (Vec<Record>, u64) {
    let (mut found, mut damaged) = (Vec::new(), 0);
    let mut pieces = content.split(|byte| *byte == 0x1e);
    damaged += u64::from(pieces.next().is_some_and(|head| !head.is_empty()));
    for piece in pieces {
        match json(piece).map(record) {
            Some(Ok(record)) => found.extend(record),
            None | Some(Err(_)) => damaged += 1,
        }
    }
    (found, damaged)
}

fn json(piece: &[u8]) -> Option<&[u8]> {
    let (checksum, rest) = piece.split_at_checked(8)?;
    let end = memchr::memchr(b'\n', rest)?;
    let json = rest[..end].strip_prefix(b" ")?;
    let checksum = u32::from_str_radix(std::str::from_utf8(checksum).ok()?, 16).ok()?;
    (crc32fast::hash(json) == checksum).then_some(json)
}

fn record(json: &[u8]) -> serde_json::Result<Option<Record>> {
    let Kind { k } = serde_json::from_slice(json)?;
    Ok(match k.as_str() {
        "run" => {
            let RunRecord { run, target } = serde_json::from_slice(json)?;
            Some(Record::Run { run, target })
        }
        "round" => Some(Record::Round(serde_json::from_slice(json)?)),
        "end" => {
            let EndRecord { run } = serde_json::from_slice(json)?;
            Some(Record::End { run })
        }
        _ => None,
    })
}
