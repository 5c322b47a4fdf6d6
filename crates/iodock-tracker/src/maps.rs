//! Finds the file of a memory map. The kernel names the file with all links resolved; calls use the name that
//! was opened.

use crate::names::SHARED;
use crate::Tracker;
use iodock_event::{FileKind, FileMap, RawCall, UNKNOWN};
use rustc_hash::FxHashMap;

/// The maps that calls created, by space, process and address.
#[derive(Default)]
pub(crate) struct MapCalls {
    made: FxHashMap<(u16, i32, u64), Vec<MapCall>>,
}

struct MapCall {
    start: i64,
    file: u32,
}

impl Tracker {
    /// Makes the tracker remember from now on which call created each map, for [`Tracker::files_of_maps`].
    pub fn remember_maps(&mut self) {
        self.map_calls = Some(MapCalls::default());
    }

    pub(crate) fn note_map(&mut self, live: u32, raw: &RawCall, file: u32) {
        let Some(calls) = &mut self.map_calls else { return };
        let task = &self.tasks.live[live];
        let pid = self.tasks.rows[task.utid as usize].pid;
        let made = calls.made.entry((task.space, pid, raw.result as u64)).or_default();
        made.push(MapCall { start: raw.start, file });
    }

    /// Returns the file of each map, as the call that created the map shows it. If no call is known, returns
    /// the file that has the map's name, and adds it if it is new.
    pub fn files_of_maps(&mut self, space: u16, maps: &[FileMap]) -> Vec<u32> {
        maps.iter().map(|map| self.file_of_map(space, map)).collect()
    }

    fn file_of_map(&mut self, space: u16, map: &FileMap) -> u32 {
        let calls = self.map_calls.as_ref();
        let made = calls.and_then(|calls| calls.made.get(&(space, map.pid as i32, map.start)));
        // The kernel reports a map during the call that creates it. For a map that existed before recording,
        // the last call with the same address counts.
        let before = |call: &&MapCall| map.time == UNKNOWN || call.start <= map.time;
        let call = made.and_then(|made| made.iter().filter(before).max_by_key(|call| call.start));
        match call {
            Some(call) => call.file,
            None => self.names.file(SHARED, FileKind::File, false, &map.path),
        }
    }
}
