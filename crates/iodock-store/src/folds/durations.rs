//! Durations of calls: number of calls by call, direction and duration in powers of two.

use super::{is_first_side, power_of_two, Rows};
use crate::table::Cell;
use iodock_event::{EventColumns, UNKNOWN};

pub const SCHEMA: &str = "message durations {
    required int32 call_id (INTEGER(16,false));
    required int32 direction (INTEGER(8,false));
    required int32 duration_bin (INTEGER(8,true));
    required int64 count;
    required int64 time_ns;
}";

/// Number of bins, one per power of two, and number of directions.
const BINS: usize = 64;
const DIRECTIONS: usize = 3;

/// Number of calls and their time (ns), by call, then direction, then bin.
#[derive(Default)]
pub struct Durations {
    sums: Vec<(i64, i64)>,
}

impl Durations {
    pub fn add(&mut self, events: &EventColumns) {
        for row in 0..events.len() {
            let dur = events.dur[row];
            if dur != UNKNOWN && is_first_side(events.side[row]) {
                let bin = power_of_two(dur.saturating_add(1)) as usize;
                let place = events.call[row] as usize * DIRECTIONS + events.direction[row] as usize;
                self.add_one(place * BINS + bin, dur);
            }
        }
    }

    fn add_one(&mut self, place: usize, dur: i64) {
        if place >= self.sums.len() {
            self.sums.resize((place + 1).next_power_of_two(), (0, 0));
        }
        let (count, time) = &mut self.sums[place];
        *count += 1;
        *time = time.saturating_add(dur);
    }

    pub fn rows(&self) -> Rows {
        let some = self.sums.iter().enumerate().filter(|(_, (count, _))| *count > 0);
        let row = |(place, &(count, time)): (usize, &(i64, i64))| {
            let call = place / BINS / DIRECTIONS;
            let (direction, bin) = (place / BINS % DIRECTIONS, place % BINS);
            let narrow = |number: usize| Cell::Narrow(number as i32);
            vec![narrow(call), narrow(direction), narrow(bin), Cell::Wide(count), Cell::Wide(time)]
        };
        some.map(row).collect()
    }
}
