//! Counts how many bytes of each access were read or written before, by the same process and by any process.
//!
//! The counts are exact, by file name and byte. A truncated or replaced file keeps its history, because the
//! same bytes of the same name are moved again. Sequential access costs one comparison, since its set is a
//! single range. A process has separate sets only after a second process uses the file. The memory of the
//! sets is counted. When it exceeds the budget, the sets of the largest files are dropped, and their later
//! accesses are unknown.

mod ranges;
mod regions;
mod set;

use iodock_event::{Direction, EventColumns, LossKind, Losses, TaskRow, NONE};
use rustc_hash::FxHashMap;
use set::{Before, Both};

/// Default budget for the sets.
pub const DEFAULT_COVERAGE_BYTES: usize = 64 << 20;

/// Fills `own_read`, `any_read`, `own_written`, `any_written`.
pub struct Coverage {
    budget: usize,
    used: usize,
    /// Index into `histories` by file id, [`NONE`] for files that were never read or written.
    places: Vec<u32>,
    histories: Vec<History>,
    given_up: u64,
}

/// The bytes read and written of one file.
#[derive(Default)]
struct History {
    any: Both,
    /// The only process so far.
    owner: u32,
    /// The sets of each process, once there are several.
    own: Option<Box<FxHashMap<u32, Both>>>,
    /// Bytes of memory, as counted in [`Coverage::used`].
    held: usize,
    given_up: bool,
}

/// Adds an access, and adds the additional memory to `held`.
fn add_counted(both: &mut Both, held: &mut usize, writes: bool, start: u64, end: u64) -> Option<Before> {
    let before = both.held();
    let result = both.add(writes, start, end);
    *held = (*held + both.held()).saturating_sub(before);
    result
}

impl Coverage {
    /// `budget`: bytes of memory that the sets may use.
    pub fn new(budget: usize) -> Self {
        Coverage { budget, used: 0, places: Vec::new(), histories: Vec::new(), given_up: 0 }
    }

    /// Fills in the rows from `from_row` on. `tasks` is the tracker's table.
    pub fn annotate(&mut self, events: &mut EventColumns, from_row: usize, tasks: &[TaskRow]) {
        let process_of = |utid: u32| tasks.get(utid as usize).map_or(NONE, |task| task.upid);
        self.annotate_by(events, from_row, process_of);
    }

    /// The same, where `process_of` says which process a task belongs to.
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

    /// The number of accesses whose coverage is unknown.
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

    /// Drops the largest files until a quarter of the budget is free.
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

/// The memory for each process that shares a file.
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
