//! Encodes numbers as LEB128 varints, signed numbers in zigzag form first, and texts with their length before
//! their bytes.

use iodock_event::UNKNOWN;

pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Writes a number that may be [`UNKNOWN`]. Zigzag maps that value to `u64::MAX`, and adding one wraps it to
/// 0, which takes one byte.
pub fn put_quantity(out: &mut Vec<u8>, value: i64) {
    put_varint(out, (((value << 1) ^ (value >> 63)) as u64).wrapping_add(1));
}

pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A record of a few numbers that is built in an array, so that not each byte needs a capacity check.
pub struct ShortBytes {
    bytes: [u8; ShortBytes::ROOM],
    length: usize,
}

impl Default for ShortBytes {
    #[inline]
    fn default() -> Self {
        ShortBytes { bytes: [0; Self::ROOM], length: 0 }
    }
}

impl ShortBytes {
    /// Enough bytes for nine numbers. A number takes at most ten bytes, and some of the nine at most half of
    /// that.
    const ROOM: usize = 80;

    #[inline]
    pub fn put_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes[self.length] = value as u8 | 0x80;
            self.length += 1;
            value >>= 7;
        }
        self.bytes[self.length] = value as u8;
        self.length += 1;
    }

    #[inline]
    pub fn put_signed(&mut self, value: i64) {
        self.put_varint(((value << 1) ^ (value >> 63)) as u64);
    }

    #[inline]
    pub fn append_to(&self, out: &mut Vec<u8>) {
        // Copying a constant length needs no call of `memcpy`; the extra bytes are then cut off.
        let end = out.len() + self.length;
        out.extend_from_slice(&self.bytes);
        out.truncate(end);
    }
}

/// The unread rest of a frame. Every getter returns `None` if too few bytes are left.
pub struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    pub fn varint(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    pub fn signed(&mut self) -> Option<i64> {
        self.varint().map(unzigzag)
    }

    pub fn quantity(&mut self) -> Option<i64> {
        Some(match self.varint()? {
            0 => UNKNOWN,
            value => unzigzag(value - 1),
        })
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.varint()?.try_into().ok()
    }

    pub fn i32(&mut self) -> Option<i32> {
        self.signed()?.try_into().ok()
    }

    pub fn f64(&mut self) -> Option<f64> {
        let (head, rest) = self.bytes.split_first_chunk::<8>()?;
        self.bytes = rest;
        Some(f64::from_le_bytes(*head))
    }

    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.varint()?;
        self.take(length)
    }

    pub fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let length = usize::try_from(length).ok().filter(|&length| length <= self.bytes.len())?;
        let (head, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        Some(head)
    }

    pub fn string(&mut self) -> Option<String> {
        self.bytes().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decoded_as_encoded() {
        for value in [0, 1, -1, 63, 64, -64, -65, i64::MAX, i64::MIN + 1, i64::MIN, 1 << 40] {
            let mut out = Vec::new();
            put_signed(&mut out, value);
            put_quantity(&mut out, value);
            put_varint(&mut out, value as u64);
            let mut cursor = Cursor::new(&out);
            assert_eq!(cursor.signed(), Some(value));
            assert_eq!(cursor.quantity(), Some(value));
            assert_eq!(cursor.varint(), Some(value as u64));
            assert!(cursor.is_empty());
        }
    }

    #[test]
    fn an_unknown_quantity_takes_one_byte() {
        let mut out = Vec::new();
        put_quantity(&mut out, UNKNOWN);
        assert_eq!(out, [0]);
    }

    #[test]
    fn overlong_numbers_are_refused() {
        assert_eq!(Cursor::new(&[0xff; 20]).varint(), None);
        assert_eq!(Cursor::new(&[0xff]).varint(), None);
        assert_eq!(Cursor::new(&[5, 1, 2]).bytes(), None);
    }
}
