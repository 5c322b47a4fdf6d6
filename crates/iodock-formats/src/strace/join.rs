//! A call in two lines, `<unfinished ...>` and `resumed>`, read as the one line it would have been.

use super::line;
use iodock_event::{Batch, Outcome, Phase, RawCall, UNKNOWN};

/// Fills `raw` (thread, call and start set) from both lines. `ended`: the second line's time.
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
    // Before the first argument no space stands, between others one does.
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

/// The end of a call that never returned, as a record: its thread died, or the log ends.
pub fn without_result(begun: &[u8], mut raw: RawCall, batch: &mut Batch) -> RawCall {
    line::begun_call(begun, &mut raw, batch);
    raw.phase = Phase::Exit;
    raw.outcome = Outcome::NoResult;
    raw
}
