//! Merges similar events. The first one is reported at once. Those that follow within [`QUIET`] are reported
//! as one event with their count.

use iodock_samples::event::Event;
use serde::{Deserialize, Serialize};

/// Waiting time for further similar events, in ns.
pub const QUIET: i64 = 300 * 1_000_000_000;
/// Largest number of kinds and targets that are distinguished. Events beyond it are reported without their
/// target.
const MOST: usize = 200;

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Quiet {
    kept: Vec<Kept>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    /// First event of this kind. Similar events are held back.
    like: Event,
    /// Time at which the events that were held back are reported, ns since the epoch.
    until: i64,
    waiting: Option<Event>,
}

impl Quiet {
    /// Takes an event. Returns it if it should be reported now, or `None` if it is held back.
    pub fn take(&mut self, event: Event, now: i64) -> Option<Event> {
        let event = if self.has_room(&event) { event } else { Event { target: String::new(), ..event } };
        match self.kept.iter_mut().find(|kept| kept.like.is_like(&event)) {
            Some(kept) => {
                match &mut kept.waiting {
                    Some(waiting) => waiting.absorb(&event),
                    None => kept.waiting = Some(event),
                }
                None
            }
            None => {
                self.kept.push(Kept { like: event.clone(), until: now.saturating_add(QUIET), waiting: None });
                Some(event)
            }
        }
    }

    /// Returns the merged events whose waiting time is over.
    pub fn due(&mut self, now: i64) -> Vec<Event> {
        let mut due = Vec::new();
        self.kept.retain_mut(|kept| {
            // The second condition holds if the clock was set back. Without it, events would wait too long.
            let is_over = kept.until <= now || kept.until > now.saturating_add(QUIET);
            match kept.waiting.take_if(|_| is_over) {
                Some(event) => {
                    due.push(event);
                    kept.until = now.saturating_add(QUIET);
                    true
                }
                None => !is_over,
            }
        });
        due
    }

    fn has_room(&self, event: &Event) -> bool {
        self.kept.len() < MOST || self.kept.iter().any(|kept| kept.like.is_like(event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(target: &str, at: i64) -> Event {
        Event {
            kind: "link-errors".into(),
            target: target.into(),
            first: at,
            last: at,
            count: 1,
            ..Event::default()
        }
    }

    #[test]
    fn the_first_event_is_sent_at_once_and_later_ones_as_a_count() {
        let mut quiet = Quiet::default();
        assert!(quiet.take(event("a", 0), 0).is_some() && quiet.take(event("b", 0), 0).is_some());
        for at in 1..1000 {
            assert_eq!(quiet.take(event("a", at), at), None);
        }
        assert!(quiet.due(QUIET - 1).is_empty());
        let due = quiet.due(QUIET);
        assert_eq!((due.len(), due[0].count, due[0].first, due[0].last), (1, 999, 1, 999));
        // The event occurs again, so it is reported once more with its count. After that, nothing is held
        // back.
        assert_eq!(quiet.take(event("a", QUIET + 1), QUIET + 1), None);
        assert_eq!(quiet.due(2 * QUIET).len(), 1);
        assert!(quiet.due(3 * QUIET).is_empty() && quiet.kept.is_empty());
        assert!(quiet.take(event("a", 0), 3 * QUIET).is_some());
    }

    #[test]
    fn the_number_of_targets_is_bounded_and_the_rest_counted() {
        let mut quiet = Quiet::default();
        let told: u64 = (0..3_000)
            .filter_map(|at| quiet.take(event(&at.to_string(), 0), 0))
            .map(|event| event.count)
            .sum();
        assert!(quiet.kept.len() <= MOST + 1);
        assert_eq!(told + quiet.due(QUIET).iter().map(|event| event.count).sum::<u64>(), 3_000);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_suppress_events_forever() {
        let mut quiet = Quiet::default();
        quiet.take(event("a", 0), 100 * QUIET);
        quiet.take(event("a", 0), 100 * QUIET);
        assert_eq!(quiet.due(QUIET).len(), 1);
    }
}
