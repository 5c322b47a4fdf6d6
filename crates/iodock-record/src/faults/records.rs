//! Parses the kernel's records of perf events. Their fields have the byte order of the machine.

use iodock_event::FileMap;

const MMAP: u32 = 1;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const FORK: u32 = 7;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
/// Flag of a COMM record: an exec has set the name.
const MISC_EXEC: u16 = 1 << 13;
/// Number of bytes after every record except samples: pid, tid, time, identifier.
const TRAILER: usize = 24;

/// An event from the ring buffers. Times are from CLOCK_MONOTONIC, in ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// A page fault. `event` is the number of the event that counted it.
    Fault {
        event: u64,
        pid: u32,
        tid: u32,
        address: u64,
    },
    /// A new map. `path` is the kernel's name, which may also be `//anon` or `[stack]`.
    Map {
        pid: u32,
        start: u64,
        length: u64,
        offset: u64,
        path: Vec<u8>,
    },
    /// A map that existed when watching began.
    Found(FileMap),
    Fork {
        pid: u32,
        parent: u32,
        tid: u32,
    },
    Exec {
        pid: u32,
    },
    Exit {
        pid: u32,
        tid: u32,
    },
    /// Records were lost because the ring buffer was full.
    Lost {
        records: u64,
    },
}

struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const SIZE: usize>(&mut self) -> Option<[u8; SIZE]> {
        let (head, rest) = self.0.split_first_chunk::<SIZE>()?;
        self.0 = rest;
        Some(*head)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_ne_bytes)
    }

    fn text(&mut self) -> Vec<u8> {
        let text: &'a [u8] = self.0;
        text.split(|&byte| byte == 0).next().unwrap_or_default().to_vec()
    }
}

/// Parses one complete record, and returns it with its time. Returns `None` for other kinds and for records
/// that are too short.
pub fn parse(record: &[u8]) -> Option<(i64, Happened)> {
    let mut fields = Fields(record);
    let kind = fields.u32()?;
    let misc = u16::from_ne_bytes(fields.take()?);
    let _size: [u8; 2] = fields.take()?;
    if kind == SAMPLE {
        let event = fields.u64()?;
        let (pid, tid) = (fields.u32()?, fields.u32()?);
        let time = fields.u64()? as i64;
        return Some((time, Happened::Fault { event, pid, tid, address: fields.u64()? }));
    }
    let (body, mut trailer) = fields.0.split_at_checked(fields.0.len().checked_sub(TRAILER)?)?;
    trailer = &trailer[8..];
    let time = Fields(trailer).u64()? as i64;
    let happened = of_kind(kind, misc, Fields(body))?;
    Some((time, happened))
}

fn of_kind(kind: u32, misc: u16, mut fields: Fields) -> Option<Happened> {
    match kind {
        MMAP | MMAP2 => {
            let (pid, _tid) = (fields.u32()?, fields.u32()?);
            let (start, length, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
            if kind == MMAP2 {
                // These fields are skipped: device, inode and its generation, protection, flags.
                fields.take::<32>()?;
            }
            Some(Happened::Map { pid, start, length, offset, path: fields.text() })
        }
        FORK => {
            let (pid, parent) = (fields.u32()?, fields.u32()?);
            Some(Happened::Fork { pid, parent, tid: fields.u32()? })
        }
        EXIT => {
            let (pid, _parent) = (fields.u32()?, fields.u32()?);
            Some(Happened::Exit { pid, tid: fields.u32()? })
        }
        COMM if misc & MISC_EXEC != 0 => Some(Happened::Exec { pid: fields.u32()? }),
        LOST => {
            let _event = fields.u64()?;
            Some(Happened::Lost { records: fields.u64()? })
        }
        LOST_SAMPLES => Some(Happened::Lost { records: fields.u64()? }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend((8 + body.len() as u16).to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn words(numbers: &[u64]) -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    fn pair(first: u32, second: u32) -> u64 {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&first.to_ne_bytes());
        bytes[4..].copy_from_slice(&second.to_ne_bytes());
        u64::from_ne_bytes(bytes)
    }

    fn with_trailer(mut body: Vec<u8>, time: u64) -> Vec<u8> {
        body.extend(words(&[pair(7, 8), time, 99]));
        body
    }

    #[test]
    fn a_page_fault_record_has_event_task_time_and_address() {
        let bytes = record(SAMPLE, 2, &words(&[42, pair(7, 8), 1000, 0x7f00_0000_1234]));
        let fault = Happened::Fault { event: 42, pid: 7, tid: 8, address: 0x7f00_0000_1234 };
        assert_eq!(parse(&bytes), Some((1000, fault)));
    }

    #[test]
    fn the_name_of_a_map_ends_at_the_first_nul() {
        let mut body = words(&[pair(7, 8), 0x1000, 0x2000, 0x3000, 1, 2, 3, pair(1, 2)]);
        body.extend(b"/data/a b\0\0\0\0\0\0\0");
        let bytes = record(MMAP2, 0, &with_trailer(body, 5));
        let path = b"/data/a b".to_vec();
        let map = Happened::Map { pid: 7, start: 0x1000, length: 0x2000, offset: 0x3000, path };
        assert_eq!(parse(&bytes), Some((5, map)));
    }

    #[test]
    fn records_of_starts_ends_execs_and_losses_are_read() {
        let birth = words(&[pair(9, 7), pair(10, 7), 4]);
        let seen = parse(&record(FORK, 0, &with_trailer(birth.clone(), 4)));
        assert_eq!(seen, Some((4, Happened::Fork { pid: 9, parent: 7, tid: 10 })));
        let seen = parse(&record(EXIT, 0, &with_trailer(birth, 6)));
        assert_eq!(seen, Some((6, Happened::Exit { pid: 9, tid: 10 })));
        let name = with_trailer([&words(&[pair(9, 9)])[..], b"cat\0\0\0\0\0"].concat(), 7);
        assert_eq!(parse(&record(COMM, MISC_EXEC, &name)), Some((7, Happened::Exec { pid: 9 })));
        assert_eq!(parse(&record(COMM, 0, &name)), None);
        let lost = with_trailer(words(&[42, 17]), 8);
        assert_eq!(parse(&record(LOST, 0, &lost)), Some((8, Happened::Lost { records: 17 })));
    }

    #[test]
    fn short_and_unknown_records_are_skipped() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&record(SAMPLE, 0, &words(&[1, 2]))), None);
        assert_eq!(parse(&record(MMAP2, 0, &words(&[1]))), None);
        assert_eq!(parse(&record(MMAP2, 0, &with_trailer(words(&[1, 2]), 3))), None);
        assert_eq!(parse(&record(200, 0, &with_trailer(words(&[1, 2]), 3))), None);
    }
}
