//! Encodes a batch as bytes for spool files and requests: a header of 32 bytes, then the batch, compressed
//! with LZ4. All numbers are little endian. Frames follow each other. After a crash a file may end within a
//! frame.

use crate::batch::{Batch, Unreadable, VERSION};
use std::fmt;

const MAGIC: [u8; 6] = *b"IODOCS";
/// Bytes of the header: magic, version, sequence, compressed and uncompressed length, checksum of header and
/// payload, four reserved bytes.
pub const HEADER: usize = 32;
/// Longest uncompressed batch in bytes. Agents make much shorter ones.
pub const LONGEST: usize = 8 << 20;

/// Reason why bytes are not a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The bytes end within the frame, and at least this number of bytes is missing.
    Cut(usize),
    NoFrame,
    Version(u16),
    TooLong(usize),
    Checksum,
    Compression,
    Batch(Unreadable),
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Damage::Cut(missing) => write!(out, "cut: at least {missing} bytes are missing"),
            Damage::NoFrame => write!(out, "not a batch of samples"),
            Damage::Version(version) => write!(out, "version {version}; this iodock reads {VERSION}"),
            Damage::TooLong(bytes) => write!(out, "a batch of {bytes} bytes; {LONGEST} are the most"),
            Damage::Checksum => write!(out, "the checksum is wrong"),
            Damage::Compression => write!(out, "the compression is damaged"),
            Damage::Batch(why) => write!(out, "{why}"),
        }
    }
}

impl std::error::Error for Damage {}

/// The decoded header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    version: u16,
    pub sequence: u64,
    /// Length in bytes of the payload after the header.
    pub length: usize,
    /// Length in bytes of the uncompressed batch.
    pub plain_length: usize,
    checksum: u32,
}

/// Encodes the batch as a frame. Returns `None` if it is longer than [`LONGEST`].
pub fn encode(batch: &Batch) -> Option<Vec<u8>> {
    let plain = batch.encode();
    if plain.len() > LONGEST {
        return None;
    }
    let payload = lz4_flex::block::compress(&plain);
    let mut frame = Vec::with_capacity(HEADER + payload.len());
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&VERSION.to_le_bytes());
    frame.extend_from_slice(&batch.sequence.to_le_bytes());
    for length in [payload.len(), plain.len()] {
        frame.extend_from_slice(&u32::try_from(length).ok()?.to_le_bytes());
    }
    let checksum = checksum(&frame, &payload);
    frame.extend_from_slice(&checksum.to_le_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&payload);
    Some(frame)
}

/// Decodes the header of the first frame in `bytes`.
///
/// # Errors
/// Fails with [`Damage::Cut`], [`Damage::NoFrame`], [`Damage::Version`] or [`Damage::TooLong`].
pub fn header(bytes: &[u8]) -> Result<Header, Damage> {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Err(Damage::NoFrame);
    }
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Err(Damage::Cut(HEADER - bytes.len())) };
    let version = u16::from_le_bytes([header[6], header[7]]);
    if !(1..=VERSION).contains(&version) {
        return Err(Damage::Version(version));
    }
    let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (length, plain_length) = (u32_at(16) as usize, u32_at(20) as usize);
    let most = LONGEST + LONGEST / 128;
    if plain_length > LONGEST || length > most {
        return Err(Damage::TooLong(plain_length.max(length)));
    }
    let sequence = u64::from(u32_at(8)) | u64::from(u32_at(12)) << 32;
    Ok(Header { version, sequence, length, plain_length, checksum: u32_at(24) })
}

/// Returns the header and the bytes of the first frame in `bytes`, still encoded, and the bytes after it.
///
/// # Errors
/// Fails like [`header`], and if the checksum is wrong.
pub fn split(bytes: &[u8]) -> Result<(Header, &[u8], &[u8]), Damage> {
    let header = header(bytes)?;
    let end = HEADER + header.length;
    let Some((frame, rest)) = bytes.split_at_checked(end) else { return Err(Damage::Cut(end - bytes.len())) };
    if checksum(&frame[..24], &frame[HEADER..]) != header.checksum {
        return Err(Damage::Checksum);
    }
    Ok((header, frame, rest))
}

/// Decodes the first batch in `bytes`, and returns it with the bytes after it.
///
/// # Errors
/// Fails like [`split`], and if the frame's content is not a batch.
pub fn decode(bytes: &[u8]) -> Result<(Batch, &[u8]), Damage> {
    let (header, frame, rest) = split(bytes)?;
    let plain = lz4_flex::block::decompress(&frame[HEADER..], header.plain_length)
        .map_err(|_| Damage::Compression)?;
    let batch = Batch::decode_version(plain, header.version).map_err(Damage::Batch)?;
    match batch.sequence == header.sequence {
        true => Ok((batch, rest)),
        false => Err(Damage::NoFrame),
    }
}

fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(sequence: u64) -> Batch {
        Batch { sequence, host: "oss1".into(), ..Batch::default() }
    }

    fn two() -> Vec<u8> {
        [encode(&batch(1)), encode(&batch(2))].into_iter().flatten().flatten().collect()
    }

    #[test]
    fn consecutive_frames_are_read() {
        let bytes = two();
        let (first, rest) = decode(&bytes).expect("the first");
        let (second, rest) = decode(rest).expect("the second");
        assert_eq!((first, second, rest.len()), (batch(1), batch(2), 0));
    }

    #[test]
    fn a_truncated_frame_reports_the_missing_bytes() {
        let bytes = encode(&batch(1)).expect("short");
        for end in 0..bytes.len() {
            let Err(Damage::Cut(missing)) = decode(&bytes[..end]) else {
                panic!("cut at {end} is not noticed")
            };
            assert!((1..=bytes.len() - end).contains(&missing));
        }
    }

    #[test]
    fn every_changed_byte_is_detected() {
        let bytes = encode(&batch(1)).expect("short");
        // The test changes each byte except the last four of the header, which are reserved.
        for at in (0..28).chain(HEADER..bytes.len()) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(decode(&changed).is_err(), "byte {at}");
        }
    }

    #[test]
    fn a_frame_that_claims_a_huge_size_is_refused_before_decompression() {
        let mut bytes = encode(&batch(1)).expect("short");
        bytes[20..24].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decode(&bytes).err(), Some(Damage::TooLong(u32::MAX as usize)));
    }
}
