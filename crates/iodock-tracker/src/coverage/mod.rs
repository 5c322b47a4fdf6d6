//! Counts how many bytes of each access were read or written before, by the same process and by any process.
//!
//! The counts are exact per file name and byte. A truncated or replaced file keeps its history, because the
//! same bytes of the same name are moved again. Sequential access costs one comparison, because the set of
//! bytes is a single range. A process gets sets of its own only when a second process uses the file. When the
//! sets exceed the memory budget, the tracker drops those of the largest files. The coverage of later
//! accesses to these files is unknown.

mod ranges;
mod regions;
mod set;

use iodock_event::{Direction, EventColumns, LossKind, Losses, TaskRow, NONE};
use rustc_hash::FxHashMap;
use set::{Before, Both};

/// Default memory budget for the sets, bytes.
pub const DEFAULT_COVERAGE_BYTES: usize = 64 << 20;

/// Computes the columns `own_read`, `any_read`, `own_written` and `any_written`.
pub struct Coverage {
    budget: usize,
    used: usize,
    /// Index into `histories` by file id; [`NONE`] for files that were never read or written.
    places: Vec<u32>,
    histories: Vec<History>,
    given_up: u64,
}

/// The ranges of one file that were read and written.
#[derive(Default)]
struct History {
    any: Both,
    /// The process that used the file, as long as there is only one.
    owner: u32,
    /// The ranges of each process; present once several processes have used the file.
    own: Option<Box<FxHashMap<u32, Both>>>,
    /// Memory that the sets use, bytes; part of [`Coverage::used`].
    held: usize,
    given_up: bool,
}

/// Adds an access to `both`, and adds the additional memory to `held`.
fn add_counted(both: &mut Both, held: &mut usize, writes: bool, start: u64, end: u64) -> Option<Before> {
    let before = both.held();
    let result = both.add(writes, start, end);
    *held = (*held + both.held()).saturating_sub(before);
    result
}

impl Coverage {
    /// Makes an empty coverage. `budget` is the memory that the sets may use, in bytes.
    pub fn new(budget: usize) -> Self {
        Coverage { budget, used: 0, places: Vec::new(), histories: Vec::new(), given_up: 0 }
    }

    /// Fills in the coverage columns of the rows from `from_row` on. `tasks` is the tracker's table of tasks.
    pub fn annotate(&mut self, events: &mut EventColumns, from_row: usize, tasks: &[TaskRow]) {
        let process_of = |utid: u32| tasks.get(utid as usize).map_or(NONE, |task| task.upid);
        self.annotate_by(events, from_row, process_of);
    }

    /// Fills in the columns like [`Coverage::annotate`]; `process_of` returns the process of a task.
    pub fn annotate_by(
        &mut self,
        events: &mut EventColumns,
        from_row: usize,
        process_of: impl Fn(u32) -> u32,
    ) {
        for row in from_row..events.len() {
            let (direction, bytes, offset) = (events.direction[row], events.bytes[row], events.offset[row]);
            if direction == Direction::Neither as u8 || bytes <= 0 || offset < 0 || events.file[row] == NONE {
                continue;
            }
            let Some(end) = offset.checked_add(bytes) else { continue };
            let process = process_of(events.utid[row]);
            let writes = direction == Direction::Write as u8;
            let Some((own, any)) = self.add(events.file[row], process, writes, offset as u64, end as u64)
            else {
                self.given_up += 1;
                continue;
            };
            events.own_read[row] = own.read;
            events.any_read[row] = any.read;
            events.own_written[row] = own.written;
            events.any_written[row] = any.written;
        }
    }

    /// Returns the number of accesses whose coverage is unknown, as losses.
    pub fn losses(&self) -> Losses {
        let mut losses = Losses::default();
        losses.add(LossKind::CoverageMemory, self.given_up);
        losses
    }

    fn add(
        &mut self,
        file: u32,
        process: u32,
        writes: bool,
        start: u64,
        end: u64,
    ) -> Option<(Before, Before)> {
        let place = self.place(file, process);
        let history = &mut self.histories[place];
        if history.given_up {
            return None;
        }
        let held = history.held;
        let result = history.add(process, writes, start, end);
        self.used = (self.used + history.held).saturating_sub(held);
        if result.is_none() {
            self.give_up(place);
        } else if self.used > self.budget {
            self.shrink();
        }
        result
    }

    fn place(&mut self, file: u32, process: u32) -> usize {
        let index = file as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, NONE);
        }
        if self.places[index] == NONE {
            self.places[index] = self.histories.len() as u32;
            let held = std::mem::size_of::<History>();
            self.used += held;
            self.histories.push(History { owner: process, held, ..History::default() });
        }
        self.places[index] as usize
    }

    fn give_up(&mut self, place: usize) {
        let history = &mut self.histories[place];
        self.used = self.used.saturating_sub(history.held);
        *history = History { given_up: true, ..History::default() };
    }

    /// Drops the sets of the largest files until a quarter of the budget is free.
    fn shrink(&mut self) {
        let mut sizes: Vec<(usize, usize)> =
            self.histories.iter().enumerate().map(|(place, history)| (history.held, place)).collect();
        sizes.sort_unstable();
        while self.used > self.budget / 4 * 3 {
            let Some((_, place)) = sizes.pop() else { break };
            self.give_up(place);
        }
    }
}

/// Memory for each process that shares a file, bytes.
const OWN_BYTES: usize = 2 * std::mem::size_of::<Both>();

impl History {
    fn add(&mut self, process: u32, writes: bool, start: u64, end: u64) -> Option<(Before, Before)> {
        if self.own.is_none() && process != self.owner {
            self.held += OWN_BYTES + self.any.held();
            self.own = Some(Box::new([(self.owner, self.any.clone())].into_iter().collect()));
        }
        let any = add_counted(&mut self.any, &mut self.held, writes, start, end)?;
        let Some(own) = &mut self.own else {
            return Some((any, any));
        };
        let own = own.entry(process).or_insert_with(|| {
            self.held += OWN_BYTES;
            Both::default()
        });
        Some((add_counted(own, &mut self.held, writes, start, end)?, any))
    }
}

#[cfg(test)]
mod tests;
