//! Finds where the log's own lines begin, and the text that all lines have before that position.

use super::shape::{self, Shape, Token};
use super::sources::{is_time, returns};
use crate::{strace, LogFormat};
use rustc_hash::FxHashMap;

/// Number of bytes of a line within which strace's own text may begin.
const LONGEST_LEAD: usize = 512;
/// Number of positions tried in each line.
const MOST_TRIED: usize = 16;

/// A position at which strace's own line could begin.
struct Start {
    at: usize,
    /// The number here, if it could be a thread or part of a date.
    dated: Option<u64>,
}

/// The text before strace's line: its pieces, and whether it consists of spaces only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Key {
    tokens: Vec<Token>,
    indented: bool,
}

#[derive(Default)]
struct Votes {
    lines: usize,
    /// Numbers of dates at the position of threads.
    dated: Vec<u64>,
}

/// The text before the calls of a log.
pub enum Found {
    /// There is none, or the log has no calls.
    Nothing,
    Shape(Shape),
    /// There is some, but no shape fits nearly all lines. Holds two examples.
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
        // In a log from a terminal, a program's output may precede some lines.
        return match plain * 5 > with_call {
            true => Found::Nothing,
            false => Found::Uncommon(examples(lines, &places)),
        };
    }
    // After a quotation mark, strace's own quotation marks are escaped: the lines are JSON or similar.
    let is_quoted = key.tokens.contains(&Token::Byte(b'"'));
    match is_quoted || (key.tokens.is_empty() && !key.indented) {
        true => Found::Nothing,
        false => Found::Shape(Shape { tokens: key.tokens, ..Shape::default() }),
    }
}

/// The text that nearly all lines of `format` have before them; `None` if there is none or no shape fits
/// nearly all lines.
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

/// The positions at which a line of `format` could begin.
fn places_of(format: &dyn LogFormat, line: &[u8]) -> Vec<usize> {
    let near = line.len().min(LONGEST_LEAD);
    let begins = |&at: &usize| {
        let before = at.checked_sub(1).map_or(b' ', |at| line[at]);
        line[at] != b' ' && matches!(before, b' ' | b'\t' | b':' | b'|' | b'>' | b']')
    };
    (0..near).filter(begins).take(MOST_TRIED).filter(|&at| format.owns(&line[at..])).collect()
}

/// The shape that most lines have. If several are equally frequent, the shortest.
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
    // Days and years increase, while threads alternate.
    let is_taken = |votes: &Votes| votes.dated.is_empty() || returns(&votes.dated);
    let all = votes.into_iter().filter(|(_, votes)| is_taken(votes));
    let key = |(key, votes): &(Key, Votes)| (votes.lines, std::cmp::Reverse(key.tokens.len()));
    all.max_by_key(key).map(|(key, votes)| (key, votes.lines))
}

/// The text before the first call, and the text before the first call whose shape differs.
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

/// The positions at which strace's line could begin: each of its columns, then the call.
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

/// How strace's other lines begin.
const EVENTS: [&[u8]; 3] = [b"+++ ", b"--- ", b"<... "];

/// Position of the first call in a line that can be parsed to its end.
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

/// May one of strace's columns begin here?
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

/// Could strace have printed this number here? It prints no `00`, and not two threads (or seconds of `-r`) in
/// a row.
fn is_column(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let first = digits(text);
    let Some(rest) = text[first..].strip_prefix(b" ") else { return true };
    let rest = rest.trim_ascii_start();
    let second = digits(rest);
    let is_second = (1..9).contains(&second) && rest.get(second) == Some(&b' ');
    !is_second && (first == 1 || text[0] != b'0')
}

/// The number at `at`, if it could be a day or a year: `Mar 11 10:00:00`, `10:00:00 2026`.
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

/// Are the first columns line numbers: 1, 2, 3 ...?
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

/// The shape of numbered lines, including the text after the numbers.
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
        // Either strace's own lines follow the numbers, or the columns are something else.
        Found::Nothing if rests.iter().any(|rest| strace::is_own_line(rest)) => Found::Shape(number),
        other => other,
    }
}

/// Does each line begin with the same spaces, so that the thread's number would be read as seconds (`-r`)?
fn is_indented(lines: &[&[u8]]) -> bool {
    let indent = |line: &[u8]| line.len() - line.trim_ascii_start().len();
    let width = lines.first().map_or(0, |line| indent(line));
    let is_own = |line: &&&[u8]| strace::is_own_line(line.trim_ascii_start());
    let mut numbers: Vec<u64> = lines.iter().filter(is_own).filter_map(|line| whole_number(line)).collect();
    numbers.sort_unstable();
    // Most pairs of lines are less than two seconds apart.
    let threads = numbers.get(numbers.len() / 2).is_some_and(|&middle| middle >= 2);
    width > 0 && threads && lines.iter().all(|line| indent(line) == width)
}

/// The number at the start of a line.
fn whole_number(line: &[u8]) -> Option<u64> {
    let word = line.trim_ascii_start().split(|&byte| byte == b' ').next()?;
    let digits = word.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(word).ok().filter(|_| digits)?.parse().ok()
}

/// Does a line contain a call as strace prints it, at any position?
pub fn holds_call(line: &[u8]) -> bool {
    first_call(line).is_some()
}
