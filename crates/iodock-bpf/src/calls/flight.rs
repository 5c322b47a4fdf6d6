//! Finds calls in flight. A descriptor has the meaning that it had when a call began. If one thread closes or
//! replaces a descriptor while another is in a call on it, the beginning of that call is therefore recorded
//! first.

use super::decode::Decoder;
use super::rounds::InCall;
use super::streams::Streams;
use crate::format::Kind;
use crate::lives::Lives;
use crate::record::Record;
use iodock_event::{Action, RawCall, Role, NO_FD};
use std::collections::{HashMap, HashSet};

/// A call, and the time of its end in monotonic ns, or `u64::MAX` if it has not ended.
type Flying = (InCall, u64);

#[derive(Default)]
pub struct Flights {
    /// Number of the load, and the calls of all loaded records by descriptor. Computed when needed, at most
    /// once per load.
    found: Option<(u64, HashMap<i32, Vec<Flying>>)>,
    /// Thread ids and start times of calls whose beginning is recorded.
    entered: HashSet<(u32, u64)>,
}

impl Flights {
    /// Returns whether the beginning of this call was recorded. Its end is then the next record.
    #[inline]
    pub fn ends(&mut self, tid: u32, start: u64) -> bool {
        !self.entered.is_empty() && self.entered.remove(&(tid, start))
    }

    /// Returns the calls of other threads of `tgid` that were in flight on the descriptors that `raw` closed
    /// at `end`.
    pub fn cut_by(
        &mut self,
        raw: &RawCall,
        tgid: u32,
        end: u64,
        (streams, lives, decoder): (&Streams, &Lives, &Decoder),
    ) -> Vec<InCall> {
        let Some((first, last)) = taken_away(raw) else { return Vec::new() };
        if self.found.as_ref().is_none_or(|&(load, _)| load != streams.loads) {
            self.found = Some((streams.loads, collect(streams, decoder)));
        }
        let ended = self.found.iter().flat_map(|(_, found)| within(found, first, last));
        let not_ended = streams.in_call_after(end).iter().filter(|call| {
            descriptors(decoder, call.number, &call.arguments).any(|fd| (first..=last).contains(&fd))
        });
        let flying = ended.copied().chain(not_ended.map(|&call| (call, u64::MAX)));
        let others = flying.filter(|(call, over)| {
            call.tid != raw.tid && call.start < end && *over > end && lives.process_of(call.tid) == Some(tgid)
        });
        others.map(|(call, _)| call).filter(|call| self.entered.insert((call.tid, call.start))).collect()
    }
}

fn within(found: &HashMap<i32, Vec<Flying>>, first: i32, last: i32) -> Vec<&Flying> {
    if first == last {
        return found.get(&first).into_iter().flatten().collect();
    }
    found.iter().filter(|(fd, _)| (first..=last).contains(*fd)).flat_map(|(_, flying)| flying).collect()
}

/// Returns the range of descriptors that a successful call has closed or replaced.
#[inline]
fn taken_away(raw: &RawCall) -> Option<(i32, i32)> {
    match raw.call.spec().action {
        Action::Close => Some((raw.fd, raw.fd)),
        Action::Dup2 if raw.fd2 != NO_FD => Some((raw.fd2, raw.fd2)),
        Action::CloseRange => Some((raw.fd, i32::try_from(raw.argument).unwrap_or(i32::MAX))),
        _ => None,
    }
}

fn collect(streams: &Streams, decoder: &Decoder) -> HashMap<i32, Vec<Flying>> {
    let mut found: HashMap<i32, Vec<Flying>> = HashMap::new();
    streams.ahead(|record| {
        let Some(call) = flying(record) else { return };
        for fd in descriptors(decoder, call.number, &call.arguments) {
            found.entry(fd).or_default().push((call, record.time()));
        }
    });
    found
}

fn flying(record: Record) -> Option<InCall> {
    let mut arguments = [0; 5];
    let duration = match record.kind() {
        Kind::Small | Kind::Positioned => {
            let (duration, _) = record.halves(2);
            let (fd, size) = record.halves(3);
            (arguments[0], arguments[2]) = (u64::from(fd), u64::from(size));
            u64::from(duration)
        }
        Kind::General | Kind::Unfinished => {
            arguments.copy_from_slice(record.words.get(4..9)?);
            record.words[2]
        }
        _ => return None,
    };
    let (tid, number) = (record.tid(), record.number());
    Some(InCall { tid, start: record.time().saturating_sub(duration), number, arguments })
}

fn descriptors<'a>(
    decoder: &Decoder,
    number: usize,
    arguments: &'a [u64; 5],
) -> impl Iterator<Item = i32> + 'a {
    let roles = decoder.call_id(number).map_or(&[][..], |call| call.spec().registers());
    let held = |role: &Role| matches!(role, Role::Fd | Role::Fd2 | Role::DirFd | Role::DirFd2);
    let named = roles.iter().zip(arguments).filter(move |(role, _)| held(role));
    named.map(|(_, &value)| value as i32).filter(|&fd| fd >= 0)
}
