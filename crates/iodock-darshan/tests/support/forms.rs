//! Rewrites a sample with another compression, or with changed regions. It has its own code for the header,
//! so that tests do not depend on the reader's code.

use std::io::{BufRead, Read, Write};

/// A log split into parts. `regions` are those of the job, the names and the modules in order, each as a list
/// of decompressed streams.
pub struct Parts {
    pub header: Vec<u8>,
    pub is_big: bool,
    /// Position of the region's entry in the header (`None` for the job's region, which has no entry), and
    /// its streams.
    pub regions: Vec<(Option<usize>, Vec<Vec<u8>>)>,
}

pub const ZLIB: u8 = 0;
pub const BZIP2: u8 = 1;
pub const NONE: u8 = 2;

fn number(bytes: &[u8], at: usize, is_big: bool) -> usize {
    let eight: [u8; 8] = bytes[at..at + 8].try_into().expect("eight bytes");
    (if is_big { u64::from_be_bytes(eight) } else { u64::from_le_bytes(eight) }) as usize
}

fn put(bytes: &mut [u8], at: usize, value: usize, is_big: bool) {
    let value = value as u64;
    bytes[at..at + 8].copy_from_slice(&if is_big { value.to_be_bytes() } else { value.to_le_bytes() });
}

/// Splits a zlib-compressed log into parts.
pub fn apart(log: &[u8]) -> Parts {
    let is_big = log[8..16] == 6_567_223u64.to_be_bytes();
    let is_wide = &log[..4] >= b"3.41".as_slice();
    let (first, room) = if is_wide { (32, 64) } else { (24, 16) };
    let header_bytes = first + 16 * (room + 1) + 4 * room;
    let mut spans: Vec<(usize, usize, Option<usize>)> = (0..=room)
        .map(|at| first + 16 * at)
        .map(|at| (number(log, at, is_big), number(log, at + 8, is_big), Some(at)))
        .filter(|(_, bytes, _)| *bytes > 0)
        .collect();
    spans.sort_unstable();
    let job_end = spans.first().map_or(log.len(), |span| span.0);
    spans.insert(0, (header_bytes, job_end - header_bytes, None));
    let regions = spans.iter().map(|&(at, bytes, place)| (place, streams(&log[at..at + bytes]))).collect();
    let mut header = log[..header_bytes].to_vec();
    for at in (0..=room).map(|at| first + 16 * at).filter(|&at| number(log, at + 8, is_big) == 0) {
        // The entry of an empty region contains a position, too, which is no longer valid.
        header[at..at + 8].fill(0);
    }
    Parts { header, is_big, regions }
}

fn streams(mut compressed: &[u8]) -> Vec<Vec<u8>> {
    let mut streams = Vec::new();
    while !compressed.fill_buf().expect("memory").is_empty() {
        let mut decoder = flate2::bufread::ZlibDecoder::new(compressed);
        let mut bytes = Vec::new();
        decoder.read_to_end(&mut bytes).expect("samples are whole");
        streams.push(bytes);
        compressed = decoder.into_inner();
    }
    streams
}

impl Parts {
    /// Returns the log as one file. `compression` is its number in the header.
    pub fn together(&self, compression: u8) -> Vec<u8> {
        let mut log = self.header.clone();
        log[16] = compression;
        for (place, streams) in &self.regions {
            let start = log.len();
            for stream in streams {
                log.extend(compressed(stream, compression));
            }
            let bytes = log.len() - start;
            if let Some(place) = *place {
                put(&mut log, place, start, self.is_big);
                put(&mut log, place + 8, bytes, self.is_big);
            }
        }
        log
    }
}

fn compressed(bytes: &[u8], compression: u8) -> Vec<u8> {
    match compression {
        ZLIB => {
            let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            out.write_all(bytes).and_then(|()| out.finish()).expect("memory")
        }
        BZIP2 => {
            let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
            out.write_all(bytes).and_then(|()| out.finish()).expect("memory")
        }
        _ => bytes.to_vec(),
    }
}
