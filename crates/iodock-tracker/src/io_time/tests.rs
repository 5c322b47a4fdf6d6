use super::union::Union;
use super::IoTimes;
use iodock_event::event::EventRow;
use iodock_event::tables::TaskIo;
use iodock_event::{CallId, Direction, EventColumns, FileEntry, FileKind, IoTime, Side, NONE};
use proptest::prelude::*;

/// Counts the covered nanoseconds one by one.
fn brute(intervals: &[(i64, i64)]) -> i64 {
    let mut covered = std::collections::HashSet::new();
    for &(from, to) in intervals {
        covered.extend(from..to);
    }
    covered.len() as i64
}

proptest! {
    #[test]
    fn the_union_of_intervals_is_exact_in_any_order(mut intervals in prop::collection::vec((0..400i64, 0..60i64, 0..50i64), 0..200)) {
        intervals.sort_by_key(|&(from, length, disorder)| from + length + disorder);
        let intervals: Vec<_> = intervals.iter().map(|&(from, length, _)| (from, from + length)).collect();
        let mut union = Union::default();
        intervals.iter().for_each(|&(from, to)| union.add(from, to));
        prop_assert_eq!(union.total(), Some(brute(&intervals)));
    }
}

/// Adds calls of 2 ns every 10 ns, which overlap two long calls that began at 5,000 and at 400,001.
fn fill(union: &mut Union, count: i64, shrink: bool) {
    for call in 0..count {
        union.add(call * 10, call * 10 + 2);
        if shrink && union.is_large() {
            union.shrink(&[5_000, 400_001]);
        }
    }
}

#[test]
fn old_intervals_are_merged_between_starts_of_open_calls() {
    let mut union = Union::default();
    fill(&mut union, 200_000, true);
    assert!(!union.is_large());
    assert_eq!(union.total(), Some(400_000));
    union.add(400_001, 2_000_001);
    assert_eq!(union.total(), Some(80_001 + 1_600_000));
    union.add(5_000, 2_000_010);
    assert_eq!(union.total(), Some(1_000 + 1_995_010));
}

#[test]
fn a_late_call_inside_merged_intervals_makes_io_time_unknown() {
    let mut union = Union::default();
    fill(&mut union, 200_000, true);
    union.add(300_000, 300_005);
    assert_eq!(union.total(), None);
    let mut union = Union::default();
    fill(&mut union, 200_000, false);
    union.add(300_000, 300_005);
    assert_eq!(union.total(), Some(400_003));
}

#[test]
fn io_time_is_unknown_if_the_order_of_calls_costs_too_much() {
    let mut union = Union::default();
    (0..100_000).for_each(|call| union.add(call * 10, call * 10 + 2));
    (0..100_000).for_each(|call| union.add(call * 10 + 4, call * 10 + 6));
    assert_eq!(union.total(), None);
}

fn call(name: &str) -> u16 {
    CallId::intern(name.as_bytes()).unwrap().0
}

fn row(name: &str, file: u32, direction: Direction, ts: i64, dur: i64) -> EventRow {
    EventRow { ts, dur, call: call(name), file, direction: direction as u8, ..EventRow::BLANK }
}

fn times(rows: &[EventRow], kinds: &[FileKind], last: &[FileKind]) -> (Option<IoTime>, Vec<TaskIo>) {
    let files = |kinds: &[FileKind]| kinds.iter().map(|&kind| FileEntry::new(kind)).collect::<Vec<_>>();
    let mut columns = EventColumns::default();
    rows.iter().for_each(|row| columns.push(row));
    let mut times = IoTimes::default();
    times.add(&columns, &files(kinds));
    times.finish(&files(last), 2)
}

#[test]
fn waiting_for_pipes_and_standard_input_is_not_file_io_time() {
    let kinds = [FileKind::Regular, FileKind::Pipe, FileKind::Standard];
    let rows = [
        row("read", 0, Direction::Read, 0, 10),
        row("read", 1, Direction::Read, 20, 10),
        row("read", 2, Direction::Read, 40, 10),
        EventRow { utid: 1, ..row("write", 2, Direction::Write, 60, 10) },
        EventRow { side: Side::Out as u8, ..row("write", 0, Direction::Write, 80, 10) },
        row("poll", NONE, Direction::Neither, 100, 10),
        row("getpid", NONE, Direction::Neither, 120, 10),
        row("futex", NONE, Direction::Neither, 140, 10),
    ];
    let (run, tasks) = times(&rows, &kinds, &kinds);
    assert_eq!(run, Some(IoTime { any: 50, file: 20 }));
    assert_eq!(tasks, [TaskIo { io: 10, waiting: 30 }, TaskIo { io: 10, waiting: 0 }]);
}

#[test]
fn a_path_that_later_proves_a_fifo_makes_io_time_unknown() {
    let rows = [row("read", 0, Direction::Read, 0, 10)];
    let known = |last| times(&rows, &[FileKind::File], &[last]).0.is_some();
    assert!(known(FileKind::Regular));
    assert!(!known(FileKind::Fifo));
}

#[test]
fn without_times_io_time_is_unknown() {
    let unstamped = EventRow { ts: iodock_event::UNKNOWN, ..row("read", 0, Direction::Read, 0, 10) };
    let (run, tasks) = times(&[unstamped], &[FileKind::File], &[FileKind::File]);
    assert_eq!((run, tasks[0].io), (None, 10));
    let untimed = EventRow { dur: iodock_event::UNKNOWN, ..row("read", 0, Direction::Read, 0, 10) };
    assert_eq!(times(&[untimed], &[FileKind::File], &[FileKind::File]), (None, vec![]));
}
