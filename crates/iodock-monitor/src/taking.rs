//! Decides which batches of a push are accepted, and which are refused.

use crate::catalogue::day_of;
use crate::error::MonitorError;
use crate::sender::SenderId;
use crate::work::Work;
use iodock_samples::batch::{Batch, Receipt};
use iodock_samples::frame;
use std::time::{SystemTime, UNIX_EPOCH};

/// Largest difference in ns between an agent's clock and the collector's.
const APART: i64 = 3600 * 1_000_000_000;
/// 2000-01-01 in ns since the epoch. A clock before that was never set.
const LONG_AGO: i64 = 946_684_800_000_000_000;

/// Limits for a sender's push.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// Name of the only machine for which this sender may push. `None` means any machine.
    pub host: Option<&'a str>,
    /// Amount of work after which no more frames are accepted.
    pub most: Option<Work>,
    /// The sender's clock when it sent the push, ns since the epoch. Agents of older versions do not send it.
    pub sent: Option<i64>,
}

/// Result of a push. Frames after a refused frame, and those beyond [`Terms::most`], are not accepted.
#[derive(Debug, Default)]
pub struct Taken {
    pub receipt: Receipt,
    /// Sender of the last accepted batch.
    pub sender: Option<SenderId>,
    pub work: Work,
    /// Reason why a frame was refused, if the sender caused it.
    pub refused: Option<MonitorError>,
}

/// Returns the first batch of `bytes`, its frame, and the bytes after it. A refused batch also counts as
/// work.
pub fn next_batch<'a>(
    bytes: &'a [u8],
    terms: &Terms,
    work: &mut Work,
) -> Result<(Batch, &'a [u8], &'a [u8]), MonitorError> {
    let (header, encoded, rest) = frame::split(bytes).map_err(MonitorError::Refused)?;
    *work += Work { bytes: header.plain_length as u64, ..Work::default() };
    let (batch, _) = frame::decode(encoded).map_err(MonitorError::Refused)?;
    if terms.host.is_some_and(|host| host != batch.host) {
        return Err(MonitorError::Name { host: batch.host });
    }
    check_clock(&batch, terms.sent)?;
    Ok((batch, encoded, rest))
}

/// Checks the times in a push. A batch may be old, because the agent stored it for a while, so only the
/// sender's current time shows that its clock is slow.
fn check_clock(batch: &Batch, sent: Option<i64>) -> Result<(), MonitorError> {
    let now = now();
    if let Some(ahead) = sent.map(|sent| sent.saturating_sub(now)).filter(|by| !(-APART..=APART).contains(by))
    {
        return Err(MonitorError::ClockApart { host: batch.host.clone(), ahead });
    }
    let known = LONG_AGO..now.saturating_add(APART);
    let of_events = batch.events.iter().flat_map(|event| [event.first, event.last]);
    let mut times = batch.parts.iter().map(|part| part.time).chain([batch.time]).chain(of_events);
    match times.find(|time| !known.contains(time)) {
        Some(time) => Err(MonitorError::Clock { host: batch.host.clone(), day: day_of(time) }),
        None => Ok(()),
    }
}

/// Returns the time of the collector's clock, ns since the epoch.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64)
}
