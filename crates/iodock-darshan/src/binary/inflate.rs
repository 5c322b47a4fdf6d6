//! Decompresses a region. It consists of one or several streams, because each process writes its own; each
//! stream has a checksum.

use super::Compression;

/// The decompressed bytes of a region.
#[derive(Debug, Default)]
pub struct Inflated {
    pub bytes: Vec<u8>,
    /// End of each stream in `bytes`. Only the last stream can be incomplete.
    pub ends: Vec<usize>,
    /// Number of compressed bytes whose checksum is wrong. Their content is left out.
    pub damaged: u64,
    /// Number of compressed bytes after the memory limit was reached.
    pub oversized: u64,
    /// Whether the last stream ends too early.
    pub is_cut: bool,
}

/// The way in which decoding a stream ended.
enum End {
    /// The stream is complete and its checksum is right. The value is its number of compressed bytes.
    Whole(usize),
    Cut,
    Damaged,
    /// The content exceeds the memory limit.
    Full,
}

/// Largest number of positions after damage at which the reader tries to find the beginning of a stream.
const TRIES: usize = 4096;
const STEP: usize = 64 << 10;

/// Decompresses `input` to at most `room` bytes, including those from damaged streams. `is_cut`: the file
/// ends before the region does, so the last stream may be incomplete.
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
    let mut decoder = Decoder::new(compression);
    let mut spent = 0;
    let mut tries = TRIES;
    let mut at = 0;
    while at < input.len() {
        let start = out.bytes.len();
        let end = decoder.stream(&input[at..], &mut out.bytes, room.saturating_sub(spent));
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

/// Returns the next position from `from` on that looks like the beginning of a stream.
fn next_stream(compression: Compression, input: &[u8], from: usize) -> Option<usize> {
    let begins = |bytes: &[u8]| match compression {
        // The stream starts with the method Deflate, a window of 32 KiB, and a valid check value of the two
        // bytes (RFC 1950).
        Compression::Zlib => bytes[0] == 0x78 && (u16::from(bytes[0]) << 8 | u16::from(bytes[1])) % 31 == 0,
        Compression::Bzip2 => bytes.starts_with(b"BZh") && bytes.get(4..10) == Some(b"1AY&SY"),
        Compression::None => false,
    };
    let last = input.len().checked_sub(2)?;
    (from..=last).find(|&at| begins(&input[at..]))
}

/// The decoder. All streams share it, because there are many short ones.
struct Decoder {
    compression: Compression,
    zlib: flate2::Decompress,
    /// Output of one step, which is then appended to the region's bytes.
    piece: Vec<u8>,
}

impl Decoder {
    fn new(compression: Compression) -> Decoder {
        Decoder { compression, zlib: flate2::Decompress::new(true), piece: vec![0; STEP] }
    }

    /// Decompresses one stream and appends at most `room` bytes to `out`.
    fn stream(&mut self, input: &[u8], out: &mut Vec<u8>, room: usize) -> End {
        match self.compression {
            Compression::Zlib => {
                let zlib = &mut self.zlib;
                zlib.reset(true);
                let step = |input: &[u8], piece: &mut [u8]| {
                    let before = (zlib.total_in(), zlib.total_out());
                    let status = zlib.decompress(input, piece, flate2::FlushDecompress::None).ok()?;
                    Some(Step {
                        used: (zlib.total_in() - before.0) as usize,
                        made: (zlib.total_out() - before.1) as usize,
                        is_end: status == flate2::Status::StreamEnd,
                    })
                };
                run(step, &mut self.piece, input, out, room)
            }
            Compression::Bzip2 => {
                let mut bzip2 = bzip2::Decompress::new(false);
                let step = |input: &[u8], piece: &mut [u8]| {
                    let before = (bzip2.total_in(), bzip2.total_out());
                    let status = bzip2.decompress(input, piece).ok()?;
                    Some(Step {
                        used: (bzip2.total_in() - before.0) as usize,
                        made: (bzip2.total_out() - before.1) as usize,
                        is_end: status == bzip2::Status::StreamEnd,
                    })
                };
                run(step, &mut self.piece, input, out, room)
            }
            Compression::None => End::Damaged,
        }
    }
}

/// Result of decoding a piece of a stream.
struct Step {
    used: usize,
    made: usize,
    /// Whether the stream has ended with the right checksum.
    is_end: bool,
}

/// Decodes a stream step by step. `step` returns `None` if the stream is damaged.
fn run(
    mut step: impl FnMut(&[u8], &mut [u8]) -> Option<Step>,
    piece: &mut [u8],
    input: &[u8],
    out: &mut Vec<u8>,
    room: usize,
) -> End {
    let (mut used, mut made) = (0, 0);
    loop {
        let Some(done) = step(&input[used..], piece) else { return End::Damaged };
        used += done.used;
        made += done.made;
        if made > room {
            return End::Full;
        }
        out.extend_from_slice(&piece[..done.made]);
        if done.is_end {
            return End::Whole(used.max(1));
        }
        if done.used == 0 && done.made == 0 {
            // The decoder needs more input, but there is none.
            return End::Cut;
        }
    }
}
