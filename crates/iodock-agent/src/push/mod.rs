//! Sends the spool's batches to the collector, in a separate thread. Rounds continue even if the collector
//! does not answer, and the spool keeps the batches until then.

mod client;
pub(crate) mod files;

pub use client::{Answer, Client};

use crate::spool::{Load, Say, Spool};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// Largest size of a request in bytes, unless a single frame is larger.
pub(crate) const MOST_BYTES: usize = 4 << 20;
/// Shortest and longest pause between attempts to send.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// Time within which the complete answer must arrive.
const PATIENCE: Duration = Duration::from_secs(60);
/// If the collector has this many more batches than the spool has made, another sender uses the same spool
/// id.
pub(crate) const ABSURD: u64 = 1 << 32;

/// The collector's address and the agent's credentials.
#[derive(Clone, Debug, Default)]
pub struct Push {
    pub url: Option<String>,
    pub token: Option<PathBuf>,
    pub authorities: Option<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// Whether unencrypted connections to other machines are allowed.
    pub is_insecure: bool,
}

/// Arguments with which nothing can be sent: the problem and a hint.
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

/// Sends batches until the process ends.
pub struct Sender {
    push: Push,
    client: Client,
    say: Say,
    /// Largest size of the next request in bytes.
    most: usize,
    /// Number of consecutive failures.
    failures: u32,
    complaint: Option<String>,
}

impl Sender {
    /// Creates a sender.
    ///
    /// # Errors
    /// Fails like [`Client::new`].
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

    /// Sends batches. Returns how long to wait before the next request.
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
                // The collector may have refused one of the frames, or their total size, so the next request
                // has fewer.
                self.most = load.bytes.len() / 2;
                self.complain(Some(format!("{why}; sent in smaller pieces")));
                Duration::ZERO
            }
            Answer::Refused(why) => {
                let place = spool.refuse(load);
                // A pause follows, so that a collector that refuses everything does not empty the spool at
                // once.
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
        // An administrator may have renewed the files with the token, key or certificates, so they are read
        // again.
        if let Ok(client) = Client::new(&self.push, PATIENCE) {
            self.client = client;
        }
        let doubled = SHORTEST.saturating_mul(1 << (self.failures - 1).min(16));
        doubled.min(LONGEST).mul_f64(jitter())
    }

    /// Prints a problem when it is new, has changed or is over.
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

/// Returns a random factor from 0.5 to 1. All agents lose the collector at the same moment, and should not
/// return at the same moment.
fn jitter() -> f64 {
    let random = RandomState::new().hash_one(0) >> 11;
    0.5 + random as f64 / (1u64 << 54) as f64
}
