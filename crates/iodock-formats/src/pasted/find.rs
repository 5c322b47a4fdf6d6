//! Finds where the log's own lines begin, and the text that other tools put before that position in all
//! lines.

use super::shape::{self, Shape, Token};
use super::sources::{is_time, returns};
use crate::{strace, LogFormat};
use rustc_hash::FxHashMap;

/// Number of bytes at the beginning of a line within which strace's own text may begin.
const LONGEST_LEAD: usize = 512;
/// Largest number of positions that are tried in each line.
const MOST_TRIED: usize = 16;

/// A position at which strace's own line could begin.
struct Start {
    at: usize,
    /// The number at this position, if it could be a thread id or part of a date.
    dated: Option<u64>,
}

/// The pieces of the text before strace's line, and whether it consists of spaces only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Key {
    tokens: Vec<Token>,
    indented: bool,
}

#[derive(Default)]
struct Votes {
    lines: usize,
    /// Numbers that may be thread ids or parts of dates, one for each line.
    dated: Vec<u64>,
}

/// The result of searching for text before the calls of a log.
pub enum Found {
    /// There is no such text, or the log has no calls.
    Nothing,
    Shape(Shape),
    /// There is such text, but no shape fits nearly all lines. The value holds two examples.
    Uncommon(Vec<Vec<u8>>),
}

/// Finds the text that `lines` have before strace's own.
pub fn lead(lines: &[&[u8]]) -> Found {
    if is_numbered(lines) {
        return numbered(lines);
    }
    let places: Vec<Vec<Start>> = lines.iter().map(|line| starts(line)).collect();
    let with_call = places.iter().filter(|starts| !starts.is_empty()).count();
    let plain = lines.iter().filter(|line| strace::is_own_line(line)).count();
    if is_indented(lines) {
        return Found::Shape(Shape::default());
    }
    if with_call == 0 || plain * 2 > with_call {
        return Found::Nothing;
    }
    let Some((key, votes)) = most_voted(lines, &places) else { return Found::Nothing };
    if votes * 10 < with_call * 9 {
        // In a log from a terminal, the output of a program may precede some lines.
        return match plain * 5 > with_call {
            true => Found::Nothing,
            false => Found::Uncommon(examples(lines, &places)),
        };
    }
    // If the text contains a quotation mark, strace's own quotation marks are escaped: the lines are JSON or
    // similar.
    let is_quoted = key.tokens.contains(&Token::Byte(b'"'));
    match is_quoted || (key.tokens.is_empty() && !key.indented) {
        true => Found::Nothing,
        false => Found::Shape(Shape { tokens: key.tokens, ..Shape::default() }),
    }
}

/// Returns the shape of the text that nearly all lines of `format` have before them; `None` if there is no
/// such text or no shape fits nearly all lines.
pub fn lead_of(format: &dyn LogFormat, lines: &[&[u8]]) -> Option<Shape> {
    let mut votes: FxHashMap<Vec<Token>, usize> = FxHashMap::default();
    let mut with_call = 0;
    for line in lines {
        let places = places_of(format, line);
        with_call += usize::from(!places.is_empty());
        let mut leads: Vec<Vec<Token>> = places.into_iter().map(|at| shape::tokens(&line[..at])).collect();
        leads.dedup();
        leads.into_iter().for_each(|lead| *votes.entry(lead).or_default() += 1);
    }
    let most = votes.into_iter().max_by_key(|(lead, count)| (*count, std::cmp::Reverse(lead.len())));
    let (tokens, count) = most.filter(|&(_, count)| count * 10 >= with_call * 9)?;
    let is_quoted = tokens.contains(&Token::Byte(b'"'));
    (!tokens.is_empty() && !is_quoted && count > 1).then(|| Shape { tokens, ..Shape::default() })
}

/// Returns the positions at which a line of `format` could begin.
fn places_of(format: &dyn LogFormat, line: &[u8]) -> Vec<usize> {
    let near = line.len().min(LONGEST_LEAD);
    let begins = |&at: &usize| {
        let before = at.checked_sub(1).map_or(b' ', |at| line[at]);
        line[at] != b' ' && matches!(before, b' ' | b'\t' | b':' | b'|' | b'>' | b']')
    };
    (0..near).filter(begins).take(MOST_TRIED).filter(|&at| format.owns(&line[at..])).collect()
}

/// Returns the shape that most lines have. If several are equally frequent, returns the shortest.
fn most_voted(lines: &[&[u8]], places: &[Vec<Start>]) -> Option<(Key, usize)> {
    let mut votes: FxHashMap<Key, Votes> = FxHashMap::default();
    for (line, starts) in lines.iter().zip(places) {
        for start in starts {
            let lead = &line[..start.at];
            let tokens = shape::tokens(lead);
            let indented = tokens.is_empty() && !lead.is_empty();
            let votes = votes.entry(Key { tokens, indented }).or_default();
            votes.lines += 1;
            votes.dated.extend(start.dated);
        }
    }
    // Days and years only increase, while thread ids alternate.
    let is_taken = |votes: &Votes| votes.dated.is_empty() || returns(&votes.dated);
    let all = votes.into_iter().filter(|(_, votes)| is_taken(votes));
    let key = |(key, votes): &(Key, Votes)| (votes.lines, std::cmp::Reverse(key.tokens.len()));
    all.max_by_key(key).map(|(key, votes)| (key, votes.lines))
}

/// Returns two examples: the text before the first call, and the text before the first call for which its
/// shape differs.
fn examples(lines: &[&[u8]], places: &[Vec<Start>]) -> Vec<Vec<u8>> {
    let mut shown: Vec<Vec<u8>> = Vec::new();
    for (line, starts) in lines.iter().zip(places) {
        let Some(start) = starts.first() else { continue };
        let lead = line[..start.at].to_vec();
        if shown.iter().all(|known| shape::tokens(known) != shape::tokens(&lead)) {
            shown.push(lead);
        }
    }
    shown.truncate(2);
    shown
}

/// Returns the positions at which strace's line could begin: those of its columns and of its call.
fn starts(line: &[u8]) -> Vec<Start> {
    let Some(call) = first_call(line) else { return Vec::new() };
    let mut found: Vec<Start> = Vec::new();
    for at in (call.saturating_sub(120)..call).filter(|&at| may_begin(line, at)) {
        if at + strace::column_length(&line[at..]) == call {
            found.push(Start { at, dated: dated(line, at) });
        }
    }
    found.push(Start { at: call, dated: None });
    found
}

/// Beginnings of those lines of strace that are not calls.
const EVENTS: [&[u8]; 3] = [b"+++ ", b"--- ", b"<... "];

/// Returns the position of the first call in the line that can be parsed to its end.
fn first_call(line: &[u8]) -> Option<usize> {
    let near = &line[..line.len().min(LONGEST_LEAD)];
    let mut tried = 0;
    let mut at = 0;
    while at < near.len() && tried < MOST_TRIED {
        let rest = &line[at..];
        let is_event = EVENTS.iter().any(|event| rest.starts_with(event));
        let name = rest.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
        if is_event || (name > 0 && rest.get(name) == Some(&b'(')) {
            tried += 1;
            if strace::is_own_line(rest) {
                return Some(at);
            }
        }
        at += name.max(1);
    }
    None
}

/// Returns whether one of strace's columns may begin here.
fn may_begin(line: &[u8], at: usize) -> bool {
    const BEFORE: &[u8] = b" \t:|>])};=#+\"'";
    match line[at] {
        b'[' => true,
        b'0'..=b'9' => {
            let word = line[..at].rsplit(|&byte| matches!(byte, b' ' | b'\t')).next().unwrap_or(b"");
            // Minus signs appear in dates, and alone in the output of diff.
            let ends = word.last().is_none_or(|byte| BEFORE.contains(byte)) || line[..at] == *b"-";
            ends && !is_time(word) && is_column(&line[at..])
        }
        _ => false,
    }
}

/// Returns whether strace could have printed this number here. It prints neither `00` nor two thread ids (or
/// seconds of `-r`) one after the other.
fn is_column(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let first = digits(text);
    let Some(rest) = text[first..].strip_prefix(b" ") else { return true };
    let rest = rest.trim_ascii_start();
    let second = digits(rest);
    let is_second = (1..9).contains(&second) && rest.get(second) == Some(&b' ');
    !is_second && (first == 1 || text[0] != b'0')
}

/// Returns the number at `at` if it could be a day or a year, as in `Mar 11 10:00:00` or `10:00:00 2026`.
fn dated(line: &[u8], at: usize) -> Option<u64> {
    let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number: u64 = std::str::from_utf8(&line[at..at + digits]).ok()?.parse().ok()?;
    let before = line[..at].strip_suffix(b" ")?.trim_ascii_end();
    let word = before.rsplit(|byte| byte.is_ascii_whitespace()).next()?;
    let next = line[at + digits..].trim_ascii_start();
    let next = next.split(|byte| byte.is_ascii_whitespace()).next()?;
    let is_word = word.len() >= 3
        && word.iter().all(|&byte| byte.is_ascii_alphabetic() || byte >= 0x80 || byte == b'.');
    let is_day = is_word && number <= 31 && is_time(next);
    let of_date = is_time(word) || word.iter().all(|byte| byte.is_ascii_digit() || *byte == b',') || is_word;
    let is_year = of_date && (1970..2100).contains(&number) && (is_time(next) || is_time(word) || is_word);
    (is_day || is_year).then_some(number)
}

/// Returns whether the first columns are line numbers: 1, 2, 3 ...
fn is_numbered(lines: &[&[u8]]) -> bool {
    let mut next = 1;
    for line in lines {
        let text = line.trim_ascii_start();
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = std::str::from_utf8(&text[..digits]).ok().and_then(|digits| digits.parse::<u64>().ok());
        let is_column = matches!(text.get(digits), Some(b' ' | b'\t'));
        if number != Some(next) || !is_column {
            return false;
        }
        next += 1;
    }
    next > 3
}

/// Returns the shape of numbered lines, including text between the numbers and strace's lines.
fn numbered(lines: &[&[u8]]) -> Found {
    let number = Shape { tokens: vec![Token::Digits, Token::Spaces], ..Shape::default() };
    let rests: Vec<&[u8]> =
        lines.iter().filter_map(|line| number.ranges(line)?.last().map(|last| &line[last.end..])).collect();
    if is_numbered(&rests) {
        return Found::Nothing;
    }
    match lead(&rests) {
        Found::Shape(behind) => {
            let tokens = number.tokens.into_iter().chain(behind.tokens).collect();
            Found::Shape(Shape { tokens, ..Shape::default() })
        }
        // If strace's own lines follow the numbers directly, these are line numbers; otherwise the column is
        // something else.
        Found::Nothing if rests.iter().any(|rest| strace::is_own_line(rest)) => Found::Shape(number),
        other => other,
    }
}

/// Returns whether each line begins with the same spaces. The thread id after them would otherwise be read as
/// seconds (`-r`).
fn is_indented(lines: &[&[u8]]) -> bool {
    let indent = |line: &[u8]| line.len() - line.trim_ascii_start().len();
    let width = lines.first().map_or(0, |line| indent(line));
    let is_own = |line: &&&[u8]| strace::is_own_line(line.trim_ascii_start());
    let mut numbers: Vec<u64> = lines.iter().filter(is_own).filter_map(|line| whole_number(line)).collect();
    numbers.sort_unstable();
    // Most pairs of lines are less than two seconds apart, so larger numbers are thread ids.
    let threads = numbers.get(numbers.len() / 2).is_some_and(|&middle| middle >= 2);
    width > 0 && threads && lines.iter().all(|line| indent(line) == width)
}

/// Returns the number at the start of a line.
fn whole_number(line: &[u8]) -> Option<u64> {
    let word = line.trim_ascii_start().split(|&byte| byte == b' ').next()?;
    let digits = word.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(word).ok().filter(|_| digits)?.parse().ok()
}

/// Returns whether the line contains a call as strace prints it, at any position.
pub fn holds_call(line: &[u8]) -> bool {
    first_call(line).is_some()
}
