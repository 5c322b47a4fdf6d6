//! Maps a thread id and a time to a task.

use iodock_event::UNKNOWN;
use iodock_tracker::Tracked;
use rustc_hash::FxHashMap;

/// The tasks that had a thread id, with their start times.
pub struct Tasks(FxHashMap<i32, Vec<(i64, u32)>>);

impl Tasks {
    pub fn of_space(space: u16, tracked: &Tracked) -> Tasks {
        let mut uses: FxHashMap<i32, Vec<(i64, u32)>> = FxHashMap::default();
        let rows = tracked.tables.tasks.iter().zip(&tracked.spaces);
        for (utid, (row, _)) in rows.enumerate().filter(|(_, (_, &of))| of == space) {
            uses.entry(row.tid).or_default().push((row.start, utid as u32));
        }
        Tasks(uses)
    }

    /// Returns the task that had this thread id at that time. The first task counts for earlier times too,
    /// because clocks differ slightly.
    pub fn at(&self, tid: u32, time: i64) -> Option<u32> {
        let uses = self.0.get(&(tid as i32))?;
        let begun = uses.iter().filter(|(start, _)| *start == UNKNOWN || *start <= time);
        begun.max_by_key(|(start, _)| *start).or(uses.first()).map(|&(_, utid)| utid)
    }
}
