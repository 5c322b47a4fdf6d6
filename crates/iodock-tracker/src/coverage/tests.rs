use super::*;
use iodock_event::event::EventRow;
use iodock_event::{TaskOrigin, UNKNOWN};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

fn task(upid: u32) -> TaskRow {
    TaskRow {
        upid,
        host: u16::MAX,
        exit_signal: u16::MAX,
        rank: None,
        pid: 1,
        tid: 1,
        generation: 0,
        parent_utid: NONE,
        parent_pid: None,
        how: TaskOrigin::Root,
        core_dumped: false,
        exit_code: None,
        start: 0,
        end: 0,
        cpu_user: UNKNOWN,
        cpu_system: UNKNOWN,
    }
}

fn row(file: u32, utid: u32, writes: bool, offset: i64, bytes: i64) -> EventRow {
    EventRow {
        ts: 0,
        end_ts: UNKNOWN,
        dur: 0,
        sys_cpu: UNKNOWN,
        call: 0,
        errno: u16::MAX,
        result: bytes,
        utid,
        file,
        other_file: NONE,
        side: 0,
        requested: bytes,
        offset,
        bytes,
        direction: if writes { 2 } else { 1 },
        fd: 3,
        handle: 0,
        flags: 0,
        pattern: 0,
        gap: UNKNOWN,
        own_read: UNKNOWN,
        any_read: UNKNOWN,
        own_written: UNKNOWN,
        site: iodock_event::NONE,
        stack: iodock_event::NONE,
        any_written: UNKNOWN,
        interface_call: iodock_event::NONE,
    }
}

#[derive(Default)]
struct Model {
    touched: HashMap<(u32, Option<u32>, bool), HashSet<i64>>,
}

impl Model {
    /// Returns the expected counts. The model counts blocks of `unit` bytes, so that its sets stay small.
    fn before(&mut self, row: &EventRow, unit: i64) -> [i64; 4] {
        let blocks = row.offset / unit..(row.offset + row.bytes) / unit;
        let count = |touched: &HashMap<_, HashSet<i64>>, process, writes| {
            let set = touched.get(&(row.file, process, writes));
            blocks.clone().filter(|block| set.is_some_and(|set| set.contains(block))).count() as i64 * unit
        };
        let own = Some(row.utid);
        let result = [
            count(&self.touched, own, false),
            count(&self.touched, None, false),
            count(&self.touched, own, true),
            count(&self.touched, None, true),
        ];
        for process in [own, None] {
            self.touched.entry((row.file, process, row.direction == 2)).or_default().extend(blocks.clone());
        }
        result
    }
}

fn check(accesses: &[(u32, u32, bool, i64, i64)], unit: i64) {
    let tasks = [task(0), task(1), task(2)];
    let mut events = EventColumns::default();
    let mut model = Model::default();
    let mut coverage = Coverage::new(usize::MAX);
    let mut expected = Vec::new();
    for &(file, utid, writes, offset, bytes) in accesses {
        let row = row(file, utid, writes, offset * unit, bytes * unit);
        expected.push(model.before(&row, unit));
        events.push(&row);
    }
    coverage.annotate(&mut events, 0, &tasks);
    for (index, expected) in expected.iter().enumerate() {
        let row = events.row(index);
        assert_eq!(&[row.own_read, row.any_read, row.own_written, row.any_written], expected, "row {index}");
    }
    let held: usize = coverage.histories.iter().map(|history| history.held).sum();
    assert_eq!(held, coverage.used);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn coverage_equals_that_of_a_set_of_bytes(
        accesses in prop::collection::vec((0..2u32, 0..3u32, any::<bool>(), 0..400i64, 1..40i64), 1..200)
    ) {
        check(&accesses, 1);
    }

    /// Uses blocks of 128 KiB and more than 64 ranges, so that lists become regions and regions become full.
    #[test]
    fn coverage_is_exact_over_several_regions(
        accesses in prop::collection::vec((0..1u32, 0..2u32, any::<bool>(), 0..3000i64, 1..30i64), 200..500)
    ) {
        check(&accesses, 1 << 17);
    }
}

#[test]
fn sequential_access_uses_no_list() {
    let accesses: Vec<_> = (0..1000).map(|n| (0, 0, n % 2 == 0, n / 2 * 10, 10)).collect();
    check(&accesses, 1);
    let mut coverage = Coverage::new(1 << 20);
    let mut events = EventColumns::default();
    for n in 0..1000 {
        events.push(&row(0, 0, true, n * 10, 10));
    }
    coverage.annotate(&mut events, 0, &[task(0)]);
    assert_eq!(coverage.used, std::mem::size_of::<History>());
}

#[test]
fn over_the_memory_limit_the_largest_file_is_abandoned() {
    let mut coverage = Coverage::new(20_000);
    let mut events = EventColumns::default();
    events.push(&row(1, 0, true, 0, 10));
    for n in 0..2000 {
        events.push(&row(0, 0, true, n * 5_000_000, 10));
    }
    events.push(&row(1, 0, false, 0, 10));
    coverage.annotate(&mut events, 0, &[task(0)]);
    let last = events.row(2001);
    assert_eq!((last.own_written, last.any_written, last.any_read), (10, 10, 0));
    assert_eq!(events.row(2000).any_written, UNKNOWN);
    let unknown = events.any_written.iter().filter(|&&value| value == UNKNOWN).count() as u64;
    assert_eq!(coverage.losses().count(LossKind::CoverageMemory), unknown);
    assert!(unknown > 0 && coverage.used < 20_000);
}

#[test]
fn coverage_of_an_impossible_size_is_unknown() {
    let mut coverage = Coverage::new(1 << 20);
    let mut events = EventColumns::default();
    for n in 0..200 {
        events.push(&row(0, 0, true, n * 20, 10));
    }
    events.push(&row(0, 0, true, 5, i64::MAX - 5));
    events.push(&row(0, 0, true, 9, i64::MAX - 5));
    coverage.annotate(&mut events, 0, &[task(0)]);
    assert_eq!(events.row(200).any_written, UNKNOWN);
}
