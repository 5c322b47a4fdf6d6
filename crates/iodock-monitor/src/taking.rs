//! Which parts of a push are accepted, and which are refused.

use crate::catalogue::day_of;
use crate::error::MonitorError;
use crate::sender::SenderId;
use crate::work::Work;
use iodock_samples::batch::{Batch, Receipt};
use iodock_samples::frame;
use std::time::{SystemTime, UNIX_EPOCH};

/// How far an agent's clock may be from ours.
const APART: i64 = 3600 * 1_000_000_000;
/// 2000-01-01: a clock before that was never set.
const LONG_AGO: i64 = 946_684_800_000_000_000;

/// Limits for a sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// For this machine only.
    pub host: Option<&'a str>,
    /// After this amount of work, no more frames are accepted.
    pub most: Option<Work>,
    /// The sender's clock when it sent this, ns since the epoch. Older agents do not send it.
    pub sent: Option<i64>,
}

/// The accepted part of a push. Frames after a refused one, and those beyond [`Terms::most`], are not
/// accepted.
#[derive(Debug, Default)]
pub struct Taken {
    pub receipt: Receipt,
    /// The sender of the last batch.
    pub sender: Option<SenderId>,
    pub work: Work,
    /// Why something was refused because of the sender.
    pub refused: Option<MonitorError>,
}

/// The first batch of `bytes`, its frame, and the bytes after it. A refused batch counts as work, too.
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

/// A batch may be old, because it was kept until now. So only the sender's current time shows a clock that is
/// behind.
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

/// The time of this machine's clock, ns since the epoch.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64)
}
