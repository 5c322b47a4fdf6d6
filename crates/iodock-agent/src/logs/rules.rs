//! Decides which lines of logs are events. A rule matches a line that contains all of the rule's texts, with
//! the same upper and lower case. The first matching rule in the table applies. Sites can add their own rules
//! (`--rules FILE`, [`super::site`]).
//!
//! The texts are from the source code of the programs: Lustre 2.x (lustre/ptlrpc/client.c, lustre/ldlm,
//! lustre/obdclass), Linux (fs/nfs, net/sunrpc/clnt.c, block/blk-core.c, drivers/{scsi,nvme,ata,md},
//! kernel/hung_task.c, fs/{ext4,xfs,btrfs}), and the documentation of messages by IBM and Gluster.

use crate::events::{Kind, KINDS};
use aho_corasick::AhoCorasick;
use iodock_samples::event::Severity;
use std::borrow::Cow;
use std::collections::BTreeMap;

type Text = Cow<'static, str>;

/// How the object that a line concerns is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    #[default]
    Nothing,
    /// The object is the word after this text.
    After(Text),
    /// The object is a Lustre target such as `lfs-OST0001` at any position. Its file system is known, too.
    Lustre,
}

#[derive(Clone, Debug)]
pub struct Rule {
    /// Kind of event: one in [`KINDS`], or one that a site defines.
    pub kind: Text,
    pub severity: Severity,
    /// Texts that a line must all contain.
    pub texts: Vec<Text>,
    pub subject: Subject,
    /// File system of the event, if the rule names it.
    pub file_system: String,
}

use Subject::{Lustre, Nothing};

const fn after(text: &'static str) -> Subject {
    Subject::After(Cow::Borrowed(text))
}

/// Kind, texts and subject of each rule.
pub const RULES: &[(&str, &[&str], Subject)] = &[
    ("lustre-bug", &["LBUG"], Nothing),
    ("lustre-bug", &["LustreError", "ASSERTION("], Nothing),
    ("lustre-evicted", &["This client was evicted by"], Lustre),
    ("lustre-evicts", &["lock callback timer expired", "evicting client"], Lustre),
    ("lustre-evicts", &["I think it's dead, and I am evicting it"], Lustre),
    ("lustre-timeout", &["Request sent has timed out"], Lustre),
    ("lustre-timeout", &["Request sent has failed due to network error"], Lustre),
    ("lustre-timeout", &["LustreError", "failed", "-110"], Lustre),
    ("lustre-connection-lost", &["was lost; in progress operations"], Lustre),
    ("lustre-connection-lost", &["LustreError", "failed", "-107"], Lustre),
    ("lustre-connection-back", &["Connection restored to"], Lustre),
    ("lustre-recovery-ended", &["Recovery over after"], Lustre),
    ("lustre-recovery-ended", &["recovery is timed out"], Lustre),
    ("lustre-recovery", &["Will be in recovery for at least"], Lustre),
    ("lustre-recovery", &["in recovery but waiting"], Lustre),
    ("lustre-slow", &["Request took longer than estimated"], Lustre),
    ("lustre-slow", &["Service thread pid", "was inactive for"], Nothing),
    ("lustre-slow", &["Lustre", "slow reply"], Lustre),
    ("lustre-slow", &["Lustre: ", ": slow "], Lustre),
    ("lustre-network", &["LNetError"], Nothing),
    ("gpfs-unmounted", &["MMFS_SYSTEM_UNMOUNT"], Nothing),
    ("gpfs-unmounted", &["mmfs", "has been unmounted", "forced"], Nothing),
    ("gpfs-disk-failed", &["MMFS_DISKFAIL"], Nothing),
    ("gpfs-slow", &["MMFS_LONGDISKIO"], Nothing),
    ("gpfs-slow", &["mmfs", "Waiting", "sec since"], Nothing),
    ("gpfs-slow", &["mmfs", "long waiter"], Nothing),
    ("gpfs-expelled", &["mmfs", "expel"], Nothing),
    ("gpfs-expelled", &["mmfs", "lease", "overdue"], Nothing),
    ("gpfs-down", &["mmfs", "shutting down abnormally"], Nothing),
    ("nfs-not-responding", &["nfs: server ", " not responding"], after("nfs: server ")),
    ("nfs-responding", &["nfs: server ", " OK"], after("nfs: server ")),
    ("gluster-disconnected", &["has not responded in the last", "disconnecting"], after("server ")),
    ("gluster-disconnected", &["disconnected from", "glusterd"], after("disconnected from ")),
    ("gluster-down", &["All subvolumes are down"], Nothing),
    ("gluster-down", &["all subvolumes are down"], Nothing),
    ("gluster-down", &["quorum is not met"], Nothing),
    ("medium-error", &["critical medium error", "dev "], after("dev ")),
    ("medium-error", &["Sense Key : Medium Error"], after("[")),
    ("medium-error", &["Sense Key : Hardware Error"], after("[")),
    ("medium-error", &["Unrecovered read error"], after("[")),
    ("io-error", &["I/O error, dev "], after("dev ")),
    ("io-error", &["Buffer I/O error on dev "], after("on dev ")),
    ("io-error", &["critical target error, dev "], after("dev ")),
    ("io-error", &["rejecting I/O to offline device"], after("[")),
    ("disk-offline", &["Device offlined"], after("sd ")),
    ("disk-reset", &["nvme ", "timeout, "], after("nvme ")),
    ("disk-reset", &["nvme ", "controller is down; will reset"], after("nvme ")),
    ("disk-reset", &["attempting task abort"], after("sd ")),
    ("disk-reset", &["attempting target reset"], Nothing),
    ("disk-reset", &["attempting host reset"], Nothing),
    ("disk-reset", &["hard resetting link"], Nothing),
    ("disk-reset", &["exception Emask"], Nothing),
    ("disk-failed", &["md/raid", "Disk failure on "], after("Disk failure on ")),
    ("path-lost", &["device-mapper: multipath", "Failing path"], after("Failing path ")),
    ("path-lost", &["multipathd", "mark as failed"], Nothing),
    ("path-back", &["device-mapper: multipath", "Reinstating path"], after("Reinstating path ")),
    ("link-down", &["NIC Link is Down"], Nothing),
    ("link-up", &["NIC Link is Up"], Nothing),
    ("link-down", &["mlx", "Link down"], after("mlx5_core ")),
    ("link-up", &["mlx", "Link up"], after("mlx5_core ")),
    ("hung-task", &["INFO: task ", "blocked for more than"], after("INFO: task ")),
    ("hung-task", &["INFO: task ", "blocked in I/O wait for more than"], after("INFO: task ")),
    ("file-system-read-only", &["Remounting filesystem read-only"], after("(")),
    ("file-system-read-only", &["hut down", "XFS ("], after("XFS (")),
    ("file-system-damaged", &["EXT4-fs error (device "], after("(device ")),
    ("file-system-damaged", &["LDISKFS-fs error (device "], after("(device ")),
    ("file-system-damaged", &["XFS (", "orruption"], after("XFS (")),
    ("file-system-damaged", &["XFS (", "metadata I/O error"], after("XFS (")),
    ("file-system-damaged", &["BTRFS critical (device "], after("(device ")),
    ("file-system-damaged", &["BTRFS error (device "], after("(device ")),
    ("no-space", &["No space left on device"], Nothing),
    ("no-space", &["ENOSPC"], Nothing),
    ("out-of-memory", &["Out of memory: Kill"], Nothing),
];

/// An event that a line reports.
#[derive(Debug, PartialEq, Eq)]
pub struct Match<'a> {
    pub kind: &'a str,
    pub severity: Severity,
    pub file_system: String,
    pub target: String,
}

/// A set of rules. One pass over a line searches for the texts of all rules.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
    search: AhoCorasick,
    /// For each searched text, the rules that contain it and its position in them.
    places: Vec<Vec<(usize, usize)>>,
}

impl Default for Rules {
    /// Returns the rules of the table only.
    fn default() -> Self {
        // The table is small enough for the search to be built.
        Rules::new(Vec::new()).unwrap_or_else(|_| unreachable!("our own texts are few"))
    }
}

/// Largest number of texts in one rule.
pub const MOST_TEXTS: usize = 8;

impl Rules {
    /// Builds a set of rules. The rules of a site come first, because they may be more specific.
    ///
    /// # Errors
    /// Fails if there are too many rules.
    pub fn new(site: Vec<Rule>) -> Result<Rules, String> {
        let rules: Vec<Rule> = site.into_iter().chain(RULES.iter().map(built_in)).collect();
        let mut places: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
        for (at, rule) in rules.iter().enumerate() {
            for (number, text) in rule.texts.iter().enumerate() {
                places.entry(text).or_default().push((at, number));
            }
        }
        let search = AhoCorasick::new(places.keys()).map_err(|error| error.to_string())?;
        let places = places.into_values().collect();
        Ok(Rules { rules, search, places })
    }

    /// Returns the result of the first rule that matches the line.
    pub fn of(&self, line: &[u8]) -> Option<Match<'_>> {
        let mut found: BTreeMap<usize, u8> = BTreeMap::new();
        for text in self.search.find_overlapping_iter(line) {
            for (rule, number) in &self.places[text.pattern().as_usize()] {
                *found.entry(*rule).or_default() |= 1 << number;
            }
        }
        let is_whole =
            |(rule, texts): &(usize, u8)| usize::from(*texts) == (1 << self.rules[*rule].texts.len()) - 1;
        let rule = &self.rules[found.into_iter().find(is_whole)?.0];
        let (file_system, target) = subject(&rule.subject, line);
        let file_system = if rule.file_system.is_empty() { file_system } else { rule.file_system.clone() };
        Some(Match { kind: &rule.kind, severity: rule.severity, file_system, target })
    }
}

fn built_in((kind, texts, subject): &(&'static str, &'static [&'static str], Subject)) -> Rule {
    let severity = Kind::named(kind).map_or(Severity::Warning, |kind| kind.severity);
    let texts = texts.iter().map(|text| Cow::Borrowed(*text)).collect();
    Rule { kind: Cow::Borrowed(kind), severity, texts, subject: subject.clone(), file_system: String::new() }
}

/// Longest name of an object in bytes.
const LONGEST: usize = 64;

fn subject(subject: &Subject, line: &[u8]) -> (String, String) {
    match subject {
        Subject::Nothing => Default::default(),
        Subject::After(text) => (String::new(), word_after(line, text.as_bytes())),
        Subject::Lustre => lustre(line).unwrap_or_default(),
    }
}

fn word_after(line: &[u8], text: &[u8]) -> String {
    let Some(at) = memchr::memmem::find(line, text) else { return String::new() };
    let rest = &line[at + text.len()..];
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b",;()[]<>'\"".contains(byte);
    let word = &rest[..rest.iter().position(is_end).unwrap_or(rest.len()).min(LONGEST)];
    crate::sample::printable(word.strip_suffix(b":").or(word.strip_suffix(b".")).unwrap_or(word))
}

/// Returns `lfs` and `lfs-OST0001` for a line with `lfs-OST0001-osc-ffff8800:`.
fn lustre(line: &[u8]) -> Option<(String, String)> {
    let kinds: [&[u8]; 2] = [b"-OST", b"-MDT"];
    let at = kinds.into_iter().filter_map(|kind| memchr::memmem::find(line, kind)).min()?;
    let is_in_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let begin = line[..at].iter().rposition(|byte| !is_in_name(byte)).map_or(0, |before| before + 1);
    let end = at + 8;
    let is_number = line.get(at + 4..end)?.iter().all(u8::is_ascii_hexdigit);
    let name = &line[begin..at];
    (is_number && !name.is_empty() && name.len() <= LONGEST)
        .then(|| (crate::sample::printable(name), crate::sample::printable(&line[begin..end])))
}

/// Returns whether the table of kinds contains this kind.
pub fn is_known(kind: &str) -> bool {
    KINDS.iter().any(|known| known.name == kind)
}

#[cfg(test)]
mod tests;
