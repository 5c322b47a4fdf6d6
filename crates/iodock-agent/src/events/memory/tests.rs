use super::*;
use iodock_samples::event::Severity;

const SECOND: i64 = 1_000_000_000;

fn seen(sight: Sight) -> Seen {
    Seen { source: "md", file_system: String::new(), target: "md0".into(), aspect: "it", sight }
}

fn state(level: &str, is_told_at_first: bool) -> Seen {
    let kind = if is_told_at_first { "array-degraded" } else { "array-whole" };
    seen(Sight::State { level: level.into(), kind, text: level.into(), is_told_at_first })
}

fn errors(value: u64) -> Seen {
    let sight = Sight::Errors { kind: "link-errors", name: "rx_errors".into(), value, least: 1 };
    Seen { aspect: "rx_errors", ..seen(sight) }
}

fn paths(working: &[&str], others: &[(&str, &str)]) -> Seen {
    let working = working.iter().map(|name| name.to_string()).collect();
    let others = others.iter().map(|(name, state)| (name.to_string(), state.to_string())).collect();
    seen(Sight::Parts { working, others, lost: "path-lost", back: "path-back" })
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("iodock-memory-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn told(event: Option<Event>) -> Option<(String, Severity, String)> {
    event.map(|event| (event.kind, event.severity, event.text))
}

#[test]
fn state_changes_and_initial_bad_states_are_reported() {
    let mut memory = Memory::default();
    assert_eq!(memory.see(state("[UU]", false), 0), None);
    let degraded = ("array-degraded".to_string(), Severity::Error, "[U_]".to_string());
    assert_eq!(told(memory.see(state("[U_]", true), 1)), Some(degraded.clone()));
    assert_eq!(memory.see(state("[U_]", true), 2), None);
    assert_eq!(told(memory.see(state("[UU]", false), 3)).map(|told| told.0).as_deref(), Some("array-whole"));
    assert_eq!(told(Memory::default().see(state("[U_]", true), 1)), Some(degraded));
}

#[test]
fn a_restarted_agent_repeats_no_event_and_reports_missed_ones() {
    let folder = folder("again");
    let mut memory = Memory::open(&folder).expect("opened");
    assert!(memory.see(state("[U_]", true), 1).is_some());
    assert!(memory.see(errors(5), 1).is_none());
    memory.save().expect("saved");
    let mut memory = Memory::open(&folder).expect("opened again");
    assert_eq!(memory.see(state("[U_]", true), 2), None);
    let grown = memory.see(errors(12), 2).expect("it grew");
    assert_eq!((grown.count, grown.text.as_str()), (7, "rx_errors: 7 more, 12 in all"));
    // Errors that are not reported yet are still counted.
    assert!(memory.see(errors(13), 3).is_none());
    memory.save().expect("saved");
    let mut memory = Memory::open(&folder).expect("opened again");
    assert_eq!(memory.due(301 * SECOND).iter().map(|event| event.count).sum::<u64>(), 1);
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_damaged_file_is_dropped_and_rewritten() {
    let folder = folder("damaged");
    for content in [&b"{"[..], b"\xff\xfe", b"[]", br#"{"seen":{"a":1},"positions":{},"quiet":{"kept":[]}}"#]
    {
        fs::write(folder.join(FILE), content).expect("written");
        let mut memory = Memory::open(&folder).expect("opened");
        assert!(memory.see(state("[U_]", true), 1).is_some());
        memory.save().expect("saved");
        assert_eq!(Memory::open(&folder).expect("opened").see(state("[U_]", true), 1), None);
    }
    fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn lost_and_restored_paths_are_reported() {
    let mut memory = Memory::default();
    assert_eq!(memory.see(paths(&["sda", "sdb"], &[]), 0), None);
    let lost = told(memory.see(paths(&["sda"], &[("sdb", "offline")]), 1)).expect("lost");
    assert_eq!((lost.0.as_str(), lost.2.as_str()), ("path-lost", "sdb (offline); 1 of 2 work"));
    assert_eq!(memory.see(paths(&["sda"], &[("sdb", "offline")]), 2), None);
    let lost = told(memory.see(paths(&[], &[("sdb", "offline")]), 3)).expect("lost");
    assert_eq!((lost.0.as_str(), lost.2.as_str()), ("all-paths-lost", "sda (gone)"));
    let half = told(memory.see(paths(&["sda"], &[("sdb", "blocked")]), 4)).expect("one is back");
    assert_eq!((half.0.as_str(), half.2.as_str()), ("path-lost", "sda again; 1 of 2 work"));
    let back = told(memory.see(paths(&["sda", "sdb"], &[]), 5)).expect("back");
    assert_eq!((back.0.as_str(), back.2.as_str()), ("path-back", "sdb; 2 of 2 work"));
    let at_first = told(Memory::default().see(paths(&["sda"], &[("sdb", "blocked")]), 0));
    assert_eq!(at_first.map(|told| told.0).as_deref(), Some("path-lost"));
}

#[test]
fn a_restarted_counter_gives_no_event_and_a_changed_link_speed_gives_one() {
    let mut memory = Memory::default();
    let least = |value| seen(Sight::Errors { kind: "link-flapped", name: "n".into(), value, least: 2 });
    assert_eq!(memory.see(least(10), 0), None);
    assert_eq!(memory.see(least(11), 0), None);
    assert_eq!(memory.see(least(2), 0), None);
    assert_eq!(memory.see(least(4), 0).map(|event| event.count), Some(2));
    let speed =
        |value| seen(Sight::Speed { value, unit: "Mbit/s", slower: "link-slower", faster: "link-faster" });
    let mut memory = Memory::default();
    assert_eq!(memory.see(speed(10_000), 0), None);
    let slower = told(memory.see(speed(1000), 0)).expect("slower");
    assert_eq!((slower.0.as_str(), slower.2.as_str()), ("link-slower", "1000 Mbit/s, before 10000 Mbit/s"));
}

#[test]
fn the_memory_is_bounded_and_texts_are_one_short_line() {
    let mut memory = Memory::default();
    for number in 0..2 * MOST_SEEN {
        memory.see(Seen { target: number.to_string(), ..state("[UU]", false) }, 0);
    }
    assert_eq!(memory.kept.seen.len(), MOST_SEEN);
    let text = "a\n\u{1b}[2J".to_string() + &"é".repeat(2000);
    let sight = Sight::State { level: "x".into(), kind: "array-degraded", text, is_told_at_first: true };
    let event = Memory::default().see(seen(sight), 0).expect("told");
    assert_eq!(event.text.chars().count(), Event::LONGEST);
    assert!(event.text.starts_with("a\\x0a\\x1b[2J") && event.text.ends_with('…'));
    assert_eq!(shortened(&"x".repeat(Event::LONGEST)), "x".repeat(Event::LONGEST));
}

#[test]
fn a_missing_target_is_reported_after_some_rounds_and_is_new_when_it_returns() {
    let mut memory = Memory::default();
    assert!(memory.see(state("[U_]", true), 0).is_some());
    let (here, nothing) = (BTreeSet::from([target_key(&state("", true))]), BTreeSet::new());
    assert!(memory.end_round("md", &here, 1).is_empty());
    assert!(memory.end_round("md", &nothing, 2).is_empty() && memory.end_round("md", &nothing, 3).is_empty());
    // The target reappears before it is reported as gone.
    assert!(memory.end_round("md", &here, 4).is_empty() && memory.end_round("md", &nothing, 5).is_empty());
    assert!(memory.end_round("multipath", &nothing, 5).is_empty());
    assert!(memory.end_round("md", &nothing, 6).is_empty());
    let told: Vec<_> =
        memory.end_round("md", &nothing, 7).into_iter().map(|event| (event.kind, event.target)).collect();
    assert_eq!(told, [("target-gone".to_string(), "md0".to_string())]);
    assert!(memory.end_round("md", &nothing, 8).is_empty());
    assert!(memory.see(state("[U_]", true), 9).is_some());
}
