//! Serves the spool to a pulling collector: `POST /api/v1/samples`. The request contains what the collector
//! has stored so far, like the answer to a push. The answer contains the batches that follow.

use crate::push::{ABSURD, MOST_BYTES};
use crate::spool::{Load, Spool};
use hyper::body::Bytes;
use iodock_samples::batch::{Receipt, SpoolId};
use serde::Deserialize;
use std::sync::{Arc, Mutex, PoisonError};

pub const PATH: &str = "/api/v1/samples";
pub const TYPE: &str = "application/x-iodock-samples";
/// Limit for a request, which has about 100 bytes.
pub const LONGEST_REQUEST: usize = 4096;

/// A spool that is pulled.
pub struct Pulled {
    host: String,
    spool: Arc<Spool>,
    /// The end of the last answer, without its bytes.
    last: Mutex<Load>,
}

/// The collector's request; `{}` if it does not know this agent.
#[derive(Debug, Default, Deserialize)]
pub struct Request {
    /// The spool's id in hexadecimal. Information about another spool is ignored.
    #[serde(default)]
    spool: String,
    /// All batches up to this one are stored.
    #[serde(default)]
    kept: u64,
    /// The next round must be full.
    #[serde(default)]
    full: bool,
    /// The next batch will never be accepted.
    #[serde(default)]
    refused: bool,
}

/// The batches, and the information that the collector's next request needs.
pub struct Answer {
    pub host: String,
    pub spool: String,
    /// More batches are waiting.
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
    /// The request is invalid, and no batch counts as stored.
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
        // The collector can refuse only what it received.
        if let Some(next) = next.filter(|next| next.first <= last.last) {
            self.spool.refuse(&next);
        }
        Ok(())
    }
}

fn hexadecimal(id: &SpoolId) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}
