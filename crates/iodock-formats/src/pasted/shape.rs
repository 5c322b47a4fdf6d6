//! The shape of the text before strace's lines. Words and numbers may differ from line to line, other
//! characters may not.

use std::ops::Range;

/// A piece of the text before a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Token {
    Digits,
    /// Letters of any alphabet.
    Letters,
    /// Spaces and tabs.
    Spaces,
    /// Any other byte, which must be the same in all lines.
    Byte(u8),
}

/// Splits `text` into pieces. Leading spaces are ignored, because numbers may be aligned to the right.
pub fn tokens(text: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut at = spaces(text);
    while at < text.len() {
        let token = token_of(text[at]);
        at += length(token, &text[at..]);
        tokens.push(token);
    }
    tokens
}

fn token_of(byte: u8) -> Token {
    match byte {
        b'0'..=b'9' => Token::Digits,
        b'a'..=b'z' | b'A'..=b'Z' | 0x80.. => Token::Letters,
        b' ' | b'\t' => Token::Spaces,
        other => Token::Byte(other),
    }
}

/// Returns the length of the piece at the beginning of `text` if it is a `token`, else 0.
fn length(token: Token, text: &[u8]) -> usize {
    match token {
        // grep prints `-` instead of `:` on context lines.
        Token::Byte(b':') => usize::from(matches!(text.first(), Some(b':' | b'-'))),
        Token::Byte(byte) => usize::from(text.first() == Some(&byte)),
        token => text.iter().take_while(|&&byte| token_of(byte) == token).count(),
    }
}

fn spaces(text: &[u8]) -> usize {
    length(Token::Spaces, text)
}

/// The prefix that another tool put before each line of a log.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    pub tokens: Vec<Token>,
    /// Words that name the source of a line, such as a host, with their position (from 0). They are the same
    /// in all lines of the log.
    pub fixed: Vec<(usize, Vec<u8>)>,
    /// The token that is the line's thread id, from the end of a file name of `strace -ff`.
    pub tid: Option<usize>,
    /// Position of the word that shows whether the line continues in the next one. In a container's log it
    /// follows the name of the stream: `P`, or `F` for the last piece.
    pub piece: Option<usize>,
}

/// The prefix of one line that matches the shape.
pub struct Lead {
    /// Length of the prefix, bytes.
    pub length: usize,
    /// Position of the thread's number.
    pub tid: Option<Range<usize>>,
    /// Whether the line continues in the next one.
    pub goes_on: bool,
}

/// The result of matching a line's beginning with the shape.
pub enum Beginning {
    Lead(Lead),
    /// The shape matches, but the line comes from another container, host or process.
    Other,
    Lacking,
}

impl Shape {
    pub fn beginning(&self, line: &[u8]) -> Beginning {
        let Some(ranges) = self.ranges(line) else { return Beginning::Lacking };
        let words = self.words(&ranges);
        let is_same = |(word, text): &(usize, Vec<u8>)| {
            words.get(*word).is_some_and(|range| &line[range.clone()] == text.as_slice())
        };
        if !self.fixed.iter().all(is_same) {
            return Beginning::Other;
        }
        let length = ranges.last().map_or(spaces(line), |last| last.end);
        let piece = self.piece.and_then(|word| words.get(word)).map(|range| &line[range.clone()]);
        let tid = self.tid.map(|token| ranges[token].clone());
        Beginning::Lead(Lead { length, tid, goes_on: piece == Some(b"P") })
    }

    /// Returns the position of each token in the line; `None` if the line does not match.
    pub fn ranges(&self, line: &[u8]) -> Option<Vec<Range<usize>>> {
        let mut at = spaces(line);
        let mut ranges = Vec::with_capacity(self.tokens.len());
        for (index, &token) in self.tokens.iter().enumerate() {
            let length = length(token, &line[at..]);
            // Another tool may have removed a space at the end of a line, or zeros at the end of a fraction.
            let may_lack = match token {
                Token::Spaces => at == line.len(),
                _ => self.is_fraction(index) || (index > 0 && self.is_fraction(index - 1)),
            };
            if length == 0 && !may_lack {
                return None;
            }
            ranges.push(at..at + length);
            at += length;
        }
        Some(ranges)
    }

    /// Returns whether this token is the decimal point in a number such as `00.123`.
    fn is_fraction(&self, index: usize) -> bool {
        let is = |at: Option<usize>, token| at.and_then(|at| self.tokens.get(at)) == Some(&token);
        matches!(self.tokens[index], Token::Byte(b'.' | b','))
            && is(index.checked_sub(1), Token::Digits)
            && is(index.checked_sub(2), Token::Byte(b':'))
            && is(Some(index + 1), Token::Digits)
    }

    /// Returns the words of a line without the thread's number and the text after it. A colon after a name
    /// also ends a word, as in `run.log:12:`.
    pub fn words(&self, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
        let end = self.tid.unwrap_or(self.tokens.len());
        let mut words: Vec<Range<usize>> = Vec::new();
        let (mut joined, mut named) = (false, None);
        for (token, range) in self.tokens[..end].iter().zip(ranges) {
            match words.last_mut().filter(|_| joined) {
                _ if *token == Token::Spaces => {}
                Some(word) => word.end = range.end,
                None => {
                    words.push(range.clone());
                    named = None;
                }
            }
            match token {
                Token::Letters | Token::Digits => named = named.or(Some(*token == Token::Letters)),
                _ => {}
            }
            let ends = *token == Token::Spaces || (*token == Token::Byte(b':') && named == Some(true));
            joined = !ends;
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length_of(shape: &Shape, line: &str) -> Option<usize> {
        match shape.beginning(line.as_bytes()) {
            Beginning::Lead(lead) => Some(lead.length),
            _ => None,
        }
    }

    #[test]
    fn leading_text_may_differ_in_numbers_and_words() {
        let shape = Shape { tokens: tokens(b"Mar 01 10:00:00.123 n1 a[17]: "), ..Shape::default() };
        for (line, length) in [
            ("Mar 01 10:00:00.123 n1 a[17]: read(", Some(30)),
            ("Apr  1 9:00:00 n17 b[1]: read(", Some(25)),
            ("  Apr 1 9:00:00 n17 b[1]:", Some(25)),
            ("Apr 1 9:00:00 n17 b[]: read(", None),
            ("read(3, \"Mar 01 10:00:00\", 4) = 4", None),
            ("", None),
        ] {
            assert_eq!(length_of(&shape, line), length, "{line}");
        }
    }

    #[test]
    fn leading_text_may_not_differ_in_fixed_words() {
        let tokens = tokens(b"n1 a[17]: ");
        let shape = Shape { tokens, fixed: vec![(1, b"a[17]:".to_vec())], ..Shape::default() };
        assert_eq!(length_of(&shape, "n2 a[17]: x"), Some(10));
        assert!(matches!(shape.beginning(b"n1 a[18]: x"), Beginning::Other));
        assert!(matches!(shape.beginning(b"n1 a(18): x"), Beginning::Lacking));
    }

    #[test]
    fn a_file_name_before_lines_ends_with_a_thread_number() {
        let shape =
            Shape { tokens: tokens(b"t.12:"), fixed: vec![(0, b"t.".to_vec())], tid: Some(2), piece: None };
        let Beginning::Lead(lead) = shape.beginning(b"t.7-close(3) = 0") else { panic!() };
        assert_eq!((lead.length, lead.tid), (4, Some(2..3)));
        assert!(matches!(shape.beginning(b"u.7:close(3) = 0"), Beginning::Other));
    }
}
