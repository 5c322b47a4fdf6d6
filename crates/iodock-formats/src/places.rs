//! Makes a piece of a log printable.

const LONGEST_SAMPLE: usize = 120;

/// Returns the beginning of a line, with control bytes and invalid UTF-8 replaced.
pub fn sample(line: &[u8]) -> String {
    let end = line.len().min(LONGEST_SAMPLE);
    let text = String::from_utf8_lossy(&line[..end]);
    text.trim_end_matches(['\r', '\n']).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
