//! Reads a file of raw records as a source of calls.

use super::meta::{epoch_of, PAGE_CACHE, TABLE};
use super::records::Records;
use super::streams::Streams;
use crate::plans::Plans;
use iodock_event::{Batch, Clock, LossKind, RecordSource, SourceError};
use iodock_journal::JournalReader;
use std::path::Path;

const BATCH_RECORDS: usize = 1024;

/// Returns a file's calls in the order of their ends, together with the beginnings and ends of tasks.
pub struct CallsSource {
    streams: Streams,
    records: Records,
    over: bool,
    spare: Vec<Batch>,
}

impl CallsSource {
    /// Opens a file of raw records.
    ///
    /// # Errors
    /// Fails if the file can't be read, or if another version of iodock wrote it.
    pub fn open(path: &Path) -> Result<CallsSource, SourceError> {
        CallsSource::of(JournalReader::open(path)?, path)
    }

    /// Opens the file at `path`, whose metadata `reader` has already read.
    ///
    /// # Errors
    /// Fails if another version of iodock wrote the file.
    pub fn of(reader: JournalReader, path: &Path) -> Result<CallsSource, SourceError> {
        let plans = Plans::of_this_machine();
        let told = |key: &str| reader.meta().extra.get(key);
        let epoch = epoch_of(&reader);
        let same = told(TABLE).is_some_and(|table| *table == format!("{:x}", plans.sum()));
        let (Some(epoch), true) = (epoch, same) else {
            return Err(SourceError {
                file: path.display().to_string(),
                line: None,
                message: "was recorded by another version of iodock".into(),
                hint: "finish it with the iodock that recorded it: iodock info STORE".into(),
            });
        };
        let records = Records::new(&plans, epoch);
        Ok(CallsSource { streams: Streams::new(reader), records, over: false, spare: Vec::new() })
    }

    /// Returns `recorded` if the page cache was recorded, and `not-shown` if that kernel did not support it.
    pub fn page_cache(&self) -> Option<&str> {
        self.streams.reader.meta().extra.get(PAGE_CACHE).map(String::as_str)
    }

    /// Returns whether the recorder may append more to the file.
    fn is_growing(&self) -> bool {
        !self.over && self.streams.reader.is_growing() && self.streams.reader.closing().is_none()
    }

    /// Returns the number of bytes of the file that this source reads.
    pub fn length(&self) -> u64 {
        self.streams.reader.length()
    }

    fn lose_rest(&mut self) {
        let losses = &mut self.records.batch.losses;
        losses.add(LossKind::JournalCut, self.streams.reader.lost_bytes());
        losses.add(LossKind::DroppedRecords, self.streams.damaged);
    }
}

impl RecordSource for CallsSource {
    fn next_batch(&mut self) -> Result<Option<Batch>, SourceError> {
        if self.over {
            return Ok(None);
        }
        while self.records.batch.records.len() < BATCH_RECORDS {
            if !self.streams.find()? {
                if self.is_growing() {
                    break;
                }
                self.over = true;
                self.lose_rest();
                break;
            }
            if let Some(record) = self.streams.record() {
                self.records.take(record, &self.streams);
            }
            self.streams.advance();
        }
        if self.records.batch.records.is_empty() && self.is_growing() {
            return Ok(None);
        }
        let spare = self.spare.pop().unwrap_or_default();
        Ok(Some(std::mem::replace(&mut self.records.batch, spare)))
    }

    fn recycle(&mut self, mut batch: Batch) {
        batch.clear();
        self.spare.push(batch);
    }

    fn go_on(&mut self) -> Result<(), SourceError> {
        self.streams.reader.go_on()
    }

    fn clock(&self) -> Clock {
        Clock::Epoch
    }

    fn progress(&self) -> (u64, Option<u64>) {
        self.streams.reader.progress()
    }
}

#[cfg(test)]
mod tests {
    use super::super::meta;
    use super::super::rounds::{put_in_call, put_part, InCall, END, IN_CALL, NOTES};
    use super::super::PagesSource;
    use super::*;
    use crate::format::{again, start, Kind, LEAST_WORDS, SHORT_TIME};
    use crate::record::{bytes_of, put_note};
    use iodock_event::{Phase, RawCall, Record};
    use iodock_journal::{Closing, JournalWriter};
    use std::path::PathBuf;

    const MS: u64 = 1_000_000;

    struct Made(PathBuf);

    impl Drop for Made {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Writes a file that contains these rounds.
    fn made(name: &str, rounds: &[Vec<u64>]) -> Made {
        let made = Made(std::env::temp_dir().join(format!("iodock-bpf-{name}-{}.calls", std::process::id())));
        let _ = std::fs::remove_file(&made.0);
        let meta = meta(0, &Plans::of_this_machine(), true);
        let mut writer = JournalWriter::create(&made.0, &meta).expect("a new file");
        rounds.iter().for_each(|round| writer.raw(bytes_of(round)).expect("written"));
        writer.close(&Closing::default()).expect("closed");
        made
    }

    fn calls(made: &Made) -> (Vec<RawCall>, u64) {
        let mut source = CallsSource::open(&made.0).expect("readable");
        let (mut calls, mut cut) = (Vec::new(), 0);
        while let Some(batch) = source.next_batch().expect("readable") {
            cut += batch.losses.count(LossKind::JournalCut);
            calls.extend(batch.records.iter().filter_map(|record| match record {
                Record::Call(raw) => Some(*raw),
                _ => None,
            }));
        }
        (calls, cut)
    }

    fn number(name: &str) -> u64 {
        let plans = Plans::of_this_machine();
        let at = plans.calls.iter().position(|call| call.is_some_and(|call| call.spec().name == name));
        at.expect("a call of this machine") as u64
    }

    fn small(name: &str, tid: u64, end: u64, (duration, result, fd, size): (u64, u64, u64, u64)) -> [u64; 4] {
        let first = 4 | (Kind::Small as u64) << 16 | number(name) << 20 | tid << 32;
        [first, end, duration | result << 32, fd | size << 32]
    }

    fn short(name: &str, tid: u64, end: u64, (duration, fd): (u64, u64)) -> [u64; 2] {
        let first = fd | (Kind::Short as u64) << 16 | number(name) << 20 | tid << 32;
        [first, end & ((1 << SHORT_TIME) - 1) | duration << SHORT_TIME]
    }

    /// Builds a record of kind `Again`. `page` is its first 16 bits; `offset` holds one word if `page` is
    /// `NO_PAGE`.
    fn again(page: u64, (gap, duration): (u64, u64), offset: &[u64]) -> Vec<u64> {
        let first = page | (Kind::Again as u64) << 16 | gap << again::GAP | duration << again::DURATION;
        [&[first], offset].concat()
    }

    fn round(end: u64, parts: &[(u32, &[u64])]) -> Vec<u64> {
        let mut words = Vec::new();
        parts.iter().for_each(|(what, part)| put_part(&mut words, *what, |out| out.extend_from_slice(part)));
        put_part(&mut words, END, |out| out.push(end));
        words
    }

    fn followed(tids: &[u32]) -> Vec<u64> {
        let mut notes = Vec::new();
        for &tid in tids {
            let process = u64::from(tids[0]) | u64::from(start::ATTACHED) << 32;
            put_note(&mut notes, Kind::Start, tid, MS, &[process, u64::MAX], &[]);
        }
        notes
    }

    #[test]
    fn records_of_all_cpus_are_merged_and_short_ones_completed() {
        let first =
            [&small("read", 10, 900 * MS, (50, 8, 3, 4096))[..], &short("read", 10, 903 * MS, (70, 4))]
                .concat();
        // The first record of this CPU is late: its time is before records that the other CPU has already
        // written.
        let late = small("write", 11, 902 * MS, (20, 100, 5, 100));
        let made = made(
            "merged",
            &[
                round(904 * MS, &[(1, &first), (NOTES, &followed(&[10, 11]))]),
                round(914 * MS, &[(0, &late), (1, &short("read", 10, 910 * MS, (30, 4)))]),
                round(990 * MS, &[(0, &short("write", 11, 980 * MS, (40, 6)))]),
            ],
        );
        let (calls, cut) = calls(&made);
        let told: Vec<_> = calls
            .iter()
            .map(|raw| (raw.tid, raw.start + raw.duration, raw.duration, raw.fd, raw.result, raw.requested))
            .collect();
        let at = |ms: u64| (ms * MS) as i64;
        let wanted = [
            (10, at(900), 50, 3, 8, 4096),
            (11, at(902), 20, 5, 100, 100),
            (10, at(903), 70, 4, 8, 4096),
            (10, at(910), 30, 4, 8, 4096),
            (11, at(980), 40, 6, 100, 100),
        ];
        // The source returns both threads' records in the order of time, independent of their rounds.
        assert_eq!((told, cut), (wanted.to_vec(), 0));
    }

    #[test]
    fn repeat_records_are_completed_from_the_previous_one_of_their_cpu() {
        let mut positioned = small("pread64", 10, 900 * MS, (50, 4096, 3, 4096)).to_vec();
        positioned[0] = 5 | (Kind::Positioned as u64) << 16 | number("pread64") << 20 | 10 << 32;
        positioned.push(77);
        let most = (1 << again::BITS) - 1;
        let first = [
            &positioned[..],
            &again(2, (100, 60), &[]),
            &again(again::NO_PAGE, (200, 70), &[5]),
            &again(again::NO_PAGE - 1, (most, most), &[]),
        ]
        .concat();
        // Records of another thread on another CPU do not change the values that short records inherit.
        let second = [
            &small("read", 11, 901 * MS, (20, 100, 5, 100))[..],
            &again(0, (10, 7), &[]),
            &short("read", 11, 902 * MS, (70, 4)),
            &again(0, (30, 8), &[]),
        ]
        .concat();
        let made = made(
            "again",
            &[
                round(905 * MS, &[(1, &first), (0, &second), (NOTES, &followed(&[10, 11]))]),
                round(910 * MS, &[(1, &again(1, (most, 9), &[]))]),
            ],
        );
        let (calls, cut) = calls(&made);
        let told = |tid: u32| -> Vec<_> {
            let its = calls.iter().filter(|raw| raw.tid == tid);
            its.map(|raw| (raw.end_time(), raw.duration, raw.fd, raw.result, raw.requested, raw.offset))
                .collect()
        };
        let (begin, most) = (900 * MS as i64, most as i64);
        let wanted = [
            (begin, 50, 3, 4096, 4096, 77),
            (begin + 100, 60, 3, 4096, 4096, 2 << 12),
            (begin + 300, 70, 3, 4096, 4096, 5),
            (begin + 300 + most, most, 3, 4096, 4096, 0xfffe << 12),
            (begin + 300 + 2 * most, 9, 3, 4096, 4096, 1 << 12),
        ];
        assert_eq!((told(10), cut), (wanted.to_vec(), 0));
        let fds: Vec<_> =
            calls.iter().filter(|raw| raw.tid == 11).map(|raw| (raw.fd, raw.duration)).collect();
        assert_eq!(fds, [(5, 20), (5, 7), (4, 70), (4, 8)]);
    }

    /// Only a damaged file contains such a record.
    #[test]
    fn a_repeat_record_without_a_previous_one_is_dropped() {
        let made = made("of-nothing", &[round(905 * MS, &[(1, &again(2, (100, 60), &[]))])]);
        assert_eq!(calls(&made).0.len(), 0);
    }

    #[test]
    fn calls_in_progress_are_read_before_their_descriptor_is_removed() {
        let close = small("close", 10, 900 * MS, (100, 0, 3, 0));
        let mut first = round(0, &[(1, &close), (NOTES, &followed(&[10, 11, 12]))]);
        first.truncate(first.len() - 2);
        let arguments = [3, 0, 512, 0, 0];
        let waiting = InCall { tid: 12, start: 800 * MS, number: number("read") as usize, arguments };
        put_in_call(&mut first, 901 * MS, [waiting].into_iter());
        put_part(&mut first, END, |out| out.push(900 * MS));
        let ended = small("read", 11, 902 * MS, (3 * MS, 1, 3, 512));
        let much_later = small("read", 12, 2000 * MS, (1200 * MS, 1, 3, 512));
        let made = made(
            "flight",
            &[
                first,
                round(910 * MS, &[(0, &ended)]),
                round(920 * MS, &[]),
                round(2001 * MS, &[(0, &much_later)]),
            ],
        );
        let (calls, _) = calls(&made);
        let told: Vec<_> = calls.iter().map(|raw| (raw.tid, raw.phase, raw.call.name())).collect();
        let wanted = [
            (11, Phase::Enter, "read".into()),
            (12, Phase::Enter, "read".into()),
            (10, Phase::Whole, "close".into()),
            (11, Phase::Exit, "read".into()),
            (12, Phase::Exit, "read".into()),
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn a_file_truncated_anywhere_gives_its_complete_records() {
        let rounds: Vec<Vec<u64>> = (0..20)
            .map(|at| {
                let record = small("read", 10, (900 + 10 * at) * MS, (50, 8, 3, 4096));
                round((905 + 10 * at) * MS, &[(0, &record)])
            })
            .collect();
        let made = made("cut", &rounds);
        let whole = std::fs::read(&made.0).expect("readable");
        let mut before = 20;
        for part in [0.9, 0.7, 0.5] {
            std::fs::write(&made.0, &whole[..(whole.len() as f64 * part) as usize]).expect("written");
            let (calls, cut) = calls(&made);
            assert!(calls.len() < before && cut > 0, "{part}: {} calls", calls.len());
            before = calls.len();
        }
        assert!(before > 0);
    }

    /// Returns a function that returns random numbers below its argument, the same in each run.
    fn random() -> impl FnMut(u64) -> u64 {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) % below
        }
    }

    /// Returns a record of any kind and plausible length, with random words.
    fn any_record(random: &mut impl FnMut(u64) -> u64) -> Vec<u64> {
        let told = [0, 1, 3, 10, 11, 4096, 900 * MS, 901 * MS, 1 << 31, 1 << 63, u64::MAX - 7, u64::MAX];
        let kind = random(16);
        let length = match random(16) {
            0 => random(20),
            _ => u64::from(LEAST_WORDS[kind as usize]) + random(8),
        };
        let word = |random: &mut dyn FnMut(u64) -> u64| match random(3) {
            0 => told[random(12) as usize],
            1 => told[random(12) as usize] | told[random(12) as usize] << 32,
            _ => random(u64::MAX),
        };
        let number = [random(500), Kind::Pages.numbers().1 as u64 + random(6)][random(2) as usize];
        let first = length | kind << 16 | number << 20 | (9 + random(4)) << 32;
        std::iter::once(first).chain((1..length).map(|_| word(random))).collect()
    }

    /// Only damaged files contain such records.
    #[test]
    fn files_with_arbitrary_records_are_read_to_the_end() {
        let mut random = random();
        let (mut found, mut runs) = (0, 0);
        for _ in 0..400 {
            let mut rounds = vec![round(900 * MS, &[(NOTES, &followed(&[10, 11]))])];
            for at in 1..4 {
                let [one, other, notes, in_call] = [(); 4].map(|()| {
                    let count = random(20);
                    (0..count).flat_map(|_| any_record(&mut random)).collect::<Vec<u64>>()
                });
                let parts = [(0, &one[..]), (1, &other), (NOTES, &notes), (IN_CALL, &in_call)];
                rounds.push(round((900 + at * 10) * MS, &parts));
            }
            let made = made("anything", &rounds);
            found += calls(&made).0.len();
            let mut pages = PagesSource::open(&made.0).expect("readable");
            while let Some(more) = pages.next_runs().expect("readable") {
                runs += more.len();
            }
        }
        assert!(found > 1000 && runs > 0, "{found} calls, {runs} runs of pages");
    }

    #[test]
    fn records_of_another_version_are_refused() {
        let path = std::env::temp_dir().join(format!("iodock-bpf-other-{}.calls", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let made = Made(path);
        let mut other = meta(0, &Plans::of_this_machine(), true);
        other.extra.insert(TABLE.into(), "0".into());
        JournalWriter::create(&made.0, &other).expect("a new file");
        let refused = CallsSource::open(&made.0).err().expect("refused");
        assert!(refused.message.contains("another version"), "{}", refused.message);
    }
}
