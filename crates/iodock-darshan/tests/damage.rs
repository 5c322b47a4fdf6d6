//! Reads damaged logs, and checks that the reader does not panic, loses no data silently, and keeps intact
//! parts.

mod support;

use iodock_darshan::{Fault, Limits, Log, Module};
use std::io::Cursor;
use support::random::Random;
use support::{forms, losses, read, sample, samples};

/// Returns the number of damaged logs to try. `IODOCK_MUTATIONS` sets a larger one.
fn tried() -> u64 {
    std::env::var("IODOCK_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(500)
}

/// Returns the log with damage that is typical of file transfers.
fn damaged(random: &mut Random, log: &[u8], other: &[u8]) -> Vec<u8> {
    let mut out = log.to_vec();
    let (from, length) = (random.below(log.len()), 1 + random.below(64));
    let until = (from + length).min(log.len());
    match random.below(7) {
        0 => out[from] ^= 1 << random.below(8),
        1 => {
            (0..8).for_each(|_| _ = std::mem::replace(&mut out[random.below(log.len())], random.next() as u8))
        }
        2 => out.truncate(from),
        3 => out[from..until].fill(0),
        4 => drop(out.drain(from..until)),
        5 => {
            let piece = random.below(other.len());
            out.splice(from..until, other[piece..(piece + length).min(other.len())].iter().copied());
        }
        // The result has the beginning of this log and the end of another one.
        _ => {
            out.truncate(from);
            out.extend(&other[random.below(other.len())..]);
        }
    }
    out
}

/// Returns the amount of data in a log, which must not decrease silently.
fn held(log: &Log) -> usize {
    let traced = log.traced.iter().flat_map(|traced| &traced.files);
    log.records() + traced.map(|file| file.writes + file.reads).sum::<usize>() + log.names.len()
}

#[test]
fn every_lost_part_of_a_damaged_log_is_reported() {
    let logs: Vec<Vec<u8>> = samples().iter().map(|path| std::fs::read(path).expect("readable")).collect();
    let (mut refused, mut told, mut whole) = (0, 0, 0);
    for seed in 0..tried() {
        let mut random = Random::new(seed);
        let (log, other) = (&logs[random.below(logs.len())], &logs[random.below(logs.len())]);
        let before = read(log).expect("a whole log");
        let Ok(after) = read(&damaged(&mut random, log, other)) else {
            refused += 1;
            continue;
        };
        let is_told = losses(&after) != losses(&before);
        assert!(
            is_told || held(&after) >= held(&before),
            "seed {seed}: {} of {}",
            held(&after),
            held(&before)
        );
        if !is_told {
            assert_eq!(support::text(&after), support::text(&before), "seed {seed}");
        }
        *if is_told { &mut told } else { &mut whole } += 1;
    }
    eprintln!("{} damaged logs: {refused} refused, {told} with further losses, {whole} as before", tried());
    assert!(refused > 0 && told > refused);
}

/// A text has no checksums, so a changed number cannot be detected.
#[test]
fn a_damaged_text_is_not_read_as_a_job_without_io() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/darshan/text");
    let files = std::fs::read_dir(folder).expect("texts are there");
    let mut texts: Vec<_> =
        files.map(|entry| std::fs::read(entry.expect("readable").path()).expect("readable")).collect();
    texts.sort();
    for seed in 0..tried() / 4 {
        let mut random = Random::new(seed);
        let (text, other) = (&texts[random.below(texts.len())], &texts[random.below(texts.len())]);
        if let Ok(log) = read(&damaged(&mut random, text, other)) {
            assert!(log.records() > 0 || !log.losses.is_empty(), "seed {seed}");
        }
    }
}

#[test]
fn a_truncated_log_keeps_everything_before_the_cut() {
    let whole = sample("imbalanced-io");
    let all = read(&whole).expect("a whole log");
    let mut kept = Vec::new();
    for part in 1..=8 {
        let log = read(&whole[..whole.len() * part / 8]).expect("its header is there");
        kept.push(log.records());
        assert_eq!(part < 8, losses(&log).iter().any(|(_, kind, _)| *kind == "darshan-cut-region"), "{part}");
    }
    assert!(kept.is_sorted(), "{kept:?}");
    assert_eq!(kept[7], all.records());
    assert!(kept[3] > 0, "half of the log holds records");
}

#[test]
fn damage_in_one_process_stream_does_not_affect_the_others() {
    let log = sample("hdf5-half-ranks-dxt");
    let whole = read(&log).expect("a whole log").module(Module::POSIX).expect("it has POSIX").len();
    let parts = forms::apart(&log);
    let processes =
        parts.regions.iter().find(|(place, _)| *place == Some(24 + 16 * 2)).expect("POSIX").1.len();
    assert!(processes > 2);
    let mut log = log;
    let at = u64::from_le_bytes(log[24 + 32..24 + 40].try_into().unwrap()) as usize;
    log[at + 40] ^= 0x55;
    let damaged = read(&log).expect("its header is whole");
    let kept = damaged.module(Module::POSIX).map_or(0, |posix| posix.len());
    assert!(kept > whole / 2 && kept < whole, "{kept} of {whole}");
    assert!(losses(&damaged)
        .iter()
        .any(|(region, kind, _)| region == "POSIX module" && *kind == "darshan-damaged-region"));
}

#[test]
fn a_decompression_bomb_is_bounded() {
    for compression in [forms::ZLIB, forms::BZIP2] {
        let mut parts = forms::apart(&sample("mpi-io-test-x86_64-3.5.0"));
        let posix = parts.regions.iter_mut().find(|(place, _)| *place == Some(32 + 16 * 2)).expect("POSIX");
        posix.1 = vec![vec![0; 12 << 20]];
        let bomb = parts.together(compression);
        let limits = Limits { inflated_bytes: 4 << 20, ..Limits::default() };
        let log = Log::read(Cursor::new(&bomb), limits).expect("its header is whole");
        assert!(losses(&log)
            .iter()
            .any(|(region, kind, _)| region == "POSIX module" && *kind == "darshan-oversized-region"));
        assert!(log.module(Module::POSIX).is_none_or(|posix| posix.is_empty()));
        assert!(log.module(Module::STDIO).is_some(), "what comes behind it is read");
    }
}

#[test]
fn impossible_lengths_are_only_reported() {
    let mut log = sample("mpi-io-test-x86_64-3.5.0");
    log[32 + 16 * 2 + 8..32 + 16 * 3].copy_from_slice(&u64::MAX.to_le_bytes());
    let read = read(&log).expect("its header is whole");
    assert!(losses(&read).iter().any(|(_, kind, _)| *kind == "darshan-overlapping-regions"));
}

#[test]
fn a_zero_length_is_not_read_as_a_job_without_io() {
    let mut log = sample("stdio-no-posix");
    let at = (0..=16).map(|at| 24 + 16 * at).filter(|&at| log[at + 8] > 0).max().expect("STDIO");
    log[at..at + 16].fill(0);
    let read = read(&log).expect("its header can be read");
    assert_eq!(read.records(), 0);
    assert!(losses(&read).contains(&("header".into(), "darshan-unclaimed-bytes", 66)));
}

#[test]
fn records_of_an_unknown_version_are_refused() {
    let mut log = sample("mpi-io-test-x86_64-3.5.0");
    let versions = 32 + 16 * 65;
    assert_eq!(log[versions + 4], 4);
    log[versions + 4] = 2;
    let read = read(&log).expect("its header can be read");
    assert!(read.module(Module::POSIX).is_none());
    assert!(losses(&read).contains(&("POSIX module".into(), "darshan-differing-records", 1)));
    log[versions + 4] = 9;
    assert!(losses(&support::read(&log).expect("readable"))
        .iter()
        .any(|loss| loss.1 == "darshan-newer-module"));
}

/// Some sites add values to records without changing the version.
#[test]
fn longer_records_are_read_if_all_counters_are_named() {
    let mut parts = forms::apart(&sample("hdf5-half-ranks-dxt"));
    let before = read(&parts.together(forms::ZLIB)).expect("whole");
    let posix = parts.regions.iter_mut().find(|(place, _)| *place == Some(24 + 16 * 2)).expect("POSIX");
    for stream in &mut posix.1 {
        *stream = stream.chunks_exact(704).flat_map(|record| [record, &[7; 16]].concat()).collect();
    }
    let after = read(&parts.together(forms::ZLIB)).expect("whole");
    assert_eq!(support::text(&after), support::text(&before));
    assert_eq!(losses(&after), [("POSIX module".into(), "darshan-differing-records", 650)]);
}

/// The logs of one site have 8,192 additional zeros like these.
#[test]
fn a_longer_header_is_skipped() {
    let parts = forms::apart(&sample("mpi-io-test-x86_64-3.4.4"));
    let before = support::text(&read(&parts.together(forms::ZLIB)).expect("whole"));
    let longer = forms::Parts { header: [parts.header.clone(), vec![0; 8192]].concat(), ..parts };
    let after = read(&longer.together(forms::ZLIB)).expect("whole");
    assert_eq!(support::text(&after), before);
    assert!(losses(&after).iter().all(|loss| loss.1 == "darshan-unread-module"));
}

#[test]
fn files_that_are_not_logs_give_an_error() {
    let fault = |bytes: &[u8]| read(bytes).expect_err("it is no log");
    assert!(matches!(fault(b""), Fault::Empty));
    assert!(matches!(fault(b"3.41"), Fault::NotDarshan));
    assert!(matches!(fault(b"openat(AT_FDCWD, \"x\", 0) = 3\n"), Fault::NotDarshan));
    assert!(matches!(fault(b"2.06\0\0\0\0zzzzzzzz"), Fault::OldFormat(_)));
    assert!(matches!(fault(b"3.41\0\0\0\0zzzzzzzz"), Fault::HeaderDamaged));
    let log = sample("empty");
    assert!(matches!(fault(&log[..200]), Fault::HeaderCut));
    let mut log = log;
    log[16] = 7;
    assert!(matches!(fault(&log), Fault::UnknownCompression(7)));
}
