//! Formats what a round could not read as short notes for people. Their number is limited, and each is one
//! line, whatever characters file names contain.

use crate::collection::{Outcome, SourceRound};
use crate::sample::printable;
use crate::sources::Report;
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Largest number of notes per source. All notes fit into a pipe that no process reads (64 KiB).
const MOST: usize = 10;
const LONGEST_LETTERS: usize = 400;

/// Returns the notes on a whole round. A problem that several sources report is written once.
pub fn notes(rounds: &[SourceRound]) -> Vec<String> {
    let mut told = BTreeSet::new();
    rounds.iter().flat_map(|round| of_source(round, &mut told)).collect()
}

fn of_source<'a>(
    round: &'a SourceRound,
    told: &mut BTreeSet<&'a (std::path::PathBuf, String)>,
) -> Vec<String> {
    let mut texts: Vec<String> = outcome(round).into_iter().collect();
    let refused = round.refused.iter().filter(|one| told.insert(one));
    texts.extend(refused.map(|(path, why)| format!("{}: {}", shown(path), printable(why.as_bytes()))));
    texts.extend(round.remarks.iter().map(|remark| printable(remark.as_bytes())));
    texts.extend(round.reports.iter().filter_map(unreadable));
    let more = texts.len().saturating_sub(MOST);
    texts.truncate(MOST);
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    let kind = if round.outcome == Outcome::Failed { "error" } else { "note" };
    texts.iter().map(|text| format!("{kind}: {}: {}", round.name, shortened(text))).collect()
}

fn outcome(round: &SourceRound) -> Option<String> {
    match &round.outcome {
        Outcome::Done => None,
        Outcome::Hung(path) => Some(format!("no answer from {} before the deadline", shown(path))),
        Outcome::NotStarted(why) => Some(format!("no thread could be started for it: {why}")),
        Outcome::Failed => Some("a mistake in iodock stopped this source".into()),
    }
}

fn unreadable(report: &Report) -> Option<String> {
    let faults = report.faults.as_ref().filter(|faults| faults.unreadable > 0)?;
    let place = [report.source, report.file_system.as_str(), report.target.as_str()];
    let place = place.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    let (count, first) = (faults.unreadable, faults.first_line.unwrap_or(0));
    let file = faults.first_file.as_deref().map(|file| format!(" of {}", shown(file))).unwrap_or_default();
    Some(format!(
        "{}: unreadable lines: {count}, the first is line {first}{file}",
        printable(place.as_bytes())
    ))
}

fn shown(path: &Path) -> String {
    printable(path.as_os_str().as_bytes())
}

/// Shortens a text or a whole note.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_LETTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}

/// Prints repeated notes only once, so that they do not fill a log. Notes that differ only in numbers count
/// as equal. A note may be missing in some rounds.
#[derive(Default)]
pub struct Changes {
    told: Vec<Told>,
}

struct Told {
    note: String,
    /// Text of the note without its digits.
    key: String,
    /// Number of rounds since the note last appeared.
    missing: u32,
}

/// Number of rounds without a note after which it is reported as over.
const OVER: u32 = 30;

impl Changes {
    /// Returns the notes that are new, and a note for each problem that is over.
    pub fn of(&mut self, notes: Vec<String>) -> Vec<String> {
        self.told.iter_mut().for_each(|told| told.missing += 1);
        let mut new = Vec::new();
        for note in notes {
            let key = note.replace(|letter: char| letter.is_ascii_digit(), "");
            match self.told.iter_mut().find(|told| told.key == key) {
                Some(told) => told.missing = 0,
                None => {
                    self.told.push(Told { note: note.clone(), key, missing: 0 });
                    new.push(note);
                }
            }
        }
        let over = self.told.extract_if(.., |told| told.missing >= OVER);
        new.extend(over.map(|told| format!("over: {}", told.note)));
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn round(refused: Vec<(std::path::PathBuf, String)>) -> SourceRound {
        let (reports, remarks) = (Vec::new(), Vec::new());
        let events = Vec::new();
        let (name, outcome, duration) = ("s", Outcome::Done, Duration::ZERO);
        SourceRound { name, outcome, duration, reports, refused, remarks, events }
    }

    #[test]
    fn notes_are_bounded_in_number_and_length() {
        let refused = (0..3000).map(|number| (format!("/{number}{}", "x".repeat(2000)).into(), "why".into()));
        let notes = notes(&[round(refused.collect())]);
        assert_eq!((notes.len(), notes[10].as_str()), (11, "note: s: and 2990 more"));
        assert!(notes.concat().len() < 10 * 450);
    }

    #[test]
    fn names_in_notes_cannot_contain_control_characters() {
        let notes = notes(&[round(vec![("/a\n\x1b[2Jnote: all is well".into(), "why".into())])]);
        assert_eq!(notes, ["note: s: /a\\x0a\\x1b[2Jnote: all is well: why"]);
    }

    #[test]
    fn only_changes_are_reported() {
        let mut changes = Changes::default();
        let mut of = |texts: &[&str]| changes.of(texts.iter().map(|text| text.to_string()).collect());
        assert_eq!(of(&["a", "ended: 3"]), ["a", "ended: 3"]);
        assert!(of(&["a", "ended: 4"]).is_empty() && of(&["a"]).is_empty());
        assert_eq!(of(&["ended: 12", "c"]), ["c"]);
        let later: Vec<String> = (0..OVER).flat_map(|_| of(&["c"])).collect();
        assert_eq!(later, ["over: a", "over: ended: 3"]);
        assert_eq!(of(&["a", "c"]), ["a"]);
    }

    #[test]
    fn a_problem_that_two_sources_share_is_reported_once() {
        let one = || round(vec![("/sys/kernel/debug".into(), "Permission denied".into())]);
        assert_eq!(notes(&[one(), one()]).len(), 1);
    }
}
