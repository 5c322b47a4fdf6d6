//! Reads counters, state and speed of a link. Network interfaces and fabric ports share this code.

use super::Reading;
use crate::events::{Seen, Sight};
use crate::sample::{Entry, Names, Quantity};

/// A link that is being read.
pub struct Link<'a> {
    reading: &'a Reading,
    source: &'static str,
    target: String,
    names: Names,
    entry: Entry,
}

impl Link<'_> {
    pub fn new<'a>(reading: &'a Reading, source: &'static str, target: String) -> Link<'a> {
        Link { reading, source, target, names: Names::default(), entry: Entry::default() }
    }

    /// Adds a value. Values for which the entry has no room are left out.
    pub fn value(&mut self, name: &str, quantity: Quantity, value: u64) {
        let name = self.names.intern(name.as_bytes());
        let _ = name.and_then(|name| self.entry.push(name, quantity, value));
    }

    /// Reports a counter of errors. Growth by `least` or more is an event of `kind`.
    pub fn errors(&self, aspect: &'static str, kind: &'static str, value: u64, least: u64) {
        self.see(aspect, Sight::Errors { kind, name: aspect.into(), value, least });
    }

    /// Reports whether the link is up, with a level, a kind of event and its text. A link that is down when
    /// the agent starts may have no cable, so it is not reported.
    pub fn state(&mut self, is_up: bool, (level, kind, text): (&str, &'static str, String)) {
        self.value("up", Quantity::Level, u64::from(is_up));
        self.see("link", Sight::State { level: level.into(), kind, text, is_told_at_first: false });
    }

    pub fn speed(&mut self, megabits: u64) {
        self.value("speed_mbit_per_second", Quantity::Level, megabits);
        let (slower, faster) = ("link-slower", "link-faster");
        self.see("speed", Sight::Speed { value: megabits, unit: "Mbit/s", slower, faster });
    }

    /// Reports the complete link.
    pub fn tell(self) {
        self.reading.entries(self.source, ("", &self.target), &self.names, [&self.entry]);
    }

    fn see(&self, aspect: &'static str, sight: Sight) {
        let (file_system, target) = (String::new(), self.target.clone());
        self.reading.see(Seen { source: self.source, file_system, target, aspect, sight });
    }
}
