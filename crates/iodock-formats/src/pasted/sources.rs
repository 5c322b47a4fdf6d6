//! Finds the words before the lines that name the source of a line: a container, a host or a process.

use super::shape::Shape;

/// The role of a word in the text before a line.
enum Part {
    /// The word may have any value: it is a date, time, line number or level.
    Free,
    /// The word is the same in all lines.
    Fixed(Vec<u8>),
    /// The word has different values, so the lines belong to several logs.
    Several(Vec<(Vec<u8>, usize)>),
}

/// Marks the words that all lines share. Returns as `Err` the values that distinguish several logs, each with
/// its number of lines.
pub fn fix(shape: &mut Shape, lines: &[&[u8]]) -> Result<(), Vec<(Vec<u8>, usize)>> {
    let rows: Vec<Vec<&[u8]>> = lines.iter().filter_map(|line| words_of(shape, line)).collect();
    let Some(first) = rows.first() else { return Ok(()) };
    shape.piece = piece(first);
    for word in 0..first.len() {
        let values: Vec<&[u8]> = rows.iter().filter_map(|row| row.get(word).copied()).collect();
        match part(&values, first, word) {
            Part::Free => {}
            Part::Fixed(text) => shape.fixed.push((word, text)),
            Part::Several(values) => return Err(values),
        }
    }
    Ok(())
}

/// Returns the position of the last word of `2026-03-01T10:00:00.123Z stderr F `.
fn piece(row: &[&[u8]]) -> Option<usize> {
    let stream = row.len().checked_sub(2)?;
    let of_stream = matches!(row[stream], b"stdout" | b"stderr") && matches!(row[stream + 1], b"F" | b"P");
    of_stream.then_some(stream + 1)
}

fn words_of<'a>(shape: &Shape, line: &'a [u8]) -> Option<Vec<&'a [u8]>> {
    let ranges = shape.ranges(line)?;
    Some(shape.words(&ranges).into_iter().map(|range| &line[range]).collect())
}

fn part(values: &[&[u8]], row: &[&[u8]], word: usize) -> Part {
    let first = row[word];
    let has_letters = first.iter().any(|&byte| is_letter(byte));
    if is_time(first) || is_level(first) || (has_letters && is_of_a_date(row, word)) {
        return Part::Free;
    }
    if values.iter().all(|value| *value == first) {
        return if has_letters { Part::Fixed(first.to_vec()) } else { Part::Free };
    }
    // Line numbers and days only increase. A number that returns to an earlier value names a source.
    if !has_letters && !returns(values) {
        return Part::Free;
    }
    Part::Several(counted(values))
}

/// Returns whether a value occurs again after a different one.
pub fn returns<T: PartialEq>(values: &[T]) -> bool {
    let mut runs: Vec<&T> = Vec::new();
    for value in values {
        if runs.last() == Some(&value) {
            continue;
        }
        if runs.contains(&value) {
            return true;
        }
        runs.push(value);
    }
    false
}

/// Returns each value with its number of lines, in the order of appearance.
fn counted(values: &[&[u8]]) -> Vec<(Vec<u8>, usize)> {
    let mut counts: Vec<(Vec<u8>, usize)> = Vec::new();
    for value in values {
        match counts.iter_mut().find(|(known, _)| known == value) {
            Some((_, count)) => *count += 1,
            None => counts.push((value.to_vec(), 1)),
        }
    }
    counts
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte >= 0x80
}

/// Returns whether the word is part of a time, such as `10:00:00`, `[2026-03-01T10:00:00Z`, `2026-03-01` or
/// `12.345]`. It has digits separated by signs, which line numbers and process ids do not have.
pub fn is_time(word: &[u8]) -> bool {
    let word = word.strip_prefix(b"[").unwrap_or(word);
    let signs = |pair: &[u8]| pair[0].is_ascii_digit() && matches!(pair[1], b':' | b'-' | b'/' | b'.' | b',');
    let followed = |at: usize| word.get(at + 2).is_some_and(u8::is_ascii_digit);
    let is_number = word.first().is_some_and(u8::is_ascii_digit);
    let letters = word.iter().filter(|&&byte| is_letter(byte)).count();
    is_number && letters <= 4 && word.windows(2).enumerate().any(|(at, pair)| signs(pair) && followed(at))
}

/// Returns whether the word is one that does not name a source, such as `F`, `INFO`, `PM` or `UTC`.
fn is_level(word: &[u8]) -> bool {
    let letters = word.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let plain = word.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_punctuation());
    plain && (1..=5).contains(&letters)
}

/// Returns whether the word is part of a date, such as those in `Sun Mar  1 10:00:00`. Only such words and
/// numbers may precede the time.
fn is_of_a_date(row: &[&[u8]], word: usize) -> bool {
    let is_word =
        |word: &[u8]| word.iter().all(|&byte| is_letter(byte) || matches!(byte, b'.' | b',' | b'['));
    let is_number =
        |word: &[u8]| word.len() <= 5 && word.iter().all(|&byte| byte.is_ascii_digit() || byte == b',');
    let rest = &row[word..];
    let time = rest.iter().position(|word| is_time(word));
    time.is_some_and(|time| rest[..time].iter().all(|word| is_word(word) || is_number(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pasted::shape::tokens;

    fn fixed(lines: &[&str]) -> Result<Vec<String>, Vec<String>> {
        let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
        let mut shape = Shape { tokens: tokens(lines[0]), ..Shape::default() };
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        match fix(&mut shape, &lines) {
            Ok(()) => Ok(shape.fixed.into_iter().map(|(_, word)| text(word)).collect()),
            Err(values) => Err(values.into_iter().map(|(value, _)| text(value)).collect()),
        }
    }

    #[test]
    fn words_that_name_a_source_are_fixed() {
        for (line, expected) in [
            ("Maj 17 21:36:42 node7 strace[1499]: ", &["node7", "strace[1499]:"][..]),
            ("2026-05-17T21:36:42+0200 host strace[1]: ", &["host", "strace[1]:"]),
            ("2026-03-01T10:00:00.123456789Z stderr F ", &["stderr"]),
            ("Sun Mar  1 10:00:00 UTC 2026 ", &[]),
            ("[2026-03-01 10:00:00.123] INFO app: ", &["app:"]),
            ("[pod/app-7d/main] ", &["[pod/app-7d/main]"]),
            ("12: ", &[]),
        ] {
            assert_eq!(fixed(&[line, line]).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn increasing_dates_and_numbers_belong_to_one_log() {
        assert!(fixed(&["Mar 31 23:59:59 ", "Apr 1 00:00:00 "]).unwrap().is_empty());
        assert!(fixed(&["12:", "13:", "99:"]).unwrap().is_empty());
    }

    #[test]
    fn several_logs_are_distinguished() {
        assert_eq!(fixed(&["app-1  | ", "db-1   | "]).unwrap_err(), ["app-1", "db-1"]);
        assert_eq!(fixed(&["[17] | ", "[18] | ", "[17] | "]).unwrap_err(), ["[17]", "[18]"]);
        assert_eq!(fixed(&["a.log:", "b.log:"]).unwrap_err(), ["a.log:", "b.log:"]);
    }
}
