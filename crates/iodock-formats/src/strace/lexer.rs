//! Reads the parts of strace's notation: numbers, quoted strings, words, brackets, descriptor names.

use super::eights;
use memchr::{memchr, memchr2, memmem};

/// A position in a line. It works on bytes, because names in logs need not be UTF-8.
#[derive(Clone, Copy)]
pub struct Lexer<'a> {
    pub text: &'a [u8],
    pub at: usize,
    /// Whether a `<` was not closed, so that no later one is closed either. Searching again for each `<`
    /// would take too long in a long line.
    unclosed: bool,
}

/// Length in bytes of the longest descriptor name. Each byte of the longest path may be printed as `\377`.
const LONGEST_NAME: usize = 4 * 4096 + 256;

/// A string `"..."` as strace prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted<'a> {
    /// The text between the quotes, with its escapes.
    pub inner: &'a [u8],
    pub escaped: bool,
    /// Whether strace printed only the beginning (`"..."...`).
    pub cut: bool,
}

/// The bytes at which skipping a value must stop.
static SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"\"[]{}()<,/";
    let mut index = 0;
    while index < bytes.len() {
        table[bytes[index] as usize] = true;
        index += 1;
    }
    table
};

impl<'a> Lexer<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Lexer { text, at: 0, unclosed: false }
    }

    /// Returns the byte at the position; NUL at the end (strace never prints NUL).
    #[inline(always)]
    pub fn peek(&self) -> u8 {
        self.text.get(self.at).copied().unwrap_or(0)
    }

    #[inline(always)]
    pub fn rest(&self) -> &'a [u8] {
        &self.text[self.at.min(self.text.len())..]
    }

    #[inline(always)]
    pub fn at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    #[inline(always)]
    pub fn skip_spaces(&mut self) {
        while self.peek() == b' ' {
            self.at += 1;
        }
    }

    /// Consumes `byte` if it comes next.
    #[inline(always)]
    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.at < self.text.len() && self.text[self.at] == byte;
        self.at += usize::from(found);
        found
    }

    /// Consumes `word` if it comes next.
    #[inline]
    pub fn eat_word(&mut self, word: &[u8]) -> bool {
        let found = self.rest().starts_with(word);
        if found {
            self.at += word.len();
        }
        found
    }

    /// Reads all decimal digits at the position. The value wraps beyond 64 bits.
    #[inline(always)]
    pub fn digits(&mut self) -> Option<u64> {
        let Some(word) = eights::eight(self.text, self.at) else { return self.digits_singly() };
        let values = eights::values(word);
        match eights::leading_digits(values) {
            0 => None,
            8 => self.digits_singly(),
            count => {
                self.at += count as usize;
                Some(eights::leading_number(values, count))
            }
        }
    }

    /// Reads many digits, or digits at the end of the text. Returns `None` if they do not form a number of 64
    /// bits.
    fn digits_singly(&mut self) -> Option<u64> {
        let start = self.at;
        let mut value = Some(0u64);
        while let Some(digit @ b'0'..=b'9') = self.text.get(self.at) {
            value = value.and_then(|value| value.checked_mul(10)?.checked_add(u64::from(digit - b'0')));
            self.at += 1;
        }
        value.filter(|_| self.at > start)
    }

    /// Reads a number with an optional sign: decimal, `0x` hexadecimal, or `0` octal. Unsigned 64-bit values
    /// become their two's complement.
    #[inline]
    pub fn integer(&mut self) -> Option<i64> {
        let negative = self.eat(b'-');
        let value = if self.peek() == b'0' { self.prefixed()? } else { self.digits()? };
        let value = value as i64;
        Some(if negative { value.wrapping_neg() } else { value })
    }

    fn prefixed(&mut self) -> Option<u64> {
        const FOUR_BITS: u64 = 0xf << 60;
        self.at += 1;
        let mut value = 0u64;
        let mut whole = true;
        if matches!(self.peek(), b'x' | b'X') {
            self.at += 1;
            while let Some(digit) = (self.peek() as char).to_digit(16) {
                whole &= value & FOUR_BITS == 0;
                value = value << 4 | u64::from(digit);
                self.at += 1;
            }
        } else {
            while let digit @ b'0'..=b'7' = self.peek() {
                whole &= value >> 61 == 0;
                value = value << 3 | u64::from(digit - b'0');
                self.at += 1;
            }
        }
        whole.then_some(value)
    }

    /// Reads a word of letters, digits and `_`.
    #[inline]
    pub fn word(&mut self) -> &'a [u8] {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// Reads the string whose opening `"` is at the position; `None` if it is not closed.
    #[inline]
    pub fn string(&mut self) -> Option<Quoted<'a>> {
        let start = self.at + 1;
        let (end, escaped) = closing_quote(self.text, start)?;
        self.at = end + 1;
        let cut = self.eat_word(b"...");
        Some(Quoted { inner: &self.text[start..end], escaped, cut })
    }

    /// Reads the descriptor name whose opening `<` is at the position, and returns it without the brackets.
    /// Old versions do not escape `>` in names, so the name ends at a `>` after which an argument can end.
    pub fn bracketed(&mut self) -> Option<&'a [u8]> {
        let name = self.unnoted_name();
        self.unclosed |= name.is_none();
        name
    }

    fn unnoted_name(&mut self) -> Option<&'a [u8]> {
        let start = self.at + 1;
        let limit = self.text.len().min(start + LONGEST_NAME);
        let mut at = start;
        loop {
            at += memchr(b'>', self.text.get(at..limit)?)?;
            let after = self.text.get(at + 1).copied().unwrap_or(0);
            // These are the cases `3</a>(deleted)` and a line that was split, `3</a> ) = 0`.
            let ends = matches!(after, b',' | b')' | b']' | b'}' | b'(' | 0);
            if ends || matches!(self.text[at + 1..], [b' ', b'<' | b')', ..]) {
                self.at = at + 1;
                self.eat_word(b"(deleted)");
                return Some(&self.text[start..at]);
            }
            at += 1;
        }
    }

    /// Skips to the `,` or closing bracket that ends this value. Returns `false` if the text ends first or a
    /// string is not closed.
    #[inline]
    pub fn skip_value(&mut self) -> bool {
        let mut depth = 0usize;
        loop {
            while self.at < self.text.len() && !SPECIAL[self.text[self.at] as usize] {
                self.at += 1;
            }
            if self.at >= self.text.len() {
                return false;
            }
            match self.text[self.at] {
                b',' if depth == 0 => return true,
                b'"' => {
                    let Some((end, _)) = closing_quote(self.text, self.at + 1) else { return false };
                    self.at = end + 1;
                    // After the string, which may be shortened, the loop examines the rest of the value.
                    self.eat_word(b"...");
                    continue;
                }
                b'[' | b'{' | b'(' => depth += 1,
                b']' | b'}' | b')' if depth == 0 => return true,
                b']' | b'}' | b')' => depth -= 1,
                b'<' => {
                    self.skip_brackets();
                    continue;
                }
                b'/' if self.text.get(self.at + 1) == Some(&b'*') => {
                    match memmem::find(&self.text[self.at..], b"*/") {
                        Some(end) => self.at += end + 1,
                        None => return false,
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Skips a `<...>`, the two bytes of a shift operator (`1<<3`), or a single bracket.
    fn skip_brackets(&mut self) {
        let here = self.at;
        if self.text.get(here + 1) == Some(&b'<') {
            self.at = here + 2;
        } else if self.unclosed || self.bracketed().is_none() {
            self.at = here + 1;
        }
    }

    /// Moves to the next argument. Returns `false` if there is none; `at` is then at the closing bracket, or
    /// at the end of the text if there is no bracket.
    #[inline(always)]
    pub fn next_argument(&mut self) -> bool {
        if self.peek() != b',' && !(self.skip_value() && self.peek() == b',') {
            return false;
        }
        self.at += 1;
        self.skip_spaces();
        true
    }
}

/// Returns the position of the closing quote of the string that begins at `start`, and whether the string has
/// escapes.
#[inline]
fn closing_quote(text: &[u8], start: usize) -> Option<(usize, bool)> {
    let at = start + memchr2(b'"', b'\\', text.get(start..)?)?;
    if text[at] == b'"' {
        return Some((at, false));
    }
    // Escapes often follow one another, so the text after the first one is read byte by byte.
    let mut at = at;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'"' => return Some((at, true)),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

/// Appends a string with its escapes resolved.
pub fn unescape(inner: &[u8], into: &mut Vec<u8>) {
    let mut at = 0;
    while at < inner.len() {
        let Some(plain) = memchr(b'\\', &inner[at..]) else {
            into.extend_from_slice(&inner[at..]);
            return;
        };
        into.extend_from_slice(&inner[at..at + plain]);
        at += plain + 1;
        at += unescape_one(&inner[at..], into);
    }
}

/// Resolves the escape after a backslash. Returns the number of bytes read.
fn unescape_one(rest: &[u8], into: &mut Vec<u8>) -> usize {
    let Some(&first) = rest.first() else {
        into.push(b'\\');
        return 0;
    };
    match first {
        b'0'..=b'7' => {
            let digits = rest.iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            let value = rest[..digits].iter().fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
            into.push(value as u8);
            return digits;
        }
        b'x' => {
            let hex = |at: usize| rest.get(at).and_then(|&byte| (byte as char).to_digit(16));
            if let (Some(high), Some(low)) = (hex(1), hex(2)) {
                into.push((high * 16 + low) as u8);
                return 3;
            }
            into.push(b'x');
        }
        b'n' => into.push(b'\n'),
        b't' => into.push(b'\t'),
        b'r' => into.push(b'\r'),
        b'v' => into.push(0x0b),
        b'f' => into.push(0x0c),
        b'a' => into.push(0x07),
        b'b' => into.push(0x08),
        b'e' => into.push(0x1b),
        other => into.push(other),
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(text: &str) -> Option<i64> {
        Lexer::new(text.as_bytes()).integer()
    }

    #[test]
    fn numbers_of_all_bases_are_read() {
        assert_eq!(integer("4096, 3"), Some(4096));
        assert_eq!(integer("-1"), Some(-1));
        assert_eq!(integer("0"), Some(0));
        assert_eq!(integer("0x7f00"), Some(0x7f00));
        assert_eq!(integer("0644"), Some(0o644));
        assert_eq!(integer("18446744073709551615"), Some(-1));
        assert_eq!(integer("0xffffffffffffffff"), Some(-1));
        assert_eq!(integer("NULL"), None);
        for beyond in ["18446744073709551616", "99999999999999999999999999", "0x1ffffffffffffffff"] {
            assert_eq!(integer(beyond), None);
        }
        assert_eq!(integer("0x0000000000000000001"), Some(1));
        assert_eq!(
            (integer("01777777777777777777777"), integer("02000000000000000000000")),
            (Some(-1), None)
        );
    }

    #[test]
    fn a_string_ends_at_its_unescaped_quote() {
        let mut lexer = Lexer::new(br#""a) = 3 <0.1>\", \\", 5"#);
        let quoted = lexer.string().unwrap();
        assert_eq!(quoted.inner, br#"a) = 3 <0.1>\", \\"#);
        assert!(quoted.escaped && !quoted.cut);
        assert_eq!(lexer.rest(), b", 5");
        let quoted = Lexer::new(br#""abc"..., 5"#).string().unwrap();
        assert!(quoted.cut && !quoted.escaped);
        assert_eq!(Lexer::new(br#""abc\"#).string(), None);
        assert_eq!(Lexer::new(br#""abc"#).string(), None);
    }

    #[test]
    fn escapes_are_decoded_to_bytes() {
        let mut bytes = Vec::new();
        unescape(br#"\x2fa\n\t\\\"\1770\0\377\7x\v"#, &mut bytes);
        assert_eq!(bytes, b"/a\n\t\\\"\x7f0\0\xff\x07x\x0b");
        bytes.clear();
        unescape(br"\", &mut bytes);
        unescape(br"\xz", &mut bytes);
        assert_eq!(bytes, b"\\xz");
    }

    #[test]
    fn names_of_descriptors_are_read() {
        let name = |text: &'static str| {
            let mut lexer = Lexer::new(text.as_bytes());
            let name = lexer.bracketed().map(|name| std::str::from_utf8(name).unwrap());
            (name, std::str::from_utf8(lexer.rest()).unwrap())
        };
        assert_eq!(name("</a>, 5"), (Some("/a"), ", 5"));
        assert_eq!(name("</a > b> and c>) = 0"), (Some("/a > b> and c"), ") = 0"));
        assert_eq!(name("</dev/null<char 1:3>>)"), (Some("/dev/null<char 1:3>"), ")"));
        assert_eq!(
            name("<TCP:[127.0.0.1:1->127.0.0.1:2]>, "),
            (Some("TCP:[127.0.0.1:1->127.0.0.1:2]"), ", ")
        );
        assert_eq!(name("</a>(deleted), "), (Some("/a"), ", "));
        assert_eq!(name("</a"), (None, "</a"));
    }

    #[test]
    fn values_are_skipped_completely() {
        let skipped = |text: &'static str| {
            let mut lexer = Lexer::new(text.as_bytes());
            lexer.skip_value().then(|| std::str::from_utf8(lexer.rest()).unwrap())
        };
        assert_eq!(skipped("{a=[1, 2], b=(3, 4)}, x"), Some(", x"));
        assert_eq!(skipped(r#"{"a, }", 3}) = 0"#), Some(") = 0"));
        assert_eq!(skipped("0x7ff /* 41 vars, ) */) = 0"), Some(") = 0"));
        assert_eq!(skipped("3</a, b>, c"), Some(", c"));
        assert_eq!(skipped("1<<3|1<<4, c"), Some(", c"));
        assert_eq!(skipped("<... resuming interrupted read ...>) = 0"), Some(") = 0"));
        assert_eq!(skipped("abc"), None);
        assert_eq!(skipped("\"abc"), None);
    }
}
