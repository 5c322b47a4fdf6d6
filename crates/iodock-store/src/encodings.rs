//! Parquet's encodings of numbers, according to the format's specification (Encodings.md): levels and
//! dictionary indices as runs, and DELTA_BINARY_PACKED. The writer of the parquet crate is general and takes
//! twice the time for the columns of events, which dominate the time of an import.

use std::num::NonZeroU32;

/// Number of values in a block of DELTA_BINARY_PACKED, and in a miniblock, a quarter of it.
const BLOCK: usize = 128;
const MINIBLOCK: usize = 32;

#[inline(always)]
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[inline(always)]
fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends the low `width` bits of each value, least significant bit first. Pads the last group of eight
/// values with zeros.
#[inline(always)]
fn put_bits<T: Copy + Default + Into<u64>>(out: &mut Vec<u8>, values: &[T], width: u32) {
    let eights = values.chunks_exact(8);
    let mut last = [T::default(); 8];
    last[..eights.remainder().len()].copy_from_slice(eights.remainder());
    let last = Some(&last[..]).filter(|_| !eights.remainder().is_empty());
    let eights = eights.chain(last);
    // Eight values of `width` bits are `width` bytes.
    match width {
        0 => {}
        1..=8 => eights.for_each(|eight| {
            let join = |word, &value: &T| word << width | value.into();
            let word = eight.iter().rfold(0u64, join);
            out.extend_from_slice(&word.to_le_bytes()[..width as usize]);
        }),
        9..=16 => eights.for_each(|eight| {
            let join = |word, &value: &T| word << width | value.into();
            let (low, high) = (eight[..4].iter().rfold(0u64, join), eight[4..].iter().rfold(0u64, join));
            let word = u128::from(low) | u128::from(high) << (4 * width);
            out.extend_from_slice(&word.to_le_bytes()[..width as usize]);
        }),
        _ => put_wide_bits(out, eights.flatten().map(|&value| value.into()), width),
    }
}

#[inline(always)]
fn put_wide_bits(out: &mut Vec<u8>, values: impl Iterator<Item = u64>, width: u32) {
    let (mut word, mut filled) = (0u64, 0);
    for value in values {
        word |= value << filled;
        filled += width;
        if filled >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= 64;
            word = value.checked_shr(width - filled).unwrap_or(0);
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Appends one run of the same value, which is `width` bits wide.
#[inline(always)]
fn put_run(out: &mut Vec<u8>, count: usize, value: u32, width: NonZeroU32) {
    put_varint(out, (count as u64) << 1);
    out.extend_from_slice(&value.to_le_bytes()[..width.get().div_ceil(8) as usize]);
}

/// One bit for each row that says whether it has a value, and the number of rows.
#[derive(Default)]
pub struct Presence {
    bits: Vec<u8>,
    rows: usize,
    pub present: usize,
}

impl Presence {
    /// Records which `values` are present and copies those that are not `null` to the front of `kept`.
    #[inline(always)]
    pub fn scan<T, V>(&mut self, values: &[T], null: Option<T>, kept: &mut Vec<V>, convert: impl Fn(T) -> V)
    where
        T: Copy + PartialEq,
        V: Copy + Default,
    {
        self.rows = values.len();
        self.bits.clear();
        let absent = null.map_or(0, |null| values.iter().filter(|&&value| value == null).count());
        self.present = values.len() - absent;
        if self.present == 0 {
            return;
        }
        kept.resize(kept.len().max(values.len()), V::default());
        let Some(null) = null.filter(|_| absent > 0) else {
            kept.iter_mut().zip(values).for_each(|(place, &value)| *place = convert(value));
            return;
        };
        let mut at = 0;
        for eight in values.chunks(8) {
            let mut byte = 0;
            for (bit, &value) in eight.iter().enumerate() {
                let present = value != null;
                kept[at] = convert(value);
                at += usize::from(present);
                byte |= u8::from(present) << bit;
            }
            self.bits.push(byte);
        }
    }

    /// Appends the definition levels of a data page: their length, then runs of 0 (null) and 1 (value).
    #[inline(always)]
    pub fn put_levels(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        if self.present == 0 || self.present == self.rows {
            put_run(out, self.rows, u32::from(self.present > 0), NonZeroU32::MIN);
        } else {
            put_varint(out, (self.bits.len() as u64) << 1 | 1);
            out.extend_from_slice(&self.bits);
        }
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Appends indices into a dictionary: their width, then one run. The run is bit-packed unless all indices are
/// equal.
#[inline(always)]
pub fn put_indices(out: &mut Vec<u8>, indices: &[u32]) {
    let most = indices.iter().copied().max().unwrap_or(0);
    let width = NonZeroU32::new(32 - most.leading_zeros()).unwrap_or(NonZeroU32::MIN);
    out.push(width.get() as u8);
    let Some(&first) = indices.first() else { return };
    if indices.iter().all(|&index| index == first) {
        return put_run(out, indices.len(), first, width);
    }
    let groups = indices.len().div_ceil(8);
    put_varint(out, (groups as u64) << 1 | 1);
    put_bits(out, indices, width.get());
}

macro_rules! delta {
    ($name:ident, $signed:ty, $unsigned:ty) => {
        /// Appends values in the encoding DELTA_BINARY_PACKED. Differences wrap around, as the format
        /// requires.
        #[inline(always)]
        pub fn $name(out: &mut Vec<u8>, values: &[$signed]) {
            for number in [BLOCK, BLOCK / MINIBLOCK, values.len()] {
                put_varint(out, number as u64);
            }
            let mut previous = values.first().copied().unwrap_or(0);
            put_zigzag(out, previous.into());
            let mut room = [0 as $unsigned; BLOCK];
            for block in values.get(1..).unwrap_or_default().chunks(BLOCK) {
                for (delta, &value) in room.iter_mut().zip(block) {
                    *delta = value.wrapping_sub(previous) as $unsigned;
                    previous = value;
                }
                let (deltas, unused) = room.split_at_mut(block.len());
                let least = deltas.iter().map(|&delta| delta as $signed).min().unwrap_or(0);
                deltas.iter_mut().for_each(|delta| *delta = delta.wrapping_sub(least as $unsigned));
                unused.fill(0);
                put_zigzag(out, least.into());
                let parts = || room.chunks(MINIBLOCK).take(block.len().div_ceil(MINIBLOCK));
                let mut widths = [0; BLOCK / MINIBLOCK];
                for (width, part) in widths.iter_mut().zip(parts()) {
                    let all = part.iter().fold(0, |all, &delta| all | delta);
                    *width = (<$unsigned>::BITS - all.leading_zeros()) as u8;
                }
                out.extend_from_slice(&widths);
                for (&width, part) in widths.iter().zip(parts()) {
                    put_bits(out, part, width.into());
                }
            }
        }
    };
}
delta!(put_delta_wide, i64, u64);
delta!(put_delta_narrow, i32, u32);
