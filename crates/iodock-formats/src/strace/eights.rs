//! Examines eight bytes of a line at a time, as one number. A loop over single bytes would mispredict a
//! branch whenever the number of digits changes.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x80 * ONES;
const ZEROS: u64 = b'0' as u64 * ONES;

/// Returns the eight bytes from `at` on, with the first one as the lowest byte; `None` if fewer are left.
#[inline(always)]
pub fn eight(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Returns the values of eight characters that should be digits: 0 to 9, or larger values for other
/// characters.
#[inline(always)]
pub fn values(word: u64) -> u64 {
    word ^ ZEROS
}

/// Returns the high bit of each byte that is larger than 9.
#[inline(always)]
fn others(values: u64) -> u64 {
    (((values & !HIGH) + (0x7f - 9) * ONES) | values) & HIGH
}

/// Returns whether all eight values are from 0 to 9.
#[inline(always)]
pub fn are_digits(values: u64) -> bool {
    others(values) == 0
}

/// Returns how many of the first bytes are from 0 to 9.
#[inline(always)]
pub fn leading_digits(values: u64) -> u32 {
    others(values).trailing_zeros() / 8
}

/// Returns how many of the first bytes are lower-case letters or digits.
#[inline(always)]
pub fn leading_letters(word: u64) -> usize {
    let low = word & !HIGH;
    // The high bit of each result byte shows whether the byte is at least this one.
    let from = |byte: u8| low + (0x80 - u64::from(byte)) * ONES;
    let letter = from(b'a') & !from(b'z' + 1);
    let digit = from(b'0') & !from(b'9' + 1);
    let others = !(letter | digit) | word;
    (others & HIGH).trailing_zeros() as usize / 8
}

/// Combines neighbouring digits to numbers below 100, at the positions of the first, third, fifth and seventh
/// digit.
#[inline(always)]
pub fn pairs(values: u64) -> u64 {
    values.wrapping_mul(10).wrapping_add(values >> 8)
}

/// Returns the number that eight digits form.
#[inline(always)]
pub fn number(values: u64) -> u64 {
    const PAIR: u64 = 0x0000_00ff_0000_00ff;
    const FIRST: u64 = 100 + (1_000_000 << 32);
    const SECOND: u64 = 1 + (10_000 << 32);
    let pairs = pairs(values);
    let (first, second) = (pairs & PAIR, pairs >> 16 & PAIR);
    first.wrapping_mul(FIRST).wrapping_add(second.wrapping_mul(SECOND)) >> 32
}

/// Returns the number that the first `count` digits form; `count` is 1 to 8.
#[inline(always)]
pub fn leading_number(values: u64, count: u32) -> u64 {
    number(values << (64 - 8 * count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &[u8; 8]) -> u64 {
        eight(text, 0).unwrap()
    }

    #[test]
    fn digits_are_distinguished_from_all_other_bytes() {
        for byte in 0..=255 {
            for at in 0..8 {
                let mut text = *b"90817263";
                text[at] = byte;
                let digits = values(word(&text));
                assert_eq!(are_digits(digits), byte.is_ascii_digit(), "{text:?}");
                let leading = if byte.is_ascii_digit() { 8 } else { at };
                assert_eq!(leading_digits(digits) as usize, leading, "{text:?}");
            }
        }
    }

    #[test]
    fn numbers_of_all_lengths_are_read() {
        assert_eq!(number(values(word(b"00000000"))), 0);
        assert_eq!(number(values(word(b"99999999"))), 99_999_999);
        let digits = values(word(b"12345678"));
        let numbers = [1, 12, 123, 1234, 12345, 123_456, 1_234_567, 12_345_678];
        for (count, expected) in (1..).zip(numbers) {
            assert_eq!(leading_number(digits, count), expected);
        }
    }

    #[test]
    fn letters_are_distinguished_from_all_other_bytes() {
        for byte in 0..=255u8 {
            for at in 0..8 {
                let mut text = *b"az09read";
                text[at] = byte;
                let is_part = byte.is_ascii_lowercase() || byte.is_ascii_digit();
                assert_eq!(leading_letters(word(&text)), if is_part { 8 } else { at }, "{text:?}");
            }
        }
        assert_eq!(eight(b"1234567", 0), None);
        assert_eq!(eight(b"12345678", 9), None);
    }
}
