//! Sends the spool's batches to the collector in a thread of its own. Rounds continue whatever the collector
//! does, and the spool keeps everything until then.

mod client;
pub(crate) mod files;

pub use client::{Answer, Client};

use crate::spool::{Load, Say, Spool};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// Size of a request, unless a single frame is larger.
pub(crate) const MOST_BYTES: usize = 4 << 20;
/// Shortest and longest pause between attempts.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// The complete answer must arrive within this time.
const PATIENCE: Duration = Duration::from_secs(60);
/// If the collector has this many more batches than the spool has made, another sender uses the same id.
pub(crate) const ABSURD: u64 = 1 << 32;

/// The collector's address and the agent's credentials.
#[derive(Clone, Debug, Default)]
pub struct Push {
    pub url: Option<String>,
    pub token: Option<PathBuf>,
    pub authorities: Option<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// Allow unencrypted connections to other machines.
    pub is_insecure: bool,
}

/// Arguments with which nothing can be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub what: String,
    pub hint: String,
}

impl Wrong {
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Wrong { what: what.into(), hint: hint.into() }
    }
}

/// Sends without end.
pub struct Sender {
    push: Push,
    client: Client,
    say: Say,
    /// Limit for the next request.
    most: usize,
    /// Number of consecutive failures.
    failures: u32,
    complaint: Option<String>,
}

impl Sender {
    /// # Errors
    /// See [`Client::new`].
    pub fn new(push: Push, say: Say) -> Result<Self, Wrong> {
        let client = Client::new(&push, PATIENCE)?;
        Ok(Sender { push, client, say, most: MOST_BYTES, failures: 0, complaint: None })
    }

    pub fn run(mut self, spool: &Spool) -> ! {
        let (mut after, mut writes) = (Load::default(), u64::MAX);
        loop {
            match spool.load(&after, self.most) {
                None => writes = spool.wait(writes),
                Some(load) => {
                    let pause = self.send(spool, &load);
                    after = load.sent();
                    sleep(pause);
                }
            }
        }
    }

    /// Sends a load and returns how long to wait.
    fn send(&mut self, spool: &Spool, load: &Load) -> Duration {
        match self.client.post(&load.bytes) {
            Answer::Receipt(receipt) if receipt.kept < load.first => {
                self.fail(spool, "the collector answers that it keeps nothing of what it was sent".into())
            }
            Answer::Receipt(receipt) if receipt.kept > load.last.saturating_add(ABSURD) => {
                self.fail(spool, format!("the collector answers that it keeps batch {}", receipt.kept))
            }
            Answer::Receipt(receipt) => {
                spool.keep(receipt.kept, receipt.full);
                self.failures = 0;
                self.most = MOST_BYTES.min(self.most + self.most / 8 + 1);
                self.complain(None);
                Duration::ZERO
            }
            Answer::Refused(why) if load.frames > 1 => {
                // One frame, or their total size, may be the problem, so fewer are tried.
                self.most = load.bytes.len() / 2;
                self.complain(Some(format!("{why}; sent in smaller pieces")));
                Duration::ZERO
            }
            Answer::Refused(why) => {
                let place = spool.refuse(load);
                // With a pause: if the collector refuses everything, the spool must not be emptied at once.
                self.fail(spool, format!("{why}; refused batches are set aside: {place}"))
            }
            Answer::Unauthorised(why) => {
                self.fail(spool, why);
                LONGEST.mul_f64(jitter())
            }
            Answer::Failed(why) => self.fail(spool, why),
        }
    }

    fn fail(&mut self, spool: &Spool, why: String) -> Duration {
        spool.push_failed();
        self.failures = self.failures.saturating_add(1);
        self.complain(Some(why));
        // The files may have been renewed: token, key, certificates.
        if let Ok(client) = Client::new(&self.push, PATIENCE) {
            self.client = client;
        }
        let doubled = SHORTEST.saturating_mul(1 << (self.failures - 1).min(16));
        doubled.min(LONGEST).mul_f64(jitter())
    }

    /// Prints a complaint once, until it changes.
    fn complain(&mut self, complaint: Option<String>) {
        if self.complaint == complaint {
            return;
        }
        if let Some(over) = &self.complaint {
            (self.say)(&format!("over: note: push: {over}"));
        }
        if let Some(new) = &complaint {
            (self.say)(&format!("note: push: {new}; samples are kept"));
        }
        self.complaint = complaint;
    }
}

/// A random factor from 0.5 to 1, because all agents lose the collector at the same moment.
fn jitter() -> f64 {
    let random = RandomState::new().hash_one(0) >> 11;
    0.5 + random as f64 / (1u64 << 54) as f64
}
