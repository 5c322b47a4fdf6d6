//! Parses the list of mounts that the MooseFS master sends to any client, as `mfscli -SMO` requests it. For
//! each mount it contains the number of each operation in the current hour of the master's clock. The format
//! is that of `mfscli` and masters of 3.0.117. Masters support this request since 1.7.8.

use crate::sample::printable;
use std::net::Ipv4Addr;

const ASKED: u32 = 508;
const ANSWER: u32 = 509;
/// Requested version of the format of a session.
const FORM: u8 = 2;
/// Request: type, length and version of the format.
pub const QUESTION: [u8; 9] = [0, 0, (ASKED >> 8) as u8, ASKED as u8, 0, 0, 0, 1, FORM];
pub const HEAD_BYTES: usize = 8;
/// Longest accepted answer in bytes. It is enough for about 50,000 mounts.
const LONGEST_ANSWER: usize = 16 << 20;
/// Number of bytes per mount for flags, user and group ids, and limits.
const SETTINGS_BYTES: usize = 27;
const OPERATIONS: [&str; 16] = [
    "statfs",
    "getattr",
    "setattr",
    "lookup",
    "mkdir",
    "rmdir",
    "symlink",
    "readlink",
    "mknod",
    "unlink",
    "rename",
    "link",
    "readdir",
    "open",
    // This operation finds the servers of a part of a file. The reads and writes themselves go to chunk
    // servers.
    "read_chunk",
    "write_chunk",
];

/// A mount of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub number: u32,
    pub client: Ipv4Addr,
    /// Path of the mount point, as the client reports it.
    pub mount_point: Vec<u8>,
    pub is_connected: bool,
    counts: Vec<u32>,
}

impl Session {
    /// Returns client and mount point, such as `10.0.0.7:/scratch/job_12`.
    pub fn place(&self) -> String {
        format!("{}:{}", self.client, printable(&self.mount_point))
    }

    /// Returns the operations whose count is above zero.
    pub fn operations(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let name =
            |at: usize| OPERATIONS.get(at).map_or_else(|| format!("operation_{at}"), ToString::to_string);
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(move |(at, count)| (name(at), u64::from(*count)))
    }
}

/// Decodes the head of a message: whether it is the answer, and the length of its body. Returns `None` if the
/// message is not valid, so that its body is not read.
pub fn head(head: [u8; HEAD_BYTES]) -> Option<(bool, usize)> {
    let mut rest = Bytes(&head);
    let (kind, length) = (rest.number()?, usize::try_from(rest.number()?).ok()?);
    // Before its answer, a master may send keep-alive messages.
    let is_sane = length <= LONGEST_ANSWER && (kind == ANSWER || (kind == 0 && length == 0));
    is_sane.then_some((kind == ANSWER, length))
}

/// Decodes all mounts. Returns `None` if the answer is invalid.
pub fn sessions(answer: &[u8]) -> Option<Vec<Session>> {
    let mut rest = Bytes(answer);
    let operations = usize::from(u16::from_be_bytes(rest.array()?));
    let mut found = Vec::new();
    while !rest.0.is_empty() {
        found.push(rest.session(operations)?);
    }
    Some(found)
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(first)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    fn session(&mut self, operations: usize) -> Option<Session> {
        let (number, client) = (self.number()?, Ipv4Addr::from(self.number()?));
        let (_version, _open_files) = (self.number()?, self.number()?);
        let [connections] = self.array()?;
        let _expires = self.number()?;
        let (mount_point, _folder) = (self.text()?.to_vec(), self.text()?);
        self.take(SETTINGS_BYTES)?;
        // The counts of the current hour are used. Those of the previous hour follow and are skipped.
        let counts = self.take(4 * operations)?;
        self.take(4 * operations)?;
        let counts =
            counts.chunks_exact(4).map(|count| u32::from_be_bytes([count[0], count[1], count[2], count[3]]));
        Some(Session { number, client, mount_point, is_connected: connections > 0, counts: counts.collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAL: &[u8] = include_bytes!("../../tests/fixtures/moosefs-3.0.117.sessions");

    #[test]
    fn the_session_list_of_a_real_master_is_read() {
        let found = sessions(REAL).expect("an answer");
        let places: Vec<String> = found.iter().map(Session::place).collect();
        assert_eq!(places, ["a", "b", "c", "d"].map(|name| format!("10.77.0.1:/tmp/mfs/mnt/{name}")));
        assert!(found.iter().all(|session| session.is_connected));
        let first: Vec<_> = found[0].operations().collect();
        assert!(first.iter().any(|(name, count)| name == "readdir" && *count > 300), "{first:?}");
    }

    #[test]
    fn a_truncated_session_list_is_refused() {
        for length in 0..REAL.len() {
            // An answer that is cut between two mounts is a valid shorter list. Its head would have another
            // length.
            let found = sessions(&REAL[..length]);
            assert!(found.is_none_or(|found| found.len() < 4), "{length}");
        }
        assert_eq!(sessions(&[0xff; 4096]), None);
        assert_eq!(sessions(b""), None);
    }

    #[test]
    fn a_packet_header_gives_the_length_of_the_answer() {
        let of = |kind: u32, length: u32| {
            let bytes = [kind.to_be_bytes(), length.to_be_bytes()].concat();
            head(bytes.try_into().expect("8 bytes"))
        };
        assert_eq!((of(509, 798), of(0, 0)), (Some((true, 798)), Some((false, 0))));
        assert_eq!((of(509, u32::MAX), of(0, 4), of(511, 4)), (None, None, None));
        assert_eq!(u32::from_be_bytes(QUESTION[..4].try_into().expect("4 bytes")), 508);
    }
}
