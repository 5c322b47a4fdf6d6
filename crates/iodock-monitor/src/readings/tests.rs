//! Tests the growth that follows from batches of an agent for a target with known counters.

use super::*;
use crate::rows::JobRow;
use iodock_samples::sample::Evidence;

/// Functions for these tests and for those of job steps.
impl Readings {
    pub fn steps_known(&self) -> usize {
        self.steps.known()
    }

    /// Returns the state in the form of an older version, without job steps.
    pub fn without_its_steps(&self) -> impl Serialize + '_ {
        (&self.senders, &self.targets)
    }
}

const SECOND: i64 = 1_000_000_000;

/// Job, bytes written, start time in s, and time of last use in s.
type Job = (&'static str, u64, Option<i64>, i64);

fn part(time: i64, full: bool, jobs: &[Job]) -> Part {
    let mut names = Names::default();
    let write = names.intern(b"write_bytes").expect("a name");
    let entry = |&(job, bytes, start, updated): &Job| Entry {
        owner: owner(job),
        values: vec![(Metric::new(write, Quantity::Bytes), bytes), (Metric::new(write, Quantity::Count), 1)],
        start_time: start.map(|start| start * SECOND),
        updated: Some(updated * SECOND),
    };
    Part {
        source: "obdfilter_job_stats".into(),
        target: "lfs-OST0000".into(),
        time: time * SECOND,
        full,
        last: true,
        names: names.texts().map(str::to_owned).collect(),
        entries: jobs.iter().map(entry).collect(),
        ..Part::default()
    }
}

fn owner(job: &str) -> Owner {
    Owner { evidence: Evidence::Server, job: job.into(), ..Owner::default() }
}

fn sender() -> SenderId {
    SenderId { spool: [1; 16], host: "oss1".into() }
}

fn batch(sequence: u64, part: Part) -> Batch {
    let (host, time) = ("oss1".into(), part.time);
    Batch { spool: [1; 16], sequence, host, time, parts: vec![part], ..Batch::default() }
}

/// Removes the rows, and returns the job, the bytes written and whether they are exact for each.
fn written(rows: &mut Rows) -> Vec<(String, u64, bool)> {
    let row =
        |row: JobRow| (String::from_utf8_lossy(&row.owner.job).into_owned(), row.counters[1], row.is_exact);
    rows.jobs.drain(..).map(row).collect()
}

fn one(job: &str, bytes: u64, exact: bool) -> Vec<(String, u64, bool)> {
    vec![(job.into(), bytes, exact)]
}

#[test]
fn growth_is_known_from_the_second_reading_on() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    readings.apply(&batch(1, part(100, true, &[("a", 500, Some(1), 99)])), &mut rows);
    assert_eq!(written(&mut rows), []);
    readings.apply(&batch(2, part(110, false, &[("a", 700, Some(1), 109)])), &mut rows);
    assert_eq!((rows.jobs[0].begin, rows.jobs[0].end), (100 * SECOND, 110 * SECOND));
    assert_eq!(written(&mut rows), one("a", 200, true));
    // Job b is new since the last reading of this target.
    readings.apply(&batch(3, part(120, false, &[("b", 30, Some(111), 119)])), &mut rows);
    assert_eq!(written(&mut rows), one("b", 30, true));
}

/// io.stat contains no times, but a job's cgroup begins at 0 and ends with the job.
#[test]
fn the_growth_of_a_jobs_cgroup_is_exact() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    let cgroup = |time: i64, bytes: u64| {
        let mut part =
            Part { source: "cgroup_io".into(), ..part(time, time == 100, &[("7", bytes, None, 0)]) };
        part.entries[0].owner.evidence = Evidence::Cgroup;
        part.entries[0].updated = None;
        part
    };
    readings.apply(&batch(1, Part { entries: vec![], ..cgroup(100, 0) }), &mut rows);
    readings.apply(&batch(2, cgroup(110, 500)), &mut rows);
    readings.apply(&batch(3, cgroup(120, 700)), &mut rows);
    assert_eq!(written(&mut rows), [one("7", 500, true), one("7", 200, true)].concat());
    // The job may have been requeued in these 180 s, and the smaller value shows that it was.
    readings.apply(&batch(4, cgroup(300, 900)), &mut rows);
    readings.apply(&batch(5, cgroup(310, 50)), &mut rows);
    assert_eq!(written(&mut rows), [one("7", 200, false), one("7", 50, false)].concat());
}

#[test]
fn a_batch_that_is_received_repeatedly_counts_once() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    readings.apply(&batch(1, part(100, true, &[])), &mut rows);
    let second = batch(2, part(110, false, &[("a", 7, Some(105), 109)]));
    readings.apply(&second, &mut rows);
    assert_eq!(written(&mut rows), one("a", 7, true));
    readings.apply(&second, &mut rows);
    readings.apply(&batch(1, part(100, true, &[])), &mut rows);
    assert_eq!((written(&mut rows), readings.applied(&sender())), (vec![], 2));
}

#[test]
fn a_gap_keeps_bytes_reports_the_loss_and_requests_a_full_round() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    readings.apply(&batch(1, part(100, true, &[("a", 10, Some(1), 99)])), &mut rows);
    assert_eq!(readings.receipt(&sender()), Receipt { kept: 1, full: false });
    readings.apply(&batch(4, part(130, false, &[("a", 40, Some(1), 129)])), &mut rows);
    assert_eq!(readings.receipt(&sender()), Receipt { kept: 4, full: true });
    assert_eq!((rows.losses[0].name.as_str(), rows.losses[0].count), ("dropped-batches", 2));
    // Other jobs may have come and gone in the gap.
    assert_eq!(written(&mut rows), one("a", 30, false));
    readings
        .apply(&batch(5, part(140, true, &[("a", 41, Some(1), 139), ("b", 5, Some(110), 120)])), &mut rows);
    assert_eq!(readings.receipt(&sender()), Receipt { kept: 5, full: false });
    assert_eq!(written(&mut rows), [one("a", 1, false), one("b", 5, false)].concat());
    readings.apply(&batch(6, part(150, false, &[("a", 43, Some(1), 149)])), &mut rows);
    assert_eq!(written(&mut rows), one("a", 2, true));
}

#[test]
fn an_unknown_spool_is_requested_from_its_first_batch() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    assert_eq!(readings.receipt(&sender()), Receipt { kept: 0, full: true });
    readings.apply(&batch(7, part(100, false, &[])), &mut rows);
    // The earlier batches may have gone to another collector, so they are no loss here.
    assert_eq!((readings.receipt(&sender()), rows.losses.len()), (Receipt { kept: 7, full: true }, 0));
}

#[test]
fn an_entry_that_disappeared_and_returned_begins_at_zero() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    readings.apply(&batch(1, part(1000, true, &[("a", 500, Some(1), 100)])), &mut rows);
    let gone = Part { gone: vec![owner("a")], ..part(1010, false, &[]) };
    readings.apply(&batch(2, gone), &mut rows);
    // The job was idle since 100, so the last reading included all its I/O.
    assert_eq!(written(&mut rows), []);
    readings.apply(&batch(3, part(1020, false, &[("a", 70, Some(1015), 1019)])), &mut rows);
    assert_eq!(written(&mut rows), one("a", 70, true));
}

#[test]
fn counters_missing_from_a_full_round_are_removed_and_reported_if_busy() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    readings.apply(&batch(1, part(1000, true, &[("a", 500, Some(1), 999)])), &mut rows);
    readings.apply(&batch(2, part(1010, true, &[])), &mut rows);
    assert_eq!(written(&mut rows), one("a", 0, false));
    readings.apply(&batch(3, part(1020, true, &[])), &mut rows);
    assert_eq!(written(&mut rows), []);
}

#[test]
fn a_counter_that_vanished_restarts_at_zero() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    readings.apply(&batch(1, part(1000, true, &[("a", 500, None, 999)])), &mut rows);
    let mut second = part(1010, false, &[("a", 0, None, 1009)]);
    second.entries[0].values.remove(0);
    readings.apply(&batch(2, second), &mut rows);
    // Without a start time, a smaller value gives only a lower bound.
    assert_eq!(written(&mut rows), one("a", 0, false));
}

#[test]
fn name_numbers_may_differ_between_batches() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    readings.apply(&batch(1, part(100, true, &[("a", 500, Some(1), 99)])), &mut rows);
    let mut second = part(110, false, &[("a", 600, Some(1), 109)]);
    let mut names = Names::default();
    let (_, write) = (names.intern(b"open"), names.intern(b"write_bytes").expect("a name"));
    second.names = names.texts().map(str::to_owned).collect();
    second.entries[0].values =
        vec![(Metric::new(write, Quantity::Bytes), 600), (Metric::new(write, Quantity::Count), 1)];
    readings.apply(&batch(2, second), &mut rows);
    assert_eq!(written(&mut rows), one("a", 100, true));
}

#[test]
fn falling_sums_give_lower_bounds_and_no_negative_growth() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    let falling =
        |time, bytes| Part { trend: Trend::Falls, ..part(time, false, &[("a", bytes, None, time)]) };
    for (sequence, (time, bytes)) in [(100, 500), (110, 300), (120, 450)].into_iter().enumerate() {
        readings.apply(&batch(sequence as u64 + 1, falling(time, bytes)), &mut rows);
    }
    let bytes: Vec<u64> =
        written(&mut rows).into_iter().map(|(_, bytes, _)| bytes).filter(|it| *it > 0).collect();
    assert_eq!(bytes, [150]);
}

#[test]
fn a_reading_in_pieces_counts_when_its_last_piece_arrives() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    let piece = |number, last, full, jobs: &[Job]| Part { piece: number, last, ..part(1000, full, jobs) };
    readings.apply(&batch(1, piece(0, false, true, &[("a", 500, Some(1), 10)])), &mut rows);
    readings.apply(&batch(2, piece(1, true, true, &[("b", 600, Some(1), 10)])), &mut rows);
    // The second piece of a first reading is also read for the first time: its values may be old.
    assert_eq!(written(&mut rows).iter().map(|(_, bytes, _)| bytes).sum::<u64>(), 0);
    let later = |number, last, jobs: &[Job]| Part { piece: number, last, ..part(1010, true, jobs) };
    readings.apply(&batch(3, later(0, false, &[("a", 501, Some(1), 1009)])), &mut rows);
    readings.apply(&batch(4, later(1, false, &[("c", 7, Some(1005), 1009)])), &mut rows);
    readings.apply(&batch(5, later(2, true, &[])), &mut rows);
    assert_eq!(written(&mut rows), [one("a", 1, true), one("c", 7, true)].concat());
    let target = readings.targets.values().next().expect("one");
    assert_eq!((target.entries.len(), target.time), (2, Some(1010 * SECOND)), "b is gone");
}

#[test]
fn an_incomplete_reading_removes_no_counters() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    readings
        .apply(&batch(1, part(1000, true, &[("a", 500, Some(1), 10), ("b", 600, Some(1), 10)])), &mut rows);
    written(&mut rows);
    let piece = |number, last, jobs: &[Job]| Part { piece: number, last, ..part(1010, true, jobs) };
    readings.apply(&batch(2, piece(0, false, &[("a", 501, Some(1), 1009)])), &mut rows);
    // Piece 1 is missing.
    readings.apply(&batch(3, piece(2, true, &[("c", 7, Some(1005), 1009)])), &mut rows);
    assert_eq!(written(&mut rows), [one("a", 1, true), one("c", 7, true)].concat());
    let target = readings.targets.values().next().expect("one");
    assert_eq!((target.entries.len(), target.time), (3, Some(1000 * SECOND)));
}

#[test]
fn gauges_are_known_from_the_first_reading_on() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    let level = |time, value| {
        let mut part = part(time, true, &[("", value, None, time)]);
        part.entries[0].owner = Owner::default();
        part.entries[0].values.truncate(1);
        part.entries[0].values[0].0.quantity = Quantity::Level;
        part
    };
    readings.apply(&batch(1, level(100, 9)), &mut rows);
    readings.apply(&batch(2, level(110, 4)), &mut rows);
    let levels: Vec<_> = rows.values.iter().map(|row| (row.begin, row.end, row.value)).collect();
    assert_eq!(levels, [(100 * SECOND, 100 * SECOND, 9), (110 * SECOND, 110 * SECOND, 4)]);
}

#[test]
fn readings_are_the_same_after_a_restart() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    readings.apply(&batch(1, part(100, true, &[("a", 500, Some(1), 99)])), &mut rows);
    let saved = postcard::to_stdvec(&readings).expect("a snapshot");
    let mut readings: Readings = postcard::from_bytes(&saved).expect("readable");
    readings.apply(&batch(2, part(110, false, &[("a", 700, Some(1), 109)])), &mut rows);
    assert_eq!(written(&mut rows), one("a", 200, true));
}

#[test]
fn a_clock_that_was_set_back_gives_no_negative_interval() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    readings.apply(&batch(1, part(100, true, &[("a", 500, Some(1), 99)])), &mut rows);
    readings.apply(&batch(2, part(50, false, &[("a", 700, Some(1), 49)])), &mut rows);
    assert!(rows.jobs.iter().all(|row| row.begin <= row.end));
    assert_eq!(written(&mut rows), one("a", 200, true));
}

#[test]
fn counters_not_read_for_a_week_are_forgotten() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    readings.apply(&batch(1, part(100, true, &[("a", 500, Some(1), 99)])), &mut rows);
    readings.forget_old(100 * SECOND + FORGOTTEN - 1);
    assert_eq!(readings.targets.len(), 1);
    readings.forget_old(100 * SECOND + FORGOTTEN);
    assert_eq!(readings.targets.len(), 0);
}

#[test]
fn bytes_that_a_parent_takes_over_from_a_child_count_once() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    let falling = |time, full, jobs: &[Job]| Part { trend: Trend::Falls, ..part(time, full, jobs) };
    readings.apply(&batch(1, falling(100, true, &[("shell", 10, None, 100)])), &mut rows);
    readings.apply(&batch(2, falling(110, false, &[("dd", 500, None, 110)])), &mut rows);
    assert_eq!(written(&mut rows), one("dd", 500, false));
    let waited = falling(120, false, &[("shell", 510, None, 120), ("other", 100, None, 120)]);
    readings.apply(&batch(3, Part { gone: vec![owner("dd")], ..waited }), &mut rows);
    let all: u64 = written(&mut rows).iter().map(|(_, bytes, _)| bytes).sum();
    assert!((98..=100).contains(&all), "{all}");
}

/// Only the shell can have waited for dd, because the other owner's gain is smaller than dd's count.
#[test]
fn a_gain_smaller_than_the_loss_of_another_owner_is_counted() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    let falling = |time, full, jobs: &[Job]| Part { trend: Trend::Falls, ..part(time, full, jobs) };
    readings
        .apply(&batch(1, falling(100, true, &[("shell", 10, None, 100), ("dd", 500, None, 100)])), &mut rows);
    let waited = falling(110, false, &[("shell", 517, None, 110), ("other", 100, None, 110)]);
    readings.apply(&batch(2, Part { gone: vec![owner("dd")], ..waited }), &mut rows);
    assert_eq!(written(&mut rows), [one("shell", 7, false), one("other", 100, false)].concat());
}

/// The agent read the shell before dd ended, and looked for dd after it had ended.
#[test]
fn bytes_of_a_process_that_ends_during_a_reading_count_once() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    let falling = |time, full, jobs: &[Job]| Part { trend: Trend::Falls, ..part(time, full, jobs) };
    let full = falling(100, true, &[("shell", 10, None, 100), ("dd", 500, None, 100)]);
    readings.apply(&batch(1, full), &mut rows);
    readings.apply(&batch(2, Part { gone: vec![owner("dd")], ..falling(110, false, &[]) }), &mut rows);
    readings.apply(&batch(3, falling(120, false, &[("shell", 517, None, 120)])), &mut rows);
    assert_eq!(written(&mut rows), one("shell", 7, false));
    // The collector keeps the loss for one more reading only.
    readings.apply(&batch(4, falling(130, true, &[])), &mut rows);
    readings.apply(&batch(5, falling(140, false, &[("other", 100, None, 140)])), &mut rows);
    readings.apply(&batch(6, falling(150, false, &[("other", 700, None, 150)])), &mut rows);
    let all: u64 = written(&mut rows).iter().map(|(_, bytes, _)| bytes).sum();
    assert_eq!(all, 600);
}

/// After a restart an agent does not know the earlier owners, so it sends all that exist.
#[test]
fn bytes_taken_over_count_once_after_an_agent_restart() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    let falling = |time, jobs: &[Job]| Part { trend: Trend::Falls, ..part(time, true, jobs) };
    readings.apply(&batch(1, falling(100, &[("shell", 10, None, 100)])), &mut rows);
    readings.apply(&batch(2, falling(110, &[("shell", 10, None, 110), ("dd", 500, None, 110)])), &mut rows);
    written(&mut rows);
    readings.apply(&batch(3, falling(120, &[("shell", 517, None, 120)])), &mut rows);
    let all: u64 = written(&mut rows).iter().map(|(_, bytes, _)| bytes).sum();
    assert_eq!(all, 7);
}

#[test]
fn values_before_the_first_full_reading_are_not_growth() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    readings.apply(&batch(7, part(100, false, &[])), &mut rows);
    readings.apply(&batch(8, part(110, false, &[("a", 1 << 40, Some(1), 109)])), &mut rows);
    assert_eq!(written(&mut rows), []);
    readings.apply(&batch(9, part(120, true, &[("a", (1 << 40) + 5, Some(1), 119)])), &mut rows);
    assert_eq!(written(&mut rows), one("a", 5, true));
}

#[test]
fn two_machines_with_the_same_name_or_spool_are_kept_apart() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    let from = |spool: u8, host: &str, sequence, part| Batch {
        spool: [spool; 16],
        host: host.into(),
        ..batch(sequence, part)
    };
    let machines = [(1, "localhost", 1 << 40), (2, "localhost", 1 << 30), (1, "clone", 1 << 20)];
    for (spool, host, base) in machines {
        readings.apply(&from(spool, host, 1, part(100, true, &[("a", base, Some(1), 99)])), &mut rows);
    }
    for (spool, host, base) in machines {
        readings.apply(&from(spool, host, 2, part(110, false, &[("a", base + 7, Some(1), 109)])), &mut rows);
        assert_eq!(written(&mut rows), one("a", 7, true));
    }
}

#[test]
fn each_event_gives_one_row_of_its_host() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    let event = Event { first: 5, last: 6, kind: "link-down".into(), count: 2, ..Event::default() };
    let sent = Batch { events: vec![event.clone()], ..batch(1, part(100, true, &[])) };
    readings.apply(&sent, &mut rows);
    readings.apply(&sent, &mut rows);
    let found: Vec<_> = rows.events.iter().map(|row| (row.host.as_str(), &row.event)).collect();
    assert_eq!(found, [("oss1", &event)]);
}

#[test]
fn each_job_name_gives_one_row() {
    let (mut readings, mut rows) = (Readings::default(), Rows::default());
    let named = JobName { job: b"7".into(), user: b"sato".into(), name: b"<b>\n".into() };
    let sent = Batch { job_names: vec![named.clone()], ..batch(1, part(100, true, &[])) };
    readings.apply(&sent, &mut rows);
    readings.apply(&sent, &mut rows);
    let found: Vec<_> = rows.names.iter().map(|row| (row.host.as_str(), &row.named)).collect();
    assert_eq!(found, [("oss1", &named)]);
}

#[test]
fn job_names_count_towards_the_senders_limit() {
    let (readings, bare) = (Readings::default(), batch(1, part(100, true, &[])));
    let short = JobName { job: b"7".into(), user: b"sato".into(), name: b"ocean".into() };
    let long = JobName { name: vec![b'x'; 200], ..short.clone() };
    let sent = Batch { job_names: vec![short, long], ..bare.clone() };
    assert_eq!(work::Work::of(&sent).values, work::Work::of(&bare).values + 2);
    // The long name has 205 characters.
    assert_eq!(readings.new_names(&sent), readings.new_names(&bare) + 1 + 4);
}
