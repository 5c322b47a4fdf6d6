//! What a network interface and a port of a fabric have in common: counters, a state, a speed.

use super::Reading;
use crate::events::{Seen, Sight};
use crate::sample::{Entry, Names, Quantity};

/// A link while it is read.
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

    /// What does not fit an entry is left out.
    pub fn value(&mut self, name: &str, quantity: Quantity, value: u64) {
        let name = self.names.intern(name.as_bytes());
        let _ = name.and_then(|name| self.entry.push(name, quantity, value));
    }

    /// A counter whose growth by `least` and more is an event of `kind`.
    pub fn errors(&self, aspect: &'static str, kind: &'static str, value: u64, least: u64) {
        self.see(aspect, Sight::Errors { kind, name: aspect.into(), value, least });
    }

    /// Is it up? And what that is called: a level, an event's kind, and its text. One that was down when the agent came may have no cable:
    /// that is no news.
    pub fn state(&mut self, is_up: bool, (level, kind, text): (&str, &'static str, String)) {
        self.value("up", Quantity::Level, u64::from(is_up));
        self.see("link", Sight::State { level: level.into(), kind, text, is_told_at_first: false });
    }

    pub fn speed(&mut self, megabits: u64) {
        self.value("speed_mbit_per_second", Quantity::Level, megabits);
        let (slower, faster) = ("link-slower", "link-faster");
        self.see("speed", Sight::Speed { value: megabits, unit: "Mbit/s", slower, faster });
    }

    /// It is read.
    pub fn tell(self) {
        self.reading.entries(self.source, ("", &self.target), &self.names, [&self.entry]);
    }

    fn see(&self, aspect: &'static str, sight: Sight) {
        let (file_system, target) = (String::new(), self.target.clone());
        self.reading.see(Seen { source: self.source, file_system, target, aspect, sight });
    }
}
