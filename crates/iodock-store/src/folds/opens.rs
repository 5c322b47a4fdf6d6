//! Opens for writing, and opens and fcntl calls (F_SETFL) whose flags change how bytes are written. The table
//! counts them by file, task, call, flags and error.

use super::{Rows, MOST_ROWS};
use crate::table::Cell;
use iodock_event::{Direction, EventColumns, NONE};
use rustc_hash::FxHashMap;

pub const SCHEMA: &str = "message opens {
    optional int32 file_id (INTEGER(32,false));
    required int32 utid (INTEGER(32,false));
    required int32 call_id (INTEGER(16,false));
    required int32 flags (INTEGER(32,false));
    optional int32 errno_id (INTEGER(16,false));
    required int64 count;
}";

/// The Linux flags that the table is about: `O_ACCMODE`, `O_APPEND`, `O_DSYNC` (which is part of `O_SYNC`)
/// and `O_DIRECT`.
const WRITING_FLAGS: u32 = 0o3 | 0o2000 | 0o10000 | 0o40000;
const NO_FLAGS: u32 = u32::MAX;
const NO_ERRNO: u16 = u16::MAX;

/// File, task, call, flags and error of a row.
type Key = (u32, u32, u16, u32, u16);

#[derive(Default)]
pub struct Opens {
    counts: FxHashMap<Key, i64>,
    given_up: bool,
}

impl Opens {
    pub fn add(&mut self, events: &EventColumns) {
        for (row, &flags) in events.flags.iter().enumerate() {
            if flags == NO_FLAGS || flags & WRITING_FLAGS == 0 || self.given_up {
                continue;
            }
            // The flags of a write (pwritev2) apply only to that write, so they do not belong in this table.
            if events.direction[row] == Direction::Neither as u8 {
                let (file, utid, call) = (events.file[row], events.utid[row], events.call[row]);
                let key = (file, utid, call, flags, events.errno[row]);
                *self.counts.entry(key).or_default() += 1;
                self.given_up = self.counts.len() > MOST_ROWS;
            }
        }
    }

    pub fn rows(&self) -> Option<Rows> {
        let mut counts: Vec<_> = self.counts.iter().collect();
        counts.sort_unstable();
        let row = |(&(file, utid, call, flags, errno), &count): (&Key, &i64)| {
            vec![
                if file == NONE { Cell::Null } else { Cell::id(file) },
                Cell::id(utid),
                Cell::Narrow(call.into()),
                Cell::id(flags),
                if errno == NO_ERRNO { Cell::Null } else { Cell::Narrow(errno.into()) },
                Cell::Wide(count),
            ]
        };
        (!self.given_up).then(|| counts.into_iter().map(row).collect())
    }
}
