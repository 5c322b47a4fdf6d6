//! Tests computed growth against a simulated server, which has one entry per job, removes idle entries, and
//! knows the number of bytes written.

use super::*;

const SECOND: i64 = 1_000_000_000;
/// Lustre's default `job_cleanup_interval`. The server looks for idle entries every half interval.
const CLEANUP: i64 = 600 * SECOND;

fn reading(value: u64, start: Option<i64>, updated: i64, time: i64) -> Reading {
    let seconds = |time: i64| time * SECOND;
    Reading { value, start_time: start.map(seconds), updated: Some(seconds(updated)), time: seconds(time) }
}

#[test]
fn a_first_reading_gives_no_growth() {
    let growth = Expiry::default().growth(Before::Unread, &reading(500, Some(1), 5, 10));
    assert_eq!(growth, Growth::AtLeast(0));
}

#[test]
fn a_smaller_value_without_start_is_a_lower_bound() {
    let before = Before::Present(reading(500, None, 5, 10));
    assert_eq!(Expiry::default().growth(before, &reading(70, None, 19, 20)), Growth::AtLeast(70));
}

#[test]
fn a_cleared_entry_that_was_busy_is_a_lower_bound() {
    let before = Before::Present(reading(500, Some(1), 995, 1000));
    assert_eq!(Expiry::default().growth(before, &reading(70, Some(1005), 1009, 1010)), Growth::AtLeast(70));
}

#[test]
fn a_fall_within_one_entry_gives_no_growth() {
    let before = Before::Present(reading(500, Some(1), 5, 10));
    assert_eq!(Expiry::default().growth(before, &reading(70, Some(1), 19, 20)), Growth::AtLeast(0));
}

/// Random numbers from xorshift64*, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }
}

#[derive(Clone, Copy)]
struct Entry {
    value: u64,
    start: i64,
    updated: i64,
}

#[derive(Default)]
struct Server {
    entry: Option<Entry>,
    swept: i64,
    truth: u64,
    expiries: u64,
}

impl Server {
    fn write(&mut self, bytes: u64, now: i64) {
        // The server looks for idle entries when it is accessed, at most once per half interval.
        self.sweep(now);
        let entry = self.entry.get_or_insert(Entry { value: 0, start: now, updated: now });
        entry.value += bytes;
        entry.updated = now;
        self.truth += bytes;
    }

    fn sweep(&mut self, now: i64) {
        if now - self.swept < CLEANUP / 2 {
            return;
        }
        self.swept = now;
        if self.entry.is_some_and(|entry| now - entry.updated >= CLEANUP) {
            self.entry = None;
            self.expiries += 1;
        }
    }

    /// Does what `job_stats=clear` by an administrator does.
    fn clear(&mut self) {
        self.entry = None;
    }

    fn read(&self, now: i64, has_start: bool) -> Option<Reading> {
        self.entry.map(|entry| Reading {
            value: entry.value,
            start_time: has_start.then_some(entry.start),
            updated: Some(entry.updated),
            time: now,
        })
    }
}

#[derive(Default)]
struct Outcome {
    certain: u64,
    bounds: u64,
    truth: u64,
    expiries: u64,
}

/// Simulates a job that works, pauses for longer than the cleanup interval, and works again. Reads its
/// counter at the given intervals.
fn simulate(seed: u64, has_start: bool, gap: impl Fn(&mut Random) -> i64, clears: bool) -> Outcome {
    let (mut random, mut server, mut outcome) = (Random(seed), Server::default(), Outcome::default());
    let mut now = 1_000_000 * SECOND;
    // The file is read before the job begins.
    let (mut before, mut next_reading, mut next_write) = (Before::Absent { time: now }, now + SECOND, now);
    for _ in 0..4000 {
        if next_write <= next_reading {
            now = next_write;
            server.write(1 + random.below(1 << 30), now);
            let pause = if random.below(20) == 0 { 500 + random.below(1500) } else { 1 + random.below(15) };
            next_write = now + pause as i64 * SECOND + random.below(1_000_000_000) as i64;
            if clears && random.below(30) == 0 {
                server.clear();
            }
            continue;
        }
        now = next_reading;
        next_reading = now + gap(&mut random);
        // Accesses by other jobs also make the server look for idle entries.
        server.sweep(now);
        let reading = server.read(now, has_start);
        let growth = match (before, reading) {
            (_, Some(reading)) => Expiry::default().growth(before, &reading),
            (Before::Present(last), None) => Expiry::default().last_growth(&last, now),
            (_, None) => Growth::Exact(0),
        };
        outcome.certain += growth.certain();
        outcome.bounds += u64::from(matches!(growth, Growth::AtLeast(_)));
        before = reading.map_or(Before::Absent { time: now }, Before::Present);
        outcome.truth = server.truth;
    }
    outcome.truth = server.truth;
    // Bytes that were written after the last reading do not count as an error.
    if let (Some(last), Before::Present(read)) = (server.entry, before) {
        outcome.truth -= if last.start == read.start_time.unwrap_or(last.start) && last.value >= read.value {
            last.value - read.value
        } else {
            last.value
        };
    }
    outcome.expiries = server.expiries;
    outcome
}

fn every_ten_seconds(_: &mut Random) -> i64 {
    10 * SECOND
}

#[test]
fn with_start_times_growth_is_exact_over_cleanup_and_return() {
    for seed in 1..40 {
        let outcome = simulate(seed, true, every_ten_seconds, false);
        assert!(outcome.expiries > 3, "the simulation must expire entries: {}", outcome.expiries);
        assert_eq!((outcome.certain, outcome.bounds), (outcome.truth, 0), "seed {seed}");
    }
}

#[test]
fn without_start_times_growth_never_exceeds_the_truth() {
    for seed in 1..40 {
        let outcome = simulate(seed, false, every_ten_seconds, false);
        assert!(outcome.certain <= outcome.truth, "seed {seed}");
        assert!(outcome.certain == outcome.truth || outcome.bounds > 0, "seed {seed}: an untold error");
    }
}

/// Returns intervals between readings, some of them longer than the life of an entry.
fn with_outages(random: &mut Random) -> i64 {
    let seconds = if random.below(10) == 0 { 200 + random.below(2000) } else { 10 };
    seconds as i64 * SECOND
}

#[test]
fn sums_after_outages_are_lower_bounds() {
    for seed in 1..40 {
        for has_start in [true, false] {
            let outcome = simulate(seed, has_start, with_outages, false);
            assert!(outcome.certain <= outcome.truth, "seed {seed}");
            assert!(outcome.certain == outcome.truth || outcome.bounds > 0, "seed {seed}: an untold error");
        }
    }
}

#[test]
fn after_manual_clearing_growth_never_exceeds_the_truth() {
    for seed in 1..40 {
        for has_start in [true, false] {
            let outcome = simulate(seed, has_start, every_ten_seconds, true);
            assert!(outcome.certain <= outcome.truth, "seed {seed}");
        }
    }
}

#[test]
fn a_restart_hidden_by_a_larger_value_gives_a_lower_bound() {
    for has_start in [true, false] {
        let mut server = Server::default();
        server.write(10, 1000 * SECOND);
        let before = server.read(1595 * SECOND, has_start).expect("idle, and still there");
        server.sweep(1601 * SECOND);
        server.write(500, 1602 * SECOND);
        let now = server.read(1605 * SECOND, has_start).expect("back");
        let growth = Expiry::default().growth(Before::Present(before), &now);
        let wanted = if has_start { Growth::Exact(500) } else { Growth::AtLeast(490) };
        assert_eq!((growth, server.expiries), (wanted, 1));
    }
}

#[test]
fn a_new_entry_after_a_long_gap_gives_a_lower_bound() {
    let now = reading(70, Some(2990), 2999, 3000);
    let growth =
        |last_reading: i64| Expiry::default().growth(Before::Absent { time: last_reading * SECOND }, &now);
    assert_eq!(growth(2985), Growth::Exact(70));
    // The entry may have appeared, been removed and appeared again.
    assert_eq!(growth(1000), Growth::AtLeast(70));
}

#[test]
fn an_entry_that_vanishes_soon_after_use_counts_as_cleared() {
    let last = |updated| reading(70, None, updated, 1000);
    let growth = |updated| Expiry::default().last_growth(&last(updated), 1010 * SECOND);
    assert_eq!(growth(400), Growth::Exact(0));
    assert_eq!(growth(999), Growth::AtLeast(0));
}
