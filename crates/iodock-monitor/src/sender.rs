//! Identifies senders and their targets.

use iodock_samples::batch::{Batch, Part, SpoolId};
use serde::{Deserialize, Serialize};

/// A spool and its machine. The machine is needed because two machines made from one image may have the same
/// spool id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SenderId {
    pub spool: SpoolId,
    pub host: String,
}

impl SenderId {
    pub fn of(batch: &Batch) -> SenderId {
        SenderId { spool: batch.spool, host: batch.host.clone() }
    }
}

/// One target of one sender.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SenderTarget {
    /// Spool of the sender. It distinguishes two machines with the same host name.
    pub spool: SpoolId,
    pub host: String,
    pub source: String,
    pub file_system: String,
    pub target: String,
}

impl SenderTarget {
    pub fn of(batch: &Batch, part: &Part) -> SenderTarget {
        SenderTarget {
            spool: batch.spool,
            host: batch.host.clone(),
            source: part.source.clone(),
            file_system: part.file_system.clone(),
            target: part.target.clone(),
        }
    }

    /// Returns whether the target belongs to this sender.
    pub fn is_of(&self, sender: &SenderId) -> bool {
        self.spool == sender.spool && self.host == sender.host
    }
}
