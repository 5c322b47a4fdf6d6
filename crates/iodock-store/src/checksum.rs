//! Checksums of a store's files: XXH3 with 64 bits over all bytes of a file. (`xxhsum -H3` computes the
//! same.)
//!
//! They detect damage by disks, memory and copying. They do not detect tampering, because anyone can compute
//! them again.

use std::fs::File;
use std::hash::Hasher;
use std::io::{Read, Result, Write};
use std::path::Path;
use twox_hash::XxHash3_64;

/// Number of bytes read at a time, few enough to stay in the processor's cache until they are hashed.
const PIECE: usize = 256 << 10;
/// Text before a JSON document's own checksum, which is its last member.
const OWN: &str = "\"checksum\": \"";
/// Message about a file whose checksum differs from the one that was written.
pub const DIFFERS: &str = "is damaged: its bytes are not those that were written (checksum)";
const END: &str = "\"\n}\n";

/// Returns a checksum as stores contain it: `xxh3:` and 16 hexadecimal digits.
fn text(sum: u64) -> String {
    format!("xxh3:{sum:016x}")
}

pub fn of_bytes(bytes: &[u8]) -> String {
    text(XxHash3_64::oneshot(bytes))
}

/// Returns the checksum of a whole file; `None` if `cancelled` returned true.
///
/// # Errors
/// The file cannot be read.
pub fn of_file(path: &Path, cancelled: &dyn Fn() -> bool) -> Result<Option<String>> {
    let mut file = File::open(path)?;
    let (mut sum, mut piece) = (XxHash3_64::new(), vec![0; PIECE]);
    while !cancelled() {
        match file.read(&mut piece)? {
            0 => return Ok(Some(text(sum.finish()))),
            length => sum.write(&piece[..length]),
        }
    }
    Ok(None)
}

/// A writer that computes the checksum of the bytes that it passes on.
pub(crate) struct Summing<W> {
    output: W,
    sum: XxHash3_64,
}

impl<W> Summing<W> {
    pub fn new(output: W) -> Summing<W> {
        Summing { output, sum: XxHash3_64::new() }
    }

    /// Returns the checksum of all bytes written so far.
    pub fn checksum(&self) -> String {
        text(self.sum.finish())
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let written = self.output.write(bytes)?;
        self.sum.write(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> Result<()> {
        self.output.flush()
    }
}

/// Returns the JSON object `document` with a checksum added as last member. The checksum covers all bytes
/// before it. `document` must have members, but none with that name.
pub fn sealed(document: &str) -> String {
    let members = document.trim_end().strip_suffix('}').unwrap_or(document).trim_end();
    let before = format!("{members},\n  {OWN}");
    let sum = of_bytes(before.as_bytes());
    before + &sum + END
}

/// Returns whether a document is unchanged since [`sealed`]; `None` if it contains no checksum of itself.
pub fn is_whole(document: &[u8]) -> Option<bool> {
    // Inside a JSON string, the quotation marks of this text would have a backslash, so the text is a
    // member's name.
    let place = document.windows(OWN.len()).rposition(|part| part == OWN.as_bytes())?;
    let (before, after) = document.split_at(place + OWN.len());
    Some(after == format!("{}{END}", of_bytes(before)).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_match_the_specification() {
        // XXH3_64bits of no bytes, and of 0x00..0xff, without a seed (xxHash's own `xxhsum -H3`).
        assert_eq!(of_bytes(b""), "xxh3:2d06800538d394c2");
        let mut summing = Summing::new(Vec::new());
        for _ in 0..1000 {
            summing.write_all(b"some bytes, ").unwrap();
        }
        assert_eq!(summing.checksum(), of_bytes(&summing.output));
    }

    #[test]
    fn the_checksum_of_a_file_is_that_of_its_bytes() {
        let path = std::env::temp_dir().join(format!("iodock-checksum-{}", std::process::id()));
        for length in [0, 1, PIECE - 1, PIECE, 3 * PIECE + 5] {
            let bytes: Vec<u8> = (0..length).map(|place| (place * 7) as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(of_file(&path, &|| false).unwrap(), Some(of_bytes(&bytes)));
        }
        assert_eq!(of_file(&path, &|| true).unwrap(), None);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn every_flipped_bit_of_a_sealed_document_is_found() {
        let document = sealed("{\n  \"schema\": 1,\n  \"said\": \"\\\"checksum\\\": \\\"\"\n}\n");
        assert_eq!(is_whole(document.as_bytes()), Some(true));
        let key = document.rfind("\"checksum\"").unwrap();
        for bit in 0..document.len() * 8 {
            let mut flipped = document.clone().into_bytes();
            flipped[bit / 8] ^= 1 << (bit % 8);
            // If the changed bit is in the name of the checksum, the document has no checksum, and all other
            // data is unchanged.
            let is_name = (key..key + OWN.len()).contains(&(bit / 8));
            assert_eq!(is_whole(&flipped), if is_name { None } else { Some(false) });
        }
    }
}
