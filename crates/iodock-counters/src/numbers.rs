//! Parses the numbers and words of counter files.

const NS_PER_SECOND: i64 = 1_000_000_000;

/// Returns the words of a line, which blanks separate.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty())
}

/// Parses the number at the beginning of `text`, and returns it with the rest. Returns `None` if there is no
/// digit or the number exceeds 2^64 - 1.
pub fn leading(text: &[u8]) -> Option<(u64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(length);
    // Numbers of up to 19 digits always fit in 64 bits, so the common case needs no overflow checks.
    let value = if length <= 19 {
        digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
    } else {
        digits
            .iter()
            .try_fold(0u64, |value, digit| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')))?
    };
    (length > 0).then_some((value, rest))
}

/// Parses all of `text` as one number.
pub fn whole(text: &[u8]) -> Option<u64> {
    leading(text).and_then(|(value, rest)| rest.is_empty().then_some(value))
}

/// Parses `text` as a decimal fraction. Returns `None` for infinity and invalid numbers.
pub fn finite(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Converts seconds with or without a fraction (`1510782606`, `1416.389858`, `1721048534.873002069`) to
/// nanoseconds.
pub fn instant(text: &[u8]) -> Option<i64> {
    let (seconds, rest) = leading(text)?;
    let seconds = i64::try_from(seconds).ok()?.checked_mul(NS_PER_SECOND)?;
    let fraction = match rest {
        [] => 0,
        [b'.', digits @ ..] if (1..=9).contains(&digits.len()) => {
            whole(digits)? as i64 * 10i64.pow(9 - digits.len() as u32)
        }
        _ => return None,
    };
    seconds.checked_add(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_ends_at_its_last_digit() {
        assert_eq!(leading(b"12, 3"), Some((12, &b", 3"[..])));
        assert_eq!(whole(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(whole(b"18446744073709551616"), None);
        assert_eq!((whole(b""), whole(b"-1"), whole(b"1K")), (None, None, None));
    }

    #[test]
    fn only_finite_fractions_are_read() {
        assert_eq!(
            (finite(b"1.25"), finite(b"inf"), finite(b"NaN"), finite(b"")),
            (Some(1.25), None, None, None)
        );
    }

    #[test]
    fn time_stamps_of_all_lustre_releases_are_read() {
        assert_eq!(instant(b"1510782606"), Some(1_510_782_606_000_000_000));
        assert_eq!(instant(b"1372786692.389858"), Some(1_372_786_692_389_858_000));
        assert_eq!(instant(b"1721048534.873002069"), Some(1_721_048_534_873_002_069));
        assert_eq!((instant(b"1."), instant(b"1.x"), instant(b"99999999999999999")), (None, None, None));
    }
}
