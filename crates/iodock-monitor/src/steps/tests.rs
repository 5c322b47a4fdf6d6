//! Tests that totals of steps and samples of their processes add up to the total, in any order.

use crate::readings::Readings;
use crate::rows::Rows;
use crate::sender::SenderId;
use iodock_samples::batch::{Batch, Part};
use iodock_samples::sample::{Entry, Evidence, Metric, Names, Owner, Quantity, Trend};

const SECOND: i64 = 1_000_000_000;
const STEP: &str = "step_batch";

/// A collector that receives one agent's batches.
#[derive(Default)]
struct Node {
    readings: Readings,
    rows: Rows,
    sequence: u64,
}

/// Owner, and number of bytes requested.
type Sum = (Owner, u64);

fn job(step: &str, evidence: Evidence) -> Owner {
    let user = if evidence == Evidence::Scheduler { "" } else { "alice" };
    Owner { evidence, job: b"7".into(), session: step.into(), user: user.into(), command: Vec::new() }
}

fn sampled() -> Owner {
    job(STEP, Evidence::Cgroup)
}

fn other() -> Owner {
    Owner { evidence: Evidence::Session, command: b"other".into(), ..Owner::default() }
}

fn init() -> Owner {
    Owner { evidence: Evidence::Session, command: b"init".into(), ..Owner::default() }
}

fn part(source: &str, time: i64, sums: &[Sum], times: Option<(i64, i64)>) -> Part {
    let mut names = Names::default();
    // A name's number is valid only within its part.
    names.intern(source.as_bytes()).expect("a name");
    let read = names.intern(b"read_call").expect("a name");
    let entry = |(owner, bytes): &Sum| Entry {
        owner: owner.clone(),
        values: vec![(Metric::new(read, Quantity::Bytes), *bytes)],
        start_time: times.map(|(began, _)| began * SECOND),
        updated: times.map(|(_, ended)| ended * SECOND),
    };
    Part {
        source: source.into(),
        trend: Trend::Falls,
        time: time * SECOND,
        last: true,
        names: names.texts().map(str::to_owned).collect(),
        entries: sums.iter().map(entry).collect(),
        ..Part::default()
    }
}

/// Builds samples of processes. An owner in `gone` has ended.
fn processes(time: i64, sums: &[Sum], gone: &[Owner]) -> Part {
    Part { full: time == 100, gone: gone.to_vec(), ..part("process_io", time, sums, None) }
}

fn total(time: i64, bytes: u64, (began, ended): (i64, i64)) -> Part {
    part("slurm_step", time, &[(job(STEP, Evidence::Scheduler), bytes)], Some((began, ended)))
}

impl Node {
    fn new() -> Node {
        let mut node = Node::default();
        node.push(vec![processes(100, &[], &[])]);
        node
    }

    fn push(&mut self, parts: Vec<Part>) {
        self.sequence += 1;
        let time = parts.iter().map(|part| part.time).max().unwrap_or_default();
        let batch = Batch {
            spool: [1; 16],
            sequence: self.sequence,
            host: "n1".into(),
            time,
            parts,
            ..Batch::default()
        };
        self.readings.apply(&batch, &mut self.rows);
    }

    /// Returns the bytes of job 7, and of all owners.
    fn sums(&self) -> (u64, u64) {
        let bytes = |row: &crate::rows::JobRow| row.counters[4];
        let of_job = self.rows.jobs.iter().filter(|row| row.owner.job == b"7").map(bytes).sum();
        (of_job, self.rows.jobs.iter().map(bytes).sum())
    }
}

#[test]
fn the_part_of_a_step_total_that_samples_missed_is_a_row() {
    let mut node = Node::new();
    node.push(vec![processes(110, &[(sampled(), 300)], &[])]);
    node.push(vec![total(120, 1000, (105, 115)), processes(120, &[(init(), 1000)], &[sampled()])]);
    let row = node.rows.jobs.iter().find(|row| row.place.source == "slurm_step").expect("a row");
    assert_eq!((row.begin, row.end, row.is_exact), (105 * SECOND, 115 * SECOND, true));
    assert_eq!(row.counters[4], 700);
    // The counts that init took over belong to the step, and do not count again for init.
    assert_eq!(node.sums(), (1000, 1000));
}

#[test]
fn a_step_between_two_readings_is_counted_by_its_total() {
    let mut node = Node::new();
    node.push(vec![total(110, 1000, (105, 106)), processes(110, &[(init(), 1000)], &[])]);
    assert_eq!(node.sums(), (1000, 1000));
}

#[test]
fn a_step_total_next_to_an_older_reading_counts_once() {
    let mut node = Node::new();
    node.push(vec![processes(110, &[(sampled(), 300)], &[])]);
    node.push(vec![total(120, 1000, (105, 119)), processes(120, &[(sampled(), 310)], &[])]);
    node.push(vec![processes(130, &[(init(), 1000)], &[sampled()])]);
    assert_eq!(node.sums(), (1000, 1000));
    // No sample contained this second step.
    node.push(vec![total(140, 500, (131, 139)), processes(140, &[], &[])]);
    node.push(vec![processes(150, &[(init(), 1500)], &[])]);
    assert_eq!(node.sums(), (1500, 1500));
}

/// The agent read the processes after slurmstepd had ended, but init before that.
#[test]
fn a_step_that_ends_during_a_reading_counts_once() {
    let mut node = Node::new();
    node.push(vec![processes(110, &[(sampled(), 300)], &[])]);
    node.push(vec![processes(120, &[], &[sampled()])]);
    node.push(vec![total(130, 1000, (105, 119)), processes(130, &[(init(), 1000)], &[])]);
    assert_eq!(node.sums(), (1000, 1000));
}

/// The agent did not report slurmstepd, because its user was unknown. It ended one reading after its total
/// had arrived.
#[test]
fn a_step_counts_once_if_slurmstepd_ends_later() {
    let mut node = Node::new();
    node.push(vec![processes(110, &[(sampled(), 300)], &[])]);
    node.push(vec![processes(120, &[], &[sampled()])]);
    node.push(vec![total(130, 1000, (105, 119)), processes(130, &[], &[])]);
    node.push(vec![processes(140, &[(init(), 1000)], &[])]);
    assert_eq!(node.sums(), (1000, 1000));
}

/// Losses of other owners are still expected, so that they do not count for init either.
#[test]
fn a_step_total_does_not_absorb_losses_of_other_owners() {
    let mut node = Node::new();
    node.push(vec![processes(110, &[(sampled(), 300), (other(), 5000)], &[])]);
    node.push(vec![processes(120, &[], &[sampled(), other()])]);
    node.push(vec![total(130, 1000, (105, 119)), processes(130, &[(init(), 6000)], &[])]);
    assert_eq!(node.sums(), (1000, 6000));
}

#[test]
fn a_step_total_that_is_received_repeatedly_counts_once() {
    let mut node = Node::new();
    node.push(vec![total(110, 1000, (105, 106))]);
    node.push(vec![Part { full: true, ..total(120, 1000, (105, 106)) }]);
    assert_eq!(node.sums(), (1000, 1000));
}

#[test]
fn samples_after_the_step_total_are_included_in_it() {
    let mut node = Node::new();
    node.push(vec![processes(110, &[(sampled(), 300)], &[])]);
    // The step's slurmstepd still exists, with higher counts than before.
    node.push(vec![processes(120, &[(sampled(), 990)], &[]), total(120, 1000, (105, 119))]);
    node.push(vec![processes(130, &[(init(), 1000)], &[sampled()])]);
    assert_eq!(node.sums().0, 1000);
    assert!(node.sums().1 <= 1010, "{:?}", node.sums());
}

#[test]
fn a_late_step_total_adds_only_the_missing_part() {
    let mut node = Node::new();
    node.push(vec![processes(110, &[(sampled(), 300)], &[])]);
    node.push(vec![processes(120, &[(init(), 1000)], &[sampled()])]);
    node.push(vec![
        total(130, 1000, (105, 119)),
        processes(130, &[(job("step_0", Evidence::Cgroup), 50)], &[]),
    ]);
    // Init inherits the counters of the step's processes when they end. So what the step loses (300) is
    // taken off init's growth, and the other step's 50 bytes count in full: 1000 of the total and 50.
    assert_eq!(node.sums().0, 1050);
}

#[test]
fn samples_above_a_step_total_are_kept() {
    let mut node = Node::new();
    node.push(vec![processes(110, &[(sampled(), 300), (job("step_0", Evidence::Cgroup), 500)], &[])]);
    node.push(vec![total(120, 200, (105, 119))]);
    // Samples are lower bounds. If they exceed the total, the rows are not corrected.
    assert_eq!(node.sums().0, 800);
    let ends: Vec<_> = node.rows.jobs.iter().filter(|row| row.place.source == "slurm_step").collect();
    // The row shows that the step has ended, and that its sum is not exact.
    assert_eq!(ends.iter().map(|row| (row.counters[4], row.is_exact)).collect::<Vec<_>>(), [(0, false)]);
}

#[test]
fn a_step_covered_by_samples_has_a_row_for_its_end() {
    let mut node = Node::new();
    node.push(vec![processes(110, &[(sampled(), 300)], &[])]);
    node.push(vec![total(120, 300, (105, 119))]);
    let row = node.rows.jobs.last().expect("a row");
    assert_eq!((row.place.source.as_str(), row.end, row.is_exact), ("slurm_step", 119 * SECOND, true));
    assert_eq!((row.counters[4], node.sums().0), (0, 300));
}

#[test]
fn a_requeued_job_has_both_runs() {
    let mut node = Node::new();
    node.push(vec![processes(110, &[(sampled(), 300)], &[])]);
    node.push(vec![total(120, 1000, (105, 115)), processes(120, &[], &[sampled()])]);
    node.push(vec![processes(130, &[(sampled(), 40)], &[])]);
    node.push(vec![total(140, 70, (121, 135)), processes(140, &[], &[sampled()])]);
    node.push(vec![total(150, 1000, (105, 115)), total(150, 70, (121, 135))]);
    assert_eq!(node.sums().0, 1070);
}

#[test]
fn remembered_steps_survive_a_restart_and_expire() {
    let mut node = Node::new();
    node.push(vec![processes(110, &[(sampled(), 300)], &[])]);
    let saved = postcard::to_stdvec(&node.readings).expect("a snapshot");
    node.readings = postcard::from_bytes(&saved).expect("readable");
    node.push(vec![total(120, 1000, (105, 115))]);
    assert_eq!(node.sums().0, 1000);
    node.readings.forget_old(120 * SECOND + 7 * 86_400 * SECOND);
    assert_eq!(node.readings.steps_known(), 0);
}

#[test]
fn a_snapshot_without_steps_is_accepted() {
    let mut node = Node::new();
    node.push(vec![processes(110, &[(sampled(), 300)], &[])]);
    let mut saved = postcard::to_stdvec(&node.readings.without_its_steps()).expect("a snapshot");
    let readings = Readings::without_steps(&saved).expect("readable");
    assert_eq!(readings.applied(&SenderId { spool: [1; 16], host: "n1".into() }), 2);
    saved.truncate(saved.len() / 2);
    assert!(Readings::without_steps(&saved).is_err());
}
