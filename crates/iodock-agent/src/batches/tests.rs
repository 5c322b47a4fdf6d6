use super::*;
use crate::sample::{Entry, Evidence, Metric, Names, Owner, Quantity};
use std::path::PathBuf;
use std::time::{Duration, Instant};

struct Bench {
    folder: PathBuf,
    spool: Arc<Spool>,
    batches: Arc<Batches>,
    rounds: i64,
    read: crate::spool::Load,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Bench {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("iodock-batches-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let spool = Spool::open(&folder, 64 << 20, Box::new(|_| ())).expect("a spool");
        let batches = Arc::new(Batches::new("h".into(), Arc::clone(&spool)));
        Bench { folder, spool, batches, rounds: 0, read: Default::default() }
    }

    /// Makes a round with a reading of jobs and their bytes. Returns the parts that the agent sends.
    fn round(&mut self, jobs: &[(&str, u64)], is_complete: bool) -> Vec<Part> {
        self.rounds += 1;
        let round = self.batches.begin(self.rounds);
        read(&round, jobs, is_complete, self.rounds);
        self.batches.end(Vec::new(), Vec::new());
        self.sent().into_iter().flat_map(|batch| batch.parts).collect()
    }

    fn sent(&mut self) -> Vec<Batch> {
        let (mut batches, begin) = (Vec::<Batch>::new(), Instant::now());
        let last = self.spool.number() - 1;
        while batches.last().is_none_or(|batch| batch.sequence < last) {
            assert!(begin.elapsed() < Duration::from_secs(60), "the batch was not written");
            let Some(load) = self.spool.load(&self.read, 1 << 20) else {
                std::thread::yield_now();
                continue;
            };
            let mut rest = &load.bytes[..];
            while !rest.is_empty() {
                let (batch, after) = frame::decode(rest).expect("frames");
                batches.push(batch);
                rest = after;
            }
            self.spool.keep(load.last, false);
            self.read = load;
        }
        batches
    }
}

fn read(round: &Round, jobs: &[(&str, u64)], is_complete: bool, time: i64) {
    let (mut names, mut reading) =
        (Names::default(), round.compare("s", ("lfs", "t"), Trend::Grows, time).expect("a round"));
    let name = names.intern(b"read").expect("a name");
    for (job, bytes) in jobs {
        let owner = Owner { evidence: Evidence::Server, job: job.as_bytes().into(), ..Owner::default() };
        let values = vec![(Metric::new(name, Quantity::Bytes), *bytes)];
        reading.entry(&Entry { owner, values, ..Entry::default() }, &names);
    }
    reading.end(&names, is_complete);
}

fn jobs(part: &Part) -> Vec<String> {
    part.entries.iter().map(|entry| String::from_utf8_lossy(&entry.owner.job).into_owned()).collect()
}

fn gone(part: &Part) -> Vec<String> {
    part.gone.iter().map(|owner| String::from_utf8_lossy(&owner.job).into_owned()).collect()
}

#[test]
fn changed_and_removed_values_are_sent() {
    let mut bench = Bench::new("changes");
    let first = bench.round(&[("1", 5), ("2", 5)], true);
    assert_eq!(
        (first.len(), first[0].full, first[0].last, jobs(&first[0])),
        (1, true, true, vec!["1".into(), "2".into()])
    );
    let second = bench.round(&[("1", 5), ("2", 6), ("3", 1)], true);
    assert_eq!(
        (second[0].full, second[0].last, jobs(&second[0])),
        (false, true, vec!["2".into(), "3".into()])
    );
    let third = bench.round(&[("3", 1)], true);
    let mut went = gone(&third[0]);
    went.sort();
    assert_eq!((jobs(&third[0]).len(), went, third[0].time), (0, vec!["1".into(), "2".into()], 3));
    assert!(third[0].names.is_empty());
    // The job disappeared and returned with the same value, which is still a change.
    assert_eq!(jobs(&bench.round(&[("3", 1), ("1", 5)], true)[0]), ["1"]);
}

#[test]
fn an_incomplete_reading_leaves_the_other_values_unchanged() {
    let mut bench = Bench::new("broken");
    bench.round(&[("1", 5), ("2", 5)], true);
    let cut = bench.round(&[("1", 6)], false);
    assert_eq!((cut[0].last, jobs(&cut[0]), gone(&cut[0]).len()), (false, vec!["1".into()], 0));
    let whole = bench.round(&[("1", 6), ("2", 5)], true);
    assert_eq!((whole[0].last, whole[0].full, jobs(&whole[0]).len()), (true, false, 0));
    // A full reading that was interrupted must be repeated in the next round.
    bench.spool.wish().ask(u64::MAX);
    let cut = bench.round(&[("1", 6)], false);
    assert!(cut[0].full && !cut[0].last);
    assert!(bench.round(&[("1", 6), ("2", 5)], true)[0].full);
    assert!(!bench.round(&[("1", 6), ("2", 5)], true)[0].full);
}

#[test]
fn a_late_reading_is_dropped_and_the_next_round_is_full() {
    let mut bench = Bench::new("late");
    bench.round(&[("1", 5)], true);
    let round = bench.batches.begin(2);
    let mut late = round.compare("s", ("lfs", "t"), Trend::Grows, 2).expect("a round");
    bench.batches.end(Vec::new(), Vec::new());
    let mut names = Names::default();
    let name = names.intern(b"read").expect("a name");
    let values = vec![(Metric::new(name, Quantity::Bytes), 7)];
    late.entry(&Entry { values, ..Entry::default() }, &names);
    late.end(&names, true);
    assert!(round.compare("s", ("lfs", "other"), Trend::Grows, 2).is_none());
    assert_eq!(bench.sent().last().map(|batch| batch.parts.len()), Some(0));
    assert!(bench.round(&[("1", 5)], true)[0].full);
}

#[test]
fn a_target_counts_once_per_round_and_an_owner_once_per_reading() {
    let mut bench = Bench::new("twice");
    let round = bench.batches.begin(1);
    read(&round, &[("1", 5), ("1", 7)], true, 1);
    assert!(round.compare("s", ("lfs", "t"), Trend::Grows, 1).is_none());
    bench.batches.end(Vec::new(), Vec::new());
    let parts: Vec<Part> = bench.sent().into_iter().flat_map(|batch| batch.parts).collect();
    assert_eq!((parts.len(), jobs(&parts[0])), (1, vec!["1".to_string()]));
}

#[test]
fn a_long_reading_is_split_into_ordered_pieces() {
    let mut bench = Bench::new("long");
    let ids: Vec<String> = (0..20_000).map(|job| format!("job-{job}")).collect();
    let all: Vec<(&str, u64)> = ids.iter().map(|id| (id.as_str(), 1)).collect();
    let round = bench.batches.begin(1);
    read(&round, &all, true, 1);
    bench.batches.end(Vec::new(), Vec::new());
    let batches = bench.sent();
    assert!(batches.len() > 2 && batches.iter().all(|batch| batch.time == 1));
    let pieces: Vec<&Part> = batches.iter().flat_map(|batch| &batch.parts).collect();
    for (piece, number) in pieces.iter().zip(0..) {
        assert!(piece.full && piece.piece == number && piece.last == (number as usize == pieces.len() - 1));
    }
    let sent: Vec<String> = pieces.iter().flat_map(|piece| jobs(piece)).collect();
    assert_eq!(sent, ids);
    // All jobs disappear.
    let went: usize = bench.round(&[], true).iter().map(|part| part.gone.len()).sum();
    assert_eq!(went, ids.len());
}

#[test]
fn events_are_sent_with_their_round_and_joined_above_the_limit() {
    let mut bench = Bench::new("events");
    let event = |count| Event { kind: "link-down".into(), count, ..Event::default() };
    bench.batches.begin(1);
    bench.batches.end(Vec::new(), vec![event(1); 2 * MOST_EVENTS]);
    let sent = bench.sent();
    let events = &sent[0].events;
    assert_eq!((sent.len(), events.len(), events[0].clone()), (1, MOST_EVENTS, event(1)));
    assert_eq!(events.iter().map(|event| event.count).sum::<u64>(), 2 * MOST_EVENTS as u64);
    assert_eq!(events[MOST_EVENTS - 1].kind, "more-events");
    bench.batches.begin(2);
    bench.batches.end(Vec::new(), Vec::new());
    assert!(bench.sent().iter().all(|batch| batch.sequence < 2 || batch.events.is_empty()));
}
