//! Calls by file, task, call, error, direction and side.

use crate::batch::{Batch, Kind, Wanted};
use crate::folding::Fold;
use crate::groups::{mixed, Groups, Key, Sums};
use crate::known::{add, first_known, id_of};
use crate::table::{Column, Table, Values};
use iodock_event::{NONE, UNKNOWN};

const COLUMNS: &[Wanted] = &[
    Wanted { name: "file_id", kind: Kind::OptionalId(NONE as i64) },
    Wanted { name: "utid", kind: Kind::Id(NONE as i64) },
    Wanted { name: "call_id", kind: Kind::Id(1 << 16) },
    Wanted { name: "errno_id", kind: Kind::OptionalId(NO_ERRNO as i64) },
    Wanted { name: "direction", kind: Kind::Id(1 << 8) },
    Wanted { name: "side", kind: Kind::Id(1 << 8) },
    Wanted { name: "dur", kind: Kind::Amount },
    Wanted { name: "sys_cpu_ns", kind: Kind::Amount },
    Wanted { name: "bytes", kind: Kind::Amount },
    Wanted { name: "ts", kind: Kind::Number },
    Wanted { name: "end_ts", kind: Kind::Number },
];
const NO_ERRNO: u16 = u16::MAX;

#[derive(Clone, Copy, PartialEq, Eq)]
struct Use {
    file: u32,
    utid: u32,
    call: u16,
    errno: u16,
    direction: u8,
    side: u8,
}

impl Key for Use {
    fn hash(&self) -> u64 {
        let who = u64::from(self.file) << 32 | u64::from(self.utid);
        let how = u64::from(self.call) << 32 | u64::from(self.errno) << 16;
        mixed(mixed(who) ^ how ^ u64::from(self.direction) << 8 ^ u64::from(self.side))
    }
}

/// Sums of a group. A sum is [`UNKNOWN`] if no row of the group has a value.
#[repr(C)]
struct Used {
    count: i64,
    time: i64,
    longest: i64,
    bytes: i64,
    first: i64,
    last: i64,
}

impl Default for Used {
    fn default() -> Used {
        Used { count: 0, time: UNKNOWN, longest: UNKNOWN, bytes: UNKNOWN, first: UNKNOWN, last: UNKNOWN }
    }
}

impl Sums for Used {
    fn tail(&self) -> i64 {
        self.last
    }

    fn absorb(&mut self, other: &Used) {
        self.count += other.count;
        add(&mut self.time, other.time);
        self.longest = self.longest.max(other.longest);
        add(&mut self.bytes, other.bytes);
        self.begin(other.first);
        self.last = self.last.max(other.last);
    }
}

impl Used {
    fn begin(&mut self, ts: i64) {
        if ts != UNKNOWN && (self.first == UNKNOWN || ts < self.first) {
            self.first = ts;
        }
    }
}

/// Calls folded by file, task, call, error, direction and side. This is the derived table `uses`.
#[derive(Default)]
pub struct Uses {
    groups: Groups<Use, Used>,
    /// Keys of the rows of the current batch.
    keys: Vec<Use>,
}

impl Fold for Uses {
    const COLUMNS: &'static [Wanted] = COLUMNS;

    fn fresh(&self) -> Uses {
        Uses::default()
    }

    fn add(&mut self, batch: Batch<'_>) {
        let [file, utid, call, errno, direction, side, dur, sys_cpu, bytes, ts, end_ts] = batch else {
            return;
        };
        self.keys.clear();
        self.keys.extend((0..file.len()).map(|row| Use {
            file: id_of(file[row]),
            utid: utid[row] as u32,
            call: call[row] as u16,
            errno: if errno[row] == UNKNOWN { NO_ERRNO } else { errno[row] as u16 },
            direction: direction[row] as u8,
            side: side[row] as u8,
        }));
        self.groups.add(&self.keys, |sums, row| {
            sums.count += 1;
            add(&mut sums.time, first_known(dur[row], sys_cpu[row]));
            // UNKNOWN is the smallest number, so the maximum is a known number if there is one.
            sums.longest = sums.longest.max(dur[row]);
            add(&mut sums.bytes, bytes[row]);
            sums.begin(ts[row]);
            sums.last = sums.last.max(first_known(ts[row], end_ts[row]));
        });
    }

    fn absorb(&mut self, other: &Uses) {
        self.groups.absorb(&other.groups);
    }

    fn groups(&self) -> usize {
        self.groups.len()
    }

    fn table(&self) -> Table {
        let groups = &self.groups.all;
        let of = |value: fn(&Used) -> i64| groups.iter().map(|group| value(&group.sums)).collect::<Vec<_>>();
        let errnos = groups.iter().map(|group| match group.key.errno {
            NO_ERRNO => NONE,
            errno => u32::from(errno),
        });
        let columns = vec![
            Column::ids("file_id", groups.iter().map(|group| group.key.file).collect(), NONE),
            Column::new("utid", Values::UInt32(groups.iter().map(|group| group.key.utid).collect())),
            Column::new("call_id", Values::UInt16(groups.iter().map(|group| group.key.call).collect())),
            Column::ids("errno_id", errnos.collect(), NONE),
            Column::new("direction", Values::UInt8(groups.iter().map(|group| group.key.direction).collect())),
            Column::new("side", Values::UInt8(groups.iter().map(|group| group.key.side).collect())),
            Column::new("count", Values::Int64(of(|sums| sums.count))),
            Column::nullable("time_ns", of(|sums| sums.time)),
            Column::nullable("longest_ns", of(|sums| sums.longest)),
            Column::nullable("bytes", of(|sums| sums.bytes)),
            Column::nullable("first_ts", of(|sums| sums.first)),
            Column::nullable("last_ts", of(|sums| sums.last)),
        ];
        Table { rows: groups.len(), columns }
    }
}
