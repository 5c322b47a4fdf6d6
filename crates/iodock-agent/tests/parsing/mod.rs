//! Runs a reader on a text and returns its result.

use iodock_agent::lines::Faults;
use iodock_agent::sample::{Entry, Names, Quantity};
use iodock_agent::sources::{Parse, Parsed};

pub struct Read {
    pub entries: Vec<Entry>,
    pub names: Names,
    pub faults: Faults,
}

impl Read {
    pub fn jobs(&self) -> Vec<String> {
        self.entries.iter().map(|entry| entry.owner.job.escape_ascii().to_string()).collect()
    }

    /// Returns operation, quantity, bucket and value of each counter of an entry.
    pub fn values(&self, at: usize) -> Vec<(&str, Quantity, u64, u64)> {
        let values = self.entries[at].values.iter();
        values
            .map(|&(metric, value)| {
                (self.names.text(metric.operation), metric.quantity, metric.bucket, value)
            })
            .collect()
    }
}

pub fn read(text: &[u8], parse: Parse) -> Read {
    let (mut names, mut faults, mut entries) = (Names::default(), Faults::default(), Vec::new());
    let mut parsed = Parsed {
        names: &mut names,
        faults: &mut faults,
        entry: &mut |entry: &Entry, _: &Names| entries.push(entry.clone()),
    };
    parse(&mut &text[..], &mut parsed).expect("memory can be read");
    Read { entries, names, faults }
}
