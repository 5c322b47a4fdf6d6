//! Finds the names of users. A user of a directory service, who is not in /etc/passwd, is shown by number.

use super::{is_gone, News, Reading};
use iodock_counters::numbers::words;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// Number of bytes of the file that are read. The rest of a longer file is ignored.
const LONGEST_BYTES: u64 = 4 << 20;
/// Time limit for reading the file. It is also limited to a quarter of the remaining round.
const PATIENCE: Duration = Duration::from_millis(500);

/// Names of users by number.
#[derive(Debug, Default)]
pub struct Users(BTreeMap<Vec<u8>, Vec<u8>>);

impl Users {
    /// Reads /etc/passwd, within a time that leaves enough for the processes.
    pub fn read(reading: &Reading) -> Users {
        let path = reading.root().join("etc/passwd");
        let (answer, answered) = channel();
        let asked = path.clone();
        let started = thread::Builder::new().name("users".into()).spawn(move || answer.send(content(&asked)));
        match answered.recv_timeout(PATIENCE.min(reading.remaining() / 4)) {
            Ok(Ok(text)) => return Users::of_passwd(&text),
            Ok(Err(error)) if is_gone(&error) => {}
            Ok(Err(error)) => reading.refuse(&path, &error),
            Err(_) => {
                let why = started.err().map_or("no answer".into(), |error| error.to_string());
                reading.say(News::Refused(path, format!("{why}; users are shown by number")));
            }
        }
        Users::default()
    }

    /// Parses /etc/passwd. If a number has two names, the first one is used, as in getpwuid(3).
    fn of_passwd(text: &[u8]) -> Users {
        let mut users = Users::default();
        for line in text.split(|&byte| byte == b'\n') {
            let mut fields = line.split(|&byte| byte == b':');
            let name = fields.next().filter(|name| !name.is_empty());
            if let (Some(name), Some(number)) = (name, fields.nth(1)) {
                users.0.entry(number.to_vec()).or_insert_with(|| name.to_vec());
            }
        }
        users
    }

    /// Returns the name of the real user in /proc/PID/status, or the number if there is no name.
    pub fn of_status(&self, status: &[u8]) -> Vec<u8> {
        self.of_number(real(status))
    }

    /// Returns the name of this user, or the number if there is no name.
    pub fn of_number(&self, number: &[u8]) -> Vec<u8> {
        self.0.get(number).map_or_else(|| number.to_vec(), Vec::clone)
    }
}

/// Returns whether root owns a process, from its /proc/PID/status.
pub fn is_root(status: &[u8]) -> bool {
    real(status) == b"0"
}

/// Returns the number of the real user in /proc/PID/status.
fn real(status: &[u8]) -> &[u8] {
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"));
    line.and_then(|line| words(line).next()).unwrap_or_default()
}

fn content(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(LONGEST_BYTES).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_names_are_found_by_user_id() {
        let users = Users::of_passwd(b"root:x:0:0::/root:/bin/sh\nbad\na:x:1000:\ntoor:x:0:0::/:/bin/sh\n");
        assert_eq!(users.of_status(b"Name:\ta\nUid:\t1000\t1\t1\t1\n"), b"a");
        assert_eq!(users.of_status(b"Uid:\t0\t0\t0\t0\n"), b"root");
        assert_eq!(users.of_status(b"Uid:\t7\t7\t7\t7\n"), b"7");
    }
}
