//! Reads bytes and numbers of a chunk, in the encoding of `put` in native/numbers.c.

/// A position in the bytes of a chunk. Every getter returns `None` if there are too few bytes.
pub struct Cursor {
    bytes: Vec<u8>,
    at: usize,
}

impl Cursor {
    pub fn new(bytes: Vec<u8>, at: usize) -> Self {
        Cursor { bytes, at }
    }

    /// Replaces the bytes by a longer sequence that begins with the same bytes.
    pub fn grow(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the next byte without consuming it.
    pub fn next(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub fn rest(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    pub fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub fn take(&mut self, count: usize) -> Option<&[u8]> {
        let start = self.at;
        self.at = start.checked_add(count)?;
        self.bytes.get(start..self.at)
    }

    pub fn number(&mut self) -> Option<u64> {
        let more = self.bytes.get(self.at)?.trailing_zeros();
        if more >= 8 {
            self.at += 1;
            return self.fixed(8);
        }
        Some(self.fixed(more as usize + 1)? >> (more + 1))
    }

    pub fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    pub fn fixed(&mut self, bytes: usize) -> Option<u64> {
        let taken = self.take(bytes)?;
        Some(taken.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }
}
