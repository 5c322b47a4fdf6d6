//! Serves the spool to a collector that pulls: `POST /api/v1/samples`. The request says up to which batch the
//! collector has stored everything, like the answer to a push. The answer contains the batches that follow.

use crate::push::{ABSURD, MOST_BYTES};
use crate::spool::{Load, Spool};
use hyper::body::Bytes;
use iodock_samples::batch::{Receipt, SpoolId};
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};

pub const PATH: &str = "/api/v1/samples";
pub const TYPE: &str = "application/x-iodock-samples";
/// Longest request in bytes. Usual requests have about 100.
pub const LONGEST_REQUEST: usize = 4096;

/// A spool from which a collector pulls.
pub struct Pulled {
    host: String,
    spool: Arc<Spool>,
    /// Position of the end of the last answer, without its bytes.
    last: Mutex<Load>,
}

/// Request of the collector. It is `{}` if the collector does not know this agent.
#[derive(Debug, Default, Deserialize)]
pub struct Request {
    /// Id of the spool in hexadecimal. A request about another spool has no effect.
    #[serde(default)]
    spool: String,
    /// Number of the batch up to which the collector has stored all batches.
    #[serde(default)]
    kept: u64,
    /// Whether the next round must be full.
    #[serde(default)]
    full: bool,
    /// Whether the collector will never accept the next batch.
    #[serde(default)]
    refused: bool,
}

/// The batches, and the facts that the collector needs for its next request.
pub struct Answer {
    pub host: String,
    pub spool: String,
    /// Whether more batches are waiting.
    pub has_more: bool,
    pub frames: Bytes,
}

impl Pulled {
    pub fn new(host: String, spool: Arc<Spool>) -> Self {
        Pulled { host, spool, last: Mutex::default() }
    }

    /// Reads the next batches from the disk.
    ///
    /// # Errors
    /// Fails if the request is invalid. Then no batch counts as stored.
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
        // The collector can refuse only a batch that it has received.
        if let Some(next) = next.filter(|next| next.first <= last.last) {
            self.spool.refuse(&next);
        }
        Ok(())
    }
}

fn hexadecimal(id: &SpoolId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
