//! Restores characters that word processors, mail programs and web pages replaced.

/// The kinds of replaced characters that a log contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Whether the log contains HTML entities, such as `&quot;`, `&lt;` and `&#34;`.
    pub entities: bool,
    /// Whether the log contains typographic characters, such as `“`, `…`, `–` and non-breaking spaces.
    pub typography: bool,
}

/// Length in bytes of the longest entity or character that is restored.
pub const LONGEST: usize = 10;

/// Named entities for the characters that strace prints and for their typographic forms, from the HTML
/// standard.
const ENTITIES: &[(&[u8], &str)] = &[
    (b"quot", "\""),
    (b"lt", "<"),
    (b"gt", ">"),
    (b"amp", "&"),
    (b"apos", "'"),
    (b"nbsp", "\u{a0}"),
    (b"ldquo", "\u{201c}"),
    (b"rdquo", "\u{201d}"),
    (b"bdquo", "\u{201e}"),
    (b"laquo", "\u{ab}"),
    (b"raquo", "\u{bb}"),
    (b"lsquo", "\u{2018}"),
    (b"rsquo", "\u{2019}"),
    (b"hellip", "\u{2026}"),
    (b"ndash", "\u{2013}"),
    (b"mdash", "\u{2014}"),
    (b"minus", "\u{2212}"),
    (b"rarr", "\u{2192}"),
];

/// Returns the character that a typographic one replaced; `None` for all other characters.
fn plain(character: char) -> Option<&'static str> {
    Some(match character {
        '\u{201c}'..='\u{201f}' | '\u{ab}' | '\u{bb}' | '\u{2033}' | '\u{ff02}' => "\"",
        '\u{2018}'..='\u{201b}' | '\u{2032}' => "'",
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{3000}' => " ",
        '\u{200b}' | '\u{2060}' | '\u{feff}' => "",
        '\u{2010}'..='\u{2013}' | '\u{2212}' => "-",
        // strace prints `---` before and after a signal.
        '\u{2014}' => "---",
        '\u{2026}' => "...",
        '\u{2192}' => "->",
        '\u{21d2}' => "=>",
        _ => return None,
    })
}

impl Rewritten {
    pub fn nothing(self) -> bool {
        self == Rewritten::default()
    }

    /// Appends `text` with strace's own characters restored. The line does not become longer.
    pub fn put_back(self, text: &[u8], out: &mut Vec<u8>) {
        let mut at = 0;
        while at < text.len() {
            let next = text[at..].iter().position(|&byte| byte == b'&' || byte >= 0x80);
            let Some(special) = next.map(|ahead| at + ahead) else { break };
            out.extend_from_slice(&text[at..special]);
            at = special + self.one(&text[special..], out);
        }
        out.extend_from_slice(&text[at.min(text.len())..]);
    }

    /// Restores the first character of `text`, which is `&` or not ASCII, and appends it. Returns the number
    /// of bytes read.
    fn one(self, text: &[u8], out: &mut Vec<u8>) -> usize {
        let entity = if self.entities { entity(text) } else { None };
        let (character, length) = match entity {
            Some(found) => found,
            None if text[0] == b'&' => ('&', 1),
            None => match first_character(text) {
                Some(character) => (character, character.len_utf8()),
                None => {
                    out.push(text[0]);
                    return 1;
                }
            },
        };
        let typographic = self.typography.then(|| plain(character)).flatten();
        match typographic {
            Some("\"") => length + quote(character, &text[length..], out),
            Some(plain) => {
                out.extend_from_slice(plain.as_bytes());
                length
            }
            None => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                length
            }
        }
    }
}

/// Appends a quotation mark. French quotation marks have a space inside, which is removed with them. Returns
/// the number of bytes read.
fn quote(character: char, after: &[u8], out: &mut Vec<u8>) -> usize {
    const SPACES: [&str; 2] = ["\u{a0}", "\u{202f}"];
    if character == '\u{bb}' && out.last() == Some(&b' ') {
        out.pop();
    }
    out.push(b'"');
    let space = SPACES.iter().find(|space| after.starts_with(space.as_bytes()));
    space.filter(|_| character == '\u{ab}').map_or(0, |space| space.len())
}

/// Returns the character that `&lt;`, `&#60;` or `&#x3c;` means, and the entity's length.
fn entity(text: &[u8]) -> Option<(char, usize)> {
    let end = text.iter().take(LONGEST).position(|&byte| byte == b';').filter(|_| text[0] == b'&')?;
    let name = &text[1..end];
    let character = match name.strip_prefix(b"#") {
        Some(number) => numbered(number)?,
        None => ENTITIES.iter().find(|(known, _)| *known == name)?.1.chars().next()?,
    };
    Some((character, end + 1))
}

/// Returns the character with this number. Control characters are excluded, because web pages do not contain
/// them.
fn numbered(number: &[u8]) -> Option<char> {
    let text = std::str::from_utf8(number).ok()?;
    let code = match text.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => text.parse().ok()?,
    };
    char::from_u32(code).filter(|character| !character.is_control())
}

fn first_character(text: &[u8]) -> Option<char> {
    let part = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(part) {
        Ok(valid) => valid,
        Err(error) => std::str::from_utf8(&part[..error.valid_up_to()]).unwrap_or(""),
    };
    valid.chars().next()
}

/// Finds replaced characters in this text, outside of plain strings and descriptor names.
pub fn rewritten_outside(text: &[u8]) -> Rewritten {
    let mut found = Rewritten::default();
    let mut at = 0;
    // If a string or name is not closed, no later one is closed either. Remembering this avoids further
    // searches to the end.
    let (mut strings, mut names) = (true, true);
    while at < text.len() {
        match text[at] {
            b'"' if strings => at += length_of(string_length(&text[at..]), &mut strings),
            b'<' if names => at += length_of(name_length(&text[at..]), &mut names),
            b'&' => {
                let entity = entity(&text[at..]);
                found.entities |= entity.is_some();
                found.typography |= entity.is_some_and(|(character, _)| plain(character).is_some());
                at += entity.map_or(1, |(_, length)| length);
            }
            0x80.. => {
                let character = first_character(&text[at..]);
                found.typography |= character.is_some_and(|character| plain(character).is_some());
                at += character.map_or(1, char::len_utf8);
            }
            _ => at += 1,
        }
    }
    found
}

/// Returns the length, or 1 if the string or name is not closed, and stores that in `are_closed`.
fn length_of(closed: Option<usize>, are_closed: &mut bool) -> usize {
    *are_closed &= closed.is_some();
    closed.unwrap_or(1)
}

/// Returns the length of `"..."`, if it is closed.
fn string_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        match text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Returns the length of `</path>`, if it is closed.
fn name_length(text: &[u8]) -> Option<usize> {
    memchr::memchr(b'>', text).map(|end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(text: &str) -> String {
        let mut out = Vec::new();
        Rewritten { entities: true, typography: true }.put_back(text.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn replaced_characters_are_restored() {
        for (text, expected) in [
            (
                "openat(AT_FDCWD, “/a”, O_RDONLY) = –1 ENOENT",
                "openat(AT_FDCWD, \"/a\", O_RDONLY) = -1 ENOENT",
            ),
            ("open(&quot;/a&amp;lt;&quot;) = 3 &lt;0.1&gt;", "open(\"/a&lt;\") = 3 <0.1>"),
            ("open(&#34;/a&#x22;, 3&#60;b&#62;", "open(\"/a\", 3<b>"),
            ("open(«\u{a0}/a\u{202f}», „b“)", "open(\"/a\", \"b\")"),
            ("read(3, “a\\”b”…, 4) = 4", "read(3, \"a\\\"b\"..., 4) = 4"),
            ("read(0,  <unfinished …>", "read(0,  <unfinished ...>"),
            ("— SIGCHLD {si_code=1} —", "--- SIGCHLD {si_code=1} ---"),
            ("&ldquo;a&rdquo; 1&nbsp;2 &unknown; & é &#7;", "\"a\" 1 2 &unknown; & é &#7;"),
            ("TCP:[1→2] ⇒ [3]", "TCP:[1->2] => [3]"),
        ] {
            assert_eq!(back(text), expected);
        }
    }

    #[test]
    fn arbitrary_bytes_are_accepted() {
        for bytes in [&b"\xff\xe2\x80"[..], b"&", b"&#", b"&#x110000;", b"\xe2\x80\x9c\xe2", b"&;"] {
            let mut out = Vec::new();
            Rewritten { entities: true, typography: true }.put_back(bytes, &mut out);
            assert!(out.len() <= bytes.len());
        }
    }

    #[test]
    fn an_unclosed_string_does_not_hide_later_text() {
        let found = rewritten_outside("a<b \"c &lt; d \\\" “".as_bytes());
        assert_eq!(found, Rewritten { entities: true, typography: true });
        // If the function searched to the end of the line for each of these, the test would take hours.
        for part in ["<", "\\\"", "\"\\"] {
            assert_eq!(rewritten_outside(part.repeat(1 << 20).as_bytes()), Rewritten::default());
        }
    }

    #[test]
    fn strings_and_file_names_are_not_changed() {
        let found = |text: &str| rewritten_outside(text.as_bytes());
        let none = Rewritten::default();
        assert_eq!(found("write(1, \"&lt;a\\\"&gt;\", 9) = 9"), none);
        assert_eq!(found("read(3</tmp/“a”&lt;>, \"x\", 1) = 1"), none);
        assert_eq!(found("read(3, \"x\", 1) = 1 &lt;0.1&gt;"), Rewritten { entities: true, ..none });
        assert_eq!(found("open(“/a”, 0) = 3"), Rewritten { typography: true, ..none });
        assert_eq!(found("open(&ldquo;/a”, 0) = 3"), Rewritten { entities: true, typography: true });
    }
}
