//! Events, as opposed to counters: an array lost a member, a server did not answer. Similar events are stored
//! as one event with a count.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    /// Worth knowing, without need for action, such as the end of a rebuild or the return of a path.
    #[default]
    Note,
    /// The system is slower or less safe than before.
    Warning,
    /// Something does not work, or data are in danger.
    Error,
}

impl Severity {
    pub const ALL: [Severity; 3] = [Severity::Note, Severity::Warning, Severity::Error];

    pub fn name(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }

    /// Returns the severity with this name (see [`Severity::name`]).
    pub fn named(name: &str) -> Option<Severity> {
        Severity::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// One event, or many similar ones. Its texts come from machines that may be damaged, so the agent escapes
/// and shortens them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Time of the first of the similar events that are combined here, ns since the epoch by the agent's clock.
    pub first: i64,
    /// Time of the last of the similar events that are combined here, ns since the epoch by the agent's clock.
    pub last: i64,
    /// Kind of event in kebab case, such as `array-degraded`. docs/reference/events.md lists all kinds.
    pub kind: String,
    pub severity: Severity,
    /// Source of the event, such as `md`, `network`, `kernel-log`.
    pub source: String,
    /// File system that the event concerns. Empty if unknown.
    pub file_system: String,
    /// Array, device, interface or server that the event concerns. Empty if unknown.
    pub target: String,
    pub count: u64,
    /// Description in one line, from the first event.
    pub text: String,
}

impl Event {
    /// Longest text in characters.
    pub const LONGEST: usize = 500;

    /// Returns whether the two events are similar, so that they are reported as one.
    pub fn is_like(&self, other: &Event) -> bool {
        self.kind == other.kind
            && self.source == other.source
            && self.file_system == other.file_system
            && self.target == other.target
    }

    /// Adds a similar event (see [`Event::is_like`]) to this one.
    pub fn absorb(&mut self, other: &Event) {
        if other.first < self.first {
            (self.first, self.text) = (other.first, other.text.clone());
        }
        self.last = self.last.max(other.last);
        self.count = self.count.saturating_add(other.count);
        self.severity = self.severity.max(other.severity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_events_become_one_with_a_count_and_the_first_text() {
        let event = |first: i64, text: &str| Event {
            first,
            last: first,
            count: 2,
            text: text.into(),
            ..Event::default()
        };
        let (mut one, early) = (event(5, "later"), event(3, "first"));
        assert!(one.is_like(&early) && !one.is_like(&Event { target: "sda".into(), ..early.clone() }));
        one.absorb(&early);
        one.absorb(&Event { severity: Severity::Error, count: u64::MAX, ..event(9, "last") });
        assert_eq!((one.first, one.last, one.count, one.text.as_str()), (3, 9, u64::MAX, "first"));
        assert_eq!(one.severity, Severity::Error);
    }

    #[test]
    fn severities_are_found_by_name() {
        assert!(Severity::ALL.iter().all(|one| Severity::named(one.name()) == Some(*one)));
        assert_eq!(Severity::named("fatal"), None);
    }
}
