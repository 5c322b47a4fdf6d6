//! Reads a call that strace split into `<unfinished ...>` and `resumed>` as if it were one line.

use super::line;
use iodock_event::{Batch, Outcome, Phase, RawCall, UNKNOWN};

/// Fills `raw` from both lines. Thread, call and start are set already. `ended` is the time of the second
/// line.
pub fn ended_call(
    begun: &[u8],
    rest: &[u8],
    ended: i64,
    scratch: &mut Vec<u8>,
    raw: &mut RawCall,
    batch: &mut Batch,
) -> Option<()> {
    scratch.clear();
    scratch.extend_from_slice(begun.trim_ascii_end());
    // strace prints no space before the first argument, but one before each other argument.
    if !scratch.is_empty() {
        scratch.push(b' ');
    }
    scratch.extend_from_slice(rest.trim_ascii_start());
    raw.phase = Phase::Exit;
    line::whole_call(scratch, raw, batch)?;
    if raw.duration == UNKNOWN {
        raw.end = ended;
    }
    Some(())
}

/// Returns the record of a call that never returned, because its thread ended or the log ended.
pub fn without_result(begun: &[u8], mut raw: RawCall, batch: &mut Batch) -> RawCall {
    line::begun_call(begun, &mut raw, batch);
    raw.phase = Phase::Exit;
    raw.outcome = Outcome::NoResult;
    raw
}
