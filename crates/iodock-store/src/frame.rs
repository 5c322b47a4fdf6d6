//! Pages as zstd frames, whose content is compressed only if that is effective.
//!
//! Bit-packed differences hardly ever become smaller, and trying to compress them costs more than encoding
//! them. A zstd frame may contain uncompressed bytes (raw blocks, RFC 8878, 3.1.1), so any reader can read
//! every page of a column.

use crate::schema::ZSTD_LEVEL;
use std::io;

/// Largest number of bytes in a block of a frame.
const BLOCK: usize = 128 << 10;
const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Frame header descriptor: the frame is a single segment, and its content size takes four bytes.
const DESCRIPTOR: u8 = 2 << 6 | 1 << 5;

/// Pages with fewer bytes than this can't be made smaller by compression.
const SMALL: usize = 64;

/// Number of pages that are stored uncompressed after a page that did not shrink. Then compression is tried
/// again.
const PAGES_STORED: u32 = 15;

/// State that predicts from a column's last pages whether compressing the next page is worthwhile.
#[derive(Debug, Default)]
pub struct Gain {
    /// Number of pages still to be stored uncompressed.
    stored: u32,
}

impl Gain {
    /// Returns whether compressing the next page is likely to be worthwhile.
    fn is_likely(&mut self) -> bool {
        let likely = self.stored == 0;
        self.stored = self.stored.saturating_sub(1);
        likely
    }

    /// Records that compression reduced a page from `before` to `after` bytes. A reduction by less than an
    /// eighth is not worthwhile, because it saves less writing time than it costs.
    fn learn(&mut self, before: usize, after: usize) {
        if after > before - before / 8 {
            self.stored = PAGES_STORED;
        }
    }
}

/// Encodes pages as zstd frames.
pub struct Framer {
    compressor: zstd::bulk::Compressor<'static>,
}

impl Framer {
    pub fn new() -> io::Result<Framer> {
        Ok(Framer { compressor: zstd::bulk::Compressor::new(ZSTD_LEVEL)? })
    }

    /// Replaces the content of `frame` by a frame that contains `page`.
    pub fn put(&mut self, page: &[u8], gain: &mut Gain, frame: &mut Vec<u8>) -> io::Result<()> {
        frame.clear();
        if page.len() < SMALL || !gain.is_likely() {
            put_stored(page, frame);
            return Ok(());
        }
        frame.reserve(zstd::zstd_safe::compress_bound(page.len()));
        self.compressor.compress_to_buffer(page, frame)?;
        gain.learn(page.len(), frame.len());
        Ok(())
    }
}

/// Appends a frame that stores the page in raw blocks.
fn put_stored(page: &[u8], frame: &mut Vec<u8>) {
    frame.reserve(page.len() + page.len() / BLOCK * 3 + 16);
    frame.extend_from_slice(&MAGIC);
    frame.push(DESCRIPTOR);
    frame.extend_from_slice(&(page.len() as u32).to_le_bytes());
    let mut rest = page;
    loop {
        let (block, behind) = rest.split_at(rest.len().min(BLOCK));
        let is_last = u32::from(behind.is_empty());
        let header = (block.len() as u32) << 3 | is_last;
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.extend_from_slice(block);
        rest = behind;
        if rest.is_empty() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns incompressible bytes.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1u64;
        let step = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        };
        (0..length).map(step).collect()
    }

    #[test]
    fn stored_pages_are_valid_zstd_frames() {
        for length in [0, 1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 7] {
            let page = noise(length);
            let mut frame = Vec::new();
            put_stored(&page, &mut frame);
            assert!(frame.len() <= length + 32);
            assert_eq!(zstd::bulk::decompress(&frame, length).unwrap(), page);
        }
    }

    #[test]
    fn incompressible_pages_are_stored_until_the_next_attempt() {
        let (mut framer, mut gain, mut frame) = (Framer::new().unwrap(), Gain::default(), Vec::new());
        let mut size = |page: &[u8]| {
            framer.put(page, &mut gain, &mut frame).unwrap();
            assert_eq!(zstd::bulk::decompress(&frame, page.len()).unwrap(), page);
            frame.len()
        };
        let (noise, zeros) = (noise(10_000), vec![0; 10_000]);
        assert!(size(&zeros) < 100);
        assert!(size(&noise) >= 10_000);
        for _ in 0..PAGES_STORED {
            assert!(size(&zeros) > 10_000);
        }
        assert!(size(&zeros) < 100);
        assert!(size(&zeros) < 100);
    }
}
