//! Reads numbers of 4 and 8 bytes in the byte order of the machine that wrote the log.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// Returns the number at `at`, if there are enough bytes.
    pub(crate) fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let four = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(match self {
            ByteOrder::Little => u32::from_le_bytes(four),
            ByteOrder::Big => u32::from_be_bytes(four),
        })
    }

    /// Returns the number at `at`, if there are enough bytes.
    pub(crate) fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let eight = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(match self {
            ByteOrder::Little => u64::from_le_bytes(eight),
            ByteOrder::Big => u64::from_be_bytes(eight),
        })
    }

    pub(crate) fn i64(self, bytes: &[u8], at: usize) -> Option<i64> {
        self.u64(bytes, at).map(u64::cast_signed)
    }

    pub(crate) fn f64(self, bytes: &[u8], at: usize) -> Option<f64> {
        self.u64(bytes, at).map(f64::from_bits)
    }
}
