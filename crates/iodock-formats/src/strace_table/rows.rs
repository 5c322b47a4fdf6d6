//! Parses the rows of a table.

use super::columns::Column;
use std::ops::Range;

/// The columns of a table, and their positions.
#[derive(Debug)]
pub struct Layout {
    pub columns: Vec<Column>,
    pub places: Vec<Range<usize>>,
}

/// One row. Values without a column are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub name: Vec<u8>,
    pub calls: Option<i64>,
    pub errors: Option<i64>,
    /// Value of the column `seconds`, in ns.
    pub seconds: Option<i64>,
    pub shortest: Option<i64>,
    pub longest: Option<i64>,
    pub wall_total: Option<i64>,
    pub wall_shortest: Option<i64>,
    pub wall_longest: Option<i64>,
}

impl Layout {
    /// Parses a row of the table. Returns `None` if the line is not one.
    pub fn row(&self, line: &[u8]) -> Option<Row> {
        // strace leaves the column of errors blank if there are none.
        let errors = self.columns.contains(&Column::Errors).then_some(0);
        let mut row = Row { errors, ..Row::default() };
        for (column, word) in self.assigned(line)? {
            row.fill(column, word)?;
        }
        let counted = !self.columns.contains(&Column::Calls) || row.calls.is_some();
        let possible = row.calls.is_none_or(|calls| row.errors <= Some(calls));
        (!row.name.is_empty() && counted && possible).then_some(row)
    }

    /// Assigns the words to columns: in order if none is missing, else by their positions.
    fn assigned<'a>(&self, line: &'a [u8]) -> Option<Vec<(Column, &'a [u8])>> {
        let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').filter(|word| !word.is_empty()).collect();
        if words.len() == self.columns.len() {
            return Some(self.columns.iter().copied().zip(words).collect());
        }
        // Only the column of errors may be blank, even if wide numbers have shifted the other columns.
        if words.len() + 1 == self.columns.len() && !is_total(&words) {
            let others = self.columns.iter().copied().filter(|&column| column != Column::Errors);
            return Some(others.zip(words).collect());
        }
        words.iter().map(|word| Some((self.column_of(line, word)?, *word))).collect()
    }

    /// Returns the column of a word. Numbers are aligned with the end of the column, names with its
    /// beginning.
    fn column_of(&self, line: &[u8], word: &[u8]) -> Option<Column> {
        let start = word.as_ptr() as usize - line.as_ptr() as usize;
        let places = self.columns.iter().zip(&self.places);
        places.into_iter().find_map(|(&column, place)| {
            let here =
                if column == Column::Name { start == place.start } else { start + word.len() == place.end };
            here.then_some(column)
        })
    }
}

fn is_total(words: &[&[u8]]) -> bool {
    words.first() == Some(&&b"total"[..]) || words.last() == Some(&&b"total"[..])
}

impl Row {
    fn fill(&mut self, column: Column, word: &[u8]) -> Option<()> {
        match column {
            Column::Name if is_name(word) => self.name = word.to_vec(),
            Column::Name => return None,
            Column::Percent => drop(percent(word)?),
            Column::Average | Column::WallAverage => drop(count(word)?),
            Column::Calls => self.calls = Some(count(word)?),
            Column::Errors => self.errors = Some(count(word)?),
            Column::Seconds => self.seconds = Some(nanoseconds(word)?),
            Column::Shortest => self.shortest = Some(nanoseconds(word)?),
            Column::Longest => self.longest = Some(nanoseconds(word)?),
            Column::WallTotal => self.wall_total = Some(nanoseconds(word)?),
            Column::WallShortest => self.wall_shortest = Some(nanoseconds(word)?),
            Column::WallLongest => self.wall_longest = Some(nanoseconds(word)?),
        }
        Some(())
    }
}

fn is_name(word: &[u8]) -> bool {
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'#' | b'?');
    word.iter().all(known) && !word[0].is_ascii_digit()
}

fn count(word: &[u8]) -> Option<i64> {
    word.iter().all(u8::is_ascii_digit).then(|| std::str::from_utf8(word).ok()?.parse().ok())?
}

/// Parses a percentage such as `12.34`. Old versions print `nan` in a table whose times are all 0.
fn percent(word: &[u8]) -> Option<()> {
    matches!(word, b"nan" | b"-nan").then_some(()).or_else(|| decimal(word).map(drop))
}

/// Parses seconds such as `0.000014` to ns. The decimal point depends on the user's locale.
fn nanoseconds(word: &[u8]) -> Option<i64> {
    let (whole, part) = decimal(word)?;
    let ns = part.iter().chain(&[b'0'; 9]).take(9).fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    whole.checked_mul(1_000_000_000)?.checked_add(ns)
}

fn decimal(word: &[u8]) -> Option<(i64, &[u8])> {
    let point = word.iter().position(|byte| matches!(byte, b'.' | b','))?;
    let part = &word[point + 1..];
    let digits = !part.is_empty() && part.len() <= 9 && part.iter().all(u8::is_ascii_digit);
    Some((count(&word[..point]).filter(|_| digits && point > 0)?, part))
}

/// Returns whether this is the last line of a table.
pub fn is_sums(line: &[u8]) -> bool {
    let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    is_total(&words)
}

/// Returns whether this line could be a row of any table: numbers and a call's name or `total`.
pub fn is_row(line: &[u8]) -> bool {
    let words = || line.split(|&byte| byte == b' ').filter(|word| !word.is_empty());
    let is_number = |word: &[u8]| count(word).is_some() || percent(word).is_some();
    let mut names = words().filter(|word| !is_number(word));
    let Some(name) = names.next() else { return false };
    let numbers = words().count() - 1;
    let known = name == b"total" || crate::strace::known_call(name).is_some();
    let others = is_name(name) && numbers >= 3;
    names.next().is_none() && ((known && numbers >= 1) || others)
}
