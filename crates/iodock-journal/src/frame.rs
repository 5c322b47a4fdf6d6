//! Encodes frames: a header of 16 bytes, then the payload. All numbers are little endian.

/// First bytes of every journal. They end with a newline, so that readers detect a transfer that converted
/// line ends.
pub const MAGIC: [u8; 8] = *b"IODOCKJ\n";
/// Version of the format. New kinds of frames and new keys do not need a new version, because readers skip
/// unknown ones.
pub const VERSION: u32 = 1;
/// Bytes before the first frame: magic, version and four reserved bytes.
pub const PREAMBLE: usize = 16;
pub const HEADER: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum FrameKind {
    Meta = 1,
    Names = 2,
    Records = 3,
    Samples = 4,
    Mounts = 5,
    Usages = 6,
    Closing = 7,
    /// Maps of files, and page faults in these maps.
    Faults = 8,
    /// Data of a back end that decodes them only after the recording has ended.
    Raw = 9,
}

impl FrameKind {
    pub fn from_number(number: u32) -> Option<FrameKind> {
        use FrameKind::*;
        [Meta, Names, Records, Samples, Mounts, Usages, Closing, Faults, Raw]
            .into_iter()
            .find(|&kind| kind as u32 == number)
    }
}

pub struct FrameHeader {
    pub length: u32,
    pub kind: u32,
    /// Number of the frame: 0, 1, 2 ... A gap shows that a frame is missing, for example after the loss of a
    /// page.
    pub sequence: u32,
    pub checksum: u32,
}

impl FrameHeader {
    pub fn parse(bytes: &[u8; HEADER]) -> FrameHeader {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        FrameHeader { length: number(0), kind: number(4), sequence: number(8), checksum: number(12) }
    }

    pub fn matches(&self, payload: &[u8]) -> bool {
        self.checksum == checksum(self.length, self.kind, self.sequence, payload)
    }
}

/// Appends a frame to `out`. Returns `None` if the payload is too long for a frame.
pub fn put_frame(out: &mut Vec<u8>, kind: FrameKind, sequence: u32, payload: &[u8]) -> Option<()> {
    put_header(out, kind, sequence, payload)?;
    out.extend_from_slice(payload);
    Some(())
}

/// Writes the header without the payload, which the caller appends.
pub fn put_header(out: &mut Vec<u8>, kind: FrameKind, sequence: u32, payload: &[u8]) -> Option<()> {
    let length = u32::try_from(payload.len()).ok()?;
    for number in [length, kind as u32, sequence, checksum(length, kind as u32, sequence, payload)] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    Some(())
}

/// Returns the CRC-32 (IEEE) of the header's first three numbers and the payload. The header is included so
/// that a page of zeros is not a valid frame.
fn checksum(length: u32, kind: u32, sequence: u32, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for number in [length, kind, sequence] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(payload);
    hasher.finalize()
}
