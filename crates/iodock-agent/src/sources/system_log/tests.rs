use super::*;
use std::fs::OpenOptions;
use std::io::Write;

struct Log {
    folder: PathBuf,
    place: Option<LogPosition>,
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Log {
    fn new(name: &str) -> Log {
        let folder = std::env::temp_dir().join(format!("iodock-log-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        Log { folder, place: None }
    }

    fn path(&self) -> PathBuf {
        self.folder.join("messages")
    }

    fn add(&self, text: impl AsRef<[u8]>) {
        let mut file = OpenOptions::new().create(true).append(true).open(self.path()).expect("opened");
        file.write_all(text.as_ref()).expect("written");
    }

    /// Returns the lines of a round. The position is converted to text, as for a new agent.
    fn round(&mut self) -> (Vec<String>, u64) {
        let mut lines = Vec::new();
        let before = self.place.map(|place| LogPosition::of(&place.text()));
        let mut line = |line: &[u8]| lines.push(String::from_utf8_lossy(line).into_owned());
        let (place, skipped) = follow(&self.path(), before, &mut line).expect("read");
        self.place = Some(place);
        (lines, skipped)
    }
}

fn lines(lines: &[&str]) -> (Vec<String>, u64) {
    (lines.iter().map(|line| line.to_string()).collect(), 0)
}

#[test]
fn new_log_lines_are_read_once_and_only_when_complete() {
    let mut log = Log::new("new");
    log.add("old\n");
    assert_eq!(log.round(), lines(&[]));
    log.add("one\ntwo\nhal");
    assert_eq!(log.round(), lines(&["one", "two"]));
    assert_eq!(log.round(), lines(&[]));
    log.add("f\n\n");
    assert_eq!(log.round(), lines(&["half", ""]));
}

#[test]
fn log_rotation_and_truncation_are_followed() {
    let mut log = Log::new("rotation");
    log.add("old\n");
    log.round();
    log.add("before\n");
    fs::rename(log.path(), log.folder.join("messages-20261122")).expect("rotated");
    log.add("after\n");
    assert_eq!(log.round(), lines(&["before", "after"]));
    // This is what copytruncate of logrotate does.
    fs::copy(log.path(), log.folder.join("messages.1")).expect("copied");
    fs::write(log.path(), "new\n").expect("truncated");
    assert_eq!(log.round(), lines(&["new"]));
    // The file and its rotated copy disappear, and then the file appears again.
    fs::remove_file(log.path()).expect("removed");
    assert_eq!(log.round(), lines(&[]));
    log.add("again\n");
    assert_eq!(log.round().0.last().map(String::as_str), Some("again"));
}

#[test]
fn a_log_file_that_appears_later_is_read_from_its_beginning() {
    let mut log = Log::new("late");
    assert_eq!(log.round(), lines(&[]));
    log.add("first\n");
    assert_eq!(log.round(), lines(&["first"]));
}

#[test]
fn a_flood_of_log_lines_is_read_partly_and_skipped_bytes_are_counted() {
    let mut log = Log::new("flood");
    log.add("old\n");
    log.round();
    let file = OpenOptions::new().write(true).open(log.path()).expect("opened");
    // A hole makes the file longer than the limit, but takes no space on the disk.
    file.set_len(4 + 3 * MOST_BYTES).expect("grown");
    log.add("\nlast\n");
    let (lines, skipped) = log.round();
    assert_eq!((lines, skipped), (vec!["last".to_string()], 2 * MOST_BYTES + 6));
    assert_eq!(log.round(), (vec![], 0));
}

#[test]
fn a_log_that_is_not_a_regular_file_is_refused() {
    let log = Log::new("folder");
    assert!(follow(&log.folder, None, &mut |_| ()).is_err());
    assert_eq!(LogPosition::of("no numbers"), LogPosition::default());
}
