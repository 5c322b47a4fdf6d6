//! Finds the columns of a table from its first two lines.

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Percent,
    Seconds,
    Shortest,
    Longest,
    Average,
    Calls,
    Errors,
    Name,
    WallTotal,
    WallShortest,
    WallLongest,
    WallAverage,
}

const TITLES: &[(&str, Column)] = &[
    ("% time", Column::Percent),
    ("seconds", Column::Seconds),
    ("shortest", Column::Shortest),
    ("longest", Column::Longest),
    ("usecs/call", Column::Average),
    ("calls", Column::Calls),
    ("errors", Column::Errors),
    ("syscall", Column::Name),
    ("wall-total", Column::WallTotal),
    ("wall-min", Column::WallShortest),
    ("wall-max", Column::WallLongest),
    ("wall-avg", Column::WallAverage),
];

/// Returns the columns that a line names; `None` if it is not a header.
pub fn header(line: &[u8]) -> Option<Vec<Column>> {
    let mut columns = Vec::new();
    let mut rest = line.trim_ascii();
    while !rest.is_empty() {
        let named = |title: &str| {
            let behind = rest.strip_prefix(title.as_bytes())?;
            matches!(behind.first(), None | Some(b' ')).then_some(behind)
        };
        let (column, behind) = TITLES.iter().find_map(|&(title, column)| Some((column, named(title)?)))?;
        if columns.contains(&column) {
            return None;
        }
        columns.push(column);
        rest = behind.trim_ascii_start();
    }
    columns.contains(&Column::Name).then_some(columns)
}

pub fn is_header(line: &[u8]) -> bool {
    header(line).is_some()
}

/// Returns the positions of the columns, from a rule such as `------ -----------`.
pub fn rule(line: &[u8]) -> Option<Vec<std::ops::Range<usize>>> {
    let mut places = Vec::new();
    let mut at = 0;
    for group in line.split(|&byte| byte == b' ') {
        if group.len() < 6 || group.iter().any(|&byte| byte != b'-') {
            return None;
        }
        places.push(at..at + group.len());
        at += group.len() + 1;
    }
    (!places.is_empty()).then_some(places)
}

pub fn is_rule(line: &[u8]) -> bool {
    rule(line).is_some()
}
