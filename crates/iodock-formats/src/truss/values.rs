//! Reads values as truss prints them (numbers, quoted names, names of flags), and translates Solaris's
//! numbers of flags.

use iodock_event::constants as linux;

/// Parses a 64-bit number with an optional sign: decimal, `0x` hexadecimal, or `0` octal. Also returns its
/// length.
#[inline]
pub fn integer(text: &[u8]) -> Option<(i64, usize)> {
    let sign = usize::from(text.first() == Some(&b'-'));
    let body = &text[sign..];
    let (base, skip) = match body {
        [b'0', b'x' | b'X', ..] => (16, 2),
        [b'0', b'0'..=b'7', ..] => (8, 1),
        _ => (10, 0),
    };
    let mut value = 0u64;
    let mut length = skip;
    while let Some(digit) = body.get(length).and_then(|&byte| (byte as char).to_digit(base)) {
        value = value.checked_mul(u64::from(base))?.checked_add(u64::from(digit))?;
        length += 1;
    }
    if length == skip {
        return None;
    }
    let value = if sign == 1 { (value as i64).wrapping_neg() } else { value as i64 };
    Some((value, sign + length))
}

/// Returns the position of the closing quote of the name that begins at `start`, after its opening quote. Old
/// versions do not escape quotes inside names, so the quote counts only if the text after it can follow a
/// name.
pub fn closing_quote(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'\\' {
            // truss does not escape backslashes, so only `\"` has a meaning here.
            at += if text.get(at + 1) == Some(&b'"') { 2 } else { 1 };
            continue;
        }
        if matches!(text.get(at + 1), None | Some(b',' | b')')) || text[at + 1..].starts_with(b"..") {
            return Some(at);
        }
        at += 1;
    }
}

/// Returns the end of the beginning of a buffer (` T h e\n`). Each byte takes two characters, so a quote that
/// is the first of two characters ends it.
#[inline]
pub fn closing_buffer_quote(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while *text.get(at)? != b'"' {
        at += 2;
    }
    Some(at)
}

/// Appends the bytes of a name. Resolves `\"` and `\xNN`, which some versions sign-extend (`\xffffffe3`).
pub fn unescape(name: &[u8], out: &mut Vec<u8>) {
    let mut rest = name;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let (byte, length) = escape(rest).unwrap_or((b'\\', 1));
        out.push(byte);
        rest = &rest[length..];
    }
    out.extend_from_slice(rest);
}

fn escape(text: &[u8]) -> Option<(u8, usize)> {
    match text.get(1)? {
        b'"' => Some((b'"', 2)),
        b'x' => {
            let skip = if text[2..].starts_with(b"ffffff") { 8 } else { 2 };
            let pair = text.get(skip..skip + 2)?;
            let digit = |byte: u8| (byte as char).to_digit(16);
            Some(((digit(pair[0])? << 4 | digit(pair[1])?) as u8, skip + 2))
        }
        _ => None,
    }
}

/// Returns the Linux value of names and numbers such as `A|B|0x4`. `solaris` translates a Solaris number.
pub fn flags(text: &[u8], solaris: fn(i64) -> u64) -> u64 {
    let one = |word: &[u8]| match integer(word) {
        Some((number, length)) if length == word.len() => solaris(number),
        _ => linux::value(word).unwrap_or(0),
    };
    text.split(|&byte| byte == b'|').map(one).fold(0, |sum, flag| sum | flag)
}

/// Translates Solaris's open flags (sys/fcntl.h) to those of Linux.
pub fn open_flags(number: i64) -> u64 {
    const FLAGS: &[(i64, u64)] = &[
        (0x1, linux::O_WRONLY),
        (0x2, linux::O_RDWR),
        (0x8, linux::O_APPEND),
        (0x10, linux::O_SYNC),
        (0x40, linux::O_DSYNC),
        (0x84, linux::O_NONBLOCK),
        (0x100, linux::O_CREAT),
        (0x200, linux::O_TRUNC),
        (0x400, linux::O_EXCL),
        (0x2_0000, linux::O_NOFOLLOW),
        (0x80_0000, linux::O_CLOEXEC),
        (0x100_0000, linux::O_DIRECTORY),
        (0x200_0000, linux::O_DIRECT),
    ];
    FLAGS.iter().filter(|&&(solaris, _)| number & solaris != 0).fold(0, |sum, &(_, flag)| sum | flag)
}

/// Returns the fcntl command. The numbers of Solaris differ from those of Linux except for the first five.
pub fn fcntl_command(text: &[u8]) -> u64 {
    match text {
        b"F_DUP2FD_CLOEXEC" | b"36" => linux::F_DUP2FD,
        b"F_DUPFD_CLOEXEC" | b"37" => linux::F_DUPFD_CLOEXEC,
        b"F_DUP2FD" | b"9" => linux::F_DUP2FD,
        _ => match integer(text) {
            Some((number @ 0..=4, length)) if length == text.len() => number as u64,
            // The number of F_GETFL represents any command that tracking does not use.
            _ => linux::value(text).unwrap_or(3),
        },
    }
}

/// Returns a number that has the same meaning on both systems.
pub fn same(number: i64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_bases_are_read() {
        assert_eq!(integer(b"-3041965,"), Some((-3_041_965, 8)));
        assert_eq!(integer(b"0xFEFA0000"), Some((0xFEFA_0000, 10)));
        assert_eq!(integer(b"0x"), None);
        assert_eq!((integer(b"18446744073709551616"), integer(b"0x1ffffffffffffffff")), (None, None));
        assert_eq!(integer(b"022"), Some((0o22, 3)));
        assert_eq!(integer(b"0)"), Some((0, 1)));
        assert_eq!(integer(b"SIG"), None);
        assert_eq!(integer(b""), None);
    }

    #[test]
    fn escaped_names_are_read() {
        let mut out = Vec::new();
        unescape(br#"a\xe3\xffffff81\"b\c\x"#, &mut out);
        assert_eq!(out, b"a\xe3\x81\"b\\c\\x");
        assert_eq!(closing_quote(br#"a"b\"c", 0"#, 0), Some(6));
        assert_eq!(closing_quote(b"abc", 0), None);
        assert_eq!(closing_buffer_quote(br#" a " ,"..,"#, 0), Some(6));
        assert_eq!(closing_buffer_quote(b" a ", 0), None);
    }

    #[test]
    fn names_of_flags_become_numbers_of_linux() {
        assert_eq!(flags(b"O_WRONLY|O_CREAT|0x8", open_flags), 0o101 | linux::O_APPEND);
        assert_eq!(fcntl_command(b"F_DUPFD"), linux::F_DUPFD);
        assert_eq!(fcntl_command(b"F_GETLK64"), 3);
    }
}
