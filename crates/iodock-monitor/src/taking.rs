//! What of a push is taken, and what is refused.

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

/// What a sender may send.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    /// As this machine only.
    pub host: Option<&'a str>,
    /// Once so much was taken, no frame more is.
    pub most: Option<Work>,
    /// The sender's clock as it sent this, ns since the epoch. Agents of before don't say it.
    pub sent: Option<i64>,
}

/// What was taken of a push. Frames that follow a refused one, and those beyond [`Terms::most`], are not.
#[derive(Debug, Default)]
pub struct Taken {
    pub receipt: Receipt,
    /// Of the last batch.
    pub sender: Option<SenderId>,
    pub work: Work,
    /// Why the sender is to blame for what was not taken.
    pub refused: Option<MonitorError>,
}

/// The first batch of `bytes`, its frame, and what follows it. Who sends what is refused has made work, too.
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

/// A batch may be old: it was kept while nobody took it. So only what the sender says of now tells a clock that is behind.
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

/// By this machine's clock, ns since the epoch.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64)
}
