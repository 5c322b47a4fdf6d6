//! The spool, for a collector that comes for it: `POST /api/v1/samples`. The request says what the collector keeps
//! safely by now, as the answer to a push would; the answer has the batches that follow.

use crate::push::{ABSURD, MOST_BYTES};
use crate::spool::{Load, Spool};
use hyper::body::Bytes;
use iodock_samples::batch::{Receipt, SpoolId};
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};

pub const PATH: &str = "/api/v1/samples";
pub const TYPE: &str = "application/x-iodock-samples";
/// Of a request; what it says takes some 100 bytes.
pub const LONGEST_REQUEST: usize = 4096;

/// A spool that is pulled.
pub struct Pulled {
    host: String,
    spool: Arc<Spool>,
    /// Where the last answer ended, without its bytes.
    last: Mutex<Load>,
}

/// What the collector says first; `{}` if it knows nothing of this agent.
#[derive(Debug, Default, Deserialize)]
pub struct Request {
    /// Whose batches it keeps, in hexadecimal. What it says of another spool does not count.
    #[serde(default)]
    spool: String,
    /// All up to this one.
    #[serde(default)]
    kept: u64,
    /// The next round must be full.
    #[serde(default)]
    full: bool,
    /// It will never take the batch that follows those.
    #[serde(default)]
    refused: bool,
}

/// Batches, and what the collector must know to answer.
pub struct Answer {
    pub host: String,
    pub spool: String,
    /// More are waiting.
    pub has_more: bool,
    pub frames: Bytes,
}

impl Pulled {
    pub fn new(host: String, spool: Arc<Spool>) -> Self {
        Pulled { host, spool, last: Mutex::default() }
    }

    /// Reads from the disk.
    ///
    /// # Errors
    /// The request makes no sense; nothing is taken for kept.
    pub fn answer(&self, request: &Request) -> Result<Answer, &'static str> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let id = hexadecimal(&self.spool.id());
        if request.spool == id {
            self.acknowledge(request, &last)?;
        }
        let load = self.spool.load(&last, MOST_BYTES);
        let frames = load.map_or_else(Bytes::new, |mut load| {
            let frames = Bytes::from(std::mem::take(&mut load.bytes));
            *last = load.sent();
            frames
        });
        let has_more = !frames.is_empty() && self.spool.made() > last.last;
        Ok(Answer { host: self.host.clone(), spool: id, has_more, frames })
    }

    fn acknowledge(&self, request: &Request, last: &Load) -> Result<(), &'static str> {
        let receipt = Receipt { kept: request.kept, full: request.full };
        if receipt.kept > self.spool.made().saturating_add(ABSURD) {
            return Err("no spool has so many batches\n");
        }
        self.spool.keep(receipt.kept, receipt.full);
        let next = self.spool.load(last, 0).filter(|_| request.refused);
        // Only what it was given it can refuse.
        if let Some(next) = next.filter(|next| next.first <= last.last) {
            self.spool.refuse(&next);
        }
        Ok(())
    }
}

fn hexadecimal(id: &SpoolId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
