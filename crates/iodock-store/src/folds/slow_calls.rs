//! A table with one row for each call that took long.

use super::{is_first_side, Rows, MOST_ROWS};
use crate::table::Cell;
use iodock_event::{EventColumns, EventRow, NONE};

pub const SCHEMA: &str = "message slow_calls {
    optional int64 ts;
    required int64 dur;
    required int32 utid (INTEGER(32,false));
    required int32 call_id (INTEGER(16,false));
    optional int32 file_id (INTEGER(32,false));
    required int32 direction (INTEGER(8,false));
    optional int64 bytes;
}";

/// Shortest duration of the calls that the table lists, ns.
const SLOW: i64 = 20_000_000;

#[derive(Default)]
pub struct SlowCalls {
    calls: Vec<EventRow>,
    given_up: bool,
}

impl SlowCalls {
    pub fn add(&mut self, events: &EventColumns) {
        for (row, &dur) in events.dur.iter().enumerate() {
            if dur >= SLOW && is_first_side(events.side[row]) && !self.given_up {
                self.calls.push(events.row(row));
                self.given_up = self.calls.len() > MOST_ROWS;
            }
        }
    }

    pub fn rows(&self) -> Option<Rows> {
        let row = |call: &EventRow| {
            vec![
                Cell::quantity(call.ts),
                Cell::Wide(call.dur),
                Cell::id(call.utid),
                Cell::Narrow(call.call.into()),
                if call.file == NONE { Cell::Null } else { Cell::id(call.file) },
                Cell::Narrow(call.direction.into()),
                Cell::quantity(call.bytes),
            ]
        };
        (!self.given_up).then(|| self.calls.iter().map(row).collect())
    }
}
