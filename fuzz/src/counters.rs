//! The agent's readers of counter files.

use iodock_agent::lines::Faults;
use iodock_agent::ranking::Ranking;
use iodock_agent::sample::{Entry, Names};
use iodock_agent::logs::rules::Rules;
use iodock_agent::logs::{site, times};
use iodock_agent::sources::probe::records::records;
use iodock_agent::sources::{
    job_stats, jobs, lustre_stats, md, mmpmon, moosefs, moosefs_sessions, mountstats, rpc_stats, Parse, Parsed,
};
use std::io::{self, Read};
use std::sync::LazyLock;

const PARSERS: [Parse; 5] =
    [job_stats::parse, lustre_stats::parse, rpc_stats::parse, mountstats::parse, moosefs::parse];

/// Reads `file` with every reader: whatever it is, without a panic, every line counted, sums exact.
pub fn read_all(file: &[u8]) {
    // The first byte says how much a read gives.
    let Some((&size, file)) = file.split_first() else { return };
    for parse in PARSERS {
        read(parse, &mut Pieces { rest: file, size: 1 + usize::from(size) }, file);
    }
    std::hint::black_box((md::arrays(file), records(file), moosefs_sessions::sessions(file)));
    if let Ok(text) = std::str::from_utf8(file) {
        let _ = std::hint::black_box(site::rules(text));
    }
    static RULES: LazyLock<Rules> = LazyLock::new(Rules::default);
    let mut names = Names::default();
    for line in file.split(|&byte| byte == b'\n') {
        std::hint::black_box(mmpmon::line(line, &mut names));
        std::hint::black_box((times::line(line).time(1 << 60), RULES.of(line)));
        std::hint::black_box((jobs::of_cgroups(line), jobs::of_environment(line), jobs::of_mount_point(line)));
        std::hint::black_box(moosefs::mount(line));
    }
}

struct Pieces<'a> {
    rest: &'a [u8],
    size: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.size.min(self.rest.len());
        let read = (&self.rest[..size]).read(buffer)?;
        self.rest = &self.rest[read..];
        Ok(read)
    }
}

fn read(parse: Parse, input: &mut dyn Read, file: &[u8]) {
    let (mut names, mut faults, mut ranking) = (Names::default(), Faults::default(), Ranking::new(3));
    let mut sum = 0u128;
    let mut take = |entry: &Entry, _: &Names| {
        sum += entry.values.iter().map(|(_, value)| u128::from(*value)).sum::<u128>();
        ranking.add(entry);
    };
    let mut parsed = Parsed { names: &mut names, faults: &mut faults, entry: &mut take };
    parse(input, &mut parsed).expect("memory can be read");
    let newlines = file.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let unended = u64::from(file.last().is_some_and(|&last| last != b'\n'));
    assert_eq!(faults.lines, newlines + unended);
    assert!(faults.unreadable + faults.orphaned <= faults.lines);
    let table = ranking.finish();
    let listed = table.listed.iter().flat_map(|entry| &entry.values).map(|(_, value)| u128::from(*value));
    let total = listed.sum::<u128>() + table.other.iter().map(|(_, value)| value).sum::<u128>();
    // Listed entries of one owner are added up, at most to the largest number there is.
    let is_clamped = table.listed.iter().flat_map(|entry| &entry.values).any(|(_, value)| *value == u64::MAX);
    assert!(total == sum || is_clamped, "{total} of {sum}");
}
