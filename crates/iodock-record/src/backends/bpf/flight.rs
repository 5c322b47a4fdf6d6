//! Calls in flight. A descriptor means what it meant when a call began: where one thread closes or replaces a
//! descriptor while another is in a call on it, that call's beginning is written first.

use super::decode::Decoder;
use super::lives::Lives;
use iodock_bpf::format::Kind;
use iodock_bpf::reader::{Ahead, Record};
use iodock_event::{Action, RawCall, Role, NO_FD};
use std::collections::{HashMap, HashSet};

/// A call that goes on beyond the records that were taken.
#[derive(Clone, Copy)]
pub struct Flying {
    pub tid: u32,
    /// Monotonic ns; the end is `u64::MAX` if it has not ended.
    pub start: u64,
    pub end: u64,
    pub number: usize,
    pub arguments: [u64; 5],
}

#[derive(Default)]
pub struct Flights {
    /// By process and descriptor, once in a drain, if it is asked for.
    found: Option<HashMap<(u32, i32), Vec<Flying>>>,
    /// Threads whose call's beginning is written, and that beginning.
    entered: HashSet<(u32, u64)>,
}

impl Flights {
    /// A new drain: what was ahead is not any more.
    pub fn forget(&mut self) {
        self.found = None;
    }

    #[inline]
    pub fn any_entered(&self) -> bool {
        !self.entered.is_empty()
    }

    /// Was the beginning of this call written? Then its end follows now.
    #[inline]
    pub fn ends(&mut self, tid: u32, start: u64) -> bool {
        !self.entered.is_empty() && self.entered.remove(&(tid, start))
    }

    /// The calls of other threads of `tgid` on descriptors that `raw`, which ended at `end`, has taken away.
    pub fn cut_by(
        &mut self,
        raw: &RawCall,
        tgid: u32,
        end: u64,
        (ahead, lives, decoder): (&Ahead, &Lives, &Decoder),
    ) -> Vec<Flying> {
        let Some((first, last)) = taken_away(raw) else { return Vec::new() };
        let found = self.found.get_or_insert_with(|| collect(ahead, lives, decoder));
        let on_one = |fd: i32| found.get(&(tgid, fd)).into_iter().flatten();
        let flying: Vec<Flying> = if first == last {
            on_one(first).copied().collect()
        } else {
            let inside = found.iter().filter(|((of, fd), _)| *of == tgid && (first..=last).contains(fd));
            inside.flat_map(|(_, flying)| flying).copied().collect()
        };
        let others =
            flying.into_iter().filter(|call| call.tid != raw.tid && call.start < end && call.end > end);
        others.filter(|call| self.entered.insert((call.tid, call.start))).collect()
    }
}

/// The descriptors that a successful call has closed or replaced.
#[inline]
fn taken_away(raw: &RawCall) -> Option<(i32, i32)> {
    match raw.call.spec().action {
        Action::Close => Some((raw.fd, raw.fd)),
        Action::Dup2 if raw.fd2 != NO_FD => Some((raw.fd2, raw.fd2)),
        Action::CloseRange => Some((raw.fd, i32::try_from(raw.argument).unwrap_or(i32::MAX))),
        _ => None,
    }
}

fn collect(ahead: &Ahead, lives: &Lives, decoder: &Decoder) -> HashMap<(u32, i32), Vec<Flying>> {
    let mut found: HashMap<(u32, i32), Vec<Flying>> = HashMap::new();
    let threads: HashMap<u32, u32> = lives.shared().collect();
    let mut keep = |tgid: u32, call: Flying| {
        for fd in descriptors(decoder, call.number, &call.arguments) {
            found.entry((tgid, fd)).or_default().push(call);
        }
    };
    // First those that have not ended: who ends meanwhile is among the records.
    for (&tid, &tgid) in &threads {
        if let Some(call) = ahead.in_call(tid) {
            let (start, number, arguments) = (call.start, call.number, call.arguments);
            keep(tgid, Flying { tid, start, end: u64::MAX, number, arguments });
        }
    }
    ahead.records(|record| {
        if let Some((call, &tgid)) = flying(record).zip(threads.get(&record.tid())) {
            keep(tgid, call);
        }
    });
    found
}

fn flying(record: Record) -> Option<Flying> {
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
    let (tid, end, number) = (record.tid(), record.time(), record.number());
    Some(Flying { tid, start: end - duration, end, number, arguments })
}

fn descriptors(decoder: &Decoder, number: usize, arguments: &[u64; 5]) -> Vec<i32> {
    let roles = decoder.call_id(number).map_or(&[][..], |call| call.spec().roles);
    let held = |role: &Role| matches!(role, Role::Fd | Role::Fd2 | Role::DirFd | Role::DirFd2);
    let named = roles.iter().zip(arguments).filter(|(role, _)| held(role));
    named.map(|(_, &value)| value as i32).filter(|&fd| fd >= 0).collect()
}
