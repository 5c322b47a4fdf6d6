//! Inflates a region. It is one stream or several, as each process writes its own; each has a checksum.

use super::Compression;

/// The bytes of a region.
#[derive(Debug, Default)]
pub struct Inflated {
    pub bytes: Vec<u8>,
    /// Where each stream ends in `bytes`. One that is not whole is the last one.
    pub ends: Vec<usize>,
    /// Compressed bytes that fit no checksum. What they gave is left out.
    pub damaged: u64,
    /// Compressed bytes behind the place where there was no more room.
    pub oversized: u64,
    /// The last stream ends too early.
    pub is_cut: bool,
}

/// How a stream ended.
enum End {
    /// With its checksum, after so many compressed bytes.
    Whole(usize),
    Cut,
    Damaged,
    /// It gives more than there is room for.
    Full,
}

/// How many places are tried as a stream's beginning behind damage.
const TRIES: usize = 4096;
const STEP: usize = 64 << 10;

/// Inflates `input` to at most `room` bytes, counting those that damaged streams gave. `is_cut`: the file ends before
/// the region does, so that the last stream may lack its end.
pub fn inflate(compression: Compression, input: &[u8], room: usize, is_cut: bool) -> Inflated {
    let mut out = Inflated::default();
    if compression == Compression::None {
        let taken = input.len().min(room);
        out.bytes = input[..taken].to_vec();
        out.ends.push(taken);
        out.oversized = (input.len() - taken) as u64;
        out.is_cut = is_cut;
        return out;
    }
    let mut spent = 0;
    let mut tries = TRIES;
    let mut at = 0;
    while at < input.len() {
        let start = out.bytes.len();
        let end = stream(compression, &input[at..], &mut out.bytes, room.saturating_sub(spent));
        spent += out.bytes.len() - start;
        match end {
            End::Whole(used) => {
                out.ends.push(out.bytes.len());
                at += used;
            }
            End::Cut if is_cut => {
                out.ends.push(out.bytes.len());
                out.is_cut = true;
                break;
            }
            End::Cut | End::Damaged => {
                out.bytes.truncate(start);
                tries -= 1;
                let next = if tries == 0 { None } else { next_stream(compression, input, at + 1) };
                let next = next.unwrap_or(input.len());
                out.damaged += (next - at) as u64;
                at = next;
            }
            End::Full => {
                out.bytes.truncate(start);
                out.oversized = (input.len() - at) as u64;
                break;
            }
        }
    }
    out
}

/// The next place from `from` on that begins like a stream.
fn next_stream(compression: Compression, input: &[u8], from: usize) -> Option<usize> {
    let begins = |bytes: &[u8]| match compression {
        // Deflate with a window of 32 KiB, and the two bytes' own check (RFC 1950).
        Compression::Zlib => bytes[0] == 0x78 && (u16::from(bytes[0]) << 8 | u16::from(bytes[1])) % 31 == 0,
        Compression::Bzip2 => bytes.starts_with(b"BZh") && bytes.get(4..10) == Some(b"1AY&SY"),
        Compression::None => false,
    };
    let last = input.len().checked_sub(2)?;
    (from..=last).find(|&at| begins(&input[at..]))
}

/// Inflates one stream behind what `out` has, at most `room` bytes.
fn stream(compression: Compression, input: &[u8], out: &mut Vec<u8>, room: usize) -> End {
    match compression {
        Compression::Zlib => run(flate2::Decompress::new(true), input, out, room),
        Compression::Bzip2 => run(bzip2::Decompress::new(false), input, out, room),
        Compression::None => End::Damaged,
    }
}

/// What the two libraries have in common.
trait Decoder {
    /// Fills what `out` has reserved. Some(true): the stream has ended, and its checksum fits. None: it is damaged.
    fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<bool>;
    fn used(&self) -> usize;
}

impl Decoder for flate2::Decompress {
    fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<bool> {
        let status = self.decompress_vec(input, out, flate2::FlushDecompress::None).ok()?;
        Some(status == flate2::Status::StreamEnd)
    }

    fn used(&self) -> usize {
        self.total_in() as usize
    }
}

impl Decoder for bzip2::Decompress {
    fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> Option<bool> {
        Some(self.decompress_vec(input, out).ok()? == bzip2::Status::StreamEnd)
    }

    fn used(&self) -> usize {
        self.total_in() as usize
    }
}

fn run(mut decoder: impl Decoder, input: &[u8], out: &mut Vec<u8>, room: usize) -> End {
    let start = out.len();
    loop {
        let (before, used) = (out.len(), decoder.used());
        let left = room.saturating_sub(before - start);
        out.reserve(left.clamp(1, STEP));
        let Some(has_ended) = decoder.step(&input[used..], out) else { return End::Damaged };
        if out.len() - start > room {
            return End::Full;
        }
        if has_ended {
            return End::Whole(decoder.used().max(1));
        }
        if out.len() == before && decoder.used() == used {
            // It asks for more, and there is none.
            return End::Cut;
        }
    }
}
