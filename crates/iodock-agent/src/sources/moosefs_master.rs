//! Reads the state of a MooseFS master on this machine: the requests of each mount, as the master reports
//! them; how long this answer takes; and processor time and start of the master's process. The master has one
//! thread. So its share of one processor shows how busy it is, and its answer waits behind the requests of
//! the mounts.
//!
//! A stopped or overloaded master answers late or not at all. The agent reports this, and waits only for a
//! part of its deadline. It reads everything except the answer from /proc.

use super::moosefs_sessions::{self as sessions, Session};
use super::small_file::SmallFile;
use super::stat::{self, Life};
use super::{jobs, News, Reading};
use crate::clock::now;
use crate::lines::Faults;
use crate::sample::{Entry, Evidence, Names, Owner, Quantity};
use iodock_counters::numbers::{finite, whole, words};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

const SERVICE: &str = "mfs_master";
const SESSIONS: &str = "mfs_sessions";
const PROGRAM: &[u8] = b"mfsmaster";
/// Port for clients: MATOCL_LISTEN_PORT, unless a site changes it.
const PORT: u16 = 9421;
/// Share of the remaining time that the agent waits for the answer. It needs the rest for the following
/// steps.
const PATIENCE: f64 = 0.8;
const LONGEST: Duration = Duration::from_secs(2);
/// Length of a tick in microseconds: the kernel always reports hundredths of a second (USER_HZ).
const TICK_US: u64 = 10_000;
const TICKS_PER_SECOND: f64 = 100.0;

pub fn read(reading: &Reading) {
    let Some(place) = place(reading) else { return };
    // Time before the request. With the time of a late answer, its data would count for the next round.
    let time = now();
    // Without a master's process, another service may use the port, so no request is sent.
    let Some(process) = process(reading) else { return };
    let begin = Instant::now();
    let patience = reading.remaining().mul_f64(PATIENCE).min(LONGEST);
    let answer = ask(place.asked, patience);
    let took = begin.elapsed();
    if let Err(error) = &answer {
        reading.refuse_service(&place.file_system, error, patience);
    }
    let entry = service(&process, took, answer.is_ok());
    reading.entries_of(time, SERVICE, (&place.file_system, &place.file_system), &entry.0, [&entry.1]);
    if let Ok(answer) = answer {
        listed(reading, time, &place, &answer);
    }
}

/// Address on which the master listens, and name of the file system that its clients use.
struct Place {
    asked: SocketAddrV4,
    file_system: String,
}

/// Finds the master's address in the list of sockets. Returns `None` if no master listens on this machine.
fn place(reading: &Reading) -> Option<Place> {
    let (mut listens, mut known) = (None, BTreeMap::<Ipv4Addr, u64>::new());
    reading.lines(&reading.root().join("proc/net/tcp"), |line, _| match socket(line) {
        Some((address, LISTENS)) if address.port() == PORT => listens = Some(*address.ip()),
        Some((address, CONNECTED)) if address.port() == PORT && !address.ip().is_loopback() => {
            *known.entry(*address.ip()).or_default() += 1;
        }
        _ => {}
    });
    let listens: Ipv4Addr = listens?;
    let asked = if listens.is_unspecified() { Ipv4Addr::LOCALHOST } else { listens };
    // If the master listens on all addresses, the file system gets the address that most clients use.
    let most = known.into_iter().max_by_key(|(_, clients)| *clients).map(|(address, _)| address);
    let called = if listens.is_unspecified() { most? } else { listens };
    Some(Place { asked: SocketAddrV4::new(asked, PORT), file_system: format!("{called}:{PORT}") })
}

const LISTENS: u64 = 0x0a;
const CONNECTED: u64 = 0x01;

/// Parses the local address and the state in a line of /proc/net/tcp.
fn socket(line: &[u8]) -> Option<(SocketAddrV4, u64)> {
    let mut fields = words(line).skip(1);
    let local = fields.next()?;
    let colon = local.iter().position(|&byte| byte == b':')?;
    let address = u32::try_from(hexadecimal(&local[..colon])?).ok()?;
    let port = u16::try_from(hexadecimal(&local[colon + 1..])?).ok()?;
    let state = hexadecimal(fields.nth(1)?)?;
    // The file contains addresses in the byte order of memory.
    Some((SocketAddrV4::new(Ipv4Addr::from(address.to_ne_bytes()), port), state))
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?;
    u64::from_str_radix(digits, 16).ok()
}

/// Processor time in microseconds and running time of the master's process.
struct Process {
    time_us: u64,
    uptime_s: u64,
}

/// Finds the process of the master, and not one of the children that it starts to write files.
fn process(reading: &Reading) -> Option<Process> {
    let mut small = SmallFile::default();
    let mut found = BTreeMap::new();
    let folder = reading.root().join("proc");
    for (name, folder) in reading.folders(&folder) {
        let Some(number) = whole(name.as_bytes()) else { continue };
        if small.content(&folder.join("comm")).trim_ascii() == PROGRAM {
            found.insert(number, small.content(&folder.join("stat")).to_vec());
        }
    }
    let is_first = |stat: &Vec<u8>| !Life::of(stat).parent.is_some_and(|parent| found.contains_key(&parent));
    let stat = found.values().find(|stat| is_first(stat))?;
    let up = small.content(&folder.join("uptime"));
    let up = words(up).next().and_then(finite)?;
    let started = stat::start_time(stat)? as f64 / TICKS_PER_SECOND;
    let time_us = stat::ticks(stat)?.saturating_mul(TICK_US);
    Some(Process { time_us, uptime_s: (up - started).max(0.0) as u64 })
}

fn service(process: &Process, took: Duration, is_answered: bool) -> (Names, Entry) {
    let (mut names, mut entry) = (Names::default(), Entry::default());
    let took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    let values = [
        ("answer_us", Quantity::Level, took_us),
        ("no_answer", Quantity::Level, u64::from(!is_answered)),
        ("cpu", Quantity::Time, process.time_us),
        ("uptime_s", Quantity::Level, process.uptime_s),
    ];
    for (name, quantity, value) in values {
        if let Some(name) = names.intern(name.as_bytes()) {
            entry.push(name, quantity, value);
        }
    }
    (names, entry)
}

fn listed(reading: &Reading, time: i64, place: &Place, answer: &[u8]) {
    let mut faults = Faults { lines: 1, ..Faults::default() };
    let found = sessions::sessions(answer).unwrap_or_else(|| {
        faults.unreadable();
        Vec::new()
    });
    reading.faults(SESSIONS, faults);
    let mut names = Names::default();
    for (mount, session) in by_mount(found) {
        if let Some(entry) = entry(&session, &mut names) {
            reading.entries_of(time, SESSIONS, (&place.file_system, &mount), &names, [&entry]);
        }
    }
}

/// Keeps one session per mount. If a folder was mounted again, the master still lists the old session, so a
/// connected one is preferred, then the newest.
fn by_mount(found: Vec<Session>) -> BTreeMap<String, Session> {
    let mut mounts = BTreeMap::<String, Session>::new();
    for session in found {
        let rank = |session: &Session| (session.is_connected, session.number);
        match mounts.entry(session.place()) {
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(session);
            }
            std::collections::btree_map::Entry::Occupied(mut known) => {
                if rank(&session) > rank(known.get()) {
                    known.insert(session);
                }
            }
        }
    }
    mounts
}

/// Returns the entry of a session. Its owner is the job in the name of the mount point, or unknown.
fn entry(session: &Session, names: &mut Names) -> Option<Entry> {
    let job = jobs::of_mount_point(&session.mount_point).unwrap_or_default();
    let owner = Owner { evidence: Evidence::Server, job, ..Owner::default() };
    let mut entry = Entry { owner, ..Entry::default() };
    for (name, value) in session.operations() {
        entry.push(names.intern(name.as_bytes())?, Quantity::Count, value)?;
    }
    Some(entry)
}

/// Requests the list of sessions, and returns the body of the answer. Fails if the connection fails, and with
/// `TimedOut` after `patience`.
fn ask(address: SocketAddrV4, patience: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + patience;
    let mut stream = TcpStream::connect_timeout(&address.into(), patience.max(Duration::from_millis(1)))?;
    stream.set_write_timeout(Some(left(deadline)?))?;
    stream.write_all(&sessions::QUESTION)?;
    loop {
        let mut head = [0; sessions::HEAD_BYTES];
        read_exact(&mut stream, &mut head, deadline)?;
        let (is_answer, length) = sessions::head(head).ok_or(ErrorKind::InvalidData)?;
        let mut body = Vec::new();
        read_all(&mut stream, &mut body, length, deadline)?;
        if is_answer {
            return Ok(body);
        }
    }
}

fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(ErrorKind::TimedOut.into());
    }
    Ok(left)
}

fn read_exact(stream: &mut TcpStream, buffer: &mut [u8], deadline: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        filled += some(stream, &mut buffer[filled..], deadline)?;
    }
    Ok(())
}

/// Reads `length` bytes. Memory grows with the data that arrive, so that a wrong length does no harm.
fn read_all(stream: &mut TcpStream, body: &mut Vec<u8>, length: usize, deadline: Instant) -> io::Result<()> {
    let mut piece = [0; 16 << 10];
    while body.len() < length {
        let wanted = piece.len().min(length - body.len());
        let read = some(stream, &mut piece[..wanted], deadline)?;
        body.extend_from_slice(&piece[..read]);
    }
    Ok(())
}

fn some(stream: &mut TcpStream, buffer: &mut [u8], deadline: Instant) -> io::Result<usize> {
    stream.set_read_timeout(Some(left(deadline)?))?;
    match stream.read(buffer) {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(ErrorKind::TimedOut.into()),
        other => other,
    }
}

impl Reading {
    fn refuse_service(&self, file_system: &str, error: &io::Error, patience: Duration) {
        let why = match error.kind() {
            ErrorKind::TimedOut => format!("no answer within {} ms", patience.as_millis()),
            _ => error.to_string(),
        };
        self.say(News::Refused(Path::new("mfsmaster").join(file_system), why));
    }
}

#[cfg(test)]
mod tests;
